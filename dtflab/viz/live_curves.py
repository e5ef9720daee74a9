"""The picture of a training's course: a line for each worker, the newest values in its legend, a sentence on its speed.

The still is drawn here, and the front end (page/src/views/live.ts) draws the same while the lines grow.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from dtflab.base.text_table import plural, text_table
from dtflab.viz.data.course import Course, Line
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.marks import heading
from dtflab.viz.drawing.palette import VIOLETS, WORKERS, in_order as devices_in_order, look
from dtflab.viz.drawing.picture import Picture, Table
from dtflab.viz.drawing.style import MARGIN, room, rules
from dtflab.viz.drawing.svg import Markup, join, number, tag
from dtflab.viz.drawing.units import duration, ticks

_LONGEST = "10,000 of 10,000 updates in 99 min, 9,999 updates/s, staleness 10.5, at most 99"  # of a heading
_LEFT, _RIGHT, _HEIGHT, _AXIS = 56.0, 12.0, 210.0, 34.0  # left and right of the plot, its height, below it
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
_COLOURS = "var(--fg)", VIOLETS[2].line, "var(--soft)"
_MOST_ROWS = 40  # of a line, in the table


class Labels(NamedTuple):
    """The words of a picture: its title, what its axes show, and what is being computed now."""

    title: str
    value: str
    over: str
    remark: str = ""


class _Pen(NamedTuple):
    name: str
    colour: str
    dash: str


def summary(course: Course, labels: Labels, done: bool, stopped: bool, left: bool = True) -> str:
    """How far the training is, how fast it goes, and the time `left`; over another axis, how far along that."""
    remark = f": {labels.remark}" if labels.remark and not done else ""
    is_whole = course.steps is not None and course.count >= course.steps  # it may not have asked whether it should end
    end = ("" if done and is_whole else ", stopped" if done else ", stopping …") if stopped else remark
    if labels.over != "step":
        name, unit = _with_unit(labels.over)
        return f"{name} {_number(max((line.newest[0] for line in course.lines.values()), default=0.0))}{unit}{end}"
    of = f" of {course.steps:,}" if course.steps is not None and course.count <= course.steps else ""
    updates = f"{course.count:,}{of} {'update' if course.count == 1 and not of else 'updates'}"
    parts = [updates + (f" in {_time(course.seconds)}" if done else "")]
    if lost := [(_name(who), line.lost) for who, line in in_order(course) if line.lost is not None]:
        more = f" and {plural(len(lost) - 1, 'other')}" if len(lost) > 1 else ""
        return f"{parts[0]}, {lost[0][0]}{more} not finite since step {lost[0][1]:g}{end}"
    rate = course.mean_rate if done else course.rate
    parts += [f"{rate:,.{0 if rate >= 9.95 else 1}f} updates/s"] if rate else []
    total, most, known = course.stale
    parts += [f"staleness {total / known:.1f}, at most {most:g}"] if known else []
    if left and not done and course.left is not None:
        parts.append(f"{_time(course.left)} left")
    return ", ".join(parts) + end


def _with_unit(over: str) -> tuple[str, str]:
    """The name of an axis without its unit, and the unit as it stands behind a number: virtual time, in ` s`."""
    found = re.fullmatch(r"(.*\S)\s*\(([^()]+)\)", over)
    return (found[1], f" {found[2]}") if found else (over, "")


def axis(course: Course, over: str) -> str:
    """The name of the x axis. Updates are counted over all workers; where each counts its own steps, it says so."""
    if over != "step" or len(course.lines) < 2 or not course.is_counted:
        return over
    return f"steps of each {'worker' if all(map(_is_task, course.lines)) else 'line'}"


def until(course: Course, over: str, done: bool) -> float | None:
    """The place of the last of the known steps on the x axis; None where it is unknown, or all is done."""
    ends = [x for line in course.lines.values() for x in (line.xs[0], line.newest[0])]
    if done or course.steps is None or over != "step" or not ends:
        return None
    each = len(course.lines) if course.is_counted else round(course.count / (max(ends) - min(ends) + 1))
    return min(ends) + course.steps / max(each, 1) - 1  # a global step counts for all, an own one for its worker


def _time(seconds: float) -> str:
    if seconds < 100:
        return duration(1e6 * seconds) if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def sentence(course: Course, labels: Labels, done: bool, stopped: bool) -> str:
    """The picture in words, without the time left: they are not renewed while its heading is."""
    lines = "; ".join(
        f"{_name(who)}: {labels.value} {_number(line.newest[1])}, lowest {_number(line.lowest)}"
        + (f", one of {line.every} points is drawn" if line.every > 1 else "")
        for who, line in in_order(course)
    )
    return f"{labels.title}: {summary(course, labels, done, stopped, left=False)}." + (f" {lines}." if lines else "")


def in_order(course: Course) -> list[tuple[str, Line]]:
    """The lines: those of tasks by their numbers, then the others as they came."""
    tasks = devices_in_order(who for who in course.lines if _is_task(who))
    return [(who, course.lines[who]) for who in [*tasks, *(who for who in course.lines if not _is_task(who))]]


def curves(
    course: Course, labels: Labels, done: bool, stopped: bool, live: Callable[[Mapping[str, Any]], Any]
) -> Picture:
    """Picture the course; `live` makes the data of the live picture of what it has in common with the still."""
    plan = Plan(course, labels, done)
    head = heading(labels.title, summary(course, labels, done, stopped))
    drawing = join([tag("g", head, class_="head"), plan.legend, tag("g", *plan.still(), class_="still")])
    rows = [
        [_name(who), line.count, _number(line.ys[0]), _number(line.lowest), _number(line.newest[1])]
        for who, line in in_order(course)
    ]
    heads = ("", "steps", f"first {labels.value}", "lowest", "newest")
    tables: list[Table] = [(labels.title, heads, rows), _points(course, plan.labels)]
    says = sentence(course, labels, done, stopped)
    text = f"{says}\n{text_table(heads, rows)}" if rows else says
    return Picture(drawing, (room(), plan.height), rules("curves"), says, tables, text, live=live(plan.data))


def _points(course: Course, labels: Labels) -> Table:
    rows = []
    for who, line in in_order(course):
        every = -(-len(line.xs) // _MOST_ROWS)
        rows += [[_name(who), f"{x:g}", _number(y)] for x, y in zip(line.xs[::every], line.ys[::every], strict=True)]
    return f"{plural(len(rows), 'point')} of its lines", ("", labels.over, labels.value), rows


class Plan:
    """Where the parts of the picture stand."""

    def __init__(self, course: Course, labels: Labels, done: bool = False) -> None:
        self.until = until(course, labels.over, done)
        self.labels, self.lines = labels._replace(over=axis(course, labels.over)), in_order(course)
        self.pens = [_pen(i, who) for i, (who, _) in enumerate(self.lines)]
        head = heading(labels.title, _LONGEST).height + 6
        self.legend, height = marks.line_legend([(_sample(pen), pen.name) for pen in self.pens], room(), head)
        self.top = head + max(height, marks.LEGEND_ROW) + 22
        self.right = room() - _RIGHT
        self.bottom = self.top + _HEIGHT
        self.height = self.bottom + _AXIS

    @property
    def data(self) -> dict[str, Any]:
        """The place of the plot, its lines' looks and the words of its axes, for the front end."""
        sides = {"left": _LEFT, "right": self.right, "top": self.top, "bottom": self.bottom}
        plot = {side: at + MARGIN for side, at in sides.items()}
        pens = [pen._asdict() for pen in self.pens]
        return {"plot": plot, "pens": pens, "value": self.labels.value, "over": self.labels.over, "until": self.until}

    def still(self) -> Iterator[Markup]:
        """The axes and the lines as they are now."""
        xs = [x for _, line in self.lines for x in line.since(0)[0]]
        ys = [y for _, line in self.lines for y in line.since(0)[1] if y is not None]
        across, up = _span([*xs, *([] if self.until is None else [self.until])], False), _span(ys, True)
        yield tag("text", self.labels.value, x=_LEFT, y=self.top - 8, class_="soft")
        yield tag("text", self.labels.over, x=self.right, y=self.bottom + 32, class_="soft end")
        for value in _ticks(*up, 5) if ys else ():
            y = self._y(value, up)
            yield tag("path", d=f"M{number(_LEFT)} {number(y)}H{number(self.right)}", class_="grid")
            yield tag("text", f"{value:,.6g}", x=_LEFT - 6, y=y + 4, class_="s11 soft end")
        for value in _ticks(*across, self.right / 90) if xs else ():
            yield tag("text", f"{value:,.6g}", x=self._x(value, across), y=self.bottom + 16, class_="s11 soft mid")
        axes = f"M{number(_LEFT)} {number(self.top)}V{number(self.bottom)}H{number(self.right)}"
        yield tag("path", d=axes, class_="axis", fill="none")
        for pen, (_, line) in zip(self.pens, self.lines, strict=True):
            d = _path(
                (self._x(x, across), None if y is None else self._y(y, up)) for x, y in zip(*line.since(0), strict=True)
            )
            yield tag("path", d=d, fill="none", stroke=pen.colour, stroke_width=2, stroke_dasharray=pen.dash or None)

    def _x(self, value: float, span: tuple[float, float]) -> float:
        return _LEFT + (value - span[0]) / (span[1] - span[0]) * (self.right - _LEFT)

    def _y(self, value: float, span: tuple[float, float]) -> float:
        return self.bottom - (value - span[0]) / (span[1] - span[0]) * _HEIGHT


