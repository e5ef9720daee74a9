"""Values of a plot that a live page says where it is pointed at, and from place to place with the arrow keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Box = tuple[float, float, float, float]


class Reading(NamedTuple):
    """A plot, and for each of the places `at` along its x axis the lines of a card; all in units of the drawing.

    A card `holds` until the next place, else it is that of the nearest one; where there are `ys`, of the nearest point.
    `box` is left, top, right, bottom; from left to right it must be what `marks.stretch` stretches.
    """

    box: Box
    at: Sequence[float]
    says: Sequence[Sequence[str]]
    holds: bool = False
    ys: Sequence[float] | None = None


def reading(box: Box, at: Sequence[float], says: Callable[[int], Sequence[str]], holds: bool = False) -> Reading:
    """A plot of which `says` gives the lines of each place; in a unit of the page only the last is read."""
    kept = {int(x): i for i, x in enumerate(at)}.values()
    left, top, right, bottom = (round(side, 1) for side in box)
    return Reading((left, top, right, bottom), [round(at[i], 1) for i in kept], [says(i) for i in kept], holds)


def read(readings: Iterable[Reading]) -> dict[str, Any]:
    """The `live` data of a picture with plots that can be read."""
    return {"view": "still", "readings": [each._asdict() for each in readings]}
