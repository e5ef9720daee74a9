"""The picture of memory: how much of each device a step uses over time, and which tensors make the peak.

Every device is a band. Its area is what variables and the step's tensors take, one layer for each of the largest at
the peak, from when it is made (or the beginning) to when it is freed; below, hatched, what else was there before. A
line marks the peak, and next to the band stands what it consists of. Times of a simulated GPU are those of NumPy, and
the picture says so.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dtflab.base.errors import ResourceExhaustedError
from dtflab.base.text_table import plural, text_table
from dtflab.graph.node_names import readable
from dtflab.graph.scopes import get_default_graph
from dtflab.viz.allocations import allocations
from dtflab.viz.data.graph_ops import Op, ops_of
from dtflab.viz.data.usage import Held, Usage, read, unknown
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.columns import Numbers, columns
from dtflab.viz.drawing.palette import Look, look, together
from dtflab.viz.drawing.picture import Picture, Table
from dtflab.viz.drawing.style import MARGIN, room, rules
from dtflab.viz.drawing.svg import Markup, hatch_path, join, number, shorten, tag, text_width
from dtflab.viz.drawing.units import duration, memory_size, time_ticks

_MOST_LAYERS = 7  # of single tensors; the smaller ones are one layer
_MOST_TABLE_ROWS = 1000
_MOST_LIVE = 5000  # tensors that a live picture has; of more there is the still
_HEAD, _ROW, _LEAST_PLOT = 30.0, 18.0, 120.0
_GAP = 14.0  # between bands
_LEAST_SHARE = 0.001  # of the largest peak: a device with less is in the tables only
_LEFT = 70.0  # of the plot: room for sizes
_LIST = 262.0  # width of the list next to it
_SIDE_BY_SIDE = 700.0  # pages that are narrower have it below
_UNTIL = 14.0  # height of the line that says for whom a tensor is kept


def memory(step: Any, *, graph: Any = None, width: float | None = None, title: str = "Memory") -> Picture:
    """Picture the memory of a traced step.

    `step` is the RunMetadata (or its StepStats) that `session.run` filled, asked with
    `options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)`; TensorFlow's own will do. ValueError if it says
    nothing of memory. `graph` (by default the default graph) says for whom a tensor was kept: the last op that read
    it. Given the ResourceExhaustedError of a simulated GPU of this process instead, the picture is that of the card's
    blocks when it was full, and of the allocations before.
    """
    if isinstance(step, ResourceExhaustedError):
        return allocations(step, width=width)
    ops = _ops(graph)
    usages = read(step, ops)
    with together(usage.device for usage in usages):
        inner = room(width)
        bands: list[_Band] = []
        summary = _summary(usages, unknown(step))
        heading = marks.heading(title, summary, inner)
        top = heading.height + 8.0 + 26.0
        y = top
        largest = max(usage.peak()[1] for usage in usages)
        for usage in usages:
            if usage.peak()[1] < largest * _LEAST_SHARE:
                continue
            bands.append(_Band(usage, look(usage.device), y, inner, len(bands)))
            y += bands[-1].height + _GAP
        drawing = join([heading, *(part for band in bands for part in band.draw())])
        sentence = f"{title} of {summary}. " + " ".join(map(_sentence, usages))
        few = sum(len(band.usage.tensors) for band in bands) <= _MOST_LIVE
        live = functools.partial(_live, bands, {(op.name, op.op): op.line for op in ops}) if few else None
        tables, text = _tables(usages), _text(usages, summary)
        return Picture(drawing, (inner, y - _GAP), rules("memory"), sentence, tables, text, live=live)


def _ops(graph: Any) -> Sequence[Op]:
    """The ops that show which op reads what; none of an empty default graph."""
    return [] if graph is None and not get_default_graph().get_operations() else ops_of(graph)


class _Layer(NamedTuple):
    """Tensors that are drawn as one; `number` as in the list, 0 for the many small ones."""

    number: int
    tensors: Sequence[Held]


class _Piece(NamedTuple):
    """A rectangle of the drawing."""

    x: float
    y: float
    width: float
    height: float


class _Band:
    """One device: its plot and the list of what makes the peak."""

    def __init__(self, usage: Usage, one: Look, y: float, width: float, number: int) -> None:
        self.usage, self.look, self.y, self.width, self.number = usage, one, y, width, number
        self.moment, self.most = usage.peak()
        self.listed = usage.held_at_peak()
        self.at_peak = {*map(id, self.listed)}
        shown = self.listed[:_MOST_LAYERS]
        others = [held for held in usage.tensors if held not in shown]
        singles = sorted(((i + 1, held) for i, held in enumerate(shown)), key=lambda pair: pair[1].start)
        self.layers = [_Layer(0, others), *(_Layer(i, [held]) for i, held in singles)]
        rows = len(shown) + (len(self.listed) > len(shown)) + (usage.before > 0)
        listed = 22 + _ROW * rows + _UNTIL * sum(bool(held.until) for held in shown)
        side_by_side = width >= _SIDE_BY_SIDE  # else the list stands below the plot
        self.plot = max(_LEAST_PLOT, listed if side_by_side else 0.0)
        self.height = _HEAD + self.plot + 12 + (0 if side_by_side else listed)
        self.right = width - (_LIST + 16 if side_by_side else 12)
        self.bottom = y + _HEAD + self.plot
        self.list_at = (self.right + 22, y + 19) if side_by_side else (_LEFT, self.bottom + 20)
        self.times = sorted({0.0, usage.total, *(moment for moment, _ in usage.changes)})
        self.pieces = list(self._stacked())

    def number_of(self, held: Held) -> int:
        """The number of a tensor in the list; 0 for a small one."""
        return next((layer.number for layer in self.layers if layer.number and layer.tensors[0] is held), 0)

    def x(self, micros: float) -> float:
        return _LEFT + (self.right - _LEFT) * min(micros / self.usage.total, 1.0)

    def level(self, nbytes: float) -> float:
        """The y of that many bytes; the peak stays a little below the top."""
        return self.bottom - nbytes / self.most * (self.plot - 16)

    def draw(self) -> Iterator[Markup]:
        yield tag("rect", x=0, y=self.y, width=self.width, height=self.height, rx=6, class_="band wide")
        yield from self._head()
        plot = *self._grid(), *self._old(), *self._areas(), *self._numbers(), *self._peak()
        yield marks.stretch((_LEFT, self.right), *plot)
        yield tag("g", *self._list(), class_="right" if self.list_at[0] > self.right else None)

    def _head(self) -> Iterator[Markup]:
        x = 8 + marks.badge_width(self.look) + 6
        remark = self.usage.allocator + (", simulated: NumPy timings" if self.usage.simulated else "")
        yield marks.badge(self.look, 8, self.y + 6)
        yield tag("text", self.look.label, x=x, y=self.y + 19, class_="b")
        x += text_width(self.look.label, 12, bold=True) + 10
        yield tag("text", remark, x=x, y=self.y + 19, class_="s11 soft")

    def _grid(self) -> Iterator[Markup]:
        for micros, text in time_ticks(self.usage.total, self.right - _LEFT):
            x = self.x(micros)
            yield tag("path", d=f"M{number(x)} {number(self.y + _HEAD)}V{number(self.bottom)}", class_="grid")
            if not self.number:  # the first one has the times
                yield tag("text", text, x=x, y=self.y - 7, class_="s11 soft mid")
        step = 1 << (self.most // 4).bit_length()  # two to four lines
        for nbytes in range(0, self.most + 1, step):
            y = self.level(nbytes)
            yield tag("path", d=f"M{number(_LEFT)} {number(y)}H{number(self.right)}", class_="grid")
            text = memory_size(nbytes) if nbytes else "0"
            yield tag("text", text, x=_LEFT - 6, y=y + 4, class_="s11 soft end")

    def _old(self) -> Iterator[Markup]:
        if self.usage.before:
            y = self.level(self.usage.before)
            size = (_LEFT, y, self.right - _LEFT, self.bottom - y)
            yield tag("rect", x=size[0], y=size[1], width=size[2], height=size[3], class_="old")
            yield tag("path", d=hatch_path(*size), class_="stripe")

    def _areas(self) -> Iterator[Markup]:
        for layer, pieces in self.pieces:
            if pieces:
                path = "".join(
                    f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"
                    for x, y, width, height in pieces
                )
                held = layer.tensors[0]
                text = _tensor_text(held) if layer.number else plural(len(layer.tensors), "other tensor")
                yield tag("path", tag("title", text), d=path, fill=self.look.colour.fill, class_="layer",
                          fill_opacity=_shade(layer.number), data_block=f"{self.number}-{layer.number}")  # fmt: skip
        levels = [self.usage.before + taken for taken in _bytes_at(self.usage.tensors, self.times)]
        corners = zip(map(self.x, self.times), map(self.level, levels), strict=True)
        points = "".join(f"H{number(x)}V{number(y)}" for x, y in corners)
        start = f"M{number(self.x(0))} {number(self.level(self.usage.before))}"
        yield tag("path", d=start + points, class_="total", stroke=self.look.colour.line)

    def _stacked(self) -> Iterator[tuple[_Layer, list[_Piece]]]:
        """Each layer with its rectangles: it lies on those below it, wherever they end at that moment."""
        base = [float(self.usage.before)] * len(self.times)
        for layer in self.layers:
            top = [below + more for below, more in zip(base, _bytes_at(layer.tensors, self.times), strict=True)]
            pieces: list[_Piece] = []
            for i in range(len(self.times) - 1):
                if top[i] > base[i]:
                    x, y = self.x(self.times[i]), self.level(top[i])
                    pieces.append(_Piece(x, y, max(1.0, self.x(self.times[i + 1]) - x), self.level(base[i]) - y))
            yield layer, pieces
            base = top

    def _numbers(self) -> Iterator[Markup]:
        """The number of a tensor in the list, where its layer has room for it."""
        for layer, pieces in self.pieces:
            roomy = [piece for piece in pieces if piece.height >= 11.5 and piece.width >= 10]
            if layer.number and roomy:
                best = max(roomy, key=lambda piece: piece.width)
                at = {"x": best.x + best.width / 2, "y": best.y + best.height / 2 + 4}
                yield _digit(layer.number, self.look, **at)

    def _peak(self) -> Iterator[Markup]:
        x, y = self.x(self.moment), self.level(self.most)
        yield tag("path", d=f"M{number(x)} {number(self.bottom)}V{number(y)}", class_="peak", stroke_dasharray="3 3")
        yield tag("circle", cx=x, cy=y, r=3.2, style="fill:var(--fg)")
        text = f"peak {memory_size(self.most)} at {duration(self.moment)}"
        room = text_width(text, 11, bold=True) + 8
        left = x + 8 + room > self.right
        yield tag("text", text, x=x - 8 if left else x + 8, y=y - 1, class_="s11 b halo" + (" end" if left else ""))

    def _list(self) -> Iterator[Markup]:
        x, y = self.list_at
        yield tag("text", f"At the peak, {memory_size(self.most)}", x=x, y=y, class_="s11 b")
        shown = self.listed[:_MOST_LAYERS]
        names = [_called(held, self.moment) for held in shown]
        untils = [readable(held.until) for held in shown]
        for i, (held, name) in enumerate(zip(shown, names, strict=True), 1):
            y += _ROW
            reader = f"for {shorten(readable(held.until), _LIST - 124, 11, others=untils)}"
            until = tag("text", reader, x=x + 94, y=y + _UNTIL, class_="s11 soft")
            name = shorten(name, _LIST - 104, 11, others=names)
            yield self._entry(x, y, i, held.bytes, name, *([until] if held.until else []))
            y += _UNTIL * bool(held.until)
        rest = self.listed[_MOST_LAYERS:]
        if rest:
            y += _ROW
            yield self._entry(x, y, 0, sum(held.bytes for held in rest), plural(len(rest), "more tensor"))
        if self.usage.before:
            y += _ROW
            yield tag("rect", x=x, y=y - 10, width=12, height=12, rx=2, class_="old")
            yield tag("path", d=hatch_path(x, y - 10, 12, 12, 5), class_="stripe")
            yield from _words(x, y, self.usage.before, "from before the step")

    def _entry(self, x: float, y: float, i: int, nbytes: int, name: str, *below: Markup) -> Markup:
        high = 16.0 + _UNTIL * len(below)
        hit = tag("rect", x=x - 3, y=y - 12, width=_LIST - 4, height=high, rx=3, fill_opacity=0, class_="hit")
        box = tag("rect", x=x, y=y - 10, width=12, height=12, rx=2, fill=self.look.colour.fill, fill_opacity=_shade(i),
                  class_="kept")  # fmt: skip
        digit = [_digit(i, self.look, x + 6, y)] if i else []
        parts = hit, box, *digit, *_words(x, y, nbytes, name), *below
        return tag("g", *parts, class_="entry", data_block=f"{self.number}-{i}")


def _live(bands: Sequence[_Band], lines: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """The data of the view `memory`: every tensor of each band, with its number in the list."""
    texts = Numbers()
    first = bands[0]
    return {
        "view": "memory", "left": MARGIN + _LEFT, "right": MARGIN + first.right, "total": first.usage.total,
        "bands": [
            {
                "device": band.look.label, "top": MARGIN + band.y + _HEAD, "bottom": MARGIN + band.bottom,
                "before": band.usage.before, "peak": band.moment,
                "held": [i for i, held in enumerate(band.usage.tensors) if id(held) in band.at_peak],
                "tensors": columns(
                    ("start", "end", "bytes", "number", "name", "card"),
                    [
                        (
                            held.start, -1 if held.end is None else held.end, held.bytes, band.number_of(held),
                            texts.of(readable(held.name)), texts.of(_card(held, lines.get((held.name, held.op), ""))),
                        )
                        for held in band.usage.tensors
                    ],
                ),
            }
            for band in bands
        ],
        "texts": texts.values,
    }  # fmt: skip


def _card(held: Held, line: str) -> str:
    """A tensor as its card says it: op, shape, bytes, lifetime, and the line of the user's program that made the op."""
    return _tensor_text(held) + (f"\n{line}" if line else "")


