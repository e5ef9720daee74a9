"""Curves: a matplotlib Figure of a few lines over a common x, readable without its colours.

Made through the object API, never pyplot: widget callbacks run in another thread, and pyplot's figures break there.
The figure stands on a light card of its own, so that it reads the same in every theme. Each line has a colour, a
dash pattern, a marker, and its name at its end.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.viz.palette import OKABE_ITO
from dtflab.viz.style import PROJECTOR, current

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, CARD = "#1f2328", "#57606a", "#fff"
_DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
_MARKERS = "osD^vPX"
_SCALE = 16 * 96 / (10 * 100)  # makes numbers at an axis, of 10 points at 100 dots per inch, 16 of the screen's points
_MOST_MARKERS = 24  # more points than this, and only some of them are marked


def curve(
    xs: Sequence[float] | np.ndarray[Any, Any],
    ys: Mapping[str, Sequence[float] | np.ndarray[Any, Any]],
    xlabel: str,
    ylabel: str,
    *,
    title: str = "",
    log: bool = False,
    width: float = 7.2,
    height: float = 3.6,
) -> Figure:
    """A Figure with one line for each of `ys` (name → values) over `xs`; NaN leaves a gap.

    `xlabel` and `ylabel` say what is shown, with its unit: "step", "time (ms)". With `log`, equal steps along x are
    equal factors. Sizes are inches.
    """
    x, lines = _checked(xs, ys)
    if not xlabel or not ylabel:
        raise ValueError("both axes need a label, with a unit where there is one: curve(..., 'step', 'loss')")
    dots = 100 * (_SCALE if current() is PROJECTOR else 1.0)
    figure = _figure_class()(figsize=(width, height), dpi=dots, facecolor=CARD, layout="constrained")
    axes = figure.add_subplot()
    ends = []
    for i, (name, y) in enumerate(lines.items()):
        _draw(axes, i, name, x, y)
        last = np.flatnonzero(np.isfinite(y))
        ends.append((float(y[last[-1]]), float(x[last[-1]]), name, OKABE_ITO[i % len(OKABE_ITO)].line))
    _dress(axes, xlabel, ylabel, title)
    if log:
        _logarithmic(axes, x)
    _name_ends(axes, ends)
    return figure


def _checked(xs: Any, ys: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    x = np.asarray(xs, dtype=float)
    lines = {name: np.asarray(values, dtype=float) for name, values in ys.items()}
    if not x.size or not lines:
        raise ValueError("there is nothing to draw: no points or no lines")
    for name, y in lines.items():
        if y.shape != x.shape or x.ndim != 1:
            raise ValueError(f"{name!r} has shape {y.shape}, but the points on the x axis have {x.shape}")
        if not np.isfinite(y).any():
            raise ValueError(f"{name!r} has no finite value")
    return x, lines


def _draw(axes: Axes, i: int, name: str, x: Any, y: Any) -> None:
    axes.plot(
        x,
        y,
        label=name,
        color=OKABE_ITO[i % len(OKABE_ITO)].line,
        linestyle=_DASHES[i % len(_DASHES)],
        linewidth=2,
        marker=_MARKERS[i % len(_MARKERS)],
        markersize=4.5,
        markevery=max(1, len(x) // _MOST_MARKERS),
    )


def _dress(axes: Axes, xlabel: str, ylabel: str, title: str) -> None:
    axes.set_facecolor(CARD)
    axes.set_xlabel(xlabel, color=INK, fontsize=11)
    axes.set_ylabel(ylabel, color=INK, fontsize=11)
    axes.set_title(title, color=INK, fontsize=12, loc="left", fontweight="bold")
    axes.tick_params(colors=SOFT, labelsize=10)
    axes.grid(color="#d8dee4", linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color("#8c959f")


def _logarithmic(axes: Axes, x: Any) -> None:
    """A logarithmic axis with numbers as people write them, at the points."""
    from matplotlib.ticker import NullLocator

    if x.min() <= 0:
        raise ValueError(f"a logarithmic axis has no place for {x.min():g}")
    axes.set_xscale("log")
    axes.set_xticks(x, [f"{value:g}" for value in x])
    axes.xaxis.set_minor_locator(NullLocator())


def _name_ends(axes: Axes, ends: list[tuple[float, float, str, str]]) -> None:
    """Write each name beside the end of its line, pushed apart where they would touch."""
    low, high = axes.get_ylim()
    height = axes.get_figure(root=True).get_figheight()  # type: ignore[union-attr]
    apart = (high - low) * 0.2 / height  # about one line of text
    placed = low - apart
    for y, x, name, colour in sorted(ends):
        placed = max(y, placed + apart)
        axes.annotate(
            name,
            xy=(x, y),
            xytext=(8, (placed - y) / (high - low) * height * 72 * 0.8),
            textcoords="offset points",
            color=colour,
            fontsize=10.5,
            fontweight="bold",
            va="center",
            annotation_clip=False,
        )


@functools.cache
def _figure_class() -> type[Figure]:
    """A Figure that shows itself in a notebook; without pyplot, nothing else teaches IPython to do it."""
    from matplotlib.figure import Figure

    class Curves(Figure):
        """A matplotlib Figure that a notebook shows as an image."""

        def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
            png = io.BytesIO()
            self.savefig(png, format="png", dpi=2 * self.dpi)
            width, height = (round(inches * self.dpi) for inches in self.get_size_inches())
            text = f"<Figure of {', '.join(line.get_label() for line in self.axes[0].lines)}>"  # type: ignore[misc]
            bundle = {"image/png": png.getvalue(), "text/plain": text}
            return bundle, {"image/png": {"width": width, "height": height}}

    return Curves
