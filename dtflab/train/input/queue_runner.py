"""QueueRunner: threads that keep a queue filled, and close it when there is no more to fill it with.

Stands for `python/training/queue_runner_impl.py`.

Rule: the queue is closed once all threads of the session have reached the end of their input; a coordinator's
stop cancels what still waits. An error that is not the end of input goes to the coordinator, or without one to
`exceptions_raised`.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from dtflab.base import errors
from dtflab.graph import proto_functions
from dtflab.graph.default_stacks import get_default_session
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import add_to_collection, get_collection, get_default_graph, prepend_scope, strip_scope
from dtflab.machine.clock import CURRENT, Thread
from dtflab.machine.console import unheard
from dtflab.protos.queue_runner_pb2 import QueueRunnerDef
from dtflab.runtime.session import BaseSession
from dtflab.train.input.coordinator import Coordinator

_LOG = logging.getLogger("tensorflow")
_UNSEEN = 1  # a level below DEBUG: errors that nobody waits for
_ENDS = (errors.CancelledError, errors.AbortedError, errors.UnavailableError)  # of a session, or of a task of it
_CLOSES = "A thread of the queue runner of %s failed, so the queue closes. coord.join(threads) raises its error: %s: %s"


class QueueRunner:
    """The enqueue operations of one queue, each run again and again in its own thread.

    `close_op` closes the queue: what waits to be put in still gets in. `cancel_op` closes it, and what waits fails.
    `exceptions_raised` is what went wrong in threads that have no coordinator to report to. `queue` is an operation
    after `from_proto`.
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: tuple[type[errors.OpError], ...] | None = None,
        queue_runner_def: QueueRunnerDef | None = None,
        import_scope: str | None = None,
    ) -> None:
        """From a queue and its operations, or from a `queue_runner_def` under `import_scope`.

        `close_op` and `cancel_op` are made if they are not given. `queue_closed_exception_types` are the errors
        that mean "no more input", by default OutOfRangeError; add CancelledError if the enqueue operations
        dequeue from another queue. ValueError and TypeError for arguments that do not fit.
        """
        if queue_runner_def is not None:
            if queue or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._init_from_proto(queue_runner_def, import_scope)
        else:
            if not queue or not enqueue_ops:
                raise ValueError("Must provide queue and enqueue_ops.")
            self.queue, self.enqueue_ops = queue, enqueue_ops
            self.queue_closed_exception_types = _checked_types(queue_closed_exception_types)
            self.close_op = queue.close() if close_op is None else close_op
            self.cancel_op = queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        self._lock = threading.Lock()
        self._runs_per_session: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.exceptions_raised: list[Exception] = []

    def _init_from_proto(self, message: QueueRunnerDef, import_scope: str | None) -> None:
        def find(name: str) -> Any:
            return get_default_graph().as_graph_element(prepend_scope(name, import_scope))

        self.queue = find(message.queue_name)
        self.enqueue_ops = [find(name) for name in message.enqueue_op_name]
        self.close_op, self.cancel_op = find(message.close_op_name), find(message.cancel_op_name)
        types = map(errors.exception_type_from_error_code, message.queue_closed_exception_types)
        self.queue_closed_exception_types = tuple(types) or (errors.OutOfRangeError,)

    def to_proto(self, export_scope: str | None = None) -> QueueRunnerDef | None:
        """This runner as a message, its names without `export_scope`; None if the queue is not in that scope."""
        if export_scope is not None and not self.name.startswith(export_scope):
            return None
        codes = map(errors.error_code_from_exception_type, self.queue_closed_exception_types)
        return QueueRunnerDef(
            queue_name=strip_scope(self.name, export_scope),
            enqueue_op_name=[strip_scope(op.name, export_scope) for op in self.enqueue_ops],
            close_op_name=strip_scope(self.close_op.name, export_scope),
            cancel_op_name=strip_scope(self.cancel_op.name, export_scope),
            queue_closed_exception_types=list(codes),  # type: ignore[arg-type]
        )

    @staticmethod
    def from_proto(queue_runner_def: QueueRunnerDef, import_scope: str | None = None) -> QueueRunner:
        """The runner that `to_proto` described, on the operations of the default graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    @property
    def name(self) -> str:
        """The name of the queue."""
        return str(self.queue.name)

    def create_threads(
        self, sess: BaseSession, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[Thread]:
        """A thread for each enqueue operation and, with a coordinator, one that cancels the queue on a stop.

        They are registered with `coord`. While threads of an earlier call still run for `sess`, no new ones are
        made: the list is empty.
        """
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self.enqueue_ops)
            self.exceptions_raised = []
        name, new = f"QueueRunnerThread-{self.name}", (CURRENT if coord is None else coord.clock).thread
        threads = [new(self._run, sess, op, coord, name=f"{name}-{op.name}", daemon=daemon) for op in self.enqueue_ops]
        if coord is not None:
            threads.append(new(self._close_on_stop, sess, coord, name=f"{name}-close_on_stop", daemon=daemon))
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _run(self, sess: BaseSession, enqueue_op: Any, coord: Coordinator | None) -> None:
        """Run a thread's loop: enqueue until the input ends, a stop is requested, or something goes wrong."""
        ended = False
        try:
            enqueue = sess.make_callable(enqueue_op)
            with unheard():  # it waits for room most of the time
                while coord is None or not coord.should_stop():
                    enqueue()
        except self.queue_closed_exception_types:
            ended = True
        except Exception as error:
            self._report(error, coord)
        finally:
            self._one_less(sess, ended)

    def _report(self, error: Exception, coord: Coordinator | None) -> None:
        if coord is not None:
            # After the end of the training the session is closed, which cancels every wait in it.
            if not (coord.joined and isinstance(error, errors.CancelledError)):
                if isinstance(error, errors.OpError) and not (coord.should_stop() or isinstance(error, _ENDS)):
                    _LOG.warning(_CLOSES, self.name, type(error).__name__, error.message)
                coord.request_stop(error)
            return
        _LOG.error("Exception in QueueRunner: %s", error)
        with self._lock:
            self.exceptions_raised.append(error)
        raise error

    def _one_less(self, sess: BaseSession, ended: bool) -> None:
        """A thread is done; the last one to reach the end of its input closes the queue."""
        with self._lock:
            self._runs_per_session[sess] -= 1
            if ended and self._runs_per_session[sess] == 0:
                _run_if_possible(sess, self.close_op)

    def _close_on_stop(self, sess: BaseSession, coord: Coordinator) -> None:
        coord.wait_for_stop()
        _run_if_possible(sess, self.cancel_op)