def _digit(i: int, one: Look, x: float, y: float) -> Markup:
    ink = one.colour.ink if i % 2 else "var(--fg)"  # every other layer is half the ground's colour
    return tag("text", i, x=x, y=y, class_="s11 b mid", style=f"fill:{ink}")


def _words(x: float, y: float, nbytes: int, name: str) -> Iterator[Markup]:
    yield tag("text", memory_size(nbytes), x=x + 84, y=y, class_="s11 end")
    yield tag("text", name, x=x + 94, y=y, class_="s11")


def _shade(i: int) -> float:
    """Neighbours in a stack are told apart; the layer of the small ones is the palest."""
    return 0.28 if i == 0 else 0.95 if i % 2 else 0.62


def _bytes_at(tensors: Sequence[Held], times: list[float]) -> list[int]:
    """Bytes that the tensors take from each of the times on."""
    place = {moment: i for i, moment in enumerate(times)}
    change = [0] * len(times)
    for held in tensors:
        change[place[held.start]] += held.bytes
        if held.end is not None:
            change[place[held.end]] -= held.bytes
    now, found = 0, []
    for each in change:
        now += each
        found.append(now)
    return found


# -- words ---------------------------------------------------------------------------------------------------


def _tensor_text(held: Held) -> str:
    end = "to after the step" if held.end is None else f"to {duration(held.end)}"
    until = f"\nkept for {readable(held.until)}" if held.until else ""
    over = "".join(f"\nwritten over by {readable(name)}" for _, name in held.over)
    span = f"{memory_size(held.bytes)}, from {duration(held.start) if held.start else 'the beginning'} {end}"
    return f"{readable(held.name)} = {held.op}  {held.what}\n{span}{over}{until}"


