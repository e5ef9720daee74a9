"""The layers of a MonitoredSession: each wraps a session and adds one thing to `run`.

    _RecoverableSession      makes a new session when the old one is lost
    └── _CoordinatedSession  stops the threads; raises what went wrong in them
        └── _HookedSession   asks the hooks before and after each run
            └── Session

Stands for the wrapped sessions of `python/training/monitored_session.py`.

Rule: AbortedError and UnavailableError mean that a task was lost, which a new session may mend. They pass through the
inner layers and stop at the recoverable one; every other error ends the training. A step whose answer was lost may have
been applied, and runs again: at least once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dtflab.base import errors, tf_logging as logging
from dtflab.base.timeouts import timeouts
from dtflab.machine.clock import CURRENT, Clock
from dtflab.machine.console import say
from dtflab.protos.config_pb2 import RunMetadata, RunOptions
from dtflab.runtime.session import Session
from dtflab.train.input.coordinator import Coordinator
from dtflab.train.sessions.session_manager import pauses
from dtflab.train.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunValues

Result = TypeVar("Result")

LOST = (errors.AbortedError, errors.UnavailableError)


class StepContext:
    """The argument of `run_step_fn`'s function: the bare session, a `run` with hooks, and a way to stop."""

    def __init__(self, session: Session | None, run_with_hooks_fn: Callable[..., Any]) -> None:
        self.session = session  # below all layers: its `run` calls no hook
        self.run_with_hooks = run_with_hooks_fn  # the same as `MonitoredSession.run`

    def request_stop(self) -> None:
        """End the training: raises StopIteration, which `with MonitoredSession()` takes for a normal end."""
        raise StopIteration("step_fn has requested the iterations to stop.")


class _WrappedSession:
    """Base of the layers: hands on everything. A closed one should stop; closing it twice does no harm."""

    def __init__(self, sess: Session | _WrappedSession) -> None:
        self._sess: Any = sess  # None once it is closed

    @property
    def graph(self) -> Any:
        return self._sess.graph

    @property
    def sess_str(self) -> Any:
        return self._sess.sess_str

    def should_stop(self) -> bool:
        """True if this session or one below it should not be used any more."""
        if self._check_stop() or self._sess is None:
            return True
        return isinstance(self._sess, _WrappedSession) and self._sess.should_stop()

    def _check_stop(self) -> bool:
        """This layer's own condition."""
        return False

    def close(self) -> None:
        """Close the session; the loss of a task is logged, it does not fail."""
        sess, self._sess = self._sess, None
        if sess is None:
            return
        try:
            sess.close()
        except LOST as error:
            logging.error(
                "An error occurred when attempting to close the session. This may be due to a preemption in a "
                "connected worker or parameter server. Error: %s",
                error,
            )

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self._sess.run(*args, **kwargs)

    def run_step_fn(self, step_fn: Callable[[StepContext], Any], raw_session: Callable[[], Any]) -> Any:
        """Call `step_fn` with the bare session as it is now, and with this layer's `run`."""
        return step_fn(StepContext(raw_session(), self.run))


class _RecoverableSession(_WrappedSession):
    """Makes a new session, by `sess_creator.create_session()`, whenever the old one is lost, and goes on with it."""

    def __init__(self, sess_creator: Any, *, clock: Clock = CURRENT) -> None:
        self._sess_creator = sess_creator
        self._clock = clock
        super().__init__(self._create_session())

    def _create_session(self) -> Any:
        """Try until there is a session; says what keeps it from coming, each time after twice as long."""
        reminded, wait = self._clock.now(), timeouts.notice
        for pause in pauses(timeouts.recovery):
            try:
                return self._sess_creator.create_session()
            except LOST as error:
                _log_lost("An error was raised while a session was being created.", "of", "A", error)
                if self._clock.now() - reminded >= wait:
                    reminded, wait = self._clock.now(), 2 * wait
                    say(f"MonitoredSession still waiting for a session: {error.message}")
                reason = error.message
            self._clock.rest(pause, f"a session: {reason}")

    def _check_stop(self) -> bool:
        """Like the session below; but a lost session is recreated, and what fails should stop instead of raising."""
        try:
            return self._sess is None or self._sess._check_stop()
        except LOST as error:
            _log_lost("An error was raised while considering whether the session is complete.", "in", _CLOSED, error)
            self.close()
            self._sess = self._create_session()
            return False
        except Exception:  # it is raised by `close`
            return True

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self._recovering(lambda sess: sess.run(*args, **kwargs))

    def run_step_fn(self, step_fn: Callable[[StepContext], Any], raw_session: Callable[[], Any]) -> Any:
        return self._recovering(lambda sess: sess.run_step_fn(step_fn, raw_session))

    def _recovering(self, call: Callable[[Any], Result]) -> Result:
        while True:
            try:
                if self._sess is None:
                    self._sess = self._create_session()
                return call(self._sess)
            except LOST as error:
                _log_lost("An error was raised.", "in", _CLOSED, error)
                say(_AGAIN)
                self.close()


