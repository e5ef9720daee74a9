"""The picture of who waits for whom: a deadlock is a circle of arrows.

Boxes are ops that are blocked, the queues that they wait for, tasks and clients. A thick arrow is part of a circle:
what it leads to waits, by way of the others, for what it comes from. Next to a circle stands what hangs on it. Where
there is no circle, the chain of arrows shows where it ends: at somebody who can still move, or at a queue that nobody
serves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dtflab.base.grouping import grouped
from dtflab.base.text_table import text_table
from dtflab.cluster.cluster import Cluster, at_target
from dtflab.runtime import standstill
from dtflab.runtime.session import BaseSession
from dtflab.runtime.standstill import Fact
from dtflab.virtual.deadlock import DeadlockError
from dtflab.viz.data.waits_for import Arrow, Waiter, WaitsFor, sentences, waits_for
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import GREY, Look, together
from dtflab.viz.drawing.picture import Picture, nothing_yet
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, arrow_head, join, line_path, number, shorten, tag, text_width
from dtflab.viz.layout.around import Around
from dtflab.viz.layout.layered import Box, Cluster as Frame, layout
from dtflab.viz.layout.shapes import Point, Rect
from dtflab.viz.participants import party

_WIDE, _HIGH, _ROW = 184.0, 42.0, 104.0  # a box; from one row of a circle to the next
_LEAST = 180.0  # width of a column of boxes with the gap next to it
_MOST = 8  # boxes at a side of a circle; if there are more, words say it
_ARC, _BULGE = 34.0, 22.0  # how far an arrow leaves the circle's boxes, above and at the side
_GAP = 26.0  # between parts that do not hang together


def waits(
    held: Cluster | BaseSession | DeadlockError | Iterable[Fact], *, width: float | None = None, title: str = "Waits"
) -> Picture:
    """Picture who waits for whom: now, on a cluster or the tasks of a session, or as a DeadlockError found it.

    `held` may also be what `cluster.standstill()` returned. If nobody waits, it says so. NotImplementedError for a
    session whose master is in another process, if its cluster is not one of this process, and for TensorFlow servers.
    """
    proved = isinstance(held, DeadlockError)
    found = waits_for(_facts(held), proved)
    if not found.waiters:
        return nothing_yet("Nobody waits: no op for a queue or a tensor, no client for a GPU.")
    said = sentences(found)
    with together(waiter.device for waiter in found.waiters.values() if waiter.device):
        inner = room(width)
        head = marks.heading(title, " ".join(said), inner)
        legend, height = marks.line_legend(_LEGEND[: 3 if found.circles else 2], inner, head.height + 8)
        parts, y = [head, legend], head.height + 8 + height + 8
        for part in _parts(found):
            drawing, rows = part.draw(inner)
            parts.append(tag("g", tag("g", drawing, transform=f"translate(0 {number(y)})"), class_="middle"))
            y += rows + _GAP
        sentence = f"{title}: {' '.join(said)}"
        table, size = _rows(found), (inner, y - _GAP)
        text = "\n".join([*said, text_table(_HEADS, table)])
        return Picture(join(parts), size, rules("waits"), sentence, [("Waits", _HEADS, table)], text)


def _facts(held: Cluster | BaseSession | DeadlockError | Iterable[Fact]) -> Iterable[Fact]:
    if isinstance(held, BaseSession):
        cluster = at_target(held.sess_str.decode())
        if cluster is None:
            master = held.master_session().master
            return standstill.facts(master.worker, master)
        held = cluster
    if isinstance(held, Cluster | DeadlockError):
        return held.standstill() if isinstance(held, Cluster) else held.standstill
    return held


class _Part(NamedTuple):
    """Waiters that hang together, their arrows, and the circle among them, if there is one."""

    waiters: Mapping[str, Waiter]
    arrows: Sequence[Arrow]
    circle: Sequence[str]
    stuck: frozenset[str]

    def draw(self, width: float) -> tuple[Markup, float]:
        """The drawing, and how high it is."""
        return _Ring(self, width).draw() if self.circle else _chain(self, width)


def _parts(found: WaitsFor) -> Iterator[_Part]:
    """The parts of the graph that hang together, those with a circle first."""
    near: dict[str, set[str]] = {key: {key} for key in found.waiters}
    for arrow in found.arrows:
        if near[arrow.source] is not near[arrow.target]:
            both = near[arrow.source] | near[arrow.target]
            near |= dict.fromkeys(both, both)
    groups = {id(group): group for group in near.values()}.values()
    for group in sorted(groups, key=lambda group: not any(group & set(circle) for circle in found.circles)):
        waiters = {key: waiter for key, waiter in found.waiters.items() if key in group}
        arrows = [arrow for arrow in found.arrows if arrow.source in group]
        circle = next((circle for circle in found.circles if group & set(circle)), ())
        yield _Part(waiters, arrows, circle, found.stuck)


# -- a circle -----------------------------------------------------------------------------------------------------


class _Ring:
    """The places of a circle's boxes: in two columns, so that its arrows go round, between those that hang on it."""

    def __init__(self, part: _Part, width: float) -> None:
        self.part, self.width = part, width
        circle = _turned(part)
        right = -(-len(circle) // 2)
        ring = [column for column in ([circle[0], *reversed(circle[right + 1 :])], circle[1 : right + 1]) if column]
        before, after = _hanging(part, ring[0]), _hanging(part, ring[1] if len(ring) > 1 else ())
        aside = [list(itertools.chain(*hanging.values())) for hanging in (before, after)]
        columns = [column for column in (aside[0], *ring, aside[1]) if column]
        self.listed: list[str] = []
        if width < _LEAST * len(columns) or max(map(len, aside)) > _MOST:  # then in words
            columns, self.listed, before, after = ring, [*aside[0], *aside[1]], {}, {}
        self.wide = min(_WIDE, (width - 46.0 * (len(columns) - 1)) / len(columns))
        self.step = min(380.0, (width - self.wide) / max(1, len(columns) - 1))
        rows = {
            key: j * (right - 1) / (len(column) - 1) if len(column) > 1 else (right - 1) / 2
            for column in ring
            for j, key in enumerate(column)
        }
        rows |= _aside(before, rows) | _aside(after, rows)
        top = min(rows.values())
        self.places = {
            key: Rect(i * self.step, _ARC + 14 + (rows[key] - top) * _ROW, self.wide, _HIGH)
            for i, column in enumerate(columns)
            for key in column
        }
        self.height = 2 * _ARC + 34 + (max(rows.values()) - top) * _ROW + _HIGH - 14

    def draw(self) -> tuple[Markup, float]:
        """The drawing, and how high it is."""
        circle = self.part.circle
        pairs = {(circle[i - 1], key) for i, key in enumerate(circle)}
        shown = [arrow for arrow in self.part.arrows if {arrow.source, arrow.target} <= self.places.keys()]
        ring = [arrow for arrow in shown if (arrow.source, arrow.target) in pairs]
        others = [arrow for arrow in shown if arrow not in ring]
        told = grouped((arrow.source, arrow.what) for arrow in others)
        pieces = [self._arc(arrow) for arrow in ring]
        pieces += [_note(self.places[key], dict.fromkeys(whats)) for key, whats in told.items()]
        around = Around(self.places, [place for piece in pieces for place in piece.places], self.width)
        others.sort(key=lambda a: math.dist(_middle(self.places[a.source]), _middle(self.places[a.target])))
        lines = [_line(around.way(arrow.source, arrow.target)) for arrow in others]
        boxes = [_box(self.part.waiters[key], place) for key, place in self.places.items()]
        words = list(self._words())
        drawn = join([*lines, *(piece.drawing for piece in pieces), *boxes, *words])
        return drawn, self.height + marks.LINE * len(words)

    def _words(self) -> Iterator[Markup]:
        """Lines about what hangs on the circle, where there is no room for boxes next to it."""
        listed = [arrow for arrow in self.part.arrows if {arrow.source, arrow.target} & {*self.listed}]
        for i, arrow in enumerate(listed):
            who, whom = self.part.waiters[arrow.source], self.part.waiters[arrow.target]
            text = f"{who.name} ({who.about}) waits for {whom.name}: {arrow.what}"
            yield tag("text", shorten(text, self.width, 11), x=0, y=self.height + marks.LINE * i + 8, class_="s11")

    def _arc(self, arrow: Arrow) -> _Piece:
        """An arrow of the circle: over the boxes at its top and bottom, outside of them at its sides."""
        a, b = self.places[arrow.source], self.places[arrow.target]
        (ax, ay), (bx, by) = _middle(a), _middle(b)
        half = _HIGH / 2
        if a == b:  # it waits for itself
            bend, at = (a.right + 60, ay), (a.right + 38, ay + 4, "")
            return _drawn(arrow, (a.right, ay - 12), bend, (a.right, ay + 12), at, 160.0)
        if a.x == b.x:  # at a side
            out = 1 if by > ay else -1
            bend = (ax + _BULGE * out, (ay + by) / 2)
            at = ax + (_BULGE / 2 - 8) * out, bend[1] + 4, "end" * (out > 0)
            return _drawn(arrow, (ax, ay + half * out), bend, (bx, by - half * out), at, self.step / 2 - 14)
        up = -1 if bx > ax else 1
        bend = (ax + bx) / 2, (min(ay, by) if up < 0 else max(ay, by)) + (half + _ARC) * up
        middle = (ay + by) / 4 + half / 2 * up + bend[1] / 2
        at = bend[0], middle + (-6 if up < 0 else 15), "mid"
        return _drawn(arrow, (ax, ay + half * up), bend, (bx, by + half * up), at, self.step)


def _turned(part: _Part) -> list[str]:
    """The circle, begun so that it has most of those that others wait for in its right column."""
    circle, count = list(part.circle), len(part.circle)
    hangs = {arrow.target for arrow in part.arrows if arrow.source not in circle}
    turns = [circle[i:] + circle[:i] for i in range(count)]
    return max(turns, key=lambda turn: sum(key in hangs for key in turn[1 : -(-count // 2) + 1]))


def _hanging(part: _Part, column: Sequence[str]) -> dict[str, list[str]]:
    """All that hang on each box of a column of the circle: those that wait for it, for these, and so on.

    A box that doesn't wait for the circle hangs on the one that waits for it.
    """
    waiting = grouped((arrow.target, arrow.source) for arrow in part.arrows)
    waited_for = grouped((arrow.source, arrow.target) for arrow in part.arrows)
    seen, hangs = list(part.circle), {key: list[str]() for key in part.waiters}
    for near in (waiting, waited_for):
        for key in seen:  # it grows
            new = [other for other in dict.fromkeys(near.get(key, ())) if other not in seen]
            hangs[key] += new
            seen += new
    return {key: list(_below(key, hangs)) for key in column}


def _below(key: str, hangs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for other in hangs[key]:
        yield other
        yield from _below(other, hangs)


def _aside(hanging: Mapping[str, Sequence[str]], rows: Mapping[str, float]) -> dict[str, float]:
    """The rows of those that hang on a column: from the row of their box on, toward the nearer end of the column."""
    middle = sum(rows[key] for key in hanging) / max(1, len(hanging))
    up = [key for key in hanging if rows[key] < middle]
    found: dict[str, float] = {}
    for keys, way in ((up, -1), (hanging.keys() - up, 1)):
        free = -math.inf
        for key in sorted(keys, key=lambda key: way * rows[key]):
            for other in hanging[key]:
                here = max(free, way * rows[key])
                found[other], free = way * here, here + 1
    return found


class _Piece(NamedTuple):
    """A piece of the drawing, and the places on which no line should run."""

    drawing: Markup
    places: Sequence[Rect]


def _drawn(arrow: Arrow, start: Point, bend: Point, end: Point, at: tuple[float, float, str], space: float) -> _Piece:
    path = (
        f"M{number(start[0])} {number(start[1])}Q{number(bend[0])} {number(bend[1])} {number(end[0])} {number(end[1])}"
    )
    head = tag("path", d=arrow_head(end, bend, 9), class_="head")
    label = _label(shorten(arrow.what, space, 11), *at)
    xs, ys = zip(start, [(a + 2 * b + c) / 4 for a, b, c in zip(start, bend, end)], end)
    curve = Rect(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))
    return _Piece(tag("g", tag("path", d=path, class_="way ring"), head, label.drawing), [curve, *label.places])


def _note(box: Rect, whats: Iterable[str]) -> _Piece:
    """Words below a box, which say what it waits for; lines leave the box at their right."""
    text = shorten(f"for {', '.join(whats)}", box.width * 0.8, 11)
    return _label(text, box.x + 2, box.bottom + 14, "soft")


def _label(text: str, x: float, y: float, class_: str) -> _Piece:
    wide = text_width(text, 11)
    left = x - {"end": wide, "mid": wide / 2}.get(class_, 0.0)
    return _Piece(tag("text", text, x=x, y=y, class_=f"s11 halo {class_}".rstrip()), [Rect(left, y - 10, wide, 13)])


def _line(points: Sequence[Point]) -> Markup:
    head = tag("path", d=arrow_head(points[-1], points[-2], 8), class_="head")
    return tag("g", tag("path", d=line_path(points, 6), class_="way"), head)


# -- what is in no circle -------------------------------------------------------------------------------------------


def _chain(part: _Part, width: float) -> tuple[Markup, float]:
    """Waiters from top to bottom, each above what it waits for."""
    wide = {key: Box(key, min(_WIDE + 40, width), _HIGH) for key in part.waiters}
    plan = layout(Frame("waits", tuple(wide.values())), [(a.source, a.target) for a in part.arrows], width)
    lines = []
    for arrow in part.arrows:
        points = plan.lines.get((arrow.source, arrow.target))
        if points:
            (x, y), tip = points[0], points[-1]
            space = width - x - 12
            label = tag("text", shorten(arrow.what, space, 11), x=x + 7, y=y + 13, class_="s11 halo")
            head = tag("path", d=arrow_head(tip, points[-2], 8), class_="head")
            lines.append(tag("g", tag("path", d=line_path(points, 6), class_="way"), head, label))
    boxes = [_box(waiter, plan.boxes[key]) for key, waiter in part.waiters.items()]
    return join([*lines, *boxes]), plan.height


# -- boxes --------------------------------------------------------------------------------------------------------


def _box(waiter: Waiter, r: Rect) -> Markup:
    """A waiter: its name, and below what it is; a queue has round ends."""
    one = _look(waiter)
    queue = waiter.kind == "queue"
    left = r.x + (12 if queue else 8)
    x = left + marks.badge_width(one) + 6
    space = r.right - x - (10 if queue else 4)
    return tag(
        "g",
        tag("title", f"{waiter.name}: {waiter.about}" + (f"\non {waiter.device}" if waiter.device else "")),
        tag("rect", x=r.x, y=r.y, width=r.width, height=r.height, rx=r.height / 2 if queue else 5, class_="box",
            stroke=one.colour.line),
        marks.badge(one, left, r.y + 12),
        tag("text", shorten(waiter.name, space, bold=True), x=x, y=r.y + 18, class_="b"),
        tag("text", shorten(waiter.about, space, 11), x=x, y=r.y + 33, class_="s11 soft"),
    )  # fmt: skip


def _look(waiter: Waiter) -> Look:
    return party(waiter.device) if waiter.device else Look(waiter.name, GREY, "C", waiter.name, False)


def _middle(r: Rect) -> Point:
    return r.x + r.width / 2, r.y + r.height / 2


def _sample(class_: str) -> Markup:
    head = tag("path", d=arrow_head((28, 9), (0, 9), 8), class_="head")
    return join([tag("path", d="M0 9H22", class_=class_), head])


_LEGEND = (
    (tag("rect", x=1, y=2, width=26, height=14, rx=7, class_="box", style="stroke:var(--soft)"), "a queue"),
    (_sample("way"), "waits for"),
    (_sample("way ring"), "in a circle: each waits for the next"),
)


# -- words --------------------------------------------------------------------------------------------------------


_HEADS = ("who", "its state", "waits for", "its state", "what is waited for", "in a circle")


def _rows(found: WaitsFor) -> list[list[str]]:
    pairs = {(circle[i - 1], key) for circle in found.circles for i, key in enumerate(circle)}
    ends = {arrow.source for arrow in found.arrows}
    ways = [(found.waiters[a.source], found.waiters[a.target], a.what, (a.source, a.target)) for a in found.arrows]
    rows = [[*_two(one), *_two(other), what, "yes" * (pair in pairs)] for one, other, what, pair in ways]
    nobody = [w for w in found.waiters.values() if w.kind == "queue" and w.key not in ends]
    return rows + [[*_two(waiter), "nobody", "", "", ""] for waiter in nobody]


def _two(waiter: Waiter) -> tuple[str, str]:
    return waiter.name, waiter.about
