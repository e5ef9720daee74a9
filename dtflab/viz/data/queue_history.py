"""From what a watch saw of queues to the history of each: its levels, and when each wait began and ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from dtflab.base.events import QueueEvent
from dtflab.base.grouping import grouped
from dtflab.machine.watch import Watch
from dtflab.ops.resource_mgr import plain_name


class Wait(NamedTuple):
    """A blocked op at a queue; moments are seconds. Open: still waiting at the end of the watch."""

    began: float
    ended: float
    wants: str  # put, take or close
    op: str
    client: str
    step: int
    error: str
    open: bool

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class QueueHistory(NamedTuple):
    """The history of one queue. `capacity` is 0 for one without a limit."""

    device: str
    name: str
    capacity: int
    events: list[QueueEvent]
    waits: list[Wait]

    @property
    def put(self) -> int:
        """How many elements were put."""
        return sum(event.elements for event in self.events if event.what == "put")

    @property
    def taken(self) -> int:
        return sum(event.elements for event in self.events if event.what == "take")

    @property
    def most(self) -> int:
        """The highest level."""
        return max(event.level for event in self.events)

    def mean(self) -> float:
        """The mean level over time, from the first event to the last."""
        return sum(seconds * level for seconds, level in self._times()) / (self._seconds() or 1.0)

    def share_at(self, level: int) -> float:
        """For what part of that time it held that many elements."""
        return sum(seconds for seconds, held in self._times() if held == level) / (self._seconds() or 1.0)

    def _times(self) -> Iterator[tuple[float, int]]:
        for event, after in pairwise(self.events):
            yield after.at - event.at, event.level

    def _seconds(self) -> float:
        return self.events[-1].at - self.events[0].at

    def waited(self, wants: str) -> float:
        """Seconds that all together waited to put, or to take."""
        return sum(wait.seconds for wait in self.waits if wait.wants == wants)


def queue_histories(seen: Watch | Sequence[QueueEvent]) -> list[QueueHistory]:
    """The queues of a watch, in the order in which something first happened at them.

    ValueError if nothing did.
    """
    events = sorted(seen.queues if isinstance(seen, Watch) else seen, key=lambda event: event.at)
    if not events:
        raise ValueError("Nothing happened at a queue while this was watched. Run something that puts or takes in it.")
    end = seen.end_after(events[-1].at) if isinstance(seen, Watch) else events[-1].at
    by_queue = grouped(((event.device, event.queue), event) for event in events)
    return [
        QueueHistory(device, plain_name(name), own[-1].capacity, own, _waits(own, end))
        for (device, name), own in by_queue.items()
    ]


def _waits(events: Sequence[QueueEvent], end: float) -> list[Wait]:
    """A wait begins with a `wait`, and ends when the same op of the same step is done."""
    waits, waiting = [], dict[tuple[str, int], QueueEvent]()
    for event in events:
        key = event.op, event.step
        if event.what == "wait":
            waiting[key] = event
        elif event.over and key in waiting:
            waits.append(_wait(waiting.pop(key), event.at, event.error, False))
    waits += [_wait(event, end, "", True) for event in waiting.values()]
    return sorted(waits, key=lambda wait: wait.began)


def _wait(began: QueueEvent, ended: float, error: str, still: bool) -> Wait:
    return Wait(began.at, ended, began.wants, began.op, began.client, began.step, error, still)
