"""Every picture in every style: no text is clipped or lies upon another, and lines stand out from the page."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from dtflab import viz
from dtflab.viz.drawing import png
from dtflab.viz.drawing.svg import join, tag
from tests.viz import gallery
from tests.viz.strokes import PAGES, areas, contrast, rgb, strokes
from tests.viz.texts import clipped, overlapping

STYLES = ("default", "projector")  # dark differs from light by variables of colours alone
VISIBLE = 3.0  # WCAG 2.1, 1.4.11: the contrast of what one needs to understand a picture
FAINT = {  # on purpose
    "grid": "a help for the eye: what it marks is written next to the axis, and the values are in the tables",
    "hatch": "lies on an area that has a letter or an outline, which say the same",
    "stripe": "lies in a frame that has a colour and a word",
}
GROUNDS = {  # faint on purpose: what stands on them or around them says the same
    "band": "groups rows, whose names stand at its left",
    "grid": "a line",
    "hatch": "lines",
    "stripe": "lines",
    "kept": "a number stands on it",
    "layer": "a part of a stack: the whole has an outline, its blocks have numbers",
    "hit": "what a pointer meets: it is not seen",
    "level": "the area below a line that stands out",
    "old": "the bottom of a stack that has an outline",
    "tint": "lies in a box with an outline and a badge",
    "whole": "the room of a bar, which stands out",
    "lane": "the room of bars, which stand out",
}


@pytest.fixture(scope="module")
def drawings():
    with gallery.drawings("virtual") as found:
        yield found


@pytest.fixture(params=STYLES)
def style(request):
    viz.style(request.param)
    yield request.param
    viz.style("default")


def test_no_text_is_clipped_or_lies_upon_another(drawings, style):
    wrong = {}
    for name, draw in drawings.items():
        svg = draw().svg
        found = {"clipped": clipped(svg), "overlapping": overlapping(svg)}
        wrong |= {name: found} if any(found.values()) else {}
    assert not wrong


def test_every_picture_can_be_a_png(drawings, style):
    for name, draw in drawings.items():
        left = re.findall(r"var\(|@media|--\w+:", png.plain(draw().svg))
        assert not left, (name, png.plain(draw().svg)[:1500])


def test_each_picture_says_in_a_sentence_and_in_a_table_what_it_shows(drawings):
    bare = {}
    for name, draw in drawings.items():
        picture = draw()
        said = html.unescape(re.search(r'<svg[^>]* aria-label="([^"]*)"', picture.svg)[1])
        filled = [title for title, heads, rows in picture.tables if title and all(heads[1:]) and rows]
        if said != picture.sentence or not re.fullmatch(r".+\d.*\.", said, re.DOTALL) or not filled:
            bare[name] = said, filled
        elif picture.tables_html not in picture.html:
            bare[name] = "its tables are not in its page"
    assert not bare


def test_lines_stand_out_from_every_page(drawings, style):
    faint, seen = {}, set()
    for name, draw in drawings.items():
        svg = draw().svg
        for page in PAGES:
            for line in strokes(svg, page):
                seen |= line.classes
                between = line.paint == "var(--bg)" or line.halo  # a gap between areas; what keeps lines off a text
                if line.contrast < VISIBLE and not between and not line.classes & set(FAINT):
                    faint[name, page, *sorted(line.classes), line.paint] = round(line.contrast, 2)
    assert not faint
    assert seen >= set(FAINT)


def test_areas_stand_out_from_every_page_or_have_an_outline_that_does(drawings):
    faint, seen = {}, set()
    for name, draw in drawings.items():
        svg = draw().svg
        for page in PAGES:
            for area in areas(svg, page):
                seen |= area.classes
                if area.contrast < VISIBLE and area.paint != "var(--bg)" and not area.classes & set(GROUNDS):
                    faint[name, page, *sorted(area.classes), area.paint] = round(area.contrast, 2)
    assert not faint
    assert seen >= set(GROUNDS)


def test_contrast_is_as_wcag_defines_it():
    assert contrast(rgb("#000"), rgb("#ffffff")) == pytest.approx(21)
    assert contrast(rgb("#767676"), rgb("#fff")) == pytest.approx(4.54, abs=0.005)  # WCAG's own example of 4.5:1
    assert contrast(rgb("#949494"), rgb("#fff")) == pytest.approx(3.03, abs=0.005)


def test_the_check_sees_how_a_line_is_painted():
    """Attribute, rule, style, in this order; opacity of what it stands in; a variable's own value and the page's."""
    line = tag("path", d="M0 0H9", class_="own", fill="#fff", stroke="#fff", style="stroke-opacity:.5")
    plain, faded = line, tag("g", line, opacity=0.5)
    svg = viz.Picture(join([plain, faded]), (9, 9), ".dtf .own{stroke:var(--fg)}", "", [], "").svg
    found = {page: [one.contrast for one in strokes(svg, page)] for page in ("file", "file at night", "JupyterLab")}
    halves = [tuple(1 - share * (1 - c) for c in rgb("#1f2328")) for share in (0.5, 0.25)]
    assert found["file"] == pytest.approx([contrast(half, (1, 1, 1)) for half in halves])
    dark = [
        [share * a + (1 - share) * b for a, b in zip(rgb("#e6edf3"), rgb("#0d1117"), strict=True)]
        for share in (0.5, 0.25)
    ]
    assert found["file at night"] == pytest.approx([contrast(half, rgb("#0d1117")) for half in dark])
    first = next(area for area in areas(svg, "file") if "own" in area.classes)
    assert first.contrast == found["file"][0]  # white in a half of black: its outline is what is seen
    grey = [tuple(1 - share * (1 - c) for c in rgb("#212121")) for share in (0.5, 0.25)]
    assert found["JupyterLab"] == pytest.approx([contrast(half, (1, 1, 1)) for half in grey])


def test_the_gallery_has_every_kind_of_picture():
    kinds = set(viz.__all__) - {
        "digraph",
        "critical_path",
        "phases",
        "style",
        "palette",
        "table",
        "Picture",
    }  # data, and how it is drawn
    shown = set(re.findall(r"viz\.(\w+)\(", Path(gallery.__file__).read_text()))
    assert kinds <= shown


def test_the_check_sees_what_is_clipped_and_what_overlaps():
    words = tag("text", "wide words", x=60, y=20), tag("text", "words", x=70, y=22), tag("text", "apart", x=0, y=50)
    moved = tag("g", tag("text", "below", x=0, y=0), transform="translate(0 95)")
    svg = viz.Picture(join([*words, moved]), (100, 66), "", "", [], "").svg
    assert clipped(svg) == ["wide words", "below"] and overlapping(svg) == [("wide words", "words")]
