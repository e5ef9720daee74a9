"""The picture of placement: every op in the colour of its device (or job, time, phase), in boxes of its name scopes.

What a learner should see at once: which ops share a device, and which tensors have to travel. So lines between ops
of one device are thin and grey, and those that cross devices are thick, in the colour of the device that sends. Why an
op is where it is says its tooltip, and the text and the table next to the picture.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural, text_table
from dtflab.graph.node_names import readable
from dtflab.runtime.session import BaseSession
from dtflab.viz import placement_live
from dtflab.viz.colouring import Colouring, colouring, of_ops
from dtflab.viz.data.graph_ops import Edge, Op, edges_of, graph_of, ops_of
from dtflab.viz.data.story import asked
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import Look, in_order, look, together
from dtflab.viz.drawing.picture import Picture, Table
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, arrow_head, join, line_path, shorten, tag, text_width
from dtflab.viz.layout.layered import TOLERATED, Box, Cluster, Layout, Rect, layout
from dtflab.viz.layout.shapes import Point
from dtflab.viz.placement_live import BOX_HEIGHT
from dtflab.viz.scopes import Block, blocks

LABEL_ROOM, FOR_TWO, LEAST_BOX = 104.0, 40.0, 56.0  # of a name, what two names have more, of a box
MOST_BADGES = 3
MOST_REASONS = 12  # in the text
FEW, OUTLINE = 40, 12  # ops of a graph that is opened as far as a page allows; boxes of a larger one
PAGES = (FEW, 35, 31, 28, 25, 22, 18, 14, 10)  # boxes to try, until the drawing fits
PAGE_HEIGHT = 960.0
ROWS = 19  # of a live picture of that height
LEAST_WIDTH = 700.0  # the legend's


def placement(
    graph: Any = None,
    placement: Mapping[str, str] | BaseSession | None = None,
    *,
    reasons: Mapping[str, str] | None = None,
    color_by: str = "device",
    step: Any = None,
    phases: Mapping[str, str] | None = None,
    scope: str = "",
    max_boxes: int | None = None,
    width: float | None = None,
    title: str = "Placement",
) -> Picture:
    """Picture the devices of a graph's ops.

    `graph` is what `digraph` takes: a Graph, a GraphDef, Nodes or fetches; `placement` maps names of ops to devices,
    `reasons` to why they are there (`session.placement_reasons()`); what the placer returns has them already. Pass a
    session instead of both to see where it put all ops, those without a device too. A master in another process does
    not report that, so dtflab's rules place them. ValueError if the session has another graph. Name
    scopes are opened down to about `max_boxes` boxes; closed ones say how many ops they hold, and open by click in a
    notebook. Without `max_boxes` a graph of 40 ops or fewer is opened as far as a page allows, and a larger one begins
    as an outline of 12 boxes. `scope="rnn/while"` draws only what is in that one.

    `color_by` is "device", "job", "time" (how long each op took, in the traced `step`, a RunMetadata) or "phase" of the
    training (input, forward, loss, backward, update: as `phases(graph)` finds them, or as `phases` says).
    """
    if max_boxes is not None and max_boxes < 1:
        raise ValueError(f"max_boxes must be at least 1, not {max_boxes}. Leave it out for a readable number.")
    session = placement if isinstance(placement, BaseSession) else None
    graph, placement = asked(graph, placement)
    way = colouring(color_by, graph_of(graph) if session is None else session.graph, step, phases)
    why = getattr(placement, "reasons", {}) if reasons is None else reasons
    ops = [op._replace(why=why.get(op.name, "")) for op in ops_of(graph, placement)]
    if scope:
        ops = [op for op in ops if f"{op.name}/".startswith(scope.rstrip("/") + "/")]
        if not ops:
            raise ValueError(f"No op of this graph is in the scope {scope!r}. Name one that tf.name_scope made.")
    page = room(width)
    with together(op.device for op in ops):
        coloured = _Coloured(ops, way, of_ops(way, ops), page)
        most = OUTLINE if max_boxes is None and len(ops) > FEW else max_boxes
        view = _on_a_page(coloured) if most is None else _View(coloured, _blocks(coloured, most))
        drawing, size, top = view.draw(title)
        live = functools.partial(placement_live.data, view, view.root, top, most or ROWS)
        return Picture(drawing, size, rules("placement"), _sentence(view), _tables(view), _text(view), live=live)


class _Coloured(NamedTuple):
    """The drawing: ops with their looks, on a page of this width."""

    ops: Sequence[Op]
    way: Colouring
    looks: Mapping[str, Look]
    width: float


def _on_a_page(coloured: _Coloured) -> _View:
    """The view with the most boxes that is about one page high, found by halving."""
    views: dict[tuple[str, ...], _View] = {}

    def fits(most: int) -> bool:
        root = _blocks(coloured, most)
        boxes = tuple(block.key for block in root.visible())
        if boxes not in views:
            views[boxes] = _View(coloured, root)
        return views[boxes].fits

    low, high = (0, 1) if fits(PAGES[0]) else (0, len(PAGES))
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(PAGES[middle]) else (middle, high)
    return max(views.values(), key=lambda view: (view.fits, len(view.seen) if view.fits else -view.layout.height))


def _blocks(coloured: _Coloured, most: int) -> Block:
    links = [(edge.source, edge.target) for edge in edges_of(coloured.ops)]
    kinds = {name: one.device for name, one in coloured.looks.items()}
    return blocks([op.name for op in coloured.ops], links, most, kinds)


@dataclasses.dataclass
class _Seen:
    """A visible box: what it says, the looks of its ops by their number, and the room that takes."""

    block: Block
    label: str
    count: str
    looks: list[tuple[Look, int]]
    width: float

    @property
    def badges(self) -> list[Look]:
        return [look for look, _ in self.looks[:MOST_BADGES]]


class _View:
    """Data, boxes and layout of one picture."""

    def __init__(self, coloured: _Coloured, root: Block) -> None:
        self.ops = {op.name: op for op in coloured.ops}
        self.edges = edges_of(coloured.ops)
        self.way, self.looks, self.width = coloured.way, coloured.looks, coloured.width
        self.by_device = Counter(op.device for op in coloured.ops)
        self.by_look = Counter(self.looks.values())
        self.devices = in_order(self.by_device)
        self.root = root
        self.seen = {block.key: self.drawn(block) for block in root.visible()}
        home = {name: block.key for block in root.visible() for name in block.ops}
        between = (((home[edge.source], home[edge.target]), edge) for edge in self.edges)
        self.bundles = grouped((ends, edge) for ends, edge in between if ends[0] != ends[1])
        self.titles: dict[str, tuple[str, Block]] = {}
        self.layout: Layout = layout(self._cluster(root), self.bundles, self.width, self._turns())

    def drawn(self, block: Block) -> _Seen:
        counted = Counter(self.looks[name] for name in block.ops)
        looks = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0].device))
        (name, *others), label = block.ops, block.label
        if not others and readable(name) != name:
            label = readable(name)
        label = shorten(label, LABEL_ROOM + (FOR_TWO if " … " in label else 0))
        count = "" if len(block.ops) == 1 else plural(len(block.ops), "op")
        width = sum(marks.badge_width(one) for one, _ in looks[:MOST_BADGES]) + 8 + text_width(label) + 10
        width += text_width(count, 11) + 8 if count else 0
        return _Seen(block, label, count, looks, math.ceil(max(width, LEAST_BOX)))

    def _cluster(self, block: Block) -> Cluster:
        children = tuple(self._cluster(child) if child.is_open else self.shape(child) for child in block.children)
        label, width = self.title(block)
        self.titles[block.key] = (label, block)
        return Cluster(block.key, children, width)

    def title(self, block: Block) -> tuple[str, float]:
        """The title of an open scope and its width."""
        label = shorten(block.label, LABEL_ROOM + 60, 11, bold=True)
        return label, math.ceil(text_width(label, 11, bold=True)) + 2

    def shape(self, block: Block) -> Box:
        seen = self.drawn(block)
        group = seen.looks[0][0].device if len(seen.looks) == 1 else ""
        return Box(block.key, seen.width, BOX_HEIGHT, group)

    def _turns(self) -> bool:
        """Whether something flows back: a chain that only goes forward is read downwards."""
        return any("_grad/" in name for name in self.ops)

    @property
    def fits(self) -> bool:
        return self.layout.height <= PAGE_HEIGHT and self.layout.width <= self.width * TOLERATED

    def crossing(self) -> list[Edge]:
        return [edge for edge in self.edges if edge.kind == "transfer"]

    def column(self, op: Op) -> list[str]:
        return [self.looks[op.name].label for _ in self.way.columns]

    # -- drawing ----------------------------------------------------------------------------------------

    def draw(self, title: str) -> tuple[Markup, tuple[float, float], float]:
        """The drawing, its size, and where in it the graph begins."""
        width = max(self.layout.width, min(self.width, LEAST_WIDTH))
        entries = [(one, plural(n, "op")) for one, n in _by_look(self)]
        heading = marks.heading(title, _summary(self), width)
        start = heading.height + 10
        devices, height = marks.legend(entries, width, start)
        kinds = {edge.kind for edge in self.edges}
        samples, more = marks.line_legend([_LINES[k] for k in _LINES if k in kinds], width, start + height)
        top = start + height + more + 10
        left = (width - self.layout.width) / 2
        where = f"translate({left:g} {top:g})"
        graph = tag("g", self._clusters(), self._lines(), self._boxes(), transform=where, class_="still")
        return join([heading, devices, samples, graph]), (width, top + self.layout.height), top

    def _clusters(self) -> Markup:
        parts = []
        for key, r in self.layout.clusters.items():
            label, block = self.titles[key]
            title = tag("title", f"{block.name}: {plural(len(block.ops), 'op')}")
            frame = tag("rect", x=r.x, y=r.y, width=r.width, height=r.height, rx=8, class_="scope")
            parts.append(tag("g", title, frame, tag("text", label, x=r.x + 9, y=r.y + 14, class_="s11 b soft")))
        return join(parts)

    def _boxes(self) -> Markup:
        return join(self._box(self.seen[key], rect) for key, rect in self.layout.boxes.items())

    def _box(self, seen: _Seen, r: Rect) -> Markup:
        one = seen.looks[0][0]
        stroke = one.colour.line if len(seen.looks) == 1 else "var(--edge)"
        shape = {"width": r.width, "height": r.height, "rx": 4, "stroke": stroke}
        parts = [tag("title", self._tooltip(seen))]
        if seen.count:
            parts.append(tag("rect", x=r.x + 3, y=r.y + 3, class_="more", **shape))
        parts.append(tag("rect", x=r.x, y=r.y, class_="box", **shape))
        if len(seen.looks) == 1:
            tint = {"fill": one.colour.fill, "fill_opacity": 0.13, "stroke": "none"}
            parts.append(tag("rect", x=r.x, y=r.y, **{**shape, **tint}, class_="tint"))
        x = r.x
        for badge_look in seen.badges:
            parts.append(marks.badge(badge_look, x, r.y, r.height))
            x += marks.badge_width(badge_look)
        parts.append(tag("text", seen.label, x=x + 8, y=r.y + 17))
        if seen.count:
            parts.append(tag("text", seen.count, x=r.right - 8, y=r.y + 17, class_="s11 soft end"))
        return tag("g", *parts)

    def _tooltip(self, seen: _Seen) -> str:
        alone = len(seen.block.ops) == 1
        names = [self._named(name, alone) for name in seen.block.ops[:12]]
        names += [f"… and {len(seen.block.ops) - 12} more"] if len(seen.block.ops) > 12 else []
        where = ", ".join(self._word(one, n) if len(seen.looks) > 1 else self._word(one) for one, n in seen.looks)
        first = self.ops[seen.block.ops[0]]
        return "\n".join(filter(None, [*names, where, first.why if alone else "", first.line]))

    def _word(self, one: Look, count: int = 0) -> str:
        """A look in words, with how many of several ops have it."""
        if not self.way.by_device:
            return f"{count} {one.label}" if count else f"{self.way.by}: {one.label}"
        return f"{count} on {one.label}" if count else one.device or one.label

    def _named(self, name: str, alone: bool) -> str:
        op = self.ops[name]
        return f"{name} = {op.op}" + (f": {op.why}" if op.why and not alone else "")

    def _lines(self) -> Markup:
        """Grey lines first, then those that cross devices, which are never hidden."""
        plain: list[Markup] = []
        crossing: list[Markup] = []
        for pair, edges in self.bundles.items():
            kinds = {edge.kind for edge in edges}
            line = self._line(self.layout.lines[pair], edges, kinds)
            (crossing if "transfer" in kinds else plain).append(line)
        return join([*plain, *crossing])

    def _line(self, points: Sequence[Point], edges: Sequence[Edge], kinds: set[str]) -> Markup:
        tip, back = points[-1], points[-2]
        if "transfer" in kinds:
            source = next(edge.source for edge in edges if edge.kind == "transfer")
            colour = self.looks[source].colour.line
            short = _shortened(points, 5)
            body = tag("path", d=line_path(short, 7), class_="x", stroke=colour)
            head = tag("path", d=arrow_head(tip, back, 8), fill=colour)
        else:
            body = tag("path", d=line_path(_shortened(points, 4), 6), class_="e c" if kinds == {"control"} else "e")
            head = tag("path", d=arrow_head(tip, back, 6), class_="h")
        return tag("g", tag("title", "\n".join(map(self._edge_text, edges[:8]))), body, head)

    def _edge_text(self, edge: Edge) -> str:
        a, b = (look(self.ops[name].device).label for name in (edge.source, edge.target))
        return f"{edge.tensor} → {edge.target}" + (f" ({a} → {b})" if edge.kind == "transfer" else "")


def _tip(size: float, **attrs: str) -> Markup:
    return tag("path", d=arrow_head((28, 9), (0, 9), size), **attrs)


_GREY = join([tag("path", d="M0 9H22", class_="e"), _tip(6, class_="h")])
_THICK = join([tag("path", d="M0 9H22", class_="x", style="stroke:var(--fg)"), _tip(8, style="fill:var(--fg)")])
_LINES = {
    "data": (_GREY, "tensor, stays on its device"),
    "transfer": (_THICK, "tensor, sent to another device (in the sender's colour)"),
    "control": marks.ORDER_ONLY,
}


def _shortened(points: Sequence[Point], by: float) -> list[Point]:
    """The line without its last pixels, which the arrow head covers."""
    (x, y), (bx, by_) = points[-1], points[-2]
    far = math.dist(points[-1], points[-2]) or 1.0
    share = min(by / far, 1.0)
    return [*points[:-1], (x + (bx - x) * share, y + (by_ - y) * share)]


# -- words ---------------------------------------------------------------------------------------------------


def _summary(view: _View) -> str:
    sent = {(e.tensor, view.ops[e.target].device) for e in view.crossing()}
    count, nowhere = len([*filter(None, view.devices)]), view.by_device.get("", 0)
    text = f"{plural(len(view.ops), 'op')}" + (f" on {plural(count, 'device')}" if count else "")
    text += f", {nowhere:,} not placed" if nowhere and count else ""
    return text + (f", {plural(len(sent), 'tensor')} sent between them" if count > 1 else "")


def _sentence(view: _View) -> str:
    counts = ", ".join(f"{look(d).label} {plural(view.by_device[d], 'op')}" for d in view.devices)
    if not view.way.by_device:
        counts += f". By {view.way.by}: " + ", ".join(f"{one.label} {plural(n, 'op')}" for one, n in _by_look(view))
    advice = " Where the others go: session.placed_nodes(…) or %dtf_placement." if "" in view.by_device else ""
    return f"Graph of {_summary(view)}: {counts}.{advice}"


def _by_look(view: _View) -> list[tuple[Look, int]]:
    """How many ops have each look, in the order of the legend."""
    return [(one, view.by_look[one]) for one in view.way.order(view.by_look)]


def _tables(view: _View) -> list[Table]:
    ops = sorted(view.ops.values(), key=lambda op: view.devices.index(op.device))
    reasoned = any(op.why for op in ops)
    rows = [
        [look(op.device).label, op.name, op.op, op.device, *view.column(op), *([op.why] if reasoned else [])]
        for op in ops
    ]
    sent = [
        [e.tensor, look(view.ops[e.source].device).label, look(view.ops[e.target].device).label, e.target]
        for e in view.crossing()
    ]
    titles = ("device", "op", "type", "full name of the device", *view.way.columns, *(["why"] if reasoned else []))
    tables: list[Table] = [("Ops by device", titles, rows)]
    if sent:
        tables.append(("Tensors sent between devices", ("tensor", "from", "to", "used by"), sent))
    return tables


def _text(view: _View) -> str:
    rows = []
    for device in view.devices:
        names = [op.name for op in view.ops.values() if op.device == device]
        rows.append([device or "(not placed)", len(names), _listed(names)])
    text = _summary(view) + "\n" + text_table(("device", "ops", "names"), rows)
    if not view.way.by_device:
        named = {one: [name for name in view.ops if view.looks[name] == one] for one, _ in _by_look(view)}
        rows = [[one.label, len(names), _listed(names)] for one, names in named.items()]
        text += "\n\n" + text_table((view.way.by, "ops", "names"), rows)
    return text + _reasons(view)


def _reasons(view: _View) -> str:
    """The placer's reasons, the most frequent first."""
    named = grouped((op.why, op.name) for op in view.ops.values() if op.why)
    if not named:
        return ""
    often = sorted(named, key=lambda why: -len(named[why]))
    rows = [[why, len(named[why]), _listed(named[why])] for why in often[:MOST_REASONS]]
    rest = f"\n… {len(often) - MOST_REASONS} more reasons: see the table" if len(often) > MOST_REASONS else ""
    return f"\n\n{text_table(('why', 'ops', 'names'), rows)}{rest}"


def _listed(names: Iterable[str], room: int = 100) -> str:
    text, names = "", list(names)
    for i, name in enumerate(names):
        if len(text) + len(name) > room and i:
            return f"{text}, … {len(names) - i} more"
        text += (", " if text else "") + name
    return text