def _summary(usages: Sequence[Usage], unknown: Sequence[str]) -> str:
    count, silent = sum(len(usage.tensors) for usage in usages), ", ".join(look(device).label for device in unknown)
    left_out = f"; TensorFlow's trace does not list the variables of {silent}" if silent else ""
    found = f"{plural(count, 'tensor')} on {plural(len(usages), 'device')}"
    return f"one step, {duration(usages[0].total)}: {found}{left_out}"


def _sentence(usage: Usage) -> str:
    moment, most = usage.peak()
    largest = usage.held_at_peak()[:3]
    parts = [f"{memory_size(held.bytes)} from {_called(held, moment)}{_kept(held)}" for held in largest]
    parts += [f"{memory_size(usage.before)} from before the step"] if usage.before else []
    simulated = " (simulated: NumPy timings)" if usage.simulated else ""
    return (
        f"{look(usage.device).label}{simulated} has its peak of {memory_size(most)} at {duration(moment)}: "
        f"{', '.join(parts)}."
    )


def _called(held: Held, moment: float) -> str:
    """The op whose output it is at that moment, and the one that made the buffer if another has written over it."""
    now = held.output_of(moment)
    return readable(held.name) if now == held.name else f"{readable(now)} over {readable(held.name)}"


def _kept(held: Held) -> str:
    return f", kept for {readable(held.until)}" if held.until else ""


