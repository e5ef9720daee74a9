"""Scores: how far predictions are from what was published, by regime, as plain text.

Rule: this is the only place where a prediction meets what was published; it changes neither.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dtflab.base.grouping import grouped
from dtflab.base.text_table import text_table
from dtflab.sim.predictions.points import Points
from dtflab.sim.predictions.predict import Predictions


class Error(NamedTuple):
    """Relative error of a prediction: (predicted − published) ÷ published; within a bracket it is 0."""

    id: str
    regime: str
    published: float | tuple[float, float]
    predicted: float
    relative: float


def errors_of(predictions: Predictions, points: Points) -> list[Error]:
    """The errors of all points that were predicted and published, in the order of the file."""
    return [
        Error(point.id, point.regime, published, value, relative_error(value, published))
        for point in points
        if (value := predictions.values.get(point.id)) is not None
        and (published := points.published.get(point.id)) is not None
    ]


def relative_error(predicted: float, published: float | tuple[float, float]) -> float:
    """To the value, or to the nearer end of a bracket. Of a published 0 the error is the prediction."""
    low, high = (published, published) if isinstance(published, float) else published
    nearest = min(max(predicted, low), high)
    return (predicted - nearest) / (abs(nearest) or 1.0)


def by_regime(errors: Iterable[Error]) -> dict[str, list[float]]:
    """Sizes of the errors; "all" comes last."""
    sizes = grouped((error.regime, abs(error.relative)) for error in errors)
    everything = [size for one in sizes.values() for size in one]
    return {**sizes, "all": everything} if everything else {}


def regime_table(models: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Median / worst error in % by regime, a column for each model; the first is the one that is asked about."""
    first = next(iter(models.values()))
    rows = [
        (regime, len(found), *(median_worst(sizes.get(regime, ())) for sizes in models.values()))
        for regime, found in first.items()
    ]
    return text_table(["median / worst error, %", "points", *models], rows)


def median_worst(sizes: Sequence[float]) -> str:
    """In %; a dash if there are none."""
    return f"{100 * statistics.median(sizes):.1f} / {100 * max(sizes):.1f}" if sizes else "–"


def point_table(predictions: Predictions, points: Points) -> str:
    """Each point's prediction; with its error, if it was published."""
    errors = {error.id: error for error in errors_of(predictions, points)}
    rows = []
    for point in points:
        if (value := predictions.values.get(point.id)) is not None:
            found = errors.get(point.id)
            against = (_shown(found.published), f"{100 * found.relative:+.1f}") if found else ("", "")
            rows.append((point.id, point.metric, f"{value:.4g} {point.unit}".strip(), *against))
    return text_table(["point", "metric", "predicted", "published", "error, %"], rows)


def _shown(published: float | tuple[float, float]) -> str:
    return f"{published:.4g}" if isinstance(published, float) else f"{published[0]:.4g} to {published[1]:.4g}"