def _checked_types(types: Any) -> tuple[type[errors.OpError], ...]:
    if types is None:
        return (errors.OutOfRangeError,)
    if not isinstance(types, tuple) or not types or not all(issubclass(t, errors.OpError) for t in types):
        raise TypeError(
            f"queue_closed_exception_types, when provided, must be a tuple of tf.error types, but saw: {types}"
        )
    return types


def _run_if_possible(sess: BaseSession, op: Any) -> None:
    """Run `op`, unless the session or the queue is gone already: then there is nothing left to close."""
    try:
        sess.run(op)
    except Exception as error:
        _LOG.log(_UNSEEN, "Ignored exception: %s", error)


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Put `qr` where `start_queue_runners` finds it."""
    add_to_collection(collection, qr)


def start_queue_runners(
    sess: BaseSession | None = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[Thread]:
    """Make, and with `start` start, the threads of all queue runners of the graph; a list of them.

    Without `sess` the default session is used: ValueError if there is none. TypeError for anything but a session. A
    MonitoredSession has started them itself, so nothing is left to do.
    """
    if sess is None:
        sess = get_default_session()
        if sess is None:
            raise ValueError(
                "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass "
                "an explicit session to tf.start_queue_runners(sess=sess)"
            )
    if not isinstance(sess, BaseSession):
        if type(sess).__name__ in ("MonitoredSession", "SingularMonitoredSession"):
            return []
        raise TypeError(f"sess must be a `tf.Session` object. Given class: {type(sess)}")
    runners = get_collection(collection)
    if not runners:
        _LOG.warning(
            "`tf.train.start_queue_runners()` was called when no queue runners were defined. You can safely remove "
            "the call to this deprecated function."
        )
    with sess.graph.as_default():
        runners = get_collection(collection)
        return [t for qr in runners for t in qr.create_threads(sess, coord=coord, daemon=daemon, start=start)]


proto_functions.register(GraphKeys.QUEUE_RUNNERS, QueueRunnerDef, QueueRunner.to_proto, QueueRunner.from_proto)
