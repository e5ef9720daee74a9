"""The picture of time: what ran when on which device, and what had to wait for which tensor.

Every device is a band: rows for its threads, with a bar for every op, then rows for what it received, each a bar
from asking to having. An arrow leads from the op that made a tensor to where it arrived, in the sender's colour.
Every number has a unit; a step without length is an error, not an empty picture.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from dtflab.viz import marks, trace
from dtflab.viz.names import readable, shorter
from dtflab.viz.palette import Look, in_order, look
from dtflab.viz.picture import Picture, text_table
from dtflab.viz.svg import Markup, Point, arrow_head, byte_size, hatch_path, join, number, plural, shorten, tag, text_width
from dtflab.viz.trace import Event, Trace, Transfer

ROW, NAMES_ROW, RECEIVE_ROW, BAND_GAP, BAND_PADDING = 22.0, 14.0, 17.0, 10.0, 6.0
IDLE_ROOM, LABEL_GAP, LEAST_BAR = 70.0, 12.0, 1.5
LEAST_NAMED, NAME_ROOM = 4.0, 90.0  # pixels of a bar that deserves a name below it, and of that name
MOST_TABLE_ROWS = 1000

_STYLE = (
    ".dtf .band{fill:var(--soft);fill-opacity:.06}.dtf .grid{stroke:var(--soft);stroke-opacity:.22}"
    ".dtf .wait{fill-opacity:.16;stroke-width:1}.dtf .wire{fill:none;stroke-width:1.5;stroke-opacity:.85}"
    ".dtf .stripe{stroke-width:1;stroke-opacity:.3}.dtf .halo{paint-order:stroke;stroke:var(--bg);stroke-width:3px;stroke-opacity:.75;stroke-linejoin:round}"
)

Span = TypeVar("Span", Event, Transfer)


def timeline(step: Any, *, width: float = 880, title: str = "Timeline") -> Picture:
    """Picture a traced step.

    `step` is the RunMetadata (or its StepStats) that `session.run` filled, asked with
    `options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)`.
    """
    view = _View(trace.read(step), width)
    return Picture(*view.draw(title), _STYLE, _sentence(view), _tables(view.trace), _text(view))


@dataclasses.dataclass
class _Row:
    """Bars that do not overlap, with names below for which there is no room inside.

    `label` stands beside the first row of a thread, `idle` is of the whole thread.
    """

    label: str
    y: float
    height: float
    idle: float | None = None
    events: list[Event] = dataclasses.field(default_factory=list)
    transfers: list[Transfer] = dataclasses.field(default_factory=list)
    names: list[tuple[float, str]] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class _Band:
    """A device and its rows."""

    look: Look
    idle: float
    y: float
    height: float
    rows: list[_Row]


class _View:
    """A trace, laid out."""

    def __init__(self, step: Trace, width: float) -> None:
        self.trace, self.width = step, width
        devices = in_order(step.devices())
        labels = [marks.badge_width(look(d)) + 6 + text_width(look(d).label, 12, bold=True) for d in devices]
        threads = {event.thread for event in step.events}
        labels += [marks.BADGE_HEIGHT + 16 + text_width(name, 11) for name in [*threads, "receives"]]
        self.left = math.ceil(max(labels) + 2 * LABEL_GAP)
        self.right = width - IDLE_ROOM
        self.bands: list[_Band] = []
        y = 0.0
        for device in devices:
            self.bands.append(self._band(device, y))
            y += self.bands[-1].height + BAND_GAP
        self.height = y - BAND_GAP

    def x(self, time: float) -> float:
        return self.left + time / self.trace.total * (self.right - self.left)

    def _band(self, device: str, top: float) -> _Band:
        events = [event for event in self.trace.events if event.device == device]
        rows: list[_Row] = []
        y = top + BAND_PADDING
        threads = sorted({event.thread for event in events})
        for thread in threads or [""]:
            mine = [event for event in events if event.thread == thread]
            label = thread if len(threads) > 1 else ""
            for i, packed in enumerate(self._packed(mine) or [[]]):
                idle = self._idle(mine) if label and i == 0 else None
                rows.append(_Row("" if i else label, y, ROW, idle, packed, names=self._names(packed)))
                y += ROW + (NAMES_ROW if rows[-1].names else 0)
        received = [transfer for transfer in self.trace.transfers if transfer.device == device]
        y += 4 if received else 0
        for i, arriving in enumerate(self._packed(received)):
            rows.append(_Row("" if i else "receives", y, RECEIVE_ROW, transfers=arriving))
            y += RECEIVE_ROW
        return _Band(look(device), self._idle(events), top, y + BAND_PADDING - top, rows)

    def _packed(self, spans: Sequence[Span]) -> list[list[Span]]:
        """As few rows as hold the bars without overlap; what overlaps by less than a pixel does not."""
        rows: list[list[Span]] = []
        for span in spans:
            free = (row for row in rows if self.x(row[-1].end) <= self.x(span.start) + 0.75)
            row = next(free, None)
            if row is None:
                rows.append([span])
            else:
                row.append(span)
        return rows

    def _inside(self, event: Event) -> str | None:
        """The longest form of an op's name that its bar has room for."""
        room = self._extent(event)[1] - 8
        return next((name for name in [*shorter(event.name), event.op] if text_width(name, 11) <= room), None)

    def _names(self, events: Sequence[Event]) -> list[tuple[float, str]]:
        """Names below the bars, of the longest ops first, for as long as they do not touch."""
        named: list[tuple[float, str]] = []
        taken: list[tuple[float, float]] = []
        for event in sorted(events, key=lambda e: (-e.duration, e.start)):
            x, width = self._extent(event)
            if width < LEAST_NAMED or self._inside(event):
                continue
            name = shorten(readable(event.name).rpartition("/")[2], NAME_ROOM, 11)
            half = text_width(name, 11) / 2
            middle = max(self.left + half, min(x + width / 2, self.right - half))
            if all(middle + half + 6 <= low or high + 6 <= middle - half for low, high in taken):
                named.append((middle, name))
                taken.append((middle - half, middle + half))
        return sorted(named)

    def _idle(self, events: Iterable[Event]) -> float:
        """The share of the step in which none of the events was running."""
        busy, reached = 0.0, 0.0
        for event in sorted(events, key=lambda e: e.start):
            busy += max(0.0, event.end - max(event.start, reached))
            reached = max(reached, event.end)
        return 1 - busy / self.trace.total

    # -- drawing ----------------------------------------------------------------------------------------

    def draw(self, title: str) -> tuple[Markup, tuple[float, float]]:
        samples, height = marks.line_legend([_OP, _WAIT, _WIRE] if self.trace.transfers else [_OP], self.width, 28)
        top = 28 + height + 26
        bands = join(self._band_ground(band) for band in self.bands)
        bars = join(self._bars(band) for band in self.bands)
        wires = join(filter(None, map(self._wire, self.trace.transfers)))
        words = join(self._words(band) for band in self.bands)
        plot = tag("g", bands, self._grid(), bars, wires, words, transform=f"translate(0 {number(top)})")
        return join([marks.heading(title, _summary(self)), samples, plot]), (self.width, top + self.height)

    def _band_ground(self, band: _Band) -> Markup:
        y = band.y + BAND_PADDING
        parts = [
            tag("rect", x=0, y=band.y, width=self.width, height=band.height, rx=6, class_="band"),
            marks.badge(band.look, LABEL_GAP, y + 2),
            tag("text", band.look.label, x=LABEL_GAP + marks.badge_width(band.look) + 6, y=y + 15, class_="b"),
        ]
        return join([*parts, _idle_text(self.width - LABEL_GAP, y, band.idle, "b")])

    def _grid(self) -> Markup:
        unit, name = _unit(self.trace.total)
        parts = []
        for tick in _ticks(self.trace.total / unit, (self.right - self.left) / 85):
            x = self.x(tick * unit)
            parts.append(tag("path", d=f"M{number(x)} -6V{number(self.height)}", class_="grid"))
            text = f"{tick:g} {name}" if tick else "0"
            parts.append(tag("text", text, x=x, y=-10, class_="s11 soft mid"))
        return join(parts)

    def _bars(self, band: _Band) -> Markup:
        parts: list[Markup] = []
        for row in band.rows:
            parts += [self._bar(event, row, band.look) for event in row.events]
            parts += [self._wait(transfer, row) for transfer in row.transfers]
        return join(parts)

    def _bar(self, event: Event, row: _Row, one: Look) -> Markup:
        x, width = self._extent(event)
        rect = tag(
            "rect", x=x, y=row.y + 2, width=width, height=row.height - 4, rx=min(2.5, width / 3), fill=one.colour.fill
        )
        return tag("g", tag("title", _event_text(event)), rect)

    def _wait(self, transfer: Transfer, row: _Row) -> Markup:
        x, width = self._extent(transfer)
        colour = look(transfer.source).colour
        size = {"x": x, "y": row.y + 1.5, "width": width, "height": row.height - 3}
        stripes = tag("path", d=hatch_path(*size.values(), 6), stroke=colour.line, class_="stripe")
        rect = tag("rect", rx=2, fill=colour.fill, stroke=colour.line, class_="wait", **size)
        return tag("g", tag("title", _transfer_text(transfer)), rect, stripes)

    def _extent(self, span: Event | Transfer) -> tuple[float, float]:
        x, end = self.x(span.start), self.x(span.end)
        width = end - x - (1.0 if end - x > 4 else 0.0)
        return min(x, self.right - LEAST_BAR), max(width, LEAST_BAR)

    def _words(self, band: _Band) -> Markup:
        parts: list[Markup] = []
        for row in band.rows:
            y = row.y + row.height / 2 + 4
            if row.label and row is not band.rows[0]:
                parts.append(tag("text", row.label, x=self.left - LABEL_GAP, y=y, class_="s11 soft end"))
            if row.idle is not None and row is not band.rows[0]:
                parts.append(_idle_text(self.width - LABEL_GAP, row.y, row.idle, "soft"))
            for event in row.events:
                name = self._inside(event)
                x, width = self._extent(event)
                ink = f"fill:{band.look.colour.ink}"
                if name:
                    parts.append(tag("text", name, x=x + width / 2, y=y, class_="s11 mid", style=ink))
            parts += [tag("text", n, x=x, y=y + 16, class_="s11 soft mid halo") for x, n in row.names]
            parts += [self._freight(transfer, row) for transfer in row.transfers]
        return join(parts)

    def _freight(self, transfer: Transfer, row: _Row) -> Markup:
        x, width = self._extent(transfer)
        size = byte_size(transfer.bytes)
        name = transfer.producer.removesuffix("/read")
        texts = [*(f"{short}  {size}" for short in shorter(name)), size]
        text = next((text for text in texts if text_width(text, 11) <= width - 12), None)
        if text is None:
            return join([])
        return tag("text", text, x=x + 5, y=row.y + row.height / 2 + 4, class_="s11 halo")

    # -- arrows -----------------------------------------------------------------------------------------

    def _wire(self, transfer: Transfer) -> Markup | None:
        band = next(b for b in self.bands if b.look.device == transfer.device)
        row = next(row for row in band.rows if transfer in row.transfers)
        start, from_row = self._origin(transfer)
        down = from_row.y < row.y
        x, width = self._extent(transfer)
        tip = (max(x, x + width - 3), row.y + 1.5 if down else row.y + row.height - 1.5)
        begin = (start, from_row.y + from_row.height - 2 if down else from_row.y + 2)
        colour = look(transfer.source).colour.line
        reach = (tip[1] - begin[1]) * 0.45
        path = (
            f"M{_xy(begin)}C{_xy((begin[0], begin[1] + reach))} {_xy((tip[0], tip[1] - reach))} "
            f"{_xy((tip[0], tip[1] + (-4 if down else 4)))}"
        )
        head = arrow_head(tip, (tip[0], tip[1] - reach), 6)
        return tag(
            "g",
            tag("title", _transfer_text(transfer)),
            tag("path", d=path, class_="wire", stroke=colour),
            tag("circle", cx=begin[0], cy=begin[1], r=2, fill=colour),
            tag("path", d=head, fill=colour),
        )

    def _origin(self, transfer: Transfer) -> tuple[float, _Row]:
        """Where a transfer comes from: the end of the op that made it, or its device's first row."""
        band = next(b for b in self.bands if b.look.device == transfer.source)
        for row in band.rows:
            for event in row.events:
                if event.name == transfer.producer:
                    x, width = self._extent(event)
                    return x + width, row
        return self.x(transfer.start), band.rows[0]


