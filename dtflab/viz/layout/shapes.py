"""The input and output of a layout: boxes, clusters, rectangles, and the nets that levels hand each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

Point = tuple[float, float]

OUT = "\0out"  # the target of a net that leaves its cluster

Piece = tuple[str, str, str]  # a line within one cluster: cluster, source of its net, child that it goes to or OUT


@dataclasses.dataclass(frozen=True)
class Box:
    """A rectangle to be placed. Those of one `group` keep to one side of the page where no more lines cross for it."""

    key: str
    width: float
    height: float
    group: str = ""


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Boxes and clusters to be drawn within one frame. `title` is the width of its title."""

    key: str
    children: tuple[Box | Cluster, ...]
    title: float = 0.0


@dataclasses.dataclass(frozen=True)
class Rect:
    """A placed rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def overlaps(self, other: Rect) -> bool:
        across = self.x < other.right and other.x < self.right
        return across and self.y < other.bottom and other.y < self.bottom

    def holds(self, other: Rect) -> bool:
        across = self.x <= other.x and other.right <= self.right
        return across and self.y <= other.y and other.bottom <= self.bottom


@dataclasses.dataclass
class Drawing:
    """The drawing that all levels together put on the page."""

    boxes: dict[str, Rect] = dataclasses.field(default_factory=dict)
    clusters: dict[str, Rect] = dataclasses.field(default_factory=dict)
    pieces: dict[Piece, list[Point]] = dataclasses.field(default_factory=dict)
    rising: set[str] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Net:
    """The edges of one source as one level sees them: from a child, or from outside, to children or out."""

    origin: str | None
    targets: dict[str, bool] = dataclasses.field(default_factory=dict)  # child or OUT -> closes a cycle


Nets = Mapping[str, Mapping[str, Net]]  # by cluster, by source
