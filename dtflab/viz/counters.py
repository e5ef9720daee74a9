"""The picture of a step that stands still: every node with its counter, in the colour of what it is doing.

What a learner should see at once: where the step is, and what the next set will set free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from typing import Any, NamedTuple

from dtflab.base.text_table import text_table
from dtflab.graph.node_names import readable, told_apart
from dtflab.runtime.steps import Record, Standing, Steps
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.names import shorter
from dtflab.viz.drawing.palette import look, together
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, arrow_head, join, line_path, shorten, tag, text_width
from dtflab.viz.layout.layered import Box, Cluster, Layout, Rect, layout

MOST, SAID = 120, 5  # nodes: in a picture; of one kind in a sentence
HEIGHT, LABEL_ROOM = 26.0, 150.0  # of a box, for its name

_MARKS = {"done": "✓", "dead": "✗", "ready": "0", "asked": "…", "waits": "n"}  # in a node's badge
_MEANINGS = {"done": "has run", "dead": "dead: does not run", "ready": "ready: runs next",
             "asked": "asked of another device", "waits": "waits for n inputs"}  # fmt: skip
BADGE = 22.0


class Frame(NamedTuple):
    """A step between two of its sets: every node's state and counter, and what the last set did.

    Of a large step a `drawing` of some of its nodes takes the place of all their states.
    """

    states: list[str]
    badges: list[str]
    says: str
    drawing: str = ""


def counters(
    nodes: Sequence[Standing], live: Mapping[str, Any] | None = None, marked: Collection[str] = (), meaning: str = ""
) -> Picture:
    """Picture a step that stands still; `nodes` are those of `Steps.nodes`. ValueError if there are none.

    The colours are those of devices; states are outlines and marks. The names of `marked` nodes begin with `!`, their
    frames have a colour of their own, and the legend gives the `meaning`.
    """
    if not nodes:
        raise ValueError("There is nothing to draw: the step has no nodes outside of loops. Choose another one.")
    names = {node.name for node in nodes}
    called = told_apart(names)
    edges = [(source, node.name) for node in nodes for source in node.sources if source in names]
    with together(node.device for node in nodes):
        remarks = {node.name: f"! {meaning}" if node.name in marked else "" for node in nodes}
        boxes = tuple(Box(node.name, _width(node, remarks[node.name]), HEIGHT) for node in nodes)
        plan = layout(Cluster("step", boxes, 0), edges, room(), turns=any("_grad/" in name for name in names))
        width = max(plan.width, 500.0)
        legend, height = marks.line_legend(_samples(nodes, live is not None, meaning), width, 0, size=11)
        below = f"translate({(width - plan.width) / 2:g} {height + 8:g})"
        controls = {(one, node.name) for node in nodes for one in node.controls}
        graph = tag("g", _lines(plan, controls, Counter(edges)), _boxes(nodes, plan, called, remarks), transform=below)
        drawing = join([legend, tag("g", graph, class_="middle")])
        rows = [[look(n.device).label, called(n.name), n.state, n.waits_for] for n in nodes]
        heads = ("device", "node", "state", "waits for")
        counted = Counter(node.state for node in nodes)
        count = ", ".join(f"{counted[state]} {state}" for state in _MARKS if counted[state])
        if meaning:
            count += f"; {meaning}: {', '.join(called(node.name) for node in nodes if remarks[node.name])}"
        tables, text = [("Nodes", heads, rows)], text_table(heads, rows)
        size = (width, height + 8 + plan.height)
        return Picture(drawing, size, rules("counters"), f"Step: {count}.", tables, text, live=live)


def frames(steps: Steps) -> list[Frame]:
    """The step before its first set and after each that has run, from what each set did."""
    nodes, records = steps.nodes, steps.records
    called = told_apart(node.name for node in nodes)
    counts = {node.name: node.waits_for for node in nodes}
    for record in reversed(records):
        counts |= {counter.name: counter.before for counter in record.counters}
    states = dict.fromkeys(counts, "waits")
    first = [ran.name for ran in records[0].ran] if records else steps.ready
    found = [_frame(nodes, states | dict.fromkeys(first, "ready"), counts, f"Ready first: {_named(first, called)}.")]
    for record in records:
        counts |= {counter.name: counter.after for counter in record.counters}
        states |= {ran.name: {"dead": "dead", "waits": "asked"}.get(ran.state, "done") for ran in record.ran}
        now = states | dict.fromkeys(record.waiting, "asked") | dict.fromkeys(record.ready, "ready")
        found.append(_frame(nodes, now, counts, _says(record, called)))
    return found


def _frame(nodes: Sequence[Standing], states: Mapping[str, str], counts: Mapping[str, int], says: str) -> Frame:
    shown = [states.get(node.name, "waits") for node in nodes]
    badges = [_mark(state, counts.get(node.name, 0)) for node, state in zip(nodes, shown, strict=True)]
    return Frame(shown, badges, says)


def _says(record: Record, called: Callable[[str], str]) -> str:
    ran = _listed([called(ran.name) + (f" ({ran.result})" if ran.result else "") for ran in record.ran])
    fell = _listed([f"{called(c.name)} {c.before} → {c.after}" for c in record.counters])
    ready = f" Ready next: {_named(record.ready, called)}." if record.ready else ""
    waiting = f" Asked, and waiting: {_named(record.waiting, called)}." if record.waiting else ""
    return f"Ran: {ran}." + (f" Counters that fell: {fell}." if fell else "") + ready + waiting


def _named(names: Sequence[str], called: Callable[[str], str]) -> str:
    return _listed([*map(called, names)]) or "nothing"


def _listed(texts: Sequence[str]) -> str:
    """The first of them, in a sentence that stays short: the picture shows them all."""
    return ", ".join(texts[:SAID]) + (f" and {len(texts) - SAID} more" if len(texts) > SAID else "")


def _mark(state: str, count: int) -> str:
    return str(count) if state == "waits" else _MARKS[state]


def _samples(nodes: Sequence[Standing], moves: bool, meaning: str) -> list[tuple[Markup, str]]:
    """The legend: the states in the picture, all of them if it moves, and what dashed lines and `!` mean."""
    seen = set(_MEANINGS) if moves else {node.state for node in nodes}
    found = [(_sample(state), meaning) for state, meaning in _MEANINGS.items() if state in seen]
    found += [marks.ORDER_ONLY] * any(node.controls for node in nodes)
    return found + [(_sample("marked", "!"), meaning)] * bool(meaning)


def _sample(state: str, sign: str = "") -> Markup:
    """A sample for the legend: smaller than a node's box, so that it is not taken for one."""
    box = {"x": 5, "y": 2, "width": 23, "height": 14, "rx": 3}
    mark = tag("text", sign or _MARKS[state], x=16.5, y=13, class_="s11 mid counter")
    return tag("g", tag("rect", class_="box", **box), mark, class_=f"node {state}")


