"""WorkerPace: workers that wait for others, without making one step together.

Stands for nothing in TensorFlow 1; its GlobalStepWaiterHook, which looks twice a second, is a cousin. Bounded staleness
is that of «More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server» (Ho et al., 2013).
Left out: a round that is lost with the first worker's session makes the bound one step narrower.

Two kinds of waiting, both at queues that stand beside the global step:
- Bounded: a worker says that its step is done, and waits for a token. A thread of worker 0 takes one «done» of each
  worker, then gives each a token: that is a round. With `max_ahead` tokens to begin with, nobody who has made n steps
  goes on before everybody has made n − max_ahead.
- Warm-up: the others wait at a gate, which worker 0 opens when the global step has come so far. It stays open: who
  goes through puts back what it took.

Rule: whoever ends lets the others end. A worker's end closes its queue of «done»; rounds end when such a queue is
empty, and with them the tokens; who still waits for one gets OutOfRangeError, which ends a MonitoredSession quietly.
"""

from __future__ import annotations

import contextlib
from typing import Any

from dtflab.graph import convert, dtypes, errors
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops import casting, constant, control_flow
from dtflab.ops.queues import FIFOQueue
from dtflab.train.queue_runner import QueueRunner
from dtflab.train.session_run_hook import SessionRunHook


class WorkerPace:
    """One worker's part. Without `max_ahead` and `warm_up_steps` nobody waits for anybody."""

    def __init__(
        self, worker: int, num_workers: int | None, max_ahead: int | None, warm_up_steps: int, name: str
    ) -> None:
        if max_ahead is not None and (num_workers is None or not 0 <= worker < num_workers):
            raise ValueError(
                f"max_ahead={max_ahead}: to know who is slowest, say how many workers there are, num_workers=…, "
                f"and which this one is: worker={worker} of num_workers={num_workers}."
            )
        self.is_first = worker == 0
        self.begin: list[Operation] = []  # to be run when a session begins
        self.end: list[Operation] = []  # to be run when it ends
        self.rounds: QueueRunner | None = None
        self._worker = worker
        self._others = range(num_workers or 0)
        self._max_ahead = max_ahead
        self._warm_up_steps = warm_up_steps
        self._name = name

    def keep_step(self, train: Operation, global_step: Any) -> Operation:
        """What is done after `train` so that this worker and the others keep step; `train` if that is nothing."""
        with control_dependencies([train]):
            steps = self._counted(global_step)
        if self._warm_up_steps:
            train = self._through_the_gate(train, steps, global_step)
        return train if self._max_ahead is None else self._in_bounds(train, steps, self._max_ahead)

    def _counted(self, global_step: Any) -> Tensor:
        """int32: 1, but 0 for a step that is part of the warm-up."""
        if not (self.is_first and self._warm_up_steps):
            return convert.constant(1)
        counted: Tensor = casting.cast(global_step.read_value() > self._warm_up_steps, dtypes.int32)
        return counted

    def _through_the_gate(self, train: Operation, steps: Tensor, global_step: Any) -> Operation:
        gate = self._queue("gate")
        if not self.is_first:
            with control_dependencies([gate.dequeue()]):
                self.begin.append(gate.enqueue(0))
            return train
        self.end.append(gate.enqueue(0))  # whoever waits for more steps waits in vain
        self.begin.append(self._open(gate, global_step))
        with control_dependencies([train, steps.op]):  # behind the gate others count, too
            return self._open(gate, global_step)

    def _open(self, gate: FIFOQueue, global_step: Any) -> Operation:
        """Let the others through from step `warm_up_steps` on."""
        closed = gate.size() < 1
        far_enough = global_step.read_value() >= self._warm_up_steps
        tokens = casting.cast(closed, dtypes.int32) * casting.cast(far_enough, dtypes.int32)
        return gate.enqueue_many((constant.fill([tokens], 0),))

    def _in_bounds(self, train: Operation, steps: Tensor, max_ahead: int) -> Operation:
        done, token = self._queue(f"done_{self._worker}"), self._queue(f"token_{self._worker}")
        self.end.append(done.close())
        if self.is_first:
            self._make_rounds(done, token, max_ahead)
        with control_dependencies([train]):
            said = done.enqueue_many((constant.fill([steps], 0),))
        with control_dependencies([said]):
            return token.dequeue_many(steps).op  # type: ignore[no-any-return]

    def _make_rounds(self, done: FIFOQueue, token: FIFOQueue, max_ahead: int) -> None:
        """The thread of worker 0, and the tokens with which all begin."""
        dones = [done, *(self._queue(f"done_{other}") for other in self._others[1:])]
        tokens = [token, *(self._queue(f"token_{other}") for other in self._others[1:])]
        with control_dependencies([one.dequeue() for one in dones]):
            turn = control_flow.group(*(one.enqueue(0) for one in tokens))
        close = control_flow.group(*(one.close() for one in tokens))
        self.rounds = QueueRunner(token, [turn], close_op=close, cancel_op=close)
        given = self._queue("given")  # a session that is made anew finds here that the tokens are there
        first = casting.cast(given.size() < 1, dtypes.int32)
        with control_dependencies([one.enqueue_many((constant.fill([first * max_ahead], 0),)) for one in tokens]):
            self.begin.append(given.enqueue(0))

    def _queue(self, what: str) -> FIFOQueue:
        return FIFOQueue(-1, dtypes.int32, shapes=(), shared_name=f"{self._name}_{what}", name=what)


class PaceHook(SessionRunHook):
    """Begins and ends a worker's part in the pace of all."""

    def __init__(self, pace: WorkerPace) -> None:
        self._pace = pace

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Wait at the gate; the first worker fills and starts what the others wait for."""
        session.run(self._pace.begin)
        if self._pace.rounds is not None:
            self._pace.rounds.create_threads(session, coord=coord, daemon=True, start=True)

    def end(self, session: Any) -> None:
        """Let the others end."""
        with contextlib.suppress(errors.OpError):
            session.run(self._pace.end)
