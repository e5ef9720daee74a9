"""The picture of time: what ran when on which device, and what had to wait for which tensor.

Every device is a band: rows for its threads, with a bar for every op, then rows for what it received, each a bar
from asking to having, as many of the largest as there is room for. An arrow leads from the op that made a tensor to
where it arrived, in the sender's colour. What `dtflab.chaos` did to a task has a row of its own, of dashed bars.
Every number has a unit; a step without length is an error, not an empty picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

from dtflab.base.grouping import grouped
from dtflab.base.text_table import percent, plural, text_table
from dtflab.graph.node_names import readable
from dtflab.viz import timeline_live
from dtflab.viz.bands import BAND_PADDING, LABEL_GAP, Band, Bands, Row
from dtflab.viz.colouring import Colouring, colouring
from dtflab.viz.data import step_trace as trace
from dtflab.viz.data.step_trace import Event, Trace, Transfer
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import GREY, Look, look, together
from dtflab.viz.drawing.picture import Picture, Table, first_rows
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, arrow_head, hatch_path, join, number, tag, text_width
from dtflab.viz.drawing.units import byte_size, duration, exact, span, time_ticks
from dtflab.viz.layout.shapes import Point

MOST_RECORDS = 100_000  # of a step: they take about two seconds
_SIMULATED = "simulated: NumPy timings"
_OF_FAULTS = Look("fault", GREY, "", "fault", False)


def timeline(
    step: Any,
    *,
    color_by: str = "device",
    graph: Any = None,
    phases: Mapping[str, str] | None = None,
    width: float | None = None,
    title: str = "Timeline",
) -> Picture:
    """Picture a traced step.

    `step` is the RunMetadata (or its StepStats) that `session.run` filled, asked with
    `options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)`. Of a step with more than 100,000 records, a loop of
    many turns, the beginning is drawn, and the picture says so.

    `color_by` is "device", "job", "time" (how long an op took) or "phase" of the training, as `phases(graph)` finds it
    in the whole graph (by default the default graph), or as `phases` says. ValueError if that is not the step's graph.
    """
    way = colouring(color_by, graph, step, phases)
    read = trace.read(step, MOST_RECORDS)
    if color_by == "phase" and not any(way.knows(event.name) for event in read.events):
        raise ValueError("color_by='phase' needs the graph that was run: viz.timeline(…, graph=sess.graph).")
    with together(read.devices()):
        looks = _Looks(way)
        bands = Bands(read, room(width), looks.mark)
        sentence, tables = _sentence(bands, looks), _tables(bands.trace, looks)
        drawing, size, top = _draw(bands, looks, title)
        live = timeline_live.data(bands, looks.of, looks.of_transfer, top, graph)
        return Picture(drawing, size, rules("timeline"), sentence, tables, _text(bands, looks), live=live)


class _Looks(NamedTuple):
    """How the bars of a timeline are coloured."""

    way: Colouring

    def of(self, event: Event) -> Look:
        return _OF_FAULTS if event.is_fault else self.way.of(event.name, event.source or event.device)

    def of_transfer(self, transfer: Transfer) -> Look:
        """The look of what is waited for: that of the op that made it."""
        return self.way.of(transfer.producer, transfer.source)

    def mark(self, event: Event) -> str:
        """The letter in a bar, next to its colour; a device's bars stand in its band and have none."""
        return "" if self.way.by_device else self.of(event).letter

    def of_band(self, device: Look) -> Look:
        """A device's badge: where colours say something else, it is grey."""
        if self.way.by_device:
            return device
        return device._replace(colour=self.way.of("", device.device).colour if self.way.by == "job" else GREY)

    def column(self, event: Event) -> list[str]:
        return [self.of(event).label for _ in self.way.columns]

    def counted(self, step: Trace) -> list[tuple[Look, str]]:
        """Each look, in the order of the legend, with how many ops have it and how long they took."""
        own = grouped((self.of(event), event) for event in step.events)
        return [
            (one, f"{_count(own[one])}, {duration(sum(event.duration for event in own[one]))}")
            for one in self.way.order(own)
        ]


