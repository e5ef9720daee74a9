"""Where the boxes of a picture go: a layered drawing of a graph with clusters, in pure Python.

Method: every cluster is drawn on its own, from the innermost out, as a column of rows (`ranks`, `column`), and
then stands in its parent as one large box; lines cross its border at ports. At the outermost level a drawing that
grows too tall is folded into columns, down and up in turn, so that what follows stays near: a training step comes
out with the gradients rising next to the layers they belong to; if there are none, all columns go down. Lines between
columns run in gutters.

Rules, tested without a browser: no two boxes overlap, a cluster holds exactly its own, every edge goes forward
(down, or up in a column that goes up) unless it closes a cycle, the same input gives the same drawing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dtflab.viz.layout import ranks
from dtflab.viz.layout.level import TOLERATED, folded
from dtflab.viz.layout.shapes import OUT, Box, Cluster, Drawing, Net, Piece, Point, Rect

__all__ = ["TOLERATED", "Box", "Cluster", "Layout", "Rect", "layout"]


@dataclasses.dataclass(frozen=True)
class Layout:
    """The finished drawing: rectangles and lines by key. `rising` are the boxes in columns that go up."""

    width: float
    height: float
    boxes: dict[str, Rect]
    clusters: dict[str, Rect]
    lines: dict[tuple[str, str], list[Point]]
    rising: frozenset[str]


def layout(root: Cluster, edges: Iterable[tuple[str, str]], width: float = 800.0, turns: bool = True) -> Layout:
    """Place all boxes of `root` and lead a line along every edge between boxes. `width` is a wish.

    A flow that `turns`, as gradients do, goes up in every second column; else all columns go down.
    """
    wanted = [edge for edge in dict.fromkeys(edges) if edge[0] != edge[1]]
    nets = _nets(root, wanted)
    level = folded(root, nets, width, turns)
    drawing = Drawing()
    level.emit(0.0, 0.0, drawing)
    paths = _paths(root)
    lines = {(a, b): _whole_line(paths[a], paths[b], drawing.pieces) for a, b in wanted}
    return Layout(level.width, level.height, drawing.boxes, drawing.clusters, lines, frozenset(drawing.rising))


# -- nets ----------------------------------------------------------------------------------------------------


def _paths(root: Cluster) -> dict[str, list[str]]:
    """For every box the keys from the root's child down to itself, with the root's key in front."""
    paths: dict[str, list[str]] = {}

    def walk(cluster: Cluster, above: list[str]) -> None:
        for child in cluster.children:
            here = [*above, child.key]
            if isinstance(child, Box):
                paths[child.key] = here
            else:
                walk(child, here)

    walk(root, [root.key])
    return paths


def _nets(root: Cluster, edges: Sequence[tuple[str, str]]) -> dict[str, dict[str, Net]]:
    """For every cluster, by source, the nets that it has to draw."""
    paths = _paths(root)
    after: dict[str, list[str]] = {key: [] for key in paths}
    for source, target in edges:
        after[source].append(target)
    closing = ranks.back_edges(list(paths), after)
    nets: dict[str, dict[str, Net]] = {}
    for source, target in edges:
        a, b = paths[source], paths[target]
        for cluster, origin, goal in _levels(a, b):
            net = nets.setdefault(cluster, {}).setdefault(source, Net(origin))
            both = origin is not None and goal != OUT
            net.targets[goal] = net.targets.get(goal, True) and both and (source, target) in closing
    for level in nets.values():
        _close_cycles(level)
    return nets


def _close_cycles(level: Mapping[str, Net]) -> None:
    """Clusters may depend on each other both ways although their boxes do not: mark what closes such cycles."""
    after: dict[str, list[str]] = {}
    for net in level.values():
        if net.origin is not None:
            goals = [goal for goal, closes in net.targets.items() if goal != OUT and not closes]
            after.setdefault(net.origin, []).extend(goals)
    closing = ranks.back_edges(list(after), after)
    for net in level.values():
        for goal in net.targets:
            net.targets[goal] |= (net.origin, goal) in closing


def _levels(a: list[str], b: list[str]) -> Iterator[tuple[str, str | None, str]]:
    """The levels that an edge passes: up out of the source's clusters, across, down to the target."""
    common = next(i for i, (x, y) in enumerate(zip(a, b)) if x != y)
    for i in range(len(a) - 1, common, -1):
        yield a[i - 1], a[i], OUT
    yield a[common - 1], a[common], b[common]
    for i in range(common + 1, len(b)):
        yield b[i - 1], None, b[i]


def _whole_line(a: list[str], b: list[str], pieces: Mapping[Piece, list[Point]]) -> list[Point]:
    return _corners([point for cluster, _, goal in _levels(a, b) for point in pieces[cluster, a[-1], goal]])


def _corners(points: Sequence[Point]) -> list[Point]:
    """Only the corners: points on a straight line between their neighbours are left out."""
    kept: list[Point] = []
    for point in points:
        if kept and abs(kept[-1][0] - point[0]) < 0.05 and abs(kept[-1][1] - point[1]) < 0.05:
            continue
        while len(kept) > 1 and any(abs(kept[-2][i] - kept[-1][i]) + abs(kept[-1][i] - point[i]) < 0.1 for i in (0, 1)):
            kept.pop()
        kept.append(point)
    return kept
