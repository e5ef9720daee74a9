"""A page of tables for a notebook: a headline, remarks, tables that fold. No scripts; as light or dark as the page."""

from __future__ import annotations

from collections.abc import Sequence

from dtflab.viz.drawing.picture import Table
from dtflab.viz.drawing.style import current, rules
from dtflab.viz.drawing.svg import Markup, tag


def page(
    headline: str, remarks: Sequence[str], tables: Sequence[Table], unfolded: int = 1, drawing: Markup | None = None
) -> Markup:
    """The page as HTML; the first `unfolded` tables are open, a `drawing` stands above them."""
    how = current()
    items = [tag("li", remark) for remark in remarks]
    folds = [_fold(*table, number < unfolded) for number, table in enumerate(tables)]
    head = tag("div", headline, class_="head")
    return tag(
        "div",
        tag("style", Markup(how.css(rules("tables").replace("SIZE", how.pixels(12)), "dtf-page"))),
        head,
        *([tag("ul", *items)] if items else []),
        drawing or Markup(""),
        *folds,
        class_=f"dtf-page{how.class_}",
    )


def _fold(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], is_open: bool) -> Markup:
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    body = [
        tag("tr", *(tag("td", cell, class_="n" if isinstance(cell, int) else None) for cell in row)) for row in rows
    ]
    table = tag("table", tag("thead", head), tag("tbody", *body))
    summary = tag("summary", f"{title} ({len(rows)})")
    scrolled = tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=title)  # by keys, too
    return tag("details", summary, scrolled, open="open" if is_open else None)