def _width(node: Standing, remark: str) -> float:
    name = text_width(_marked(node.name, remark), bold=bool(remark))
    return BADGE + marks.badge_width(look(node.device)) + 18 + name


def _marked(name: str, remark: str) -> str:
    return "! " * bool(remark) + _label(name)


def _label(name: str) -> str:
    """The longest end of a name that fits, of whole scopes: its end says what it does, the badge where."""
    word = readable(name).rpartition(" ")[0]
    ends = [end for end in shorter(name) if end != word]
    return next((end for end in ends if text_width(end) <= LABEL_ROOM), shorten(ends[-1], LABEL_ROOM))


def _boxes(nodes: Sequence[Standing], plan: Layout, called: Callable[[str], str], remarks: Mapping[str, str]) -> Markup:
    drawn = (_box(node, plan.boxes[node.name], called(node.name), remarks[node.name]) for node in nodes)
    return tag("g", *drawn, class_="nodes")


def _box(node: Standing, r: Rect, name: str, remark: str) -> Markup:
    device = look(node.device)
    room = marks.badge_width(device)
    shape = {"x": r.x, "y": r.y, "width": r.width, "height": r.height, "rx": 4}
    return tag(
        "g",
        tag("title", f"{name}: {node.state}\n{node.device}" + (remark and f"\n{remark}")),
        tag("rect", class_="box", **shape),
        marks.badge(device, r.right - room, r.y, r.height, room),
        tag("text", _mark(node.state, node.waits_for), x=r.x + BADGE / 2, y=r.y + 17, class_="b mid counter"),
        tag("text", _marked(node.name, remark), x=r.x + BADGE + 4, y=r.y + 17, class_="name"),
        class_=f"node {node.state}" + " marked" * bool(remark),
    )


def _lines(plan: Layout, controls: Container[tuple[str, str]], inputs: Mapping[tuple[str, str], int]) -> Markup:
    """A line from each awaited node to the waiting one, with a number for several inputs; dashed if it reads none."""
    parts = []
    for edge, points in plan.lines.items():
        head = tag("path", d=arrow_head(points[-1], points[-2], 6), class_="h")
        kind = "e c" if edge in controls else "e"
        (x, y), times = points[-1], inputs[edge]
        several = tag("text", f"×{times}", x=x + 7, y=y - 5, class_="soft s11") if times > 1 else ""
        parts.append(tag("g", tag("path", d=line_path(points, 6), class_=kind), head, several))
    return join(parts)
