"""The picture of busy devices: for each a row, how much of every moment it was at work, and at its end the share.

Drawn from what happened in virtual time, over as many steps and clients as there were; `timeline` shows one step, op
by op. A row is cut into short times, and as high as the part of each in which a kernel ran: full where the device
always worked, flat where it waited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtflab.base.events import Happened
from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural, text_table
from dtflab.graph.device_spec import matches
from dtflab.virtual.event_log import EventLog
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import in_order, look, together
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.readings import Reading, read, reading
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, join, number, tag, text_width
from dtflab.viz.drawing.units import duration, span, time_ticks

MOST_ROWS = 40  # devices that are drawn
_BAR, _ROW, _CELL = 20.0, 30.0, 1.0  # units; a row is cut into pieces of _CELL
_READ = 4.0  # units of a piece whose value can be read


class _Row(NamedTuple):
    """A device: the times in which at least one kernel ran there, apart from each other, and how many kernels."""

    device: str
    spans: list[tuple[float, float]]
    kernels: int

    @property
    def seconds(self) -> float:
        return sum(end - start for start, end in self.spans)


def busy(
    log: EventLog | Sequence[Happened],
    *,
    since: float = 0.0,
    until: float | None = None,
    device: str = "",
    width: float | None = None,
    title: str = "Devices at work",
) -> Picture:
    """Picture when devices worked, from `since` to `until`, in virtual seconds; by default to the last kernel's end.

    `log` is `cluster.log()`, or some of its lines. A device is busy while at least one kernel runs there: of a CPU
    with many cores, one is enough. All devices are shown where a kernel ran, or those that `device`, a partial name
    as `/gpu:0`, means; of more than 40 the first are drawn. ValueError if no kernel ran there in that time, or if the
    log no longer has its beginning.
    """
    ran = [kernel for kernel in _kernels(log, since) if matches(device, kernel.where)]
    until = max((kernel.ended for kernel in ran), default=since) if until is None else until
    rows = _rows([kernel for kernel in ran if kernel.started < until], since, until)
    if not rows or until <= since:
        where = f" on {device}" if device else ""
        raise ValueError(f"No kernel ran{where} between {since:g} and {until:g} s of virtual time.")
    with together(row.device for row in rows):
        return _Drawing(rows, since, until, room(width), title).picture()


# -- data -------------------------------------------------------------------------------------------------------


def _kernels(log: EventLog | Sequence[Happened], since: float) -> list[Happened]:
    """The kernels that took time and ended after a moment; what has a target is a message."""
    lines = log.lines if isinstance(log, EventLog) else list(log)
    if isinstance(log, EventLog) and log.count > len(lines) and lines[0].ended > since:
        raise ValueError(
            f"The log keeps the last {len(lines):,} events, since {lines[0].ended:.6g} s: give a later "
            f"`since`, or draw the picture earlier."
        )
    return [line for line in lines if not line.target and line.ended > max(since, line.started)]


def _rows(ran: Sequence[Happened], since: float, until: float) -> list[_Row]:
    """A row for each device, with what overlaps or touches put together."""
    own = grouped((kernel.where, (max(kernel.started, since), min(kernel.ended, until))) for kernel in ran)
    return [_Row(device, _joined(own[device]), len(own[device])) for device in in_order(own)]


def _joined(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def _shares(row: _Row, since: float, until: float, count: int) -> list[float]:
    """Which part of each of `count` equal times the device was busy."""
    cell = (until - since) / count
    shares = [0.0] * count
    for start, end in row.spans:
        first, last = (min(int((moment - since) / cell), count - 1) for moment in (start, end))
        for i in range(first, last + 1):
            low, high = since + i * cell, since + (i + 1) * cell
            shares[i] += max(0.0, min(end, high) - max(start, low)) / cell
    return [min(share, 1.0) for share in shares]


# -- drawing ----------------------------------------------------------------------------------------------------


class _Drawing:
    """Rows of devices over one axis of time."""

    def __init__(self, rows: Sequence[_Row], since: float, until: float, width: float, title: str) -> None:
        self.rows, self.since, self.until, self.title = rows, since, until, title
        self.width, self.whole = width, until - since
        drawn = f" (the first {MOST_ROWS} are drawn)" if len(rows) > MOST_ROWS else ""
        self.summary = f"{plural(len(rows), 'device')}{drawn} in {duration(self.whole * 1e6)}"
        self.head = marks.heading(title, self.summary, width)
        looks = [look(row.device) for row in rows[:MOST_ROWS]]
        self.left = max(marks.badge_width(one) + 6 + text_width(one.label, bold=True) for one in looks) + 12
        self.right = width - text_width("100% busy", 12, bold=True) - 10
        self.top = self.head.height + 34

    def picture(self) -> Picture:
        """All of it."""
        drawn = self.rows[:MOST_ROWS]
        names = [part for i, row in enumerate(drawn) for part in self._name(row, self.top + i * _ROW)]
        rows = [part for i, row in enumerate(drawn) for part in self._row(row, self.top + i * _ROW)]
        height = self.top + len(drawn) * _ROW - (_ROW - _BAR)
        heads = ("device", "busy", "busy, s", "kernels")
        table = [[look(r.device).label, self._share(r), f"{r.seconds:.6f}", r.kernels] for r in self.rows]
        shares = ", ".join(f"{label} {share}" for label, share, *_ in table)
        sentence = f"{self.title}: {self.summary}. {shares}."
        axis = marks.stretch((self.left, self.right), *self._axis(height), *rows)
        parts = join([self.head, axis, *names])
        text = f"{self.title}, {self.summary}\n{text_table(heads, table)}"
        live = read(self._reading(row, self.top + i * _ROW) for i, row in enumerate(drawn))
        size, tables = (self.width, height), [(self.title, heads, table)]
        return Picture(parts, size, rules("busy"), sentence, tables, text, live=live)

    def _share(self, row: _Row) -> str:
        return f"{100 * row.seconds / self.whole:.0f}%"

    def _name(self, row: _Row, y: float) -> Iterator[Markup]:
        one = look(row.device)
        yield marks.badge(one, 0, y + 1)
        yield tag("text", one.label, x=marks.badge_width(one) + 6, y=y + 14, class_="b")
        yield tag("text", f"{self._share(row)} busy", x=self.width, y=y + 14, class_="b end right")

    def _row(self, row: _Row, y: float) -> Iterator[Markup]:
        one = look(row.device)
        yield tag("rect", x=self.left, y=y, width=self.right - self.left, height=_BAR, class_="whole")
        colours = {"fill": one.colour.fill, "stroke": one.colour.rim}
        yield tag("path", d=self._area(row, y + _BAR), class_="busy", **colours)

    def _reading(self, row: _Row, y: float) -> Reading:
        """How busy it was, for as long as that is the same."""
        count = max(1, round((self.right - self.left) / _READ))
        shares = [f"{100 * share:.0f}%" for share in _shares(row, self.since, self.until, count)]
        first = [i for i in range(count) if not i or shares[i] != shares[i - 1]]
        ends = [*first[1:], count]
        label, cell = look(row.device).label, self.whole * 1e6 / count

        def says(i: int) -> list[str]:
            times = span(first[i] * cell, ends[i] * cell)
            return [f"{label}: {shares[first[i]]} busy", times, f"{self._share(row)} busy in all"]

        at = [self.left + i * (self.right - self.left) / count for i in first]
        return reading((self.left, y, self.right, y + _BAR), at, says, holds=True)

    def _area(self, row: _Row, base: float) -> str:
        """The shares as steps above a base; those that are equal are one step."""
        count = max(1, round((self.right - self.left) / _CELL))
        cell, before = (self.right - self.left) / count, 0.0
        steps = [f"M{number(self.left)} {number(base)}"]
        for i, share in enumerate(_shares(row, self.since, self.until, count)):
            if round(share, 2) != before:
                before = round(share, 2)
                steps.append(f"H{number(self.left + i * cell)}V{number(base - before * _BAR)}")
        return "".join([*steps, f"H{number(self.right)}V{number(base)}Z"])

    def _axis(self, bottom: float) -> Iterator[Markup]:
        wide = self.right - self.left
        for micros, text in time_ticks(self.whole * 1e6, wide):
            x = self.left + wide * micros / 1e6 / self.whole
            yield tag("path", d=f"M{number(x)} {number(self.top - 6)}V{number(bottom)}", class_="grid")
            yield tag("text", text, x=x, y=self.top - 10, class_="s11 soft mid")