# -- drawing -------------------------------------------------------------------------------------------------


def _draw(bands: Bands, looks: _Looks, title: str) -> tuple[Markup, tuple[float, float], float]:
    """The drawing, its size, and how far down its plot begins."""
    parts = any(event.part for event in bands.trace.details)
    single = bands.single()
    merges = any(id(event) not in single for band in bands.bands for row in band.rows for event in row.events)
    samples = [
        *[_OP] * looks.way.by_device,
        *[_MERGED] * merges,
        *[_PART] * parts,
        *[_SENT] * any(event.is_sent for event in bands.trace.details),
        *[_FAULT] * any(event.is_fault for event in bands.trace.details),
        *[_WAIT if looks.way.by_device else _WAIT_OTHERWISE, _WIRE] * bool(bands.trace.transfers),
    ]
    heading = marks.heading(title, _summary(bands), bands.width)
    top = heading.height + 8
    badges, height = marks.legend([] if looks.way.by_device else looks.counted(bands.trace), bands.width, top)
    lines, more = marks.line_legend(samples, bands.width, top + height)
    top += height + more + 26
    still = [  # what a live picture draws again
        _grid(bands),
        *(_bars(bands, band, looks, single) for band in bands.bands),
        *(_wire(bands, transfer, looks) for transfer in bands.drawn),
        *(_words(bands, band, looks, single) for band in bands.bands),
    ]
    devices = (tag("g", _ground(bands, band, looks), _labels(bands, band), class_="of-device") for band in bands.bands)
    plot = tag("g", *devices, tag("g", *still, class_="still"), transform=f"translate(0 {number(top)})")
    return join([heading, badges, lines, plot]), (bands.width, top + bands.height), top


def _ground(bands: Bands, band: Band, looks: _Looks) -> Markup:
    y = band.y + BAND_PADDING
    x = LABEL_GAP + marks.badge_width(band.look) + 6
    remark = _SIMULATED if band.look.device in bands.trace.simulated else ""
    return join([
        tag("rect", x=0, y=band.y, width=bands.width, height=band.height, rx=6, class_="band wide"),
        marks.badge(looks.of_band(band.look), LABEL_GAP, y + 2),
        tag("text", band.look.label, x=x, y=y + 15, class_="b"),
        tag("text", remark, x=x + text_width(band.look.label, 12, bold=True) + 14, y=y + 15, class_="s11"),
        _idle(bands, y, band.idle, "b"),
    ])  # fmt: skip


def _idle(bands: Bands, y: float, share: float, class_: str) -> Markup:
    text = f"{percent(share)} idle"
    return tag("text", text, x=bands.width - LABEL_GAP, y=y + 15, class_=f"s11 end right {class_}")


def _grid(bands: Bands) -> Markup:
    parts = []
    for micros, text in time_ticks(bands.trace.total, bands.right - bands.left):
        x = bands.x(micros)
        parts.append(tag("path", d=f"M{number(x)} -6V{number(bands.height)}", class_="grid"))
        parts.append(tag("text", text, x=x, y=-10, class_="s11 soft mid"))
    return join(parts)


def _bars(bands: Bands, band: Band, looks: _Looks, single: Set[int]) -> Markup:
    parts: list[Markup] = []
    for row in band.rows:
        rest = [event for event in row.events if id(event) not in single]
        for one, runs in bands.merged(rest, looks.of).items():
            y, height = number(row.y + 2), number(row.height - 4)
            bars = "".join(f"M{start} {y}h{end - start}v{height}h{start - end}z" for start, end in runs)
            parts.append(tag("path", d=bars, fill=one.colour.fill, stroke=one.colour.rim))
        whole = (event for event in row.events if id(event) in single)
        parts += [_bar(event, row, looks.of(event), *bands.extent(event)) for event in whole]
        reached = -1.0  # what lies on another one has only a frame
        for transfer in row.transfers:
            parts.append(_wait(bands, transfer, row, looks, covered=transfer.end <= reached))
            reached = max(reached, transfer.end)
    return join(parts)


