"""Data of a live picture of placement: all scopes of a graph, each laid out once with its children closed.

The front end opens and closes them: it moves what stands right of and below a scope, and leads the lines of ops to the
boxes in which they are seen. Texts stand once, in a list, and are referred to by number, and so do looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from dtflab.graph.node_names import readable
from dtflab.viz.data.graph_ops import Edge, Op
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.columns import Numbers, colours, columns
from dtflab.viz.drawing.palette import Look
from dtflab.viz.layout.nested import Inside, Link, inside
from dtflab.viz.layout.shapes import OUT, Box
from dtflab.viz.scopes import Block, whole

BOX_HEIGHT = 26.0
SMALL = 200  # ops: a graph that the page can show whole
MOST_CHILDREN = {True: 64, False: 24}  # of a scope of a small graph and of a large one; more are bundled
ORDINARY = 0  # the colour of lines that stay on a device; others have one more than the number of the sender's look


class Drawn(Protocol):
    """A box with its words, its looks and its room."""

    label: str
    looks: list[tuple[Look, int]]
    width: float


class View(Protocol):
    """A picture, as far as its live form needs it."""

    width: float

    @property
    def ops(self) -> Mapping[str, Op]: ...
    @property
    def edges(self) -> Sequence[Edge]: ...
    @property
    def looks(self) -> Mapping[str, Look]: ...
    def drawn(self, block: Block) -> Drawn: ...
    def shape(self, block: Block) -> Box: ...
    def title(self, block: Block) -> tuple[str, float]: ...


def data(view: View, still: Block, top: float, few: int) -> dict[str, Any]:
    """The data of the view `placement`, which begins with the scopes open that are so in the `still`, if they fit.

    `top` is where the graph begins in the drawing; of a scope with more than `few` children those alike are bundled.
    """
    return _Data(view, still, few).written(top)


class _Data:
    def __init__(self, view: View, still: Block, few: int) -> None:
        self.view = view
        links = [(edge.source, edge.target) for edge in view.edges]
        self.root = whole(list(view.ops), links, MOST_CHILDREN[len(view.ops) <= SMALL], few)
        self.size_in_still = {op: len(block.ops) for block in still.visible() for op in block.ops}  # of the op's box
        self.texts, self.looks = Numbers(), Numbers()
        self.number: dict[str, int] = {}  # of an op: its place among the leaves of the tree
        self.links = self._links()
        self.insides: dict[Any, Inside] = {}

    def _links(self) -> dict[Block, dict[tuple[str | None, str], set[int]]]:
        """For each scope, between which of its children, its outside and OUT there are lines, and of what colours."""
        paths = dict(_paths(self.root, []))
        links: dict[Block, dict[tuple[str | None, str], set[int]]] = {}
        for edge in self.view.edges:
            a, b = paths[edge.source], paths[edge.target]
            for scope, origin, target in _levels(a, b):
                links.setdefault(scope, {}).setdefault((origin, target), set()).add(self._colour(edge))
        return links

    def _colour(self, edge: Edge) -> int:
        return self.looks.of(self.view.looks[edge.source]) + 1 if edge.kind == "transfer" else ORDINARY

    def written(self, top: float) -> dict[str, Any]:
        tree = self._scope(self.root)
        ops = self.view.ops
        of, texts = self.looks.of, self.texts.of
        edges = [
            (self.number[e.source], self.number[e.target], texts(e.tensor.removeprefix(e.source)), _KINDS[e.kind])
            for e in self.view.edges
            if e.source != e.target
        ]
        leaves = {block.ops[0]: block for block in _scopes(self.root) if not block.children}
        rows = [
            (
                readable(name), texts(ops[name].op), texts(self.view.drawn(leaves[name]).label),
                self.view.drawn(leaves[name]).width, of(self.view.looks[name]),
                texts(ops[name].device or "not placed"), texts(ops[name].why), texts(ops[name].line),
            )
            for name in self.number
        ]  # fmt: skip
        return {
            "view": "placement",
            "top": top,
            "width": self.view.width,
            "tree": tree,
            "ops": columns(("name", "op", "label", "width", "look", "device", "why", "line"), rows),
            "edges": columns(("source", "target", "tensor", "kind"), edges),
            "texts": self.texts.values,
            "looks": [*map(_look, self.looks.values)],
        }

    def _scope(self, block: Block) -> dict[str, Any]:
        """A scope with its children; of an op, which is a leaf, stands 0."""
        drawn = self.view.drawn(block)
        title, title_width = self.view.title(block)
        children = [self._child(child) for child in block.children]
        laid, shades = self._inside(block, title_width)
        return {
            "label": drawn.label,
            "title": title,
            "name": readable(block.name),
            "width": drawn.width,
            "looks": [[self.looks.of(one), n] for one, n in drawn.looks],
            "open": self.size_in_still[block.ops[0]] < len(block.ops),
            "children": children,
            "room": round(laid.width),
            "titled": round(title_width),
            "rows": [*laid.rows.values()],
            "lefts": [round(left) for left in laid.lefts.values()],
            "nets": [
                [
                    _place(net.origin), shades[net.colour], round(net.outlet),
                    [round(lane) for lane in net.lanes],
                    [[_place(goal.target), round(goal.inlet), int(goal.closes)] for goal in net.goals],
                ]
                for net in laid.strands
            ],
        }  # fmt: skip

    def _child(self, block: Block) -> dict[str, Any] | int:
        if block.children:
            return self._scope(block)
        self.number[block.ops[0]] = len(self.number)
        return 0

    def _inside(self, block: Block, title: float) -> tuple[Inside, list[int]]:
        """The layout of its children by their numbers, and the colours that it has numbers of.

        Scopes that are alike, as the layers of a network often are, have one layout.
        """
        place = {child.key: str(i) for i, child in enumerate(block.children)}
        shades, groups = Numbers(), Numbers()
        links = [
            Link(origin and place[origin], shades.of(colour), place.get(target, OUT))
            for (origin, target), colours in self.links.get(block, {}).items()
            for colour in sorted(colours - ({ORDINARY} if len(colours) > 1 else set()))  # those go along
        ]
        shapes = [self.view.shape(child) for child in block.children]
        boxes = [
            Box(str(i), shape.width, shape.height, shape.group and f"{groups.of(shape.group)}")
            for i, shape in enumerate(shapes)
        ]
        width = self.view.width if block is self.root else _wish(shapes, self.view.width)
        alike = tuple(boxes), tuple(links), 0.0 if block is self.root else title, width
        if alike not in self.insides:
            self.insides[alike] = inside(*alike)
        return self.insides[alike], shades.values


_KINDS = {"data": 0, "transfer": 1, "control": 2}


def _wish(shapes: Sequence[Box], most: float) -> float:
    """Two to three times as wide as high, with room for lines between the rows; at most half of the page."""
    area = sum((shape.width + 14) * 60 for shape in shapes)
    return min(most / 2, max(math.sqrt(2.5 * area), 150.0))


def _place(child: str | None) -> int:
    """The number of a child, -1 for the outside."""
    return -1 if child is None or child == OUT else int(child)


def _scopes(block: Block) -> Iterable[Block]:
    yield block
    for child in block.children:
        yield from _scopes(child)


def _paths(block: Block, above: list[Block]) -> Iterable[tuple[str, list[Block]]]:
    """For each op the blocks that it is in, from the outermost to itself."""
    here = [*above, block]
    if not block.children:
        yield block.ops[0], here
    for child in block.children:
        yield from _paths(child, here)


def _levels(a: list[Block], b: list[Block]) -> Iterable[tuple[Block, str | None, str]]:
    """The scopes that a line passes, up from one op and down to the other; in each where it comes from and goes to."""
    common = next((i for i, (x, y) in enumerate(zip(a, b)) if x is not y), 0)
    if not common:
        return
    for i in range(len(a) - 1, common, -1):
        yield a[i - 1], a[i].key, OUT
    yield a[common - 1], a[common].key, b[common].key
    for i in range(common + 1, len(b)):
        yield b[i - 1], None, b[i].key


def _look(one: Look) -> dict[str, Any]:
    return colours(one) | {"badge": marks.badge(one, 0, 0, BOX_HEIGHT), "room": marks.badge_width(one)}
