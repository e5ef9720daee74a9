"""A table of results: HTML in a notebook, columns of text elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtflab.base.text_table import text_table
from dtflab.viz.drawing.style import current, rules
from dtflab.viz.drawing.svg import Markup, join, tag


def table(columns: Mapping[str, Sequence[object]], *, title: str = "") -> Results:
    """A table of `columns` (head → cells, as many in each), which a notebook shows as HTML.

    Whole numbers get thousands separators, other numbers three digits; a cell with a unit is a text, "1.2 s". Columns
    whose cells begin with a digit stand to the right. ValueError for columns of different lengths, or none.
    """
    lengths = {head: len(cells) for head, cells in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"A table needs columns of one length, not {lengths or 'none'}.")
    return Results(tuple(columns), [*zip(*(map(_written, cells) for cells in columns.values()), strict=True)], title)


def _written(cell: object) -> str:
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)


class Results:
    """A table as text and as HTML."""

    def __init__(self, heads: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
        self._heads, self._rows, self._title = heads, rows, title

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._html()}

    def __repr__(self) -> str:
        text = text_table(self._heads, self._rows)
        return f"{self._title}\n{text}" if self._title else text

    def _html(self) -> Markup:
        how = current()
        to_the_right = ["n" if all(cell[:1].isdigit() for cell in cells) else None for cells in zip(*self._rows)]
        head = [tag("th", name, scope="col", class_=side) for name, side in zip(self._heads, to_the_right)]
        body = [
            tag("tr", *(tag("td", cell, class_=side) for cell, side in zip(row, to_the_right))) for row in self._rows
        ]
        return tag(
            "div",
            tag("style", Markup(how.css(rules("tables").replace("SIZE", how.pixels(12)), "dtf-page"))),
            tag("div", self._title, class_="head") if self._title else join([]),
            tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body)),
            class_=f"dtf-page{how.class_}",
        )
