"""The picture of a step that stands still: every node with its counter, in the colour of what it is doing.

What a learner should see at once: where the step is, and what the next set will set free.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtflab.base.text_table import text_table
from dtflab.graph.node_names import readable
from dtflab.runtime.steps import Standing
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import BLUE, GREEN, GREY, ORANGE, Look, look, together
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, arrow_head, join, line_path, shorten, tag, text_width
from dtflab.viz.layout.layered import Box, Cluster, Layout, Rect, layout

MOST, HEIGHT, LABEL_ROOM = 48, 26.0, 150.0  # nodes; of a box, for its name

_LOOKS = {
    "done": Look("", GREY, "✓", "done", False),
    "dead": Look("", GREY, "✗", "dead", True),
    "ready": Look("", GREEN, "0", "ready", False),
    "asked": Look("", ORANGE, "…", "asked", False),
    "waits": Look("", BLUE, "n", "waits", False),
}
_MEANINGS = {"done": "has run", "dead": "does not run", "ready": "runs in the next set",
             "asked": "its value will come from elsewhere", "waits": "for that many inputs"}  # fmt: skip


def counters(nodes: Sequence[Standing]) -> Picture:
    """Picture a step that stands still; `nodes` are those of `Steps.nodes`. ValueError if there are none."""
    if not nodes:
        raise ValueError("There is nothing to draw: the step has no nodes outside of loops. Choose another one.")
    names = {node.name for node in nodes}
    edges = [(source, node.name) for node in nodes for source in node.sources if source in names]
    with together(node.device for node in nodes):
        boxes = tuple(Box(node.name, _width(node), HEIGHT) for node in nodes)
        plan = layout(Cluster("step", boxes, 0), edges, room())
        present = [state for state in _LOOKS if any(node.state == state for node in nodes)]
        legend, height = marks.legend([(_LOOKS[s], _MEANINGS[s]) for s in present], max(plan.width, 500.0), 0)
        drawing = join([legend, tag("g", _lines(plan), _boxes(nodes, plan), transform=f"translate(0 {height + 8:g})")])
        rows = [[look(n.device).label, readable(n.name), n.state, n.waits_for] for n in nodes]
        heads = ("device", "node", "state", "waits for")
        count = ", ".join(f"{sum(n.state == state for n in nodes)} {_LOOKS[state].label}" for state in present)
        size = (max(plan.width, 500.0), height + 8 + plan.height)
        tables, text = [("Nodes", heads, rows)], text_table(heads, rows)
        return Picture(drawing, size, rules("counters"), f"Step: {count}.", tables, text)


def _width(node: Standing) -> float:
    badges = marks.badge_width(look(node.device)) + marks.badge_width(_badge(node))
    return badges + 18 + text_width(shorten(readable(node.name), LABEL_ROOM))


def _badge(node: Standing) -> Look:
    one = _LOOKS[node.state]
    return one._replace(letter=str(node.waits_for)) if node.state == "waits" else one


def _boxes(nodes: Sequence[Standing], plan: Layout) -> Markup:
    return join(_box(node, plan.boxes[node.name]) for node in nodes)


def _box(node: Standing, r: Rect) -> Markup:
    badge, device = _badge(node), look(node.device)
    start = r.x + marks.badge_width(badge)
    label = tag("text", shorten(readable(node.name), LABEL_ROOM), x=start + 8, y=r.y + 17,
                class_="soft" if node.state in ("done", "dead") else None)  # fmt: skip
    shape = {"x": r.x, "y": r.y, "width": r.width, "height": r.height, "rx": 4, "stroke": badge.colour.line}
    room = marks.badge_width(device)
    return tag(
        "g",
        tag("title", f"{node.name}: {node.state}\n{node.device}"),
        tag("rect", class_="box", **shape),
        marks.badge(badge, r.x, r.y, r.height),
        label,
        tag("text", device.letter, x=r.right - room / 2, y=r.y + 17, class_="s11 mid soft"),
    )


def _lines(plan: Layout) -> Markup:
    """A line per edge, from the awaited node to the waiting one."""
    parts = []
    for points in plan.lines.values():
        head = tag("path", d=arrow_head(points[-1], points[-2], 6), class_="h")
        parts.append(tag("g", tag("path", d=line_path(points, 6), class_="e"), head))
    return join(parts)
