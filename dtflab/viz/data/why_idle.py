"""Idle times of a step, each with the tensor that ended it; and the critical path, which made the step this long.

Read from a trace alone: what ended last before an op began is what it waited for.
"""

from __future__ import annotations

import bisect
import operator
import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from dtflab.base.grouping import grouped
from dtflab.graph.device_spec import task_name
from dtflab.graph.node_names import readable
from dtflab.viz.data.step_trace import Event, Trace, Transfer
from dtflab.viz.drawing.palette import look
from dtflab.viz.drawing.units import duration

_NEAR = 1.0  # microseconds between the arrival of a tensor and the op that waited for it, next to a share of the wait
_CLOCK = 0.5  # microseconds: of two moments since 1970, each is known to a quarter
_LEAST = 1 / 500  # of the step: a shorter gap is not explained
_RECEIVED = re.compile(r"^edge_\d+_|/to_job_\w+/.+/recv$")  # what partitioning adds to the name of an input

Span = TypeVar("Span", Event, Transfer)


class Gap(NamedTuple):
    """A time in which a device did nothing, in microseconds, and a sentence on why."""

    device: str
    start: float
    end: float
    why: str


class Part(NamedTuple):
    """An op or a transfer of the critical path, and from when to when the step's end waited for it, in microseconds."""

    what: Event | Transfer
    start: float
    end: float


class Idle:
    """The gaps and the critical path of a trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        of = grouped((event.device, event) for event in trace.events)
        self._begun = {device: sorted(events, key=operator.attrgetter("start")) for device, events in of.items()}
        self._ended = {device: sorted(events, key=_end) for device, events in of.items()}
        arrivals = grouped((transfer.device, transfer) for transfer in trace.transfers)
        self._arrivals = {device: sorted(transfers, key=_end) for device, transfers in arrivals.items()}
        self._runs = grouped(((event.device, event.name), event) for event in sorted(trace.events, key=_end))
        came = grouped(((transfer.device, transfer.producer), transfer) for transfer in trace.transfers)
        self._came = {key: sorted(transfers, key=_end) for key, transfers in came.items()}
        pulls = grouped((task_name(one.source), one) for one in trace.transfers if _is_remote(one))
        self._set_out = {task: sorted(map(self._leaves, transfers)) for task, transfers in pulls.items()}
        self._had = {task: sorted(map(_end, transfers)) for task, transfers in pulls.items()}

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
            return self._late(start, event)
        begun = max(start, arrived.start)
        text = f"waited {duration(arrived.end - begun)} for {_what(arrived)}"
        left = self._leaves(arrived)
        if left - begun > (arrived.end - begun) / 2:
            return f"{text}, {duration(left - begun)} of it until it was made"
        pulls = self._pulls(arrived, max(left, begun))
        return f"{text}, whose link carried {pulls} pulls" if pulls > 1 else text

    def _late(self, start: float, event: Event) -> str:
        """Why an op that no tensor was waited for began late: it was not ready, or no thread took it."""
        if not start and not event.inputs:
            return f"its part of the step began only then, with {readable(event.name)}, which needs no input"
        last = self.last_input(event)
        ready = start if last is None else max(start, last[1])
        if last is None or event.start - ready < (event.start - start) / 2:
            return f"nothing was ready here before {readable(event.name)}"
        return f"{readable(event.name)} was ready, but no thread began it for {duration(event.start - ready)}"

    def _leaves(self, span: Event | Transfer) -> float:
        """When an op began; when a transfer can begin: the tensor has been made, and asked for."""
        made = self._made(span) if isinstance(span, Transfer) else None
        return span.start if made is None else max(span.start, made.end)

    def _made(self, transfer: Transfer) -> Event | None:
        return _last(self._runs.get((transfer.source, transfer.producer), ()), transfer.end)

    def _pulls(self, arrived: Transfer, left: float) -> int:
        """How many tensors were on their way from the task of the sender to others, from then until the arrival."""
        if not _is_remote(arrived):
            return 0
        task = task_name(arrived.source)
        return bisect.bisect_left(self._set_out[task], arrived.end) - bisect.bisect(self._had[task], left)

    def _arrived(self, device: str, start: float, end: float) -> Transfer | None:
        """The last tensor that arrived in a gap, shortly before its end."""
        last = _last(self._arrivals.get(device, ()), end + _NEAR)
        near = max(_NEAR, (end - start) / 2)
        return last if last is not None and last.end > max(start, end - near) else None

    def last_input(self, event: Event) -> tuple[str, float] | None:
        """The input of an op that was there last, and since when, where the trace knows its inputs."""
        found = []
        for name in (_RECEIVED.sub("", each.lstrip("^")) for each in event.inputs.split(", ")):
            came = _last(self._came.get((event.device, name), ()), event.start + _NEAR)
            made = _last(self._runs.get((event.device, name), ()), event.start + _NEAR)
            found += [(came.end, _what(came))] if came else [(made.end, readable(name))] if made else []
        if not found:
            return None
        end, what = max(found)
        return what, end

    def critical_path(self) -> list[Part]:
        """The ops and transfers that the step's end waited for, each what ended last before the next could begin.

        A transfer counts from when its tensor was made and asked for. Parts do not overlap: the rest of the step is
        waiting.
        """
        spans: list[Event | Transfer] = [*self._trace.events, *self._trace.transfers]
        span = max(spans, key=lambda each: (each.end, self._leaves(each)), default=None)
        parts: list[Part] = []
        seen: set[int] = set()  # ops that take no time end when they begin: none may come twice
        while span is not None:
            end = min(span.end, parts[-1].start if parts else span.end)
            parts.append(Part(span, min(self._leaves(span), end), end))
            seen.add(id(span))
            span = self._before(span, seen)
        return parts[::-1]

    def _before(self, span: Event | Transfer, seen: set[int]) -> Event | Transfer | None:
        ended = self._ended.get(span.device, [])
        i = bisect.bisect(ended, span.start + _CLOCK, key=_end) - 1
        while i >= 0 and id(ended[i]) in seen:
            i -= 1
        here = ended[i] if i >= 0 else None
        since = here.end if here else 0.0
        came = self._made(span) if isinstance(span, Transfer) else self._arrived(span.device, since, span.start)
        known = [each for each in (came, here) if each is not None and id(each) not in seen]
        return max(known, key=_end, default=None)


def _what(transfer: Transfer) -> str:
    return f"{readable(transfer.tensor)} from {look(transfer.source).label}"


def _is_remote(transfer: Transfer) -> bool:
    """Whether a transfer takes the network: not within its task."""
    return task_name(transfer.source) != task_name(transfer.device)


def _last(spans: Sequence[Span], until: float) -> Span | None:
    """The one of spans in order of their ends that was over last by then."""
    i = bisect.bisect(spans, until, key=_end) - 1
    return spans[i] if i >= 0 else None


def _end(span: Event | Transfer) -> float:
    return span.end
