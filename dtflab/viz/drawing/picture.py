"""Picture: a drawing with a sentence that says what it shows and a table of its data, in every form a reader needs.

In a notebook it is HTML without scripts: the drawing follows the theme, and a table stands behind a toggle. A
notebook that is not trusted loses inline SVG and styles; what remains then, and only then, is the drawing as an image.
"""

from __future__ import annotations

import base64
import copy
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dtflab.files.atomic import replacing
from dtflab.files.paths import local
from dtflab.viz.drawing import front_end, png
from dtflab.viz.drawing.marks import heading
from dtflab.viz.drawing.style import MARGIN, Style, current, room, rules
from dtflab.viz.drawing.svg import Markup, join, number, tag

Table = tuple[str, Sequence[str], Sequence[Sequence[Any]]]  # title, heads, rows


def first_rows(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], most: int = 1000) -> Table:
    """A table; of very many rows the first, as its title says then."""
    more = f", the first {most:,} of {len(rows):,}" if len(rows) > most else ""
    return title + more, heads, rows[:most]


class Picture:
    """A drawing: `.svg` is the standalone file, `.save(path)` writes it, a notebook shows it, `print` its data.

    It looks as the style says that is set when it is made.
    """

    def __init__(
        self,
        drawing: Markup,
        size: tuple[float, float],
        style: str,
        sentence: str,
        tables: Sequence[Table],
        text: str,
        how: Style | None = None,
        live: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        """`drawing` is SVG in a page of `size`; `tables` its data; `text` is the plain form; `how` it was drawn.

        `live` is what the module of front_end.py needs to bring it to life: its view, and that view's data; or a
        function that finds them when a page is written; without, it only takes the width of the output.
        """
        self._drawing, self._size, self._style, self._live = drawing, size, style, live or {"view": "still"}
        self._how = how or current()
        self.sentence = sentence
        self.tables = tables
        self.text = text

    @property
    def svg(self) -> str:
        """The drawing as a file of its own: any viewer, a README, print."""
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + self._svg(alone=True) + "\n"

    @property
    def inline(self) -> Markup:
        """The drawing as it stands in a page."""
        return self._svg(alone=False)

    @property
    def tables_html(self) -> Markup:
        """The data, as it stands in a page behind its toggle."""
        return join(_table(*table) for table in self.tables)

    @property
    def living_data(self) -> Mapping[str, Any]:
        """The data with which the module brings it to life."""
        return self._live() if callable(self._live) else self._live

    def living(self, live: Mapping[str, Any]) -> Picture:
        """The same picture, with data with which the module brings it to life."""
        picture = copy.copy(self)
        picture._live = live
        return picture

    @property
    def html(self) -> str:
        """The drawing and its data for a page or a notebook; no code, nothing loaded."""
        # `hidden` is lifted by the style; where styles are removed, the image is shown in place of the drawing. (It
        # needs a value: JupyterLab's sanitizer drops empty attributes.)
        still = base64.b64encode(self._svg(alone=True).encode()).decode()
        parts = [
            tag("style", Markup(self._how.css(rules("page").replace("SIZE", self._how.pixels(12)), "dtf-picture"))),
            tag("div", self.inline, class_="dtf-drawing", hidden="hidden"),
            tag("img", src=f"data:image/svg+xml;base64,{still}", alt=self.sentence, class_="dtf-still"),
            tag("details", tag("summary", "Data as a table"), self.tables_html),
            tag("script", front_end.written(self.living_data), type="application/json", class_="dtf-data"),
        ]
        return tag("div", *parts, class_=f"dtf-picture{self._how.class_}")

    def save(self, path: str | Path) -> None:
        """Write `.svg`, `.png` or `.html`, as the name says; a file that is there is replaced once it is complete."""
        forms = {
            ".svg": lambda: self.svg.encode(),
            ".png": lambda: png.of_svg(self.svg),
            ".html": lambda: _PAGE.format(self.html).encode(),
        }
        form = forms.get(Path(path).suffix.lower())
        if form is None:
            raise ValueError(f"A picture is saved as .svg, .png or .html, not {Path(path).name!r}.")
        content = form()
        with replacing(local(path)) as file:
            file.write(content)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        front_end.begin()
        pixels = {"image/png": base64.b64encode(png.of_svg(self.svg)).decode()} if png.is_shown() else {}
        return {"text/plain": self.text, "text/html": self.html, **pixels}

    def __repr__(self) -> str:
        return self.text

    def _svg(self, alone: bool) -> Markup:
        how = self._how
        width, height = self._size[0] + 2 * MARGIN, self._size[1] + 2 * MARGIN
        least, most = (number(share * width * how.scale) for share in (how.least, how.most))
        fits = "max-width:100%" if alone else f"width:100%;max-width:{most}px"
        own = f"k{zlib.crc32(self._style.encode()):x}"  # rules of one kind of picture are not those of another
        mine = (self._style + how.rules).replace(".dtf ", f".dtf.{own} ")
        style = how.css(rules("every picture") + rules("alone") * alone + mine, "dtf")
        return tag(
            "svg",
            tag("style", Markup(style)),
            tag("rect", width=width, height=height, rx=8, class_="card"),
            tag("g", Markup(how.thick(self._drawing)), transform=f"translate({MARGIN:g} {MARGIN:g})"),
            xmlns="http://www.w3.org/2000/svg",
            class_=f"dtf {own}{' alone' * alone}{how.class_}",
            role="img",
            aria_label=self.sentence,
            width=width * how.scale,
            height=height * how.scale,
            style=f"{fits};min-width:{least}px;height:auto",
            viewBox=f"0 0 {width:g} {height:g}",
        )


_STILL = re.compile(r'<img src="data:image/svg[^>]* class="dtf-still"[^>]*>')


def without_still(html: str) -> str:
    """The HTML of a picture without the image that stands in where scripts and styles are removed, half of it."""
    return _STILL.sub("", html)


_PAGE = '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>dtflab</title>\n<body>{}</body></html>\n'


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    head = tag("tr", *(tag("th", h, scope="col") for h in heads))
    body = join(tag("tr", *(tag("td", cell) for cell in row)) for row in rows)
    return tag("table", tag("caption", title), tag("thead", head), tag("tbody", body))


def nothing_yet(sentence: str) -> Picture:
    """A picture that says why there is nothing to draw yet; it has no tables."""
    head = heading("Nothing to draw yet", sentence)
    return Picture(head, (room(), head.height), "", sentence, [], sentence)
