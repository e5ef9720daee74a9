"""Supervisor: a training program's session, and next to it threads that save checkpoints and summaries.

Stands for `python/training/supervisor.py` and `basic_loops.py`. MonitoredTrainingSession came after it.

Rule: one task is the chief. Its supervisor initializes or restores the model and runs the services; the others wait
until the model is ready. Whatever is raised in the program or in a thread stops them all, and is raised again when
the supervisor stops.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dtflab.base import errors, tf_logging as logging
from dtflab.base.credentials import Credentials
from dtflab.files.graph_io import write_graph
from dtflab.graph import dtypes
from dtflab.graph.graph import Graph
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import add_to_collection, get_collection, get_default_graph
from dtflab.machine.clock import Thread
from dtflab.ops.control import functions as control
from dtflab.ops.summaries.functions import merge_all
from dtflab.ops.tables.functions import tables_initializer
from dtflab.ops.variables import functions as variables
from dtflab.protos.config_pb2 import ConfigProto, RunOptions
from dtflab.protos.event_pb2 import SessionLog
from dtflab.runtime.session import Session
from dtflab.train import training_util
from dtflab.train.checkpoints.meta_graph import create_meta_graph_def
from dtflab.train.checkpoints.saver import Saver
from dtflab.train.input.coordinator import Coordinator, LooperThread
from dtflab.train.sessions.session_manager import SessionManager
from dtflab.train.sessions.supervisor_threads import SVStepCounterThread, SVSummaryThread, SVTimerCheckpointThread
from dtflab.train.summaries.summary_writer import FileWriter


class Supervisor:
    """Sees to a training program: `with sv.managed_session(target) as sess:` and `while not sv.should_stop():`.

    Where `USE_DEFAULT` stands, the first element of the piece's collection is taken, or else a piece is made; None
    does without it. The pieces are attributes of the same names, and next to them are

      coord: the Coordinator of all threads, also for threads of the program's own.
      summary_writer: the chief's writer of events; None without `logdir`.
      save_path: the prefix of the chief's checkpoints.
    """

    USE_DEFAULT = 0

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Any = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: str | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: Any = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Session], Any] | None = None,
        local_init_run_options: RunOptions | None = None,
        *,
        credentials: Credentials | None = None,
    ) -> None:
        """Complete the graph with what the supervisor needs, and finalize it.

        Args:
          graph: the default graph if None.
          ready_op: a vector of strings, the names of what is not initialized.
          ready_for_local_init_op: the same, asked before `local_init_op`; not asked by default.
          is_chief: whether this task initializes, restores and saves the model.
          init_op, init_feed_dict, init_fn: initialize the model: an operation, its feeds, a function of the session.
          local_init_op, local_init_run_options: run by every task, for local variables and tables.
          logdir: where checkpoints and summaries go; the chief's alone.
          summary_op: a string, the summaries merged.
          saver: a `tf.train.Saver`.
          global_step: an integer tensor that counts steps.
          save_summaries_secs, save_model_secs: how often, in seconds; 0 for never.
          recovery_wait_secs: how often a waiting task says that the model is not ready.
          stop_grace_secs: how long threads may take to stop.
          checkpoint_basename: checkpoints are files `logdir/checkpoint_basename-…`.
          session_manager: a `tf.train.SessionManager` to use.
          summary_writer: a `tf.summary.FileWriter` to use.
          credentials: what the server asks for, as of `tf.Session`; a `session_manager` has its own.

        Raises:
          ValueError: the graph of a task that is not the chief has reference variables without a device.
        """
        self._graph = graph = graph if graph is not None else get_default_graph()
        self.is_chief = is_chief
        self.init_feed_dict, self._init_fn = init_feed_dict, init_fn
        self._stop_grace_secs = stop_grace_secs
        self.coord = Coordinator()
        with graph.as_default():
            self.ready_op = _piece(ready_op, GraphKeys.READY_OP, variables.report_uninitialized_variables)
            self.ready_for_local_init_op = _piece(ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP)
            self.init_op = _piece(init_op, GraphKeys.INIT_OP, variables.global_variables_initializer)
            self._local_init_op = _piece(local_init_op, GraphKeys.LOCAL_INIT_OP, _default_local_init_op)
            self.saver = _piece(saver, GraphKeys.SAVERS, lambda: Saver() if variables.global_variables() else None)
            self.summary_op = _piece(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self.global_step = _piece(global_step, GraphKeys.GLOBAL_STEP, _default_global_step)
        self._meta_graph_def = create_meta_graph_def(
            graph_def=graph.as_graph_def(add_shapes=True), saver_def=self.saver.saver_def if self.saver else None
        )
        # Only a chief writes checkpoints and events.
        self._logdir = logdir if is_chief else None
        self.save_summaries_secs = save_summaries_secs if is_chief else None
        self.save_model_secs = save_model_secs if is_chief else None
        self.save_path = os.path.join(self._logdir, checkpoint_basename) if self._logdir else None
        self.summary_writer = self._writer(summary_writer) if is_chief else None
        self._graph_added_to_summary = False
        ops = self._local_init_op, self.ready_op, self.ready_for_local_init_op
        self.session_manager = session_manager or SessionManager(
            *ops, graph, recovery_wait_secs, local_init_run_options=local_init_run_options, credentials=credentials
        )
        self._verify_setup()
        graph.finalize()

    def _writer(self, summary_writer: Any) -> Any:
        if summary_writer is not Supervisor.USE_DEFAULT:
            return summary_writer
        return FileWriter(self._logdir) if self._logdir else None

    def _verify_setup(self) -> None:
        """Tasks share variables by device and name: without a device, each would have its own."""
        for op in self._graph.get_operations() if not self.is_chief else ():
            if op.type in ("Variable", "VariableV2") and not op.device:
                raise ValueError(f"When using replicas, all Variables must have their device set: {op}")

    # ---- sessions

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Session:
        """A session on a model that is ready: restored or initialized by a chief, waited for by the others.

        With `start_standard_services`, the chief's services and everybody's queue runners are started.

        Raises:
          RuntimeError: the chief can't make the model ready.
          DeadlineExceededError: it did not become ready within `max_wait_secs`.
        """
        self.coord.clear_stop()
        if self.summary_writer:
            self.summary_writer.reopen()
        if self.is_chief:
            options: dict[str, Any] = {"wait_for_checkpoint": wait_for_checkpoint, "max_wait_secs": max_wait_secs}
            options |= {"init_op": self.init_op, "init_feed_dict": self.init_feed_dict, "init_fn": self._init_fn}
            sess = self.session_manager.prepare_session(
                master, saver=self.saver, checkpoint_dir=self._logdir, config=config, **options
            )
            self._write_graph()
            if start_standard_services:
                logging.info("Starting standard services.")
                self.start_standard_services(sess)
        else:
            sess = self.session_manager.wait_for_session(master, config=config, max_wait_secs=max_wait_secs)
        if start_standard_services:
            logging.info("Starting queue runners.")
            self.start_queue_runners(sess)
        return sess

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: ConfigProto | None = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Session]:
        """`prepare_or_wait_for_session`, and at the end of the block `stop`; the session is closed.

        What the block or a thread raises is raised when all threads have stopped; OutOfRangeError, the end of the
        input, is a normal end.
        """
        sess = None
        try:
            sess = self.prepare_or_wait_for_session(
                master=master, config=config, start_standard_services=start_standard_services
            )
            yield sess
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if sess is not None:
                    with contextlib.suppress(Exception):  # what went wrong before says more
                        sess.close()

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self.summary_writer and not self._graph_added_to_summary:
            self.summary_writer.add_graph(self._graph)
            self.summary_writer.add_meta_graph(self._meta_graph_def)
            self._graph_added_to_summary = True

    # ---- threads

    def start_standard_services(self, sess: Session) -> list[Thread] | None:
        """Start the threads that write summaries, steps per second and checkpoints; a list of them.

        RuntimeError if this is not the chief's supervisor; nothing happens without a `logdir`.
        """
        if not self.is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors can write events."
            )
        if not self._logdir:
            logging.warning("Standard services need a 'logdir' passed to the SessionManager")
            return None
        if self.global_step is not None and self.summary_writer:
            step = training_util.global_step(sess, self.global_step)
            self.summary_writer.add_session_log(SessionLog(status=SessionLog.START), step)
        threads: list[Thread] = []
        if self.save_summaries_secs and self.summary_writer:
            if self.summary_op is not None:
                threads.append(SVSummaryThread(self, sess))
            if self.global_step is not None:
                threads.append(SVStepCounterThread(self, sess))
        if self.saver and self.save_model_secs:
            threads.append(SVTimerCheckpointThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    def start_queue_runners(self, sess: Session, queue_runners: Sequence[Any] | None = None) -> list[Thread]:
        """Start the threads of `queue_runners` (all of the graph); a list of them."""
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        return [
            thread
            for runner in queue_runners
            for thread in runner.create_threads(sess, coord=self.coord, daemon=True, start=True)
        ]

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls `target(*args, **kwargs)` every `timer_interval_secs`, until all stop."""
        return LooperThread.loop(self.coord, timer_interval_secs, target, args, kwargs)

    def stop(
        self,
        threads: Sequence[Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Stop the threads, close the writer of summaries. Raises what was raised in a thread. Sessions stay open."""
        self.coord.request_stop()
        try:
            self.coord.join(
                threads, stop_grace_period_secs=self._stop_grace_secs, ignore_live_threads=ignore_live_threads
            )
        finally:
            # After the threads, which may have used it.
            if close_summary_writer and self.summary_writer:
                self.summary_writer.add_session_log(SessionLog(status=SessionLog.STOP))
                self.summary_writer.close()
                self._graph_added_to_summary = False

    def request_stop(self, ex: Any = None) -> None:
        """See `Coordinator.request_stop`."""
        self.coord.request_stop(ex=ex)

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self.coord.should_stop()

    def stop_on_exception(self) -> contextlib.AbstractContextManager[None]:
        """See `Coordinator.stop_on_exception`."""
        return self.coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Wait until a stop is requested."""
        self.coord.wait_for_stop()

    def summary_computed(self, sess: Session, summary: Any, global_step: int | None = None) -> None:
        """Write a summary (a Summary or its bytes) that the program has computed, at the current step if none is given.

        RuntimeError without a summary writer: not the chief, or no `logdir`.
        """
        if not self.summary_writer:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self.global_step is not None:
            global_step = training_util.global_step(sess, self.global_step)
        self.summary_writer.add_summary(summary, global_step)

    # The names of TensorFlow's first release.
    PrepareSession = prepare_or_wait_for_session
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    RequestStop = request_stop
    Loop = loop
    ShouldStop = should_stop
    StopOnException = stop_on_exception
    WaitForStop = wait_for_stop
    SummaryComputed = summary_computed


def _piece(given: Any, key: str, make: Callable[[], Any] | None = None) -> Any:
    """The given value; by default the first element of the collection, or what `make` makes, which is entered there."""
    if given is not Supervisor.USE_DEFAULT:
        return given
    found = get_collection(key)
    if len(found) > 1:
        logging.info("Found %d %s operations. Returning the first one.", len(found), key)
    if found:
        return found[0]
    made = make() if make is not None else None
    if made is not None:
        add_to_collection(key, made)
    return made


def _default_local_init_op() -> Any:
    return control.group(variables.local_variables_initializer(), tables_initializer())


def _default_global_step() -> Any:
    """The tensor `global_step:0`, if there is one and it counts."""
    try:
        step = get_default_graph().get_tensor_by_name("global_step:0")
    except KeyError:
        return None
    if step.dtype.base_dtype in (dtypes.int32, dtypes.int64):
        return step
    logging.warning("Found 'global_step' is not an int type: %s", step.dtype)
    return None


def basic_train_loop(
    supervisor: Any,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Call `train_step_fn(session, *args, **kwargs)` until `supervisor.should_stop()`.

    The session is the supervisor's, on `master`. After an AbortedError, by which a server that was restarted
    announces itself, a new session goes on; any other exception ends the loop and is raised.
    """
    while True:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
            return
        except errors.AbortedError:
            continue
