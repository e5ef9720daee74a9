"""Curves: a matplotlib Figure of a few lines over a common x, readable without its colours.

Made through the object API, never pyplot: widget callbacks run in another thread, and pyplot's figures break there.
A notebook shows it as a Picture, which follows the theme; a file has a light card. Each line has a colour, a dash
pattern, a marker, and its name at its end.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.base.text_table import text_table
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.figures import CARD, EDGE, INK, RULE, SOFT, drawing
from dtflab.viz.drawing.palette import VIOLETS
from dtflab.viz.drawing.picture import Picture, Table
from dtflab.viz.drawing.readings import read, reading
from dtflab.viz.drawing.style import Style, current, room, rules
from dtflab.viz.drawing.svg import text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
_MARKERS = "osD^vPX"
_COLOURS = INK, VIOLETS[2].line, SOFT  # of no task
_DOTS = 100  # units per inch
_POINT = 72 / _DOTS  # points of matplotlib in a unit of a drawing
_NAME = 15.0  # units from one name to the next
_WITHIN, _APART = 0.75, 10.0  # of a figure, what is not around the axes; units between two numbers along x
_LABEL = 18.0  # units that the label of the values is high, with what lies between it and the axis
_LEAST_HEIGHT = 1.8  # inches that are left to a figure on a narrow page
_MOST_MARKERS = 16  # more points than this, and only some of them are marked
_MOST_ROWS = 200  # of the table


def curve(
    xs: Sequence[float] | np.ndarray[Any, Any],
    ys: Mapping[str, Sequence[float] | np.ndarray[Any, Any]],
    xlabel: str,
    ylabel: str,
    *,
    title: str = "",
    log: bool | None = None,
    log_values: bool = False,
    dots: bool = False,
    width: float = 7.2,
    height: float = 3.6,
) -> Curves:
    """A Figure with one line for each of `ys` (name → values) over `xs`; NaN leaves a gap.

    `xlabel` and `ylabel` say what is shown, with its unit: "step", "time (ms)". The axis of values begins at 0 where
    none is negative and the largest is more than twice the smallest. With `log`, equal steps along x are equal factors:
    by itself where each of three or more is twice the one before, as 1, 2, 4, 8 workers. With `log_values`, those along
    the axis of values are. With `dots`, each point stands alone: of values that follow no course, as shuffled numbers,
    lines would be a tangle.
    Sizes are inches of 100 pixels, those of a projector larger; on a page that is narrower, as that of a projector, the
    figure is narrower and as much lower. The figure has `.picture`, as a notebook shows it, and `.save(path)` for .svg,
    .html, .png and .pdf. ValueError for lines that can't be drawn.
    """
    x, lines = _checked(xs, ys)
    if not xlabel or not ylabel:
        raise ValueError("Both axes need a label, with a unit where there is one: curve(..., 'step', 'loss').")
    share = min(1.0, room() / _DOTS / width)
    size = share * width, max(share * height, min(height, _LEAST_HEIGHT))
    figure = _figure_class()(figsize=size, dpi=_DOTS, facecolor=CARD, layout="constrained")
    figure.how, figure.xs, figure.ys = current(), x, lines
    figure.table = _table(title or f"{ylabel} over {xlabel}", xlabel, x, lines)
    figure.sentence = f"{figure.table[0]}. {'; '.join(_course(name, y) for name, y in lines.items())}."
    axes = figure.add_subplot()
    for i, (name, y) in enumerate(lines.items()):
        _draw(axes, i, name, x, y, dots)
    _dress(axes, xlabel, ylabel, title)
    _number_xs(axes, x, _are_doubled(x) if log is None else log, _WITHIN * size[0] * _DOTS)
    _scale(axes, np.concatenate([*lines.values()]), log_values)
    _name_ends(figure, axes, x, lines, away=30 if dots else 15)  # or a key looks like a point
    if not title:  # it keeps room for the label on top of the axis, which the layout does not see
        figure.get_layout_engine().set(rect=(0, 0, 1, 1 - _LABEL / (_DOTS * size[1])))
    return figure  # type: ignore[no-any-return]


def _checked(xs: Any, ys: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    x = np.asarray(xs, dtype=float)
    lines = {name: np.asarray(values, dtype=float) for name, values in ys.items()}
    if not x.size or not lines:
        raise ValueError("There is nothing to draw: give at least one point and one line.")
    for name, y in lines.items():
        if y.shape != x.shape or x.ndim != 1:
            raise ValueError(f"{name!r} has shape {y.shape}, but the points on the x axis have {x.shape}")
        if not np.isfinite(y).any():
            raise ValueError(f"{name!r} has no finite value")
    return x, lines


def _draw(axes: Axes, i: int, name: str, x: Any, y: Any, dots: bool) -> None:
    dashes = "none" if dots else _DASHES[i % len(_DASHES)]
    every = 1 if dots else max(1, len(x) // _MOST_MARKERS)
    axes.plot(x, y, label=name, linestyle=dashes, linewidth=2 * _POINT, markevery=every, **_mark(i))


def _mark(i: int) -> dict[str, Any]:
    """The marker of a line."""
    return {"color": _COLOURS[i % len(_COLOURS)], "marker": _MARKERS[i % len(_MARKERS)], "markersize": 6 * _POINT}


def _dress(axes: Axes, xlabel: str, ylabel: str, title: str) -> None:
    small, text, large = 11 * _POINT, 12 * _POINT, 14 * _POINT
    axes.set_facecolor(CARD)
    axes.set_xlabel(xlabel, color=INK, fontsize=text, loc="right")
    axes.set_ylabel(ylabel, color=INK, fontsize=text, rotation=0, ha="left", va="bottom")
    axes.yaxis.set_label_coords(0, 1.02)
    axes.set_title(title, color=INK, fontsize=large, loc="left", fontweight="bold", pad=26 * _POINT)
    axes.tick_params(labelcolor=SOFT, labelsize=small, length=0, pad=5 * _POINT)
    _write_numbers(axes.xaxis, axes.yaxis)
    axes.grid(axis="y", color=RULE, linewidth=_POINT)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set(visible=side in ("left", "bottom"), color=EDGE, linewidth=_POINT)


def _write_numbers(*axes: Axis) -> None:
    """Write the numbers along axes as people write them."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: _written(value))


