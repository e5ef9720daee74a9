"""Held graphs: parts of a step by hand that stand still at other tasks, as their workers and as their master see them.

Stands for nothing in TensorFlow.

Rules: the messages are those of RunGraph, the answers what a person may see, as text (JSON). A part lasts as long as
the call that awaits its end, as any part of a step does: if its master is gone, it is given up.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dtflab.base import errors
from dtflab.cluster.admission import InFlight
from dtflab.cluster.answering import Method, ServerCall
from dtflab.cluster.status import from_task
from dtflab.cluster.tensor_codec import Buffer
from dtflab.machine.step_stats import trace_of
from dtflab.protos.worker_pb2 import RunGraphRequest, RunGraphResponse
from dtflab.runtime.step_through import StepThrough
from dtflab.runtime.steps import Counter, OwnPart, Ran, Standing

if TYPE_CHECKING:
    from dtflab.cluster.task import Task
    from dtflab.machine.clock import Event
    from dtflab.runtime.runner import Step

Start = Callable[[str, RunGraphRequest, Callable[[Buffer, errors.OpError | None], object], Callable[[str], object]],
                 Callable[[], object]]  # start(method, request, done, tell); the result gives up  # fmt: skip


class _Held(NamedTuple):
    """A part, on the side of its worker."""

    step: StepThrough
    own: OwnPart
    lock: threading.Lock  # of the thread that drives it
    ended: Event

    def text(self, nodes: Sequence[Standing] = ()) -> bytes:
        """The rows that its master gets."""
        step, own = self.step, self.own
        ran, counters = own.rows
        rows = {"ready": own.ready, "waiting": own.waiting, "counts": own.counts, "ran": ran, "counters": counters,
                "asks": sorted(step.asks()), "sent": step.sent(), "over": step.over, "nodes": nodes}  # fmt: skip
        return json.dumps(rows).encode()

    def free(self) -> None:
        """End what is left of a part that was given up, and let go of its values."""
        with self.lock:
            self.step.forget()
        self.ended.set()


class HeldGraphs:
    """The worker's side: the parts that stand still here, by their steps.

    `begin(request, step)` starts a part, `abandon(step_id)` gives it up everywhere.
    """

    def __init__(
        self, task: Task, begin: Callable[[RunGraphRequest, Step], object], abandon: Callable[[int], object]
    ) -> None:
        self._task, self._begin, self._abandon = task, begin, abandon
        self._held: dict[int, _Held] = {}
        self._in_flight = InFlight(task)

    def methods(self) -> Mapping[str, Method]:
        """Method name → its function."""
        return {"HoldGraph": self._hold, "AwaitGraph": self._await, "AdvanceGraph": self._advance,
                "SettleGraph": self._settle, "AwaitReady": self._await_ready}  # fmt: skip

    def _hold(self, data: Buffer, call: ServerCall) -> bytes:
        request = RunGraphRequest.FromString(data)
        self._in_flight.check(len(self._held))
        clock = self._task.clock
        step = StepThrough(request.step_id, clock, trace=trace_of(clock, request.exec_opts.record_timeline))
        held = _Held(step, OwnPart(step), threading.Lock(), clock.event())
        if self._held.setdefault(request.step_id, held) is not held:
            raise errors.InvalidArgumentError.of(f"Step {request.step_id} stands still here already.")
        call.on_end(lambda why: self.end(request.step_id, why))
        try:
            self._begin(request, step)
            return held.text(held.own.nodes)
        except errors.OpError as error:
            self.end(request.step_id, error)
            raise

    def _await(self, data: Buffer, call: ServerCall) -> bytes:
        """The answer to RunGraph, when the part is over."""
        request = RunGraphRequest.FromString(data)
        held = self._found(request)
        held.step.tell = call.tell
        call.on_end(lambda why: self.end(request.step_id, why))
        with self._in_flight:
            held.ended.wait()
        self._held.pop(request.step_id, None)
        if call.is_gone:
            self._abandon(request.step_id)
        if held.step.error is not None:
            raise held.step.error
        response = RunGraphResponse()
        if held.step.trace is not None and held.step.traced:
            held.step.trace.write(response.step_stats)
        return response.SerializeToString()

    def _advance(self, data: Buffer, call: ServerCall) -> bytes:
        held = self._found(RunGraphRequest.FromString(data))
        return self._moved(held, held.step.advance)

    def _settle(self, data: Buffer, call: ServerCall) -> bytes:
        request = RunGraphRequest.FromString(data)
        held = self._found(request)
        return self._moved(held, lambda: held.step.settle(frozenset(request.recv_key)))

    def _await_ready(self, data: Buffer, call: ServerCall) -> bytes:
        held = self._found(RunGraphRequest.FromString(data))
        gone: list[errors.OpError] = []

        def given_up(why: errors.OpError) -> None:
            gone.append(why)
            held.step.stir()

        call.on_end(given_up)
        return self._moved(held, lambda: held.step.await_ready(lambda: bool(gone)))

    def _moved(self, held: _Held, move: Callable[[], object]) -> bytes:
        """Let a part go on, on this thread; gives its rows then."""
        try:
            with held.lock:
                move()
                return held.text()
        except errors.OpError as error:  # requests for its tensors from now on fail, too
            self._task.worker.rendezvous.find(held.step.step_id).abort(error)
            held.free()
            raise
        finally:
            if held.step.over:
                held.ended.set()

    def end(self, step_id: int, why: Exception) -> None:
        """Give up a part, if there is one; on any thread, which does not wait."""
        held = self._held.pop(step_id, None)
        if held is not None and not held.step.over:
            held.step.cancel(why)
            self._task.clock.spawn(held.free, name=f"end of step {step_id:x}")

    def _found(self, request: RunGraphRequest) -> _Held:
        try:
            return self._held[request.step_id]
        except KeyError:
            raise errors.InvalidArgumentError.of(f"No part of step {request.step_id} stands still here.") from None


class _Rows(NamedTuple):
    """How a part stands, as its worker said."""

    ready: list[str]
    waiting: list[str]
    counts: dict[str, int]
    ran: list[Ran]
    counters: list[Counter]
    asks: list[str]
    sent: list[str]
    over: bool


class RemoteGraph:
    """A part that stands still at another task (steps.HeldPart), by what its worker said last."""

    def __init__(self, task: str, start: Start, answer: Buffer) -> None:
        self.has_ended = False  # the call that awaits its end is answered
        self._task, self._start = task, start
        self._asked = 0  # calls that are not answered
        self._stop_waiting: Callable[[], object] | None = None  # for a node to be ready
        self._rows, self._nodes = self._read(answer)

    @property
    def ready(self) -> list[str]:
        return self._rows.ready

    @property
    def waiting(self) -> list[str]:
        return self._rows.waiting

    @property
    def counts(self) -> dict[str, int]:
        return self._rows.counts

    @property
    def rows(self) -> tuple[list[Ran], list[Counter]]:
        return self._rows.ran, self._rows.counters

    @property
    def nodes(self) -> list[Standing]:
        return [node._replace(waits_for=self.counts.get(node.name, 0)) for node in self._nodes]

    @property
    def asks(self) -> list[str]:
        return self._rows.asks

    @property
    def sent(self) -> list[str]:
        return self._rows.sent

    @property
    def is_busy(self) -> bool:
        return self._asked > 0 or (self._rows.over and not self.has_ended)

    def advance(self, step: Step) -> None:
        if self._rows.over:
            self._rows = self._rows._replace(ran=[], counters=[], sent=[])
        else:
            self._ask(step, "AdvanceGraph")

    def settle(self, step: Step, keys: Sequence[str]) -> None:
        self._ask(step, "SettleGraph", keys)

    def await_ready(self, step: Step) -> None:
        self._stop_waiting = self._ask(step, "AwaitReady")

    def stop(self, step: Step) -> None:
        stop, self._stop_waiting = self._stop_waiting, None
        if stop is not None:
            stop()
            self.settle(step, ())

    def _ask(self, step: Step, method: str, keys: Sequence[str] = ()) -> Callable[[], object]:
        take_back: list[Callable[[], object]] = []

        def done(data: Buffer, error: errors.OpError | None) -> None:
            step.post(self._answered, step, method, take_back, data, error)

        self._asked += 1
        step.expect()
        cancel = self._start(method, RunGraphRequest(step_id=step.step_id, recv_key=keys), done, step.tell)
        take_back.append(step.on_cancel(lambda error: cancel()))
        return cancel

    def _answered(
        self, step: Step, method: str, take_back: list[Callable[[], object]], data: Buffer, error: errors.OpError | None
    ) -> None:
        """Note how it stands now (called by the thread that drives the step)."""
        take_back.pop()()
        self._asked -= 1
        if method == "AwaitReady":
            if error is not None and self._stop_waiting is None:  # it was stopped
                return
            self._stop_waiting = None
        try:
            if error is not None:
                raise error
            self._rows, _ = self._read(data)
        except errors.OpError as failed:
            step.fail(from_task(self._task, failed))

    def _read(self, answer: Buffer) -> tuple[_Rows, list[Standing]]:
        try:
            said = json.loads(bytes(answer))
            nodes = [Standing(*row) for row in said.pop("nodes")]
            ran, counters = [Ran(*row) for row in said.pop("ran")], [Counter(*row) for row in said.pop("counters")]
            return _Rows(ran=ran, counters=counters, **said), nodes
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            text = f"What {self._task} says of its part of the step can't be read: {error!r}"
            raise errors.DataLossError.of(text) from error
