"""Every picture in every style: no text is clipped, none lies upon another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dtflab import viz
from dtflab.viz.svg import join, tag
from tests.viz import gallery
from tests.viz.texts import clipped, overlapping

STYLES = ("default", "projector")  # dark differs from light by variables of colours alone


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


def test_the_gallery_has_every_kind_of_picture():
    kinds = set(viz.__all__) - {"digraph", "critical_path", "phases", "style", "Picture"}  # data, and how it is drawn
    shown = set(re.findall(r"viz\.(\w+)\(", Path(gallery.__file__).read_text()))
    assert kinds <= shown


def test_the_check_sees_what_is_clipped_and_what_overlaps():
    words = tag("text", "wide words", x=60, y=20), tag("text", "words", x=70, y=22), tag("text", "apart", x=0, y=50)
    moved = tag("g", tag("text", "below", x=0, y=0), transform="translate(0 95)")
    svg = viz.Picture(join([*words, moved]), (100, 66), "", "", [], "").svg
    assert clipped(svg) == ["wide words", "below"] and overlapping(svg) == [("wide words", "words")]