def _bar(event: Event, row: Row, one: Look, x: float, width: float) -> Markup:
    size = {"x": x, "y": row.y + 2, "width": width, "height": row.height - 4, "rx": min(2.5, width / 3)}
    class_ = "fault" if event.is_fault else "part" if event.part else "sent" if event.is_sent else None
    fill = None if event.is_fault else one.colour.fill
    line = one.colour.line if event.is_sent else None if event.is_fault or event.part else one.colour.rim
    return tag("g", tag("title", _event_text(event)), tag("rect", fill=fill, stroke=line, class_=class_, **size))


def _wait(bands: Bands, transfer: Transfer, row: Row, looks: _Looks, covered: bool) -> Markup:
    x, width = bands.extent(transfer)
    colour = looks.of_transfer(transfer).colour
    y, height = row.y + 1.5, row.height - 3
    size = {"x": x, "y": y, "width": width, "height": height, "rx": 2}
    rect = tag("rect", fill="none" if covered else colour.fill, stroke=colour.line, class_="wait", **size)
    stripes = tag("path", d=hatch_path(x, y, width, height), stroke=colour.line, class_="stripe")
    return tag("g", tag("title", _transfer_text(transfer)), rect, *[stripes] * (not covered))


def _wire(bands: Bands, transfer: Transfer, looks: _Looks) -> Markup:
    """An arrow from the bar of the op that made the tensor to the end of the wait for it."""
    start, from_row = bands.origin(transfer)
    row = bands.arrival(transfer)
    down = from_row.y < row.y
    x, width = bands.extent(transfer)
    tip = (max(x, x + width - 3), row.y + 1.5 if down else row.y + row.height - 1.5)
    begin = (start, from_row.y + from_row.height - 2 if down else from_row.y + 2)
    colour = looks.of_transfer(transfer).colour.line
    reach = (tip[1] - begin[1]) * 0.45
    bends = [(begin[0], begin[1] + reach), (tip[0], tip[1] - reach), (tip[0], tip[1] + (-4 if down else 4))]
    return tag(
        "g",
        tag("title", _transfer_text(transfer)),
        tag("path", d=f"M{_xy(begin)}C{' '.join(map(_xy, bends))}", class_="wire", stroke=colour),
        tag("circle", cx=begin[0], cy=begin[1], r=2, fill=colour),
        tag("path", d=arrow_head(tip, (tip[0], tip[1] - reach), 6), fill=colour),
    )


