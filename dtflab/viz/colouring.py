"""How ops are coloured: by device, job, time or training phase; each way gives every op a look and its meaning.

Colour never stands alone: every look has a letter and a label, and the classes of time, which are ordered, have numbers
from 1 (short) to 5 (long), and shades that get brighter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dtflab.viz.data import step_trace as trace
from dtflab.viz.data.graph_ops import Op
from dtflab.viz.drawing.palette import GREY, VIOLETS, Colour, Look, in_order, job_look, look
from dtflab.viz.drawing.units import time_unit
from dtflab.viz.phases import phases

WAYS = ("device", "job", "time", "phase")

_OF_PHASES = {
    **dict(zip(("input", "forward", "loss", "backward", "update"), VIOLETS, strict=True)), "other": GREY,
}  # fmt: skip
_OF_TIMES = (
    Colour("#4a56a0", "#5f6cb8", "#fff"),
    Colour("#2b7f9e", "#2b7f9e", "#fff"),
    Colour("#2fa886", "#23916f", "#111"),
    Colour("#7fce52", "#4c9a22", "#111"),
    Colour("#f2e030", "#8f8600", "#111"),
)
_ADDED = re.compile(r"(?P<sent>.+?)/to_job_.*|_retval_(?P<fetched>.+)_\d+_\d+")  # they are of the phase of the op
_NOT_RUN = Look("did not run", GREY, "–", "did not run", False)


class Colouring(NamedTuple):
    """One way to colour: `of` gives an op its look from its name and device, `order` is how a legend lists looks.

    `knows` says whether an op was found where that way looks for it.
    """

    by: str
    of: Callable[[str, str], Look]
    order: Callable[[Iterable[Look]], list[Look]]
    knows: Callable[[str], bool] = lambda name: True

    @property
    def by_device(self) -> bool:
        return self.by == "device"

    @property
    def columns(self) -> list[str]:
        """The head of the tables' column with the colour's meaning, where that is not the device."""
        return [] if self.by_device else [self.by]


def colouring(by: str, graph: Any = None, step: Any = None, ready: Mapping[str, str] | None = None) -> Colouring:
    """The way named `by`: `graph` is where phases are found unless they are `ready`; `step` has times.

    ValueError if there is no such way, or what it needs is not there.
    """
    if by not in WAYS:
        raise ValueError(f"color_by={by!r}: choose one of {', '.join(WAYS)}.")
    if by == "phase":
        return _by_phase(phases(graph) if ready is None else ready)
    if by == "time":
        return _by_time(step)
    return BY_DEVICE if by == "device" else Colouring("job", lambda name, device: job_look(device), _devices)


def _devices(looks: Iterable[Look]) -> list[Look]:
    known = {one.device: one for one in looks}
    return [known[device] for device in in_order(known)]


BY_DEVICE = Colouring("device", lambda name, device: look(device), _devices)


# -- phases --------------------------------------------------------------------------------------------------


def _of_added(name: str) -> str:
    """The phase of a node that is not in the graph: a value that is fed, or what partitioning has added."""
    return "input" if name.startswith("_arg_") else "other"


def _by_phase(found: Mapping[str, str]) -> Colouring:
    looks = {name: Look(name, colour, name[0].upper(), name, False) for name, colour in _OF_PHASES.items()}

    def of(name: str, device: str) -> Look:
        match = _ADDED.fullmatch(name)
        return looks[found.get(name if match is None else match["sent"] or match["fetched"] or "", _of_added(name))]

    return Colouring("phase", of, lambda seen: [one for one in looks.values() if one in set(seen)], found.__contains__)


# -- times ---------------------------------------------------------------------------------------------------


def _by_time(step: Any) -> Colouring:
    """Five classes at most, each ten times as long as the one before; an op of a loop has the time of all its turns."""
    if step is None:
        raise ValueError("color_by='time' needs a traced step: step=run_metadata (its trace_level FULL_TRACE).")
    times: dict[str, float] = {}
    for event in trace.read(step).events:
        times[event.name] = times.get(event.name, 0.0) + event.duration
    classes = _classes(list(times.values()))

    def of(name: str, device: str) -> Look:
        return next(one for end, one in classes if times[name] < end) if name in times else _NOT_RUN

    looks = [*(one for _, one in classes), _NOT_RUN]
    return Colouring("time", of, lambda seen: [one for one in looks if one in set(seen)])


def _classes(times: Sequence[float]) -> list[tuple[float, Look]]:
    """Where each class ends, in microseconds, and its look, short ones first."""
    shortest, longest = max(min(times), 1e-3), max(*times, 1e-3)
    last = math.floor(math.log10(longest)) + 1
    first = max(math.floor(math.log10(shortest)) + 1, last - len(_OF_TIMES) + 1)
    ends = [10.0**power for power in range(first, last + 1)]
    shades = _OF_TIMES[-len(ends) :]
    found = []
    for i, (end, shade) in enumerate(zip(ends, shades, strict=True)):
        label = f"{_round(ends[i - 1])} to {_round(end)}" if i else f"less than {_round(end)}"
        found.append((math.inf if end == ends[-1] else end, Look(label, shade, str(i + 1), label, False)))
    return found


def _round(micros: float) -> str:
    unit, name = time_unit(micros)
    return f"{micros / unit:g} {name}"


def of_ops(way: Colouring, ops: Iterable[Op]) -> dict[str, Look]:
    """The look of each op by its name."""
    return {op.name: way.of(op.name, op.device) for op in ops}
