"""Data for the module of front_end.py in a short form: tables as columns, values that occur often by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.viz.drawing.palette import Look


class Numbers:
    """Values that occur often, each with a number."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._number: dict[Any, int] = {}

    def of(self, value: Any) -> int:
        if value not in self._number:
            self._number[value] = len(self.values)
            self.values.append(value)
        return self._number[value]


def columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """The columns of a table by their names."""
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def colours(one: Look) -> dict[str, str]:
    """A look, for a legend or a bar."""
    return {"fill": one.colour.fill, "line": one.colour.line, "ink": one.colour.ink, "label": one.label}
