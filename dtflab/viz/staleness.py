"""Staleness: how old the gradients of a training were: how many of each age, and when.

On the left a bar for each staleness (or for a few, if there are many), its dropped part hatched; on the right a mark
for each gradient, or for as many as can be told apart: over time, a dot in the colour of its worker, a cross if it was
dropped; a diamond, or an upright cross, of every second eight workers, which have the colours of the first. Lines join
the gradients of one worker, if there are few workers. A legend says what is what, and whose colour is whose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural, text_table
from dtflab.train.replicas.staleness_log import StalenessLog
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import WORKERS, Look, look
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.readings import Reading, read
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, hatch_path, join, line_path, number, tag
from dtflab.viz.drawing.units import moment, ticks, time_unit
from dtflab.viz.layout.shapes import Point

_HEAD, _HEIGHT, _AXIS = 38.0, 180.0, 40.0  # above a plot, of it, below it
_SIDE_BY_SIDE = 700.0  # narrower pages have one plot below the other
_MOST_BARS, _MOST_MARKS, _MOST_LINES, _MOST_NAMED = 34, 900, 7, 16
_Place = tuple[float, float, float]


class _Plot(NamedTuple):
    """Where a plot stands on the page, and what it shows there."""

    left: float
    top: float
    width: float
    most_x: float
    most_y: float

    def x(self, value: float) -> float:
        return self.left + value / self.most_x * self.width

    def y(self, value: float) -> float:
        return self.bottom - value / self.most_y * _HEIGHT

    @property
    def bottom(self) -> float:
        return self.top + _HEIGHT


def staleness(log: StalenessLog, *, title: str = "Staleness") -> Picture:
    """Picture a training's log, `optimizer.read(session)` or `tf.train.read_staleness(target)`.

    ValueError if there is no gradient in it, TypeError for something else than a log.
    """
    if not isinstance(log, StalenessLog):
        raise TypeError(
            "staleness() draws a StalenessLog, optimizer.read(session) or tf.train.read_staleness(target), not "
            f"{type(log).__name__}."
        )
    if not len(log):
        raise ValueError("There is nothing to draw: no gradient was recorded. Run a training step first.")
    edges, used, lost = _bins(log)
    summary = f"{plural(len(log), 'gradient')}, {log.mean():.1f} steps old on average, {log.dropped:,} dropped"
    heading, width = marks.heading(title, summary), room()
    legend, height = _legend(log, width, heading.height + 8)
    ages, over_time = _places(heading.height + 8 + height + _HEAD, width)
    points = _points(log, over_time)
    bars, traces = _histogram(log, edges, used, lost, ages), _widened(over_time, _traces(log, *points))
    are_stacked = ages[0] == over_time[0]
    parts = [legend, *([_widened(ages, bars)] if are_stacked else bars), traces]
    heads = ("worker", "gradients", "mean staleness", "largest", "dropped")
    rows = [[f"worker:{worker}", *_row(log.of(worker))] for worker in log.workers]
    by_age = [[_range(first, end), int(n), int(m)] for first, end, n, m in zip(edges, edges[1:], used, lost)]
    tables = [(title, heads, rows), ("Gradients by staleness", ("staleness", "applied", "dropped"), by_age)]
    text = f"{title}: {summary}\n{text_table(heads, rows)}"
    size = (width, over_time[1] + _HEIGHT + _AXIS)
    live, sentence = read([_reading(log, *points)]), f"{title}: {summary}."
    return Picture(join([heading, *parts]), size, rules("staleness"), sentence, tables, text, live=live)


def _places(top: float, width: float) -> tuple[_Place, _Place]:
    """Left edge, top and width of the two plots."""
    if width < _SIDE_BY_SIDE:
        return (44.0, top, width - 50), (44.0, top + _HEIGHT + _AXIS + _HEAD, width - 50)
    return (44.0, top, 290.0), (402.0, top, width - 406)


def _widened(place: _Place, plot: Iterator[Markup]) -> Markup:
    left, _, width = place
    return marks.stretch((left, left + width), *plot)


def _row(log: StalenessLog) -> list[Any]:
    return [len(log), f"{log.mean():.2f}", int(log.staleness.max()), log.dropped]


def _range(first: int, end: int) -> str:
    return str(first) if end - first == 1 else f"{first} to {end - 1}"


def _bins(log: StalenessLog) -> tuple[list[int], Any, Any]:
    """Edges of equal width, and how many gradients lie between them: those applied, those dropped."""
    count = int(log.staleness.max()) + 1
    width = -(-count // _MOST_BARS)
    edges = list(range(0, count + width, width))
    used, _ = np.histogram(log.staleness[log.used], edges)
    lost, _ = np.histogram(log.staleness[~log.used], edges)
    return edges, used, lost


def _legend(log: StalenessLog, width: float, top: float) -> tuple[Markup, float]:
    """The marks of gradients that were applied and dropped, and the colours of workers; and how high that is."""
    used, lost = log.used.any(), not log.used.all()
    kinds = (_DOTS, "applied", used), (_CROSSES, "dropped", lost)
    samples = [
        (join([_block(1, 4, 12, 11, draws is _CROSSES), draws[0]((22, 9), "var(--soft)")]), meaning)
        for draws, meaning, is_there in kinds
        if is_there
    ]
    laps = sorted({*map(_lap, log.workers)})
    for lap in laps if any(laps) else ():
        drawn = [draws[lap]((x, 9), "var(--soft)") for (draws, _, is_there), x in zip(kinds, (9, 22)) if is_there]
        samples.append((join(drawn), _numbers(log.workers, lap)))
    marked, height = marks.line_legend(samples, width, top)
    named = [(_worker(worker), plural(len(log.of(worker)), "gradient")) for worker in log.workers]
    more = [(join([]), f"and {len(named) - _MOST_NAMED:,} more workers")] * (len(named) > _MOST_NAMED)
    workers, second = marks.legend(named[:_MOST_NAMED], width, top + height)
    rest, third = marks.line_legend(more, width, top + height + second)
    return join([marked, workers, rest]), height + second + third


# -- drawing -------------------------------------------------------------------------------------------------


def _histogram(log: StalenessLog, edges: list[int], used: Any, lost: Any, place: _Place) -> Iterator[Markup]:
    plot = _Plot(*place, edges[-1], max(used + lost) * 1.08)
    single = 0.5 if edges[1] == 1 else 0.0  # a bar for one number stands over it
    yield from _frame(plot, "gradients", "staleness (steps applied in between)", single)
    for first, end, applied, dropped in zip(edges, edges[1:], used, lost):
        left, width = plot.x(first) + 0.75, plot.x(end) - plot.x(first) - 1.5
        yield _bar(plot, left, width, 0, int(applied), dropped=False)
        yield _bar(plot, left, width, int(applied), int(applied + dropped), dropped=True)
    middle = plot.x(log.mean() + single)
    yield tag("path", d=line_path([(middle, plot.top - 4), (middle, plot.bottom)]), class_="mean")
    yield tag("text", f"mean {log.mean():.1f}", x=max(middle, plot.left + 86), y=plot.top - 8, class_="s11 mid")


def _bar(plot: _Plot, x: float, width: float, low: int, high: int, dropped: bool) -> Markup:
    if high == low:
        return Markup("")
    y, height = plot.y(high), max(plot.y(low) - plot.y(high), 1.0)
    name = tag("title", f"{high - low:,} {'dropped' if dropped else 'applied'}")
    return _block(x, y, width, height, dropped, name)


def _block(x: float, y: float, width: float, height: float, dropped: bool, *name: Markup) -> Markup:
    """A part of a bar: grey, as it counts the gradients of all workers."""
    size = {"x": x, "y": y, "width": width, "height": height}
    if not dropped:
        return tag("rect", *name, **size, class_="applied")
    hatch = tag("path", d=hatch_path(x, y, width, height, 5), class_="dropped")
    return join([tag("rect", *name, **size, class_="dropped"), hatch])


def _points(log: StalenessLog, place: _Place) -> tuple[_Plot, list[Point]]:
    """The plot over time, and where each gradient stands in it."""
    seconds, ages = log.seconds.tolist(), log.staleness.tolist()
    plot = _Plot(*place, max(*seconds, 1e-15), max(*ages, 1) * 1.08)
    return plot, [(plot.x(second), plot.y(age)) for second, age in zip(seconds, ages)]


def _reading(log: StalenessLog, plot: _Plot, points: Sequence[Point]) -> Reading:
    """A sentence on each gradient that has a mark."""
    drawn = sorted(i for used in (True, False) for i in _thinned(np.flatnonzero(log.used == used).tolist()))
    ends = ["applied" if used else "dropped" for used in log.used]
    says = [
        [f"{_worker(int(log.worker[i])).label}: {plural(int(log.staleness[i]), 'step')} old, {ends[i]}",
         f"at {moment(float(log.seconds[i]) * 1e6)}"]
        for i in drawn
    ]  # fmt: skip
    box = plot.left, plot.top, plot.left + plot.width, plot.bottom
    return Reading(box, [points[i][0] for i in drawn], says, ys=[points[i][1] for i in drawn])


def _traces(log: StalenessLog, plot: _Plot, points: list[Point]) -> Iterator[Markup]:
    unit, name = time_unit(float(log.seconds[-1]) * 1e6)
    scaled = plot._replace(most_x=plot.most_x * 1e6 / unit)  # whose numbers are in that unit
    yield from _frame(scaled, "staleness", f"time since the first gradient ({name})")
    few = log.workers if len(log.workers) <= _MOST_LINES else []
    for worker in few:
        own = [points[i] for i in np.flatnonzero(log.worker == worker).tolist()]
        dash = "4 3" if _lap(worker) else None
        colour = _worker(worker).colour.line
        yield tag("path", d=line_path(_thinned(own)), stroke=colour, stroke_dasharray=dash, class_="trace")
    for used in (True, False):  # apart, so that no cross is lost among dots
        for i in _thinned(np.flatnonzero(log.used == used).tolist()):
            worker = int(log.worker[i])
            yield (_DOTS if used else _CROSSES)[_lap(worker)](points[i], _worker(worker).colour.line)


def _thinned(items: Any) -> Any:
    """Every second, third, … one, if there are too many."""
    return items[:: -(-len(items) // _MOST_MARKS) or 1]


def _worker(worker: int) -> Look:
    return look(f"/job:worker/task:{worker}")


def _lap(worker: int) -> int:
    """Which of two marks the worker has besides its colour."""
    return worker // WORKERS % 2


def _numbers(workers: list[int], lap: int) -> str:
    """The workers with that mark: `worker:0 to 7, 16 to 19`."""
    laps = grouped((worker // WORKERS, worker) for worker in workers if _lap(worker) == lap).values()
    return "worker:" + ", ".join(_range(min(own), max(own) + 1) for own in laps)


def _dot(point: Point, colour: str) -> Markup:
    return tag("circle", cx=point[0], cy=point[1], r=1.8, style=f"fill:{colour}")


def _diamond(point: Point, colour: str) -> Markup:
    x, y = point
    d = f"M{number(x)} {number(y - 3)}l3 3-3 3-3-3z"
    return tag("path", d=d, style=f"stroke:{colour}", class_="diamond", data_at=x)


def _cross(point: Point, colour: str) -> Markup:
    x, y = point
    cross = f"{line_path([(x - 3, y - 3), (x + 3, y + 3)])}{line_path([(x - 3, y + 3), (x + 3, y - 3)])}"
    return tag("path", d=cross, style=f"stroke:{colour}", class_="lost", data_at=x)


def _upright(point: Point, colour: str) -> Markup:
    x, y = point
    cross = f"{line_path([(x - 4, y), (x + 4, y)])}{line_path([(x, y - 4), (x, y + 4)])}"
    return tag("path", d=cross, style=f"stroke:{colour}", class_="lost", data_at=x)


_DOTS, _CROSSES = (_dot, _diamond), (_cross, _upright)  # by lap


def _frame(plot: _Plot, upwards: str, along: str, shift: float = 0.0) -> Iterator[Markup]:
    """Axes with their names and numbers; those along the bottom stand `shift` further right."""
    bottom, right = plot.bottom, plot.left + plot.width
    for value in _whole(plot.most_y, 5):
        y = plot.y(value)
        yield tag("path", d=line_path([(plot.left, y), (right, y)]), class_="grid")
        yield tag("text", f"{value:,.0f}", x=plot.left - 6, y=y + 4, class_="s11 soft end")
    for value in _whole(plot.most_x - shift, 8) if shift else ticks(plot.most_x, 8):
        yield tag("text", f"{value:,.10g}", x=plot.x(value + shift), y=bottom + 15, class_="s11 soft mid")
    yield tag("path", d=line_path([(plot.left, bottom), (right, bottom)]), class_="axis")
    yield tag("text", along, x=right, y=bottom + 32, class_="s11 soft end")
    yield tag("text", upwards, x=plot.left, y=plot.top - 8, class_="s11 soft")


def _whole(most: float, count: int) -> list[float]:
    """Numbers for an axis of counts."""
    return [*range(int(most) + 1)] if most < count else [value for value in ticks(most, count) if value == int(value)]
