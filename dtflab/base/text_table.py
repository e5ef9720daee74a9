"""Text in columns, for everything that is printed as a table; the same for a notebook. Counts and shares in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def plural(count: int, noun: str) -> str:
    """`1 op`, `1,200 ops`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """A share of idle time in percent; `>99%` where 100% would hide that something ran."""
    return ">99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


def text_table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns of text, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in [heads, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    right = [all(isinstance(row[i], int | float) for row in rows) and rows for i in range(len(heads))]
    lines = ([c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right)] for row in cells)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def html_table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The table as HTML. The first column labels the rows and is not broken into lines."""
    head = "".join(_cell("th", title, first=i == 0) for i, title in enumerate(heads))
    body = "".join(f"<tr>{''.join(_cell('td', cell, first=i == 0) for i, cell in enumerate(row))}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(kind: str, content: Any, first: bool) -> str:
    from html import escape  # only in notebooks: `html` is a table of all characters with names

    style = "text-align:left" + ";white-space:nowrap" * first
    return f"<{kind} style={style}>{escape(str(content))}</{kind}>"
