"""WorkerPace: workers that wait for others, without making one step together.

Stands for nothing in TensorFlow 1; its GlobalStepWaiterHook, which looks twice a second, is a cousin. Bounded staleness
is that of "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server" (Ho et al., 2013).
Left out: a round that is lost with the first worker's session makes the bound one step narrower. A worker whose
process is killed can't say so, and is waited for until it comes back, as in SyncReplicasOptimizer; a worker that waits
reports for which one.

Two kinds of waiting, both at queues that stand next to the global step:
- Bounded: a worker says that its step is done, and waits for a token. A thread of worker 0 takes one "done" of each
  worker, then gives each a token: that is a round. With `max_ahead` tokens to begin with, no worker that has made n
  steps goes on before all have made n − max_ahead.
- Warm-up: the others wait at a gate, which worker 0 opens when the global step has come so far. It stays open: a worker
  that passes puts back what it took.

Rule: a worker that ends lets the others end. A worker's end closes its queue of "done"; rounds end when such a queue
is empty, and with them the tokens; a worker that still waits for one gets OutOfRangeError, which ends a
MonitoredSession quietly. So does an error of the first worker, which makes the rounds. Another one that fails leaves a
mark among its "done", which each round takes and puts back: the others go on. In its next session it takes part again,
from the round under way on; a token that it was waiting for is still its own.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtflab.base import errors
from dtflab.graph import convert, dtypes
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.machine import clock
from dtflab.machine.console import say
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.ops.queues.functions import FIFOQueue
from dtflab.protos.config_pb2 import RunOptions
from dtflab.runtime.session import Session
from dtflab.train.input.coordinator import Coordinator
from dtflab.train.input.queue_runner import QueueRunner
from dtflab.train.sessions.session_run_hook import SessionRunContext, SessionRunHook, SessionRunValues

_AWAY = 1  # among the "done" of a worker, each of which is 0
_GOODBYE = 10.0  # seconds at most for notifying the others
_PATIENCE = 30.0  # seconds that a step may take before its worker says for whom it may be waiting


class WorkerPace:
    """One worker's part. Without `max_ahead` and `warm_up_steps` nobody waits for anybody."""

    def __init__(
        self, worker: int, num_workers: int | None, max_ahead: int | None, warm_up_steps: int, name: str
    ) -> None:
        if max_ahead is not None and (num_workers is None or not 0 <= worker < num_workers):
            raise ValueError(
                f"max_ahead={max_ahead}: finding the slowest worker needs their number, num_workers=…, "
                f"and which this one is: worker={worker} of num_workers={num_workers}."
            )
        self.is_first = worker == 0
        self.begin: list[Operation] = []  # to be run when a session begins
        self.resume: list[Operation] = []  # to be run when rounds can be made: gets what the last session waited for
        self.last_round: list[Operation] = []  # to be run by the first worker before the threads are stopped
        self.end: list[Operation] = []  # to be run when the training ends
        self.fail = self.end if worker == 0 else []  # to be run when it ends with an error
        self.rounds: QueueRunner | None = None
        self._worker = worker
        self._others = range(num_workers or 0)
        self._max_ahead = max_ahead
        self._warm_up_steps = warm_up_steps
        self._name = name

    def keep_step(self, train: Operation, global_step: Any) -> Operation:
        """The op that runs after `train` so that this worker and the others keep step; `train` if there is none."""
        with control_dependencies([train]):
            steps = self._counted(global_step)
        if self._warm_up_steps:
            train = self._through_the_gate(train, steps, global_step)
        return train if self._max_ahead is None else self._in_bounds(train, steps, self._max_ahead)

    def _counted(self, global_step: Any) -> Tensor:
        """int32: 1, but 0 for a step that is part of the warm-up."""
        if not (self.is_first and self._warm_up_steps):
            return convert.constant(1)
        return arrays.cast(global_step.read_value() > self._warm_up_steps, dtypes.int32)

    def _through_the_gate(self, train: Operation, steps: Tensor, global_step: Any) -> Operation:
        gate = self._queue("gate")
        if not self.is_first:
            with control_dependencies([gate.dequeue()]):
                self.begin.append(gate.enqueue(0))
            return train
        self.end.append(gate.enqueue(0))  # waiting for more steps would be in vain
        self.begin.append(self._open(gate, global_step))
        with control_dependencies([train, steps.op]):  # behind the gate others count, too
            return self._open(gate, global_step)

    def _open(self, gate: FIFOQueue, global_step: Any) -> Operation:
        """Let the others through from step `warm_up_steps` on."""
        closed = gate.size() < 1
        far_enough = global_step.read_value() >= self._warm_up_steps
        tokens = arrays.cast(closed, dtypes.int32) * arrays.cast(far_enough, dtypes.int32)
        return gate.enqueue_many((arrays.fill([tokens], 0),))

    def _in_bounds(self, train: Operation, steps: Tensor, max_ahead: int) -> Operation:
        done, token = self._queue(f"done_{self._worker}"), self._queue(f"token_{self._worker}")
        away, owed = self._queue(f"away_{self._worker}"), self._queue(f"owed_{self._worker}")
        self.begin.append(away.dequeue_many(away.size()).op)
        with control_dependencies([token.dequeue_many(owed.size()).op]):
            self.resume.append(owed.dequeue_many(owed.size()).op)
        if self.is_first:
            self.last_round.append(done.close())
            self._make_rounds(done, token, max_ahead)
        else:
            self.end.append(done.close())
            with control_dependencies([away.enqueue(0)]):
                self.fail.append(done.enqueue(_AWAY))
        with control_dependencies([train]):
            said = done.enqueue_many((arrays.fill([steps], 0),))
        with control_dependencies([said]):
            waits = owed.enqueue_many((arrays.fill([steps], 0),))
        with control_dependencies([waits]):
            given = token.dequeue_many(steps).op
        with control_dependencies([given]):
            return owed.dequeue_many(steps).op

    def _make_rounds(self, done: FIFOQueue, token: FIFOQueue, max_ahead: int) -> None:
        """The thread of worker 0, and the tokens with which all begin."""
        tokens = [token, *(self._queue(f"token_{other}") for other in self._others[1:])]
        dones = [self._done_of(other) for other in self._others]
        with control_dependencies([mark.op for mark in dones]):
            pairs = zip(tokens, dones, strict=True)
            turn = control.group(*(one.enqueue_many((arrays.fill([1 - mark], 0),)) for one, mark in pairs))
        close = control.group(*(one.close() for one in tokens))
        self.end.append(close)
        # If its session is only recreated, a mark for one round ends the round under way; the next one waits for it.
        self.rounds = QueueRunner(token, [turn], close_op=close, cancel_op=done.enqueue(_AWAY))
        given = self._queue("given")  # a recreated session finds here that the tokens are there
        first = arrays.cast(given.size() < 1, dtypes.int32)
        with control_dependencies([one.enqueue_many((arrays.fill([first * max_ahead], 0),)) for one in tokens]):
            self.begin.append(given.enqueue(0))

    def _done_of(self, worker: int) -> Tensor:
        """0 when `worker` has made its step of this round; or the mark that it is away, which is put back at once."""
        queue = self._queue(f"done_{worker}")
        done: Tensor = queue.dequeue()
        with control_dependencies([done.op]):
            stays = done * self._queue(f"away_{worker}").size()
        with control_dependencies([queue.enqueue_many((arrays.fill([stays], _AWAY),))]):
            return arrays.identity(done)

    @property
    def rounds_wait(self) -> bool:
        """Whether somebody may wait for others in each step."""
        return self._max_ahead is not None

    def report(self, since: float, rows: NDArray[np.float64]) -> str:
        """The report of a waiting worker, with the last moments of all others in the log's `rows`; Unix seconds."""
        lasts = {other: float(rows[rows[:, 0] == other, 3].max(initial=0)) for other in self._others}
        lines = [f"worker {other}: {_clock_time(lasts[other])}" for other in sorted(lasts, key=lasts.__getitem__)]
        return (
            f"Worker {self._worker} has been in a step since {_clock_time(since)}. With max_ahead={self._max_ahead} it "
            f"waits for the slowest worker. Last gradients of each, the oldest first: {', '.join(lines)}. A worker "
            "whose process has died is waited for until it is started again."
        )

    def _queue(self, what: str) -> FIFOQueue:
        return FIFOQueue(-1, dtypes.int32, shapes=(), shared_name=f"{self._name}_{what}", name=what)


