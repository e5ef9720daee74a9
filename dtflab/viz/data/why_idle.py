"""Idle times of a step, each with the tensor that ended it; and the critical path, which made the step this long.

Read from a trace alone: what ended last before an op began is what it waited for.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import NamedTuple

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural
from dtflab.graph.node_names import readable
from dtflab.viz.data.step_trace import Event, Trace, Transfer
from dtflab.viz.drawing.palette import look
from dtflab.viz.drawing.units import duration

_NEAR = 1.0  # microseconds between the arrival of a tensor and the op that waited for it, next to a share of the wait
_CLOCK = 0.25  # microseconds: a time since 1970 is not known better
_LEAST = 1 / 500  # of the step: a shorter gap is not explained


class Gap(NamedTuple):
    """A time in which a device did nothing, in microseconds, and a sentence on why."""

    device: str
    start: float
    end: float
    why: str


class Idle:
    """The gaps and the critical path of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        of = grouped((event.device, event) for event in trace.events)
        self._begun = {device: sorted(events, key=_start) for device, events in of.items()}
        self._ended = {device: sorted(events, key=_end) for device, events in of.items()}
        arrivals = grouped((transfer.device, transfer) for transfer in trace.transfers)
        self._arrivals = {device: sorted(transfers, key=_end) for device, transfers in arrivals.items()}
        sent = grouped((transfer.source, transfer) for transfer in trace.transfers)
        self._asked = {device: sorted(t.start for t in transfers) for device, transfers in sent.items()}
        self._had = {device: sorted(t.end for t in transfers) for device, transfers in sent.items()}

    def gaps(self) -> list[Gap]:
        """Every gap of at least a 500th of the step."""
        found = []
        for device in sorted(self._trace.devices()):
            reached = 0.0
            for event in [*self._begun.get(device, ()), None]:
                start = self._trace.total if event is None else event.start
                if start - reached > max(self._trace.total * _LEAST, 1e-3):
                    found.append(Gap(device, reached, start, self._why(device, reached, start, event)))
                reached = max(reached, self._trace.total if event is None else event.end)
        return found

    def _why(self, device: str, start: float, end: float, event: Event | None) -> str:
        if event is None:
            return "nothing was left to do here" if start else "it had no op in this step"
        arrived = self._arrived(device, start, end)
        if arrived is None:
            return f"nothing was ready here before {readable(event.name)}"
        source = look(arrived.source).label
        pulls = bisect.bisect_left(self._asked[arrived.source], arrived.end)
        pulls -= bisect.bisect(self._had[arrived.source], arrived.start)
        carried = f", which was sending {plural(pulls, 'tensor')} in that time" if pulls > 1 else ""
        waited = duration(arrived.end - max(start, arrived.start))
        return f"waited {waited} for {readable(arrived.tensor)} from {source}{carried}"

    def _arrived(self, device: str, start: float, end: float) -> Transfer | None:
        """The last tensor that arrived in a gap, shortly before its end."""
        arrivals: Sequence[Transfer] = self._arrivals.get(device, ())
        i = bisect.bisect(arrivals, end + _NEAR, key=_end) - 1
        near = max(_NEAR, (end - start) / 2)
        return arrivals[i] if i >= 0 and arrivals[i].end > max(start, end - near) else None

    def critical_path(self) -> list[Event]:
        """The ops from the last one back to the first, each the one that ended last before the next could begin.

        Where an op begins with the arrival of a tensor, the path goes on at the op that made it.
        """
        if not self._trace.events:
            return []
        makers = {(event.device, event.name): event for event in self._trace.events}
        event: Event | None = max(self._trace.events, key=lambda each: (each.end, each.start))
        path: list[Event] = []
        seen: set[int] = set()  # ops that take no time end when they begin: none may come twice
        while event is not None and (not path or event.start <= path[-1].start):
            path.append(event)
            seen.add(id(event))
            event = self._before(event, makers, seen)
        return path[::-1]

    def _before(self, event: Event, makers: dict[tuple[str, str], Event], seen: set[int]) -> Event | None:
        ended = self._ended[event.device]
        i = bisect.bisect(ended, event.start + _CLOCK, key=_end) - 1
        while i >= 0 and id(ended[i]) in seen:
            i -= 1
        here = ended[i] if i >= 0 else None
        arrived = self._arrived(event.device, here.end if here else 0.0, event.start)
        maker = here if arrived is None else makers.get((arrived.source, arrived.producer), here)
        return None if maker is None or id(maker) in seen else maker


def _start(span: Event | Transfer) -> float:
    return span.start


def _end(span: Event | Transfer) -> float:
    return span.end
