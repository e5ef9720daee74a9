"""Every picture in every style: no text is clipped, none lies upon another."""

from __future__ import annotations

import pytest

from dtflab import viz
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
        if isinstance(picture := draw(), viz.Picture):
            found = {"clipped": clipped(picture.svg), "overlapping": overlapping(picture.svg)}
            wrong |= {name: found} if any(found.values()) else {}
    assert not wrong