def _clock_time(moment: float) -> str:
    """`moment`, in Unix seconds, as the time of day; 0 is for what was not yet."""
    return time.strftime("%H:%M:%S", time.localtime(moment)) if moment else "none yet"


class PaceHook(SessionRunHook):
    """Begins and ends a worker's part in the pace of all."""

    def __init__(self, pace: WorkerPace, rows: Tensor | None) -> None:
        """`rows` of the log show when a gradient of each worker came."""
        self._pace = pace
        self._rows = rows
        self._coord: Any = None
        self._since: float | None = None  # when the step that is being made began

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Wait at the gate; the first worker fills and starts what the others wait for."""
        self._coord = coord
        session.run(self._pace.begin)
        if self._pace.rounds is not None:
            self._pace.rounds.create_threads(session, coord=coord, daemon=True, start=True)
        session.run(self._pace.resume)
        if self._pace.rounds_wait and clock.current() is clock.REAL:  # in virtual time such a wait is a DeadlockError
            watch = coord.clock.spawn(self._watch, session, coord, name="StalenessOptimizer's watch")
            coord.register_thread(watch)

    def before_run(self, run_context: SessionRunContext) -> None:
        self._since = clock.CURRENT.time()

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._since = None

    def _watch(self, session: Session, coord: Coordinator) -> None:
        patience = _PATIENCE
        while not coord.wait_for_stop(patience):
            since = self._since
            if since is not None and clock.CURRENT.time() - since >= patience:
                patience *= 2
                with contextlib.suppress(errors.OpError, RuntimeError):  # the session may end meanwhile
                    say(self._pace.report(since, session.run(self._rows)))

    def end(self, session: Session) -> None:
        """Let the others end."""
        self._tell(session, self._pace.end)

    def fail(self, session: Session) -> None:
        """Let the others go on without this worker, or end without the first one."""
        self._tell(session, self._pace.fail)

    def _tell(self, session: Session, ops: list[Operation]) -> None:
        if self._pace.rounds is not None:
            _run(session, self._pace.last_round)  # after the stop, its mark would make one round more
            self._coord.request_stop()  # before the tokens are closed, which would be an error of the rounds
        _run(session, ops)


def _run(session: Session, ops: list[Operation]) -> None:
    with contextlib.suppress(errors.OpError, RuntimeError):  # the session may be what has failed
        session.run(ops, options=RunOptions(timeout_in_ms=int(_GOODBYE * 1000)))