def _xy(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"


def _labels(bands: Bands, band: Band) -> Markup:
    """Names and idle times next to a band's rows."""
    parts: list[Markup] = []
    for row in band.rows:
        y = row.y + row.height / 2 + 4
        own: list[Markup] = []
        if row.label:
            own.append(tag("text", row.label, x=bands.left - LABEL_GAP, y=y, class_="s11 soft end"))
        if row.idle is not None:
            own.append(_idle(bands, y - 15, row.idle, "soft"))
        idle = "idle: " + ", ".join(each.label for each in row.folded if each.label)
        names = [tag("title", plural(len(row.transfers), "tensor") if row.transfers else idle)]
        parts += [tag("g", *names, *own, class_="fold")] if row.folded else own
    return join(parts)


def _words(bands: Bands, band: Band, looks: _Looks, single: Set[int]) -> Markup:
    """All text on and below the bars: last, so that nothing lies on it."""
    parts: list[Markup] = []
    for row in band.rows:
        y = row.y + row.height / 2 + 4
        for event in row.events:
            name = bands.name_inside(event) if id(event) in single else None
            if name:
                x, width = bands.extent(event)
                ink = None if event.is_fault or event.is_sent else f"fill:{looks.of(event).colour.ink}"
                parts.append(tag("text", name, x=x + width / 2, y=y, class_="s11 mid", style=ink))
        parts += [tag("text", name, x=x, y=y + 16, class_="s11 soft mid halo") for x, name in row.names]
        parts += [_freight(bands, transfer, row) for transfer in row.transfers if not row.folded]
    return join(parts)


def _freight(bands: Bands, transfer: Transfer, row: Row) -> Markup:
    """The awaited tensor, cut to the room there is."""
    x, width = bands.extent(transfer)
    size = _amount(transfer)
    texts = [*(f"{name}  {size}" for name in bands.sent[transfer.producer.removesuffix("/read")]), size]
    text = next((text for text in texts if text_width(text, 11) <= width - 12), "")
    return tag("text", text, x=x + 5, y=row.y + row.height / 2 + 4, class_="s11 halo") if text else join([])


_OP = (tag("rect", x=0, y=3, width=28, height=12, rx=2.5, style="fill:var(--soft)"), "op")
_THIN = "M3 3v12h1v-12zM8 3v12h2v-12zM14 3v12h1v-12zM20 3v12h4v-12z"
_MERGED = (tag("path", d=_THIN, class_="merged", style="fill:var(--soft)"), "several bars in one pixel")
_PART = (tag("rect", x=0, y=3, width=28, height=12, rx=2.5, class_="part", style="fill:var(--soft)"), "part of an op")
_SENT = (
    tag("rect", x=0.5, y=3.5, width=27, height=11, rx=2.5, class_="sent", style="fill:var(--soft);stroke:var(--soft)"),
    "tensor on the wire, in the sender's colour",
)
_FAULT = (tag("rect", x=0.5, y=3.5, width=27, height=11, rx=2.5, class_="fault"), "fault of chaos")
_WAIT = (
    join([
        tag("rect", x=0, y=3, width=28, height=12, rx=2, class_="wait", style="fill:var(--soft);stroke:var(--soft)"),
        tag("path", d=hatch_path(0, 3, 28, 12, 6), class_="stripe", style="stroke:var(--soft)"),
    ]),
    "waiting for a tensor, in the sender's colour",
)  # fmt: skip
_WAIT_OTHERWISE = (_WAIT[0], "waiting for a tensor, in the colour of the op that made it")
_WIRE = (
    join([
        tag("path", d="M2 2C2 12 26 4 26 12", class_="wire", style="stroke:var(--fg)"),
        tag("circle", cx=2, cy=2, r=2, style="fill:var(--fg)"),
        tag("path", d=arrow_head((26, 17), (26, 8), 6), style="fill:var(--fg)"),
    ]),
    "the tensor, from the op that made it to its arrival",
)  # fmt: skip


# -- words ---------------------------------------------------------------------------------------------------


def _event_text(event: Event) -> str:
    start, end = round(event.start, 3), round(event.end, 3)  # as the live picture has them
    part = f", part {event.part[0]} of {event.part[1]}" if event.part else ""
    what = event.name if event.is_fault else f"{readable(event.name)} = {event.op}{part}"
    if event.is_sent:
        what = f"{readable(event.name)}, {byte_size(event.bytes)}, on the wire to {look(event.device).label}"
    return f"{what}\n{exact(end - start)}, {span(start, end)}"


def _transfer_text(transfer: Transfer) -> str:
    a, b = look(transfer.source).label, look(transfer.device).label
    what = f"{readable(transfer.tensor)}, {_amount(transfer)}, {a} → {b}"
    start, end = round(transfer.start, 3), round(transfer.end, 3)
    return f"{what}\nasked for and received in {exact(end - start)}, at {exact(end)}"


def _amount(transfer: Transfer) -> str:
    return byte_size(transfer.bytes) if transfer.bytes else "order only"  # a control dependency across devices


def _summary(bands: Bands) -> str:
    step = bands.trace
    which = f"one step, {duration(step.total)}"
    if step.whole is not None:
        records, length = step.whole
        which = f"the first {duration(step.total)} of a step of {duration(length)} with {records:,} records"
    text = f"{which}: {_count(step.events)} on {plural(len(bands.bands), 'device')}"
    if not step.transfers:
        return text
    text += f", {plural(len(step.transfers), 'transfer')}, {byte_size(sum(t.bytes for t in step.transfers))}"
    drawn = len(bands.drawn)
    return text if drawn == len(step.transfers) else f"{text} (the {drawn} largest are drawn)"


def _count(events: Sequence[Event]) -> str:
    """`111 ops (and 9 that send or fetch)`: ops are those of the graph, as a placement counts them."""
    added = sum(event.added for event in events)
    text = plural(len(events) - added, "op")
    return f"{text} (and {added:,} that send or fetch)" if added else text


def _sentence(bands: Bands, looks: _Looks) -> str:
    idle = ", ".join(f"{band.look.label} {percent(band.idle)} idle" for band in bands.bands)
    idle += ". From the first op to the end of the last; ops that take no time count, too"
    if looks.way.by_device:
        return f"Timeline of {_summary(bands)}. {idle}."
    counted = "; ".join(f"{one.label} {text}" for one, text in looks.counted(bands.trace))
    return f"Timeline of {_summary(bands)}. {idle}. By {looks.way.by}: {counted}."


def _tables(step: Trace, looks: _Looks) -> list[Table]:
    heads = ("op", "type", "device", "thread", "start, µs", "duration, µs", *looks.way.columns)

    def row(event: Event, name: str) -> list[str]:
        times = f"{event.start:.1f}", f"{event.duration:.1f}"
        return [name, event.op, look(event.device).label, event.thread, *times, *looks.column(event)]

    tables = [first_rows("Ops", heads, [row(event, event.name) for event in step.events])]
    if step.details:
        details = [row(event, event.called(event.name)) for event in step.details]
        with_faults = any(event.is_fault for event in step.details)
        tables.append(first_rows("Parts, copies and faults" if with_faults else "Parts and copies", heads, details))
    if step.transfers:
        heads = ("tensor", "from", "to", "bytes", "start, µs", "duration, µs")
        ends = [(look(t.source).label, look(t.device).label) for t in step.transfers]
        transfers = [
            [t.tensor, *pair, f"{t.bytes:,}", f"{t.start:.1f}", f"{t.duration:.1f}"]
            for t, pair in zip(step.transfers, ends, strict=True)
        ]
        tables.append(first_rows("Transfers", heads, transfers))
    took = {op: [event.duration for event in own] for op, own in grouped((e.op, e) for e in step.events).items()}
    sums = [[op, f"{len(took[op]):,}", f"{sum(took[op]):.1f}"] for op in sorted(took, key=lambda op: -sum(took[op]))]
    tables.append(first_rows("By op", ("op", "times", "duration, µs"), sums))
    return tables


def _text(bands: Bands, looks: _Looks) -> str:
    rows = []
    for band in bands.bands:
        events = [e for e in bands.trace.events if e.device == band.look.device]
        received = sum(t.bytes for t in bands.trace.transfers if t.device == band.look.device)
        longest = max(events, key=lambda e: e.duration, default=None)
        what = f"{readable(longest.name)} ({duration(longest.duration)})" if longest else ""
        name = band.look.device + f" ({_SIMULATED})" * (band.look.device in bands.trace.simulated)
        count = sum(not event.added for event in events)
        rows.append([name, count, percent(band.idle), byte_size(received), what])
    text = _summary(bands) + "\n" + text_table(("device", "ops", "idle", "received", "longest op"), rows)
    if looks.way.by_device:
        return text
    counted = [[one.label, what] for one, what in looks.counted(bands.trace)]
    return f"{text}\n\n{text_table((looks.way.by, 'ops'), counted)}"
