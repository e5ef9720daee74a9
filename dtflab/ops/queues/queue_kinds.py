"""The kinds of queues: how each keeps its elements, which it gives next, and how many it would give now.

Stands for `core/kernels/fifo_queue.cc`, `random_shuffle_queue_op.cc`, `padding_fifo_queue.cc` and `priority_queue.cc`,
as far as they differ.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable

from dtflab.ops.queues.queue_state import UNBOUNDED, Element, QueueState


class FIFOState(QueueState):
    """First in, first out."""

    kind = "FIFOQueue"

    def __init__(self, name: str, capacity: int = UNBOUNDED) -> None:
        super().__init__(name, capacity)
        self.elements: deque[Element] = deque()

    def take(self, count: int) -> list[Element]:
        take = self.elements.popleft
        return [take() for _ in range(count)]

    def give_back(self, elements: list[Element]) -> None:
        self.elements.extendleft(reversed(elements))


class PaddingFIFOState(FIFOState):
    """First in, first out. Only batches care that shapes may differ."""

    kind = "PaddingFIFOQueue"


class ShuffleState(QueueState):
    """Any of the elements may come next; `min_after_dequeue` of them stay, for choice, until the queue is closed.

    `draw()` gives the next random number: a 32-bit integer.
    """

    kind = "RandomShuffleQueue"

    def __init__(self, name: str, capacity: int, min_after_dequeue: int, draw: Callable[[], int]) -> None:
        super().__init__(name, capacity)
        self.min_after_dequeue = min_after_dequeue
        self._draw = draw
        self.elements: list[Element] = []

    def take(self, count: int) -> list[Element]:
        return [self._take() for _ in range(count)]

    def _take(self) -> Element:
        """One by chance; the last one moves to its place."""
        elements = self.elements
        place = self._draw() % len(elements)
        elements[place], elements[-1] = elements[-1], elements[place]
        return elements.pop()

    def give_back(self, elements: list[Element]) -> None:
        self.elements.extend(reversed(elements))

    def ready(self, wanted: int) -> int:
        return len(self) - (0 if self.closed else self.min_after_dequeue)


class _Ranked:
    """An element in a heap: compared by its first component, the priority."""

    __slots__ = ("element", "priority")

    def __init__(self, element: Element) -> None:
        self.element = element
        self.priority = element[0]

    def __lt__(self, other: _Ranked) -> bool:
        return bool(self.priority < other.priority)


class PriorityState(QueueState):
    """The lowest first component first. A dequeue of many waits until all are there: a later element may be lower.

    Equal priorities come out in the order of a binary heap, which is that of TensorFlow's.
    """

    kind = "PriorityQueue"

    def __init__(self, name: str, capacity: int = UNBOUNDED) -> None:
        super().__init__(name, capacity)
        self.elements: list[_Ranked] = []

    def store(self, elements: Iterable[Element]) -> None:
        for element in elements:
            heapq.heappush(self.elements, _Ranked(element))

    def take(self, count: int) -> list[Element]:
        return [heapq.heappop(self.elements).element for _ in range(count)]

    def ready(self, wanted: int) -> int:
        return len(self) if len(self) >= wanted else 0
