"""AllReduceHook: what a session does for a group of workers before, between and after its steps.

Stands for nothing in TensorFlow 1, whose PS programs have a chief for this; Horovod has BroadcastGlobalVariablesHook.

Before the first step the workers meet (`meeting.py`) and take over the first one's variables. While it lives,
a thread waits for the end of the session: if no regular end was announced, the worker has failed, and says so to all
others, whose steps fail then.

Rule: all workers start equal, and none outlives another unknowingly. A lost worker can't be replaced in the middle of a
sum: all end, and start again from the last checkpoint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from dtflab.base import errors
from dtflab.base.grouping import grouped
from dtflab.graph.convert import constant
from dtflab.graph.operation import Operation
from dtflab.graph.scopes import device, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.ops.variables import functions as variables_of
from dtflab.protos.config_pb2 import RunOptions
from dtflab.runtime.session import Session
from dtflab.train.collectives.group import WorkerGroup
from dtflab.train.collectives.meeting import Meeting
from dtflab.train.input.coordinator import Coordinator
from dtflab.train.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook

GOODBYE = 10.0  # seconds at most for notifying the neighbours


class AllReduceHook(SessionRunHook):
    """Lets the workers of `group` start together, with the first one's variables, and end together.

    `variables`: by default all global ones that are this worker's own. `timeout` is how many seconds the workers wait
    for each other at the start, and how long a step may take: DeadlineExceededError after that.
    """

    survives_loss = False  # of a task: MonitoredSession asks for it

    def __init__(
        self, group: WorkerGroup, variables: Sequence[Any] | None = None, timeout: float = 600.0, name: str = "workers"
    ) -> None:
        self._group = group
        self._variables = variables
        self._timeout = timeout
        self._name = name
        self._ended = False

    def begin(self) -> None:
        group, given = self._group, self._variables
        wanted = [v for v in variables_of.global_variables() if group.owns(v)] if given is None else given
        with name_scope(f"{self._name}_start"):
            self._start = control.group(*broadcast_variables(group, wanted))
        tensors = group.tensors()
        with name_scope(f"{self._name}_end"), device(group.device):
            self._close = group.close_ops()
            self._all_ended = group.all_reduce(constant(0.0), "tree", what="the end of the training").op
        with name_scope(f"{self._name}_leave"):
            self._clear, self._fail = group.clear_op(), group.fail_ops()
        self._meeting = Meeting(group.devices, group.index, tensors, f"{self._name}_meeting")

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        self._ended = False
        session.run(self._clear)  # nobody sends before the meeting, so this throws away old elements only
        self._meeting.hold(session, self._timeout)
        thread = coord.clock.thread(self._leave, session, coord, name=f"{self._name} of {self._group.device}")
        coord.register_thread(thread)
        thread.start()
        try:
            session.run(self._start, options=self._limit())
        except BaseException:
            coord.request_stop()  # there will be nobody else to do so
            raise

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(None, options=self._limit())

    def end(self, session: Session) -> None:
        """Wait for the others: they may need this worker's task to the end of their last step."""
        self._ended = True
        self._tell(session, self._close)
        try:
            session.run(self._all_ended, options=self._limit())
        except (
            errors.OpError
        ):  # another worker did not get so far, and reports that itself; workers that still wait must go
            self._tell(session, self._fail)

    def _leave(self, session: Session, coord: Coordinator) -> None:
        coord.wait_for_stop()
        if not self._ended:
            self._tell(session, self._fail)

    def _tell(self, session: Session, ops: Iterable[Operation]) -> None:
        """Run each of `ops` by itself: one whose task is gone may fail, but the next one must still run."""
        for op in ops:
            with contextlib.suppress(errors.OpError, RuntimeError):
                session.run(op, options=RunOptions(timeout_in_ms=int(GOODBYE * 1000)))

    def _limit(self) -> RunOptions:
        return RunOptions(timeout_in_ms=int(self._timeout * 1000))


def broadcast_variables(group: WorkerGroup, variables: Sequence[Any]) -> list[Operation]:
    """Operations that give this worker's `variables` the values that the first worker's have. One message per dtype."""
    by_dtype = grouped((variable.dtype.base_dtype, variable) for variable in variables)
    return [op for dtype, alike in by_dtype.items() for op in _broadcast_alike(group, dtype.name, alike)]


def _broadcast_alike(group: WorkerGroup, dtype: str, variables: Sequence[Any]) -> list[Operation]:
    with name_scope(dtype), device(f"{group.device}/cpu:0"):
        flat = [arrays.reshape(variable.read_value(), [-1]) for variable in variables]
        what = ", ".join(f"{variable.op.name} {dtype} {variable.shape}" for variable in variables)
        values = group.broadcast(arrays.concat(flat, 0), what=what)
        if group.index == 0:
            return [values.op]
        parts = arrays.split(values, [part.shape[0].value for part in flat])
        pairs = zip(variables, parts, strict=True)
        return [variable.assign(arrays.reshape(part, variable.shape)).op for variable, part in pairs]