_HEADS = ("op", "type", "tensor", "bytes", "made, µs", "freed, µs", "written over by", "kept for")


def _tables(usages: Sequence[Usage]) -> list[Table]:
    tables: list[Table] = []
    for usage in usages:
        label, listed = look(usage.device).label, usage.held_at_peak()
        moment, most = usage.peak()
        title = f"{label}, {usage.allocator}: the peak of {most:,} bytes at {moment:.0f} µs"
        old = [["", "", "from before the step", f"{usage.before:,}", "", "", "", ""]] if usage.before else []
        tables.append((title, _HEADS, [*map(_cells, listed[:_MOST_TABLE_ROWS]), *old]))
        tables.append((f"{label}, {usage.allocator}: all", _HEADS, [*map(_cells, usage.tensors[:_MOST_TABLE_ROWS])]))
    return tables


def _cells(held: Held) -> list[str]:
    end = "after the step" if held.end is None else f"{held.end:.0f}"
    over = ", ".join(name for _, name in held.over)
    return [held.name, held.op, held.what, f"{held.bytes:,}", f"{held.start:.0f}", end, over, held.until]


def _text(usages: Sequence[Usage], summary: str) -> str:
    parts = [summary]
    for usage in usages:
        moment, most = usage.peak()
        rows = [
            [memory_size(held.bytes), _called(held, moment), held.op, held.what, readable(held.until)]
            for held in usage.held_at_peak()
        ]
        if len(rows) > _MOST_LAYERS:
            rest = sum(held.bytes for held in usage.held_at_peak()[_MOST_LAYERS:])
            more = plural(len(rows) - _MOST_LAYERS, "more tensor")
            rows[_MOST_LAYERS:] = [[memory_size(rest), more, "", "", ""]]
        rows += [[memory_size(usage.before), "from before the step", "", "", ""]] if usage.before else []
        simulated = ", simulated: NumPy timings" if usage.simulated else ""
        parts.append(f"{usage.device} ({usage.allocator}{simulated}), peak {memory_size(most)}")
        parts.append(text_table(("bytes", "op", "type", "tensor", "kept for"), rows))
    return "\n".join(parts)