def _idle_text(x: float, y: float, idle: float, class_: str) -> Markup:
    return tag("text", f"{100 * idle:.0f} % idle", x=x, y=y + 15, class_=f"s11 end {class_}")


def _xy(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"


_OP = (tag("rect", x=0, y=3, width=28, height=12, rx=2.5, style="fill:var(--soft)"), "op")
_WAIT = (
    join([
        tag("rect", x=0, y=3, width=28, height=12, rx=2, class_="wait", style="fill:var(--soft);stroke:var(--soft)"),
        tag("path", d=hatch_path(0, 3, 28, 12, 6), class_="stripe", style="stroke:var(--soft)"),
    ]),
    "waiting for a tensor, in the sender's colour",
)  # fmt: skip
_WIRE = (
    join([
        tag("path", d="M2 2C2 12 26 4 26 12", class_="wire", style="stroke:var(--fg)"),
        tag("circle", cx=2, cy=2, r=2, style="fill:var(--fg)"),
        tag("path", d=arrow_head((26, 17), (26, 8), 6), style="fill:var(--fg)"),
    ]),
    "the tensor, from the op that made it to its arrival",
)  # fmt: skip


# -- time and words --------------------------------------------------------------------------------------------


def _unit(total: float) -> tuple[float, str]:
    """Microseconds in the unit that gives readable numbers, and its name."""
    return (1.0, "µs") if total < 1000 else (1e3, "ms") if total < 1e6 else (1e6, "s")


def _ticks(total: float, most: float) -> Iterator[float]:
    rough = total / max(most, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 2.5, 5, 10) if power * k >= rough)
    yield from (round(i * step, 12) for i in range(int(total / step) + 1))