def _written(value: float) -> str:
    return f"{value:,.10g}"


def _are_whole(values: Any) -> bool:
    return bool((values == values.round()).all())


def _are_doubled(x: Any) -> bool:
    return len(x) > 2 and x[0] > 0 and bool((x[1:] == 2 * x[:-1]).all())


def _number_xs(axes: Axes, x: Any, log: bool, wide: float) -> None:
    """The numbers along an x axis that is `wide`: as many as do not touch, whole ones where all points are."""
    if log:
        _logarithmic(axes, x, wide)
        return
    each = text_width(f"{np.abs(x).max():,.0f}", 11) + _APART
    axes.locator_params(axis="x", nbins=max(1, min(9, int(wide / each))), integer=_are_whole(x))


def _scale(axes: Axes, values: Any, log: bool) -> None:
    """Values that are far from each other are read as "a third of": their axis begins at 0; counts have whole numbers.

    Of values that lie near each other the differences count, which an axis from 0 would hide.
    """
    from matplotlib.ticker import LogLocator

    values = values[np.isfinite(values)]
    low, high = values.min(), values.max()
    if log:
        _check_logarithmic(low)
        axes.set_yscale("log", subs=[])
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)))
        _write_numbers(axes.yaxis)
    elif 0 <= 2 * low < high:
        axes.set_ylim(bottom=0)
    if _are_whole(values) and not log:
        axes.locator_params(axis="y", integer=True)


def _logarithmic(axes: Axes, x: Any, wide: float) -> None:
    """A logarithmic axis with numbers as people write them, at as many of the points as have room."""
    from matplotlib.ticker import NullLocator

    _check_logarithmic(x.min())
    axes.set_xscale("log")
    unit = wide / (np.log(x.max() / x.min()) or 1.0)
    shown: list[float] = []
    end = -np.inf  # of the last number
    for value in np.unique(x):
        at, half = unit * np.log(value / x.min()), text_width(_written(value), 11) / 2
        if at - half >= end + _APART:
            shown.append(value)
            end = at + half
    axes.set_xticks(shown, [*map(_written, shown)])
    axes.xaxis.set_minor_locator(NullLocator())


def _check_logarithmic(lowest: float) -> None:
    if lowest <= 0:
        raise ValueError(f"A logarithmic axis has no place for {lowest:g}. Leave it out, or use log=False.")