class _CoordinatedSession(_WrappedSession):
    """A session next to threads of a `coord`: an error in one of them is raised here, closing waits for all."""

    def __init__(self, sess: _WrappedSession, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord = coord
        self._stop_grace_period_secs = stop_grace_period_secs

    def _check_stop(self) -> bool:
        self._coord.raise_requested_exception()
        return bool(self._coord.should_stop())

    def close(self) -> None:
        """Stop the threads, close the session, and raise what went wrong in the threads."""
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)
        finally:
            with contextlib.suppress(Exception):  # the threads' errors say more
                super().close()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run; if it fails because a thread lost its task before, that is the error to raise."""
        try:
            return self._sess.run(*args, **kwargs)
        except LOST:
            raise
        except Exception as error:
            try:
                self._coord.raise_requested_exception()
            except LOST:
                raise
            except Exception:
                raise error from None
            raise


class _HookedSession(_WrappedSession):
    """Adds to each run what the hooks want fetched and fed, and gives them the results."""

    def __init__(self, sess: Session, hooks: Sequence[Any]) -> None:
        super().__init__(sess)
        self._hooks = hooks
        self._should_stop = False

    def _check_stop(self) -> bool:
        return self._should_stop

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run `fetches` and the hooks' fetches in one step; RuntimeError if a hook has asked to stop before."""
        if self.should_stop():
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(original_args=SessionRunArgs(fetches, feed_dict), session=self._sess)
        options = options or RunOptions()
        wanted = {"caller": fetches}
        feed_dict = self._ask_hooks(context, wanted, feed_dict, options)
        run_metadata = run_metadata or RunMetadata()
        results = self._sess.run(fetches=wanted, feed_dict=feed_dict, options=options, run_metadata=run_metadata)
        for hook in self._hooks:
            values = SessionRunValues(results=results.get(hook), options=options, run_metadata=run_metadata)
            hook.after_run(context, values)
        self._should_stop = self._should_stop or context.stop_requested
        return results["caller"]

    def _ask_hooks(
        self, context: SessionRunContext, wanted: dict[Any, Any], feed_dict: Any, options: RunOptions
    ) -> Any:
        """Collect the hooks' fetches in `wanted`, their options in `options`; returns all feeds."""
        feeds: dict[Any, Any] = {}
        for hook in self._hooks:
            request = hook.before_run(context)
            if request is None:
                continue
            if request.fetches is not None:
                wanted[hook] = request.fetches
            if request.feed_dict:
                _check_disjoint(feeds, request.feed_dict, "Same tensor is fed by two hooks.")
                feeds.update(request.feed_dict)
            if request.options:
                _merge_run_options(options, request.options)
        if not feeds or not feed_dict:
            return feeds or feed_dict
        _check_disjoint(feed_dict, feeds, "Same tensor is fed by a SessionRunHook and user.")
        return {**feeds, **feed_dict}


def _check_disjoint(feeds: Any, others: Any, message: str) -> None:
    both = set(feeds) & set(others)
    if both:
        raise RuntimeError(f"{message} Conflict(s): {list(both)}")


def _merge_run_options(options: RunOptions, others: RunOptions) -> None:
    """Add a hook's wishes to `options`: of each field the larger value, of the debugger's watches all."""
    for field in ("trace_level", "timeout_in_ms", "inter_op_thread_pool", "output_partition_graphs",
                  "report_tensor_allocations_upon_oom"):  # fmt: skip
        setattr(options, field, max(getattr(options, field), getattr(others, field)))
    debug = options.debug_options
    debug.debug_tensor_watch_opts.extend(others.debug_options.debug_tensor_watch_opts)
    debug.reset_disk_byte_usage = debug.reset_disk_byte_usage or others.debug_options.reset_disk_byte_usage


_AGAIN = (
    "MonitoredSession runs the step again in a new session. What the lost attempt had updated may count twice: a step "
    "runs at least once, as in TensorFlow."
)
_CLOSED = "The current session will be closed and a"


def _log_lost(event: str, of: str, then: str, error: errors.OpError) -> None:
    logging.info(
        f"{event} This may be due to a preemption {of} a connected worker or parameter server. {then} new session will "
        "be created. This error may also occur due to a gRPC failure caused by high memory or network bandwidth usage "
        "in the parameter servers. If this error occurs repeatedly, try increasing the number of parameter servers "
        "assigned to the job. Error: %s",
        error,
    )
