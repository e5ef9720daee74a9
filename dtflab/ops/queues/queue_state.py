"""How queues behave: elements, a capacity, a line of attempts to put and a line of attempts to take.

Stands for `core/kernels/queue_base.cc`; the four kinds of queues are in queue_kinds.py. There are no threads and no
tensors here: the caller holds a lock, and an element is a tuple of anything.

Rules: an attempt joins the end of its line, and only the first in a line is served. When something changes in a line,
`serve` lets the two lines take turns until neither can go on, and returns the attempts that are done. So no attempt is
overtaken, however little the later ones want. An attempt that wants many elements may put or take them piece by piece:
a `Get` keeps what it has so far. If the queue is closed before a `Get` has enough, the `Get` gives back what it holds,
in order. An attempt that leaves its line (`leave`) keeps what it holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Literal

from dtflab.base import errors

UNBOUNDED = 2**31 - 1

Element = tuple[Any, ...]
Line = deque["Attempt"]
Done = Callable[[list[Element], errors.OpError | None], object]


class Attempt:
    """An operation `op` of a step in a line, which has `wants` elements still to put or take.

    In the end, `finish` calls `done(held, error)`: what it has taken, and the error with which it ends, if any.
    """

    __slots__ = ("client", "done", "error", "forget", "held", "op", "step", "wants")

    verb = ""
    does = ""

    def __init__(self, op: str = "", step: int = 0, done: Done | None = None, wants: int = 0) -> None:
        self.op = op
        self.step = step
        self.client = ""  # whose step it is, known while somebody watches
        self.done = done
        self.wants = wants
        self.held: list[Element] = []
        self.error: errors.OpError | None = None
        self.forget: Callable[[], object] | None = None  # of one that waits: its step need not cancel it any more

    def proceed(self, queue: QueueState) -> bool:
        """Do what can be done now; returns True if the attempt is done."""
        raise NotImplementedError

    def finish(self) -> None:
        """Call `done`, once."""
        done, forget, self.done, self.forget = self.done, self.forget, None, None
        if forget is not None:
            forget()
        if done is not None:
            done(self.held, self.error)

    def cancelled(self) -> errors.CancelledError:
        """The error of an attempt that was cancelled, or left its line."""
        return errors.CancelledError.of(f"{self.verb} operation was cancelled")

    def __str__(self) -> str:
        """The attempt in words: what it waits to do."""
        return f"{self.verb.lower()} {self.wants} more"


class Put(Attempt):
    """Puts `count` elements, one after the other."""

    __slots__ = ("elements",)

    verb = "Enqueue"
    does = "put"

    def __init__(self, elements: Iterable[Element], count: int, op: str = "", step: int = 0, done: Any = None) -> None:
        super().__init__(op, step, done, count)
        self.elements: Iterator[Element] = iter(elements)

    def proceed(self, queue: QueueState) -> bool:
        if queue.closed:
            self.error = errors.CancelledError.of(f"{queue} is closed.")
            return True
        count = min(self.wants, queue.capacity - len(queue.elements))
        if count > 0:
            queue.store(islice(self.elements, count))
            queue.moved += count
            self.wants -= count
        return not self.wants


class Get(Attempt):
    """Takes `count` elements; fewer will do if it is `up_to` and the queue is closed."""

    __slots__ = ("up_to",)

    verb = "Dequeue"
    does = "take"

    def __init__(self, count: int, up_to: bool = False, op: str = "", step: int = 0, done: Any = None) -> None:
        super().__init__(op, step, done, count)
        self.up_to = up_to

    def proceed(self, queue: QueueState) -> bool:
        if queue.closed and len(queue) < self.wants:
            self._make_do(queue)
            if self.error is not None:
                return True
        count = min(self.wants, queue.ready(self.wants))
        if count > 0:
            self.held += queue.take(count)
            queue.moved += count
            self.wants -= count
        return not self.wants

    def _make_do(self, queue: QueueState) -> None:
        """There will never be enough elements: settle for those there are, or fail."""
        wanted, there = self.wants, len(queue)
        queue.give_back(self.held)
        self.wants += len(self.held)
        self.held = []
        if self.up_to and len(queue):
            self.wants = len(queue)
            return
        self.error = errors.OutOfRangeError.of(
            f"{queue} is closed and has insufficient elements (requested {wanted}, current size {there})"
        )


class Close(Attempt):
    """Closes the queue after the attempts before it in line have put their elements."""

    __slots__ = ()

    verb = "Close"
    does = "close"

    def proceed(self, queue: QueueState) -> bool:
        if queue.closed:
            self.error = errors.CancelledError.of(f"Queue '{queue.name}' is already closed.")
        queue.closed = True
        return True

    def __str__(self) -> str:
        return "close"


class QueueState:
    """A queue of any kind; a kind says how elements are stored, which are taken next, and how many may be."""

    kind = ""
    elements: Any  # a list or deque of Element

    def __init__(self, name: str, capacity: int = UNBOUNDED) -> None:
        self.name, self.capacity = name, capacity
        self.closed = False
        self.putters: Line = deque()
        self.getters: Line = deque()
        self.moved = 0  # elements put and taken, ever
        # While somebody watches: proceeds with an attempt and reports it.
        self.seen: Callable[[Attempt], bool] | None = None

    def __len__(self) -> int:
        return len(self.elements)

    # -- what a kind decides --------------------------------------------------------------------------

    def store(self, elements: Iterable[Element]) -> None:
        """Put elements where they belong."""
        self.elements.extend(elements)

    def take(self, count: int) -> list[Element]:
        """Remove and return the next `count` elements; the queue has that many."""
        raise NotImplementedError

    def give_back(self, elements: list[Element]) -> None:
        """Undo a `take`."""
        self.store(elements)

    def ready(self, wanted: int) -> int:
        """How many elements an attempt that wants `wanted` may take now."""
        return len(self.elements)

    # -- the lines --------------------------------------------------------------------------------------

    def put_at_once(self, element: Element) -> tuple[Element | None, list[Attempt]]:
        """Put an element without an attempt, and return it; None if others stand in line or there is no room.

        Next to it are the attempts that are done now.
        """
        if self.putters or self.closed or len(self.elements) >= self.capacity:
            return None, []
        self.store((element,))
        return element, self.serve(self.getters)

    def take_at_once(self) -> tuple[Element | None, list[Attempt]]:
        """Take an element without an attempt, and return it; None if others stand in line or there is none."""
        if self.getters or self.ready(1) < 1:
            return None, []
        return self.take(1)[0], self.serve(self.putters)

    def join(self, attempt: Attempt) -> list[Attempt]:
        """Add an attempt to its line; returns the attempts that are done now."""
        line = self.getters if isinstance(attempt, Get) else self.putters
        line.append(attempt)
        return self.serve(line)

    def leave(self, attempt: Attempt) -> list[Attempt]:
        """Cancel an attempt that waits. Returns the attempts that are done now: this one, unless it was done before.

        A `Close` stays in line: the queue will be closed all the same.
        """
        for line in (self.putters, self.getters):
            if attempt in line:
                if not isinstance(attempt, Close):
                    line.remove(attempt)
                attempt.error = attempt.cancelled()
                return [attempt, *self.serve(line)]
        return []

    def close(self, cancel: Literal["putters", "all"]) -> list[Attempt]:
        """Close at once, and cancel the attempts that wait."""
        self.closed = True
        lines = (self.putters, self.getters) if cancel == "all" else (self.putters,)
        gone = [attempt for line in lines for attempt in line]
        for attempt in gone:
            attempt.error = attempt.cancelled()
        for line in lines:
            line.clear()
        return gone + self.serve(self.getters)

    def serve(self, line: Line) -> list[Attempt]:
        """Let a line in which something has changed go on, then the other one, in turns, until one of them can't.

        Returns the attempts that are done, in order.
        """
        finished: list[Attempt] = []
        while line:
            before = self.moved, len(finished)
            while line and (line[0].proceed(self) if self.seen is None else self.seen(line[0])):
                finished.append(line.popleft())
            if (self.moved, len(finished)) == before:
                break
            line = self.getters if line is self.putters else self.putters
        return finished

    def waiting(self) -> list[Attempt]:
        """All attempts in line, in order: putters, then getters."""
        return [*self.putters, *self.getters]

    def level(self) -> str:
        """The queue's level in words."""
        limit = "" if self.capacity == UNBOUNDED else f" of {self.capacity}"
        return f"{len(self)}{limit} elements{', closed' if self.closed else ''}"

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}'"