def _path(points: Iterator[tuple[float, float | None]]) -> str:
    """The `d` of a line with gaps."""
    d, steps = [], "M"
    for x, y in points:
        if y is not None:
            d.append(f"{steps}{number(x)} {number(y)}")
        steps = "M" if y is None else "L"
    return "".join(d)


def _span(values: list[float], from_zero: bool) -> tuple[float, float]:
    """The ends of an axis; it begins at 0 where none is negative and the largest is more than twice the smallest."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if from_zero and 0 <= 2 * low < high:
        low = 0.0
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _ticks(low: float, high: float, most: float) -> Iterator[float]:
    step = next(itertools.islice(ticks(high - low, most), 1, None), high - low)
    for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1):
        yield i * step


def _pen(i: int, who: str) -> _Pen:
    """A worker has the colour of its task; another line one that no task has."""
    colour = look(who).colour.line if _is_task(who) else _COLOURS[i % len(_COLOURS)]
    return _Pen(_name(who), colour, _DASHES[(i + i // WORKERS) % len(_DASHES)])  # as colours come again, others


def _is_task(who: str) -> bool:
    return who.startswith("/job:")


def _name(who: str) -> str:
    return look(who).label if _is_task(who) else who


def _sample(pen: _Pen) -> Markup:
    return tag("path", d="M0 9H28", stroke=pen.colour, stroke_width=2, stroke_dasharray=pen.dash or None)


def _number(value: float | None) -> str:
    return "not a number" if value is None or not math.isfinite(value) else f"{value:.4g}"
