"""MonitoredSession: a session that prepares its model, calls hooks at each run, and survives the loss of a task.

Stands for `python/training/monitored_session.py`; its Scaffold, session creators and wrapped sessions are files of
their own here. Left out: distribution strategies.

Rule: hooks are called in one order. `begin`, while the graph can still change; `after_create_session`, for
each new session; `before_run` and `after_run`; `end`, or `fail` if the training ended with an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.base.credentials import Credentials
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import get_collection, get_default_graph
from dtflab.protos.config_pb2 import ConfigProto, RunMetadata, RunOptions
from dtflab.runtime.session import Session
from dtflab.train.input.coordinator import Coordinator
from dtflab.train.input.queue_runner import start_queue_runners
from dtflab.train.sessions.recording_hooks import CheckpointSaverHook, StepCounterHook, SummarySaverHook
from dtflab.train.sessions.scaffold import Scaffold
from dtflab.train.sessions.session_creator import ChiefSessionCreator, SessionCreator, WorkerSessionCreator
from dtflab.train.sessions.session_run_hook import SessionRunHook
from dtflab.train.sessions.wrapped_session import StepContext, _CoordinatedSession, _HookedSession, _RecoverableSession

USE_DEFAULT: Any = object()  # no value was given


class _CoordinatedSessionCreator(SessionCreator):
    """Makes sessions with threads and hooks around them; knows the newest."""

    def __init__(self, session_creator: Any, hooks: Sequence[Any], stop_grace_period_secs: float) -> None:
        self._session_creator = session_creator
        self._hooks = hooks
        self._stop_grace_period_secs = stop_grace_period_secs
        self.coord: Coordinator | None = None
        self.tf_sess: Session | None = None

    def create_session(self) -> _CoordinatedSession:
        """Make a session, start its queue runners, notify the hooks."""
        self.tf_sess = self._session_creator.create_session()
        self.coord = Coordinator(clean_stop_exception_types=[])  # whatever a thread reports is to be raised
        if get_collection(GraphKeys.QUEUE_RUNNERS):
            start_queue_runners(sess=self.tf_sess, coord=self.coord)
        for hook in self._hooks:
            hook.after_create_session(self.tf_sess, self.coord)
        return _CoordinatedSession(_HookedSession(self.tf_sess, self._hooks), self.coord, self._stop_grace_period_secs)


class _MonitoredSession:
    """Base of MonitoredSession and SingularMonitoredSession."""

    StepContext = StepContext

    def __init__(
        self, session_creator: Any, hooks: Sequence[Any] | None, should_recover: bool, stop_grace_period_secs: float
    ) -> None:
        self._graph = get_default_graph()
        self._graph_was_finalized = self._graph.finalized
        self._hooks = hooks or []
        for hook in self._hooks:
            hook.begin()
        self._coordinated_creator = _CoordinatedSessionCreator(
            session_creator or ChiefSessionCreator(), self._hooks, stop_grace_period_secs
        )
        self._sess: Any
        if should_recover and all(getattr(hook, "survives_loss", True) for hook in self._hooks):
            self._sess = _RecoverableSession(self._coordinated_creator)
        else:
            self._sess = self._coordinated_creator.create_session()

    @property
    def graph(self) -> Any:
        """The graph that the session runs; None when it is closed."""
        sess = self._tf_sess()
        return sess and sess.graph

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run like `tf.Session.run`, in one step with what the hooks want run."""
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn: Callable[[Any], Any]) -> Any:
        """Call `step_fn(step_context)` and return what it returns.

        Its `step_context.session` runs without hooks, `step_context.run_with_hooks` with them, and
        `step_context.request_stop()` ends the training. If a task is lost meanwhile, `step_fn` is called again.

        Raises:
          ValueError: the function does not have the one argument `step_context`.
          StopIteration: it has requested a stop; `with MonitoredSession()` takes that for a normal end.
        """
        arguments = tuple(inspect.signature(step_fn).parameters)
        if arguments not in (("step_context",), ("self", "step_context")):
            raise ValueError(
                "`step_fn` may either have one `step_context` argument, or `self` and `step_context` arguments if "
                f"it's an instance method. Got {arguments} instead."
            )
        return self._sess.run_step_fn(step_fn, lambda: self._tf_sess())

    def should_stop(self) -> bool:
        """True when the training is over: a hook or a thread has asked for it, or the session is closed."""
        return self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Notify the hooks, end the threads, close the session. Raises what went wrong in a thread."""
        self._close_internal()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: Any) -> bool:
        """Close. The end of the input and a requested stop are not errors."""
        if kind in (errors.OutOfRangeError, StopIteration):
            kind = None
        self._close_internal(kind)
        return kind is None

    def _close_internal(self, exception_type: type[BaseException] | None = None) -> None:
        if self._sess is None:
            raise RuntimeError("Session is already closed.")
        sess = self._tf_sess()
        try:
            for hook in self._hooks:
                if exception_type is None:
                    hook.end(sess)
                elif isinstance(hook, SessionRunHook) and sess is not None:  # others need not have it
                    hook.fail(sess)
        finally:
            try:
                self._sess.close()
            finally:
                self._sess = None
                self._coordinated_creator.tf_sess = None
                self._coordinated_creator.coord = None
                if not self._graph_was_finalized:
                    self._graph._unsafe_unfinalize()

    def _tf_sess(self) -> Session | None:
        """The session below all layers, as it is now."""
        return self._coordinated_creator.tf_sess


class MonitoredSession(_MonitoredSession):
    """A session that is initialized or restored, calls hooks, and is recreated after AbortedError or UnavailableError.

        with tf.train.MonitoredSession(session_creator=…, hooks=[…]) as sess:
            while not sess.should_stop():
                sess.run(train_op)

    A hook with `survives_loss = False` does not let it be recreated: then a lost task ends the training.
    `session_creator` is a ChiefSessionCreator if None. The graph is finalized while it is open. After closing it waits
    at most `stop_grace_period_secs` for the threads of queue runners and hooks.
    """

    def __init__(
        self, session_creator: Any = None, hooks: Sequence[Any] | None = None, stop_grace_period_secs: float = 120
    ) -> None:
        super().__init__(session_creator, hooks, should_recover=True, stop_grace_period_secs=stop_grace_period_secs)


class SingularMonitoredSession(_MonitoredSession):
    """A MonitoredSession of one process: always the chief's, never recreated, its raw session at hand.

    The arguments are those of ChiefSessionCreator and MonitoredSession.
    """

    def __init__(
        self,
        hooks: Sequence[Any] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
        *,
        credentials: Credentials | None = None,
    ) -> None:
        creator = ChiefSessionCreator(
            scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path, credentials=credentials
        )
        super().__init__(creator, hooks, should_recover=False, stop_grace_period_secs=stop_grace_period_secs)

    def raw_session(self) -> Session | None:
        """The `tf.Session` below; None when it is closed."""
        return self._tf_sess()


def MonitoredTrainingSession(
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Iterable[Any] | None = None,
    chief_only_hooks: Iterable[Any] | None = None,
    save_checkpoint_secs: float | None = USE_DEFAULT,
    save_summaries_steps: int | None = USE_DEFAULT,
    save_summaries_secs: float | None = USE_DEFAULT,
    config: ConfigProto | None = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: int | None = USE_DEFAULT,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
    *,
    credentials: Credentials | None = None,
) -> MonitoredSession:
    """A MonitoredSession for training: the chief's saves checkpoints and summaries, a worker's waits for the chief.

    Args:
      master: the session's target.
      is_chief: whether to initialize, restore and save the model, or to wait at most `max_wait_secs` for the chief to
      do so. checkpoint_dir: where checkpoints are; None for none.
      scaffold: the pieces around the model; default ones if None.
      hooks: SessionRunHooks.
      chief_only_hooks: those of the chief alone.
      save_checkpoint_secs, save_checkpoint_steps: a checkpoint every N seconds, or else every N steps (600 seconds if
        neither is given); None or 0 for both means none.
      save_summaries_steps, save_summaries_secs: the same for summaries (100 steps).
      config: the session's ConfigProto.
      stop_grace_period_secs: how long to wait for threads after closing.
      log_step_count_steps: `global_step/sec` is logged and summarized every N steps.
      summary_dir: where summaries go; `checkpoint_dir` if None.
      save_graph_def: whether to write `graph.pbtxt`, and meta graphs next to checkpoints.
      credentials: what the server asks for, as of `tf.Session`.
    """
    scaffold = scaffold or Scaffold()
    hooks = list(hooks or [])
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs, credentials=credentials)
        return MonitoredSession(worker, hooks, stop_grace_period_secs)
    first = list(chief_only_hooks or [])
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir:
        rhythm = _rhythm(save_summaries_steps, save_summaries_secs, steps=100)
        first += _summary_hooks(summary_dir, scaffold, log_step_count_steps, rhythm)
    if checkpoint_dir:
        rhythm = _rhythm(save_checkpoint_steps, save_checkpoint_secs, secs=600)
        first += _checkpoint_hooks(checkpoint_dir, scaffold, rhythm, save_graph_def)
    chief = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, credentials=credentials)
    return MonitoredSession(chief, first + hooks, stop_grace_period_secs)


class _Rhythm(NamedTuple):
    """How often: every N steps or seconds; None or 0 for "not by this"."""

    save_steps: int | None
    save_secs: float | None

    def is_never(self) -> bool:
        return not any(number and number > 0 for number in self)


def _rhythm(given_steps: Any, given_secs: Any, steps: int | None = None, secs: float | None = None) -> _Rhythm:
    """The given rhythm; the defaults if neither is given."""
    if given_steps is USE_DEFAULT and given_secs is USE_DEFAULT:
        return _Rhythm(steps, secs)
    return _Rhythm(*(None if given is USE_DEFAULT else given for given in (given_steps, given_secs)))


def _summary_hooks(directory: str, scaffold: Scaffold, count_steps: int | None, rhythm: _Rhythm) -> list[Any]:
    hooks: list[Any] = []
    if count_steps and count_steps > 0:
        hooks.append(StepCounterHook(output_dir=directory, every_n_steps=count_steps))
    if not rhythm.is_never():
        hooks.append(SummarySaverHook(scaffold=scaffold, output_dir=directory, **rhythm._asdict()))
    return hooks


def _checkpoint_hooks(directory: str, scaffold: Scaffold, rhythm: _Rhythm, save_graph_def: bool) -> list[Any]:
    if rhythm.is_never():
        return []
    return [CheckpointSaverHook(directory, scaffold=scaffold, save_graph_def=save_graph_def, **rhythm._asdict())]