def duration(micros: float) -> str:
    """`0.8 µs`, `214 µs`, `2.23 ms`, `1.50 s`."""
    unit, name = _unit(micros)
    value = micros / unit
    return f"{value:.{0 if value >= 99.5 else 1 if value >= 9.95 else 2}f} {name}"


def _event_text(event: Event) -> str:
    return f"{readable(event.name)} = {event.op}\n{duration(event.duration)}, from {duration(event.start)} to {duration(event.end)}"


def _transfer_text(transfer: Transfer) -> str:
    a, b = look(transfer.source).label, look(transfer.device).label
    return f"{transfer.tensor}, {byte_size(transfer.bytes)}, {a} → {b}\nasked for and received in {duration(transfer.duration)}"


def _summary(view: _View) -> str:
    step = view.trace
    text = f"one step, {duration(step.total)}: {plural(len(step.events), 'op')} on {plural(len(view.bands), 'device')}"
    if not step.transfers:
        return text
    return f"{text}, {plural(len(step.transfers), 'transfer')}, {byte_size(sum(t.bytes for t in step.transfers))}"


def _sentence(view: _View) -> str:
    idle = ", ".join(f"{band.look.label} {band.idle:.0%} idle" for band in view.bands)
    return f"Timeline of {_summary(view)}. {idle}."


