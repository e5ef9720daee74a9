"""The queue that lives in a container of a device: elements are tuples of arrays, and many steps use it at once.

Stands for `core/framework/queue_interface.h`, the checks in `queue_base.cc` and `MatchesNodeDef` of each kind.

Rules: the queue's state (queue_state.py) makes all changes, under the queue's lock; callbacks run outside the lock.
Every node that shares a queue must declare the same kind, capacity, types and shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from dtflab.base import events
from dtflab.base.brief_lock import BriefLock
from dtflab.base.events import PROCESS, QueueEvent
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.graph.node import Node
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import dtype_text, invalid, shape_text
from dtflab.ops.philox import PhiloxStream
from dtflab.ops.queues.queue_kinds import FIFOState, PaddingFIFOState, PriorityState, ShuffleState
from dtflab.ops.queues.queue_state import UNBOUNDED, Attempt, Close, Element, QueueState
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER, plain_name


class Spec(NamedTuple):
    """The queue that a node declares."""

    kind: str
    capacity: int
    types: tuple[DType, ...]
    shapes: tuple[TensorShape, ...]  # none if shapes are not given
    min_after_dequeue: int
    seeds: tuple[int, int]

    @staticmethod
    def of(node: Node) -> Spec:
        """The declaration of `node`."""
        kind, types, shapes = node.op.removesuffix("V2"), tuple(node["component_types"]), tuple(node["shapes"])
        if kind == "PriorityQueue":
            types, shapes = (dtypes.int64, *types), (TensorShape([]), *shapes) if shapes else ()
        capacity = node["capacity"] if node["capacity"] >= 0 else UNBOUNDED
        least, seed, seed2 = (node.attrs.get(name, 0) for name in ("min_after_dequeue", "seed", "seed2"))
        return Spec(kind, capacity, types, shapes, least, (seed, seed2))

    def new_state(self, name: str) -> QueueState:
        """An empty queue of this kind. Raises InvalidArgumentError if the declaration contradicts itself."""
        if self.shapes and len(self.shapes) != len(self.types):
            raise invalid(f"The queue has {len(self.types)} components, but {len(self.shapes)} shapes are given")
        if self.kind == "RandomShuffleQueue":
            if self.min_after_dequeue < 0:
                raise invalid(f"min_after_dequeue {self.min_after_dequeue} must be >= 0")
            if self.min_after_dequeue >= self.capacity:
                raise invalid(f"min_after_dequeue {self.min_after_dequeue} must be < capacity {self.capacity}")
            draw = PhiloxStream(*self.seeds).words().__next__
            return ShuffleState(name, self.capacity, self.min_after_dequeue, draw)
        return _STATES[self.kind](name, self.capacity)

    def differs(self, asked: Spec) -> str:
        """The first property in which another node's declaration differs, in TensorFlow's words, or ""."""
        seeds = self.seeds if asked.seeds == (0, 0) else asked.seeds  # (0, 0): any will do
        least = asked.min_after_dequeue
        facts: list[tuple[str, str, Any, Any]] = [
            ("capacity", "requested capacity was {}", self.capacity, asked.capacity),
            ("min_after_dequeue", "requested min_after_dequeue was {}.", self.min_after_dequeue, least),
            ("random seeds", "requested seeds are {}.", self.seeds, seeds),
            ("component types", "requested component types were {}", types_text(self.types), types_text(asked.types)),
        ]
        if not self._takes_shapes(asked.shapes):
            own, theirs = (f"[{', '.join(map(shape_text, each))}]" for each in (self.shapes, asked.shapes))
            facts.append(("component shapes", "requested component shapes were {}", own, theirs))
        for what, words, own, theirs in facts:
            if own != theirs:
                return f"has {what} {own} but {words.format(theirs)}"
        return ""

    def _takes_shapes(self, asked: tuple[TensorShape, ...]) -> bool:
        if self.kind != "PaddingFIFOQueue":
            return self.shapes == asked
        pairs = zip(self.shapes, asked, strict=False)
        return len(self.shapes) == len(asked) and all(mine.is_compatible_with(theirs) for mine, theirs in pairs)


_STATES: dict[str, type[QueueState]] = {state.kind: state for state in (FIFOState, PaddingFIFOState, PriorityState)}


def types_text(types: Sequence[DType]) -> str:
    """`int32, float`"""
    return ", ".join(map(dtype_text, types))


class Queue:
    """A queue with its lock, and the types and shapes of the components of its elements.

    `device` and `container` say where it lives; only events carry them.
    """

    def __init__(self, name: str, spec: Spec, device: str = "", container: str = DEFAULT_CONTAINER) -> None:
        self.spec = spec
        self.types = list(spec.types)
        self.shapes = [tuple(shape.as_list()) for shape in spec.shapes]
        self.state = spec.new_state(name)
        self.device, self.container = device, container
        self._lock = BriefLock()

    def must_be(self, asked: Spec, op_type: str) -> None:
        """Raise InvalidArgumentError unless this is the queue that a node declares."""
        if asked == self.spec:
            return
        if asked.kind != self.spec.kind:
            raise invalid(f"Expected {self.spec.kind}, found {op_type}")
        if difference := self.spec.differs(asked):
            raise invalid(f"Shared queue '{self.state.name}' {difference}")

    # -- the lines ----------------------------------------------------------------------------------------

    def at_once(self, change: Callable[..., tuple[Element | None, list[Attempt]]], *args: Any) -> Element | None:
        """The element that a change of the state moves without an attempt, if it can.

        It can't while somebody watches, or while another thread is at the queue.
        """
        if PROCESS.queue or not self._lock.acquire(False):
            return None
        try:
            element, finished = change(*args)
        finally:
            self._lock.release()
        for attempt in finished:
            attempt.finish()
        return element

    def join(self, ctx: Any, attempt: Attempt) -> None:
        """Put `attempt` in line for as long as its step runs. `attempt.done` is called in the end, on any thread."""
        self._do(self._enter if PROCESS.queue else self.state.join, attempt)
        waits = attempt.done is not None
        if waits:  # until it is served, or its step fails, which may have happened already
            forget = attempt.forget = ctx.on_cancel(lambda error: self._do(self._leave, attempt))
            if attempt.done is None:  # served meanwhile, by another thread
                forget()

    def _enter(self, attempt: Attempt) -> list[Attempt]:
        attempt.client = events.client_of(attempt.step)
        served = self.state.join(attempt)
        if attempt not in served:
            self._tell("wait", attempt, over=False, wants=attempt.does)
        return served

    def _leave(self, attempt: Attempt) -> list[Attempt]:
        finished = self.state.leave(attempt)
        self._tell_gone(finished[:1])
        return finished

    def close(self, cancel: Literal["putters", "all"] = "all", op: str = "", step: int = 0) -> None:
        """Close at once and cancel attempts that wait: the enqueues, or "all" when the container is reset."""

        def change() -> list[Attempt]:
            sent_away = self.state.waiting() if cancel == "all" else list(self.state.putters)
            if PROCESS.queue and not self.closed:
                self._tell("close", Close(op, step))
            finished = self.state.close(cancel)
            self._tell_gone(sent_away)
            return finished

        self._do(change)

    def _do(self, change: Callable[..., list[Attempt]], *args: Any) -> None:
        with self._lock:
            self.state.seen = self._proceed_in_sight if PROCESS.queue else None
            finished = change(*args)
        for attempt in finished:
            attempt.finish()

    # -- while somebody watches -----------------------------------------------------------------------------

    def _proceed_in_sight(self, attempt: Attempt) -> bool:
        """Proceed with the first attempt of a line, and report it; returns True if the attempt is done."""
        before = len(self.state)
        over = attempt.proceed(self.state)
        count = abs(len(self.state) - before)
        if attempt.error is not None:
            self._tell("end", attempt, error=type(attempt.error).__name__)
        elif count or over:
            self._tell(attempt.does, attempt, count, over)
        return over

    def _tell_gone(self, gone: Iterable[Attempt]) -> None:
        """Report the attempts that left a line or were cancelled."""
        for attempt in gone if PROCESS.queue else ():
            self._tell("end", attempt, error=type(attempt.error).__name__)

    def _tell(
        self, what: str, attempt: Attempt, count: int = 0, over: bool = True, wants: str = "", error: str = ""
    ) -> None:
        name = self.state.name if self.container == DEFAULT_CONTAINER else f"{self.container}/{self.state.name}"
        event = QueueEvent(
            at=events.moment(),
            device=self.device,
            queue=name,
            what=what,
            elements=count,
            level=len(self.state),
            capacity=self.capacity,
            op=attempt.op,
            client=attempt.client,
            step=attempt.step,
            over=over,
            wants=wants,
            error=error,
        )
        for hear in PROCESS.queue:
            hear(event)

    def __len__(self) -> int:
        return len(self.state)

    @property
    def capacity(self) -> int:
        """How many elements there may be; 0 for no limit."""
        return 0 if self.state.capacity == UNBOUNDED else self.state.capacity

    @property
    def closed(self) -> bool:
        return self.state.closed

    def waiting(self) -> list[Attempt]:
        """The attempts that wait now, in the order of their lines."""
        with self._lock:
            return self.state.waiting()

    def waits(self) -> list[str]:
        """One line for each attempt that waits: its op, and what it waits to do."""
        here = f"at {self.state.kind} '{plain_name(self.state.name)}' with {self.state.level()}"
        return [f"{a.op} waits {here} to {a} (step {a.step})" for a in self.waiting()]

    def __repr__(self) -> str:
        return f"<{self.state}: {self.state.level()}>"

    # -- elements -----------------------------------------------------------------------------------------

    def check(self, values: Sequence[Any], batch: tuple[int, ...] = ()) -> None:
        """Raise InvalidArgumentError unless the components fit; `batch` is the size that precedes each shape."""
        for i, shape in enumerate(self.shapes):
            expected, got = batch + shape, getattr(values[i], "shape", ())
            if got != expected and not TensorShape(expected).admits(got):
                raise invalid(
                    f"Shape mismatch in tuple component {i}. Expected {shape_text(expected)}, got {shape_text(got)}"
                )

    def check_batch(self, values: Sequence[Any]) -> int:
        """The number of elements. Raises InvalidArgumentError unless the components fit the queue and each other."""
        if not np.ndim(values[0]):
            raise invalid(
                "Shape mismatch in tuple component 0. Expected one dimension more than an element has, got []"
            )
        count = len(values[0])
        self.check(values, (count,))
        for i, value in enumerate(values):
            has = len(value) if np.ndim(value) else "none"
            if has != count:
                raise invalid(
                    "All input tensors must have the same size in the 0th dimension. "
                    f"Component {i} has {has}, and should have {count}"
                )
        return count

    def batch(self, elements: Sequence[Element]) -> list[Any]:
        """Elements as one array per component."""
        columns = zip(*elements, strict=True) if elements else ((),) * len(self.types)
        return [_stacked(c, t, s) for c, t, s in zip(columns, self.types, self.shapes, strict=True)]


def _stacked(values: Sequence[Any], dtype: DType, shape: tuple[Any, ...]) -> Any:
    """The values side by side; where their sizes may differ, zeros fill up to the largest."""
    if dtype == dtypes.string and not shape:
        values = [value if isinstance(value, bytes) else value.item() for value in values]
    if None not in shape:
        out = np.empty((len(values), *shape), dtype.as_numpy_dtype)
        for i, value in enumerate(values):
            out[i] = value
        return out
    largest = tuple(max((v.shape[i] for v in values), default=0) if d is None else d for i, d in enumerate(shape))
    padded: Any = np.full((len(values), *largest), b"" if dtype == dtypes.string else 0, dtype.as_numpy_dtype)
    for i, value in enumerate(values):
        padded[i if value.shape == largest else (i, *map(slice, value.shape))] = value
    return padded