def _name_ends(figure: Figure, axes: Axes, x: Any, lines: Mapping[str, Any], away: float) -> None:
    """Write each name next to the end of its line, higher or lower where some would touch; of several, with a marker.

    The markers stand `away` units from the ends.
    """
    from matplotlib.lines import Line2D
    from matplotlib.transforms import ScaledTranslation

    ends = {name: int(np.flatnonzero(np.isfinite(y))[-1]) for name, y in lines.items()}
    height_of = axes.transScale.transform  # in which equal steps are equally high
    (_, low), (_, high) = height_of([(x[0], y) for y in axes.get_ylim()])
    gap = (high - low) * _NAME / (figure.get_figheight() * _DOTS * 0.75)  # what is around the axes takes a quarter
    points = height_of([(x[end], lines[name][end]) for name, end in ends.items()])
    placed = _apart([float(height) for _, height in points], gap, high - gap / 2)
    heights = axes.transScale.inverted().transform([(point[0], height) for point, height in zip(points, placed)])[:, 1]
    shifted = axes.transData + ScaledTranslation(away / _DOTS, 0, figure.dpi_scale_trans)
    several = len(ends) > 1
    for i, (name, end) in enumerate(ends.items()):
        at = float(x[end]), heights[i]
        if several:
            figure.add_artist(Line2D(at[:1], at[1:], transform=shifted, linestyle="none", **_mark(i)))
        axes.annotate(
            name,
            xy=at,
            xytext=((away + 7 if several else 10) * _POINT, 0),
            textcoords="offset points",
            color=INK,
            fontsize=12 * _POINT,
            fontweight="bold",
            va="center",
            bbox={"facecolor": CARD, "edgecolor": "none", "pad": _POINT},  # no line goes through a name
        )


def _apart(values: Sequence[float], gap: float, high: float) -> list[float]:
    """The values, moved so that neighbours are a gap apart: upwards, and down again from where the room ends."""
    order = sorted(range(len(values)), key=values.__getitem__)
    placed = list(values)
    for before, i in itertools.pairwise(order):
        placed[i] = max(placed[i], placed[before] + gap)
    limit = high
    for i in reversed(order):
        placed[i] = min(placed[i], limit)
        limit = placed[i] - gap
    return placed


# -- what it says -------------------------------------------------------------------------------------------------


def _table(title: str, xlabel: str, x: Any, lines: Mapping[str, Any]) -> Table:
    """The points; of very many, some."""
    every = -(-len(x) // _MOST_ROWS)
    remark = f" (one of {every} points)" if every > 1 else ""
    columns = [[f"{value:.6g}" if np.isfinite(value) else "" for value in y[::every]] for y in (x, *lines.values())]
    return title + remark, (xlabel, *lines), list(zip(*columns, strict=True))


def _course(name: str, y: Any) -> str:
    """Where a line begins and ends, and between what it stays."""
    seen = y[np.isfinite(y)]
    return f"{name}: from {seen[0]:.4g} to {seen[-1]:.4g}, lowest {seen.min():.4g}, highest {seen.max():.4g}"


class _Shown:
    """How a figure of curves is shown and saved; it remembers its data and the style that it was made in."""

    how: Style
    xs: Any
    ys: Mapping[str, Any]
    table: Table
    sentence: str

    @property
    def picture(self) -> Picture:
        """The figure as it is now, as all pictures are: in the page's colours, with a sentence and a table."""
        figure: Any = self
        size, drawn, axes = tuple(figure.bbox.size), drawing(figure), figure.axes[0]
        last, _ = axes.transData.transform((axes.dataLim.x1, axes.dataLim.y1))  # what is right of it are names
        wide = marks.stretch((axes.bbox.x0, float(last)), drawn)
        box = axes.bbox.x0, size[1] - axes.bbox.y1, float(last), size[1] - axes.bbox.y0
        low, _ = axes.get_ylim()
        live = read([reading(box, axes.transData.transform([(x, low) for x in self.xs])[:, 0], self._says)])
        return Picture(wide, size, rules("curves"), self.sentence, [self.table], repr(self), self.how, live)

    def _says(self, i: int) -> list[str]:
        """The values of a place."""
        lines = [f"{name}: {y[i]:.6g}" for name, y in self.ys.items() if np.isfinite(y[i])]
        return [f"{self.table[1][0]}: {self.xs[i]:.6g}", *lines]

    def save(self, path: str | Path) -> None:
        """Write `.svg` or `.html` as a notebook shows it, or one of matplotlib's other forms, as `.png` and `.pdf`."""
        figure: Any = self
        if Path(path).suffix.lower() in (".svg", ".html"):
            self.picture.save(path)
        else:
            figure.savefig(path, dpi=2 * _DOTS * self.how.scale)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.picture._repr_mimebundle_()

    def __repr__(self) -> str:
        return text_table(*self.table[1:])

    __str__ = __repr__


if TYPE_CHECKING:

    class Curves(_Shown, Figure):
        """The class of `_figure_class`'s figures."""


@functools.cache
def _figure_class() -> Any:
    """matplotlib's Figure, shown as a Picture; made here, so that matplotlib is loaded only to draw."""
    from matplotlib.figure import Figure

    return type("Curves", (_Shown, Figure), {})