def _tables(step: Trace) -> list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]]:
    events = [
        [e.name, e.op, look(e.device).label, e.thread, f"{e.start:.1f}", f"{e.duration:.1f}"] for e in step.events
    ]
    transfers = [
        [t.tensor, look(t.source).label, look(t.device).label, f"{t.bytes:,}", f"{t.start:.1f}", f"{t.duration:.1f}"]
        for t in step.transfers
    ]
    heads = ("op", "type", "device", "thread", "start, µs", "duration, µs")
    title = "Ops" if len(events) <= MOST_TABLE_ROWS else f"Ops, the first {MOST_TABLE_ROWS:,} of {len(events):,}"
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = [(title, heads, events[:MOST_TABLE_ROWS])]
    if transfers:
        heads = ("tensor", "from", "to", "bytes", "start, µs", "duration, µs")
        tables.append(("Transfers", heads, transfers[:MOST_TABLE_ROWS]))
    return tables


def _text(view: _View) -> str:
    rows = []
    for band in view.bands:
        events = [e for e in view.trace.events if e.device == band.look.device]
        received = sum(t.bytes for t in view.trace.transfers if t.device == band.look.device)
        longest = max(events, key=lambda e: e.duration, default=None)
        what = f"{longest.name} ({duration(longest.duration)})" if longest else ""
        rows.append([band.look.device, len(events), f"{band.idle:.0%}", byte_size(received), what])
    return _summary(view) + "\n" + text_table(("device", "ops", "idle", "received", "longest op"), rows)
