"""Styles: text of 16 pt and lines of 3 px for a projector, in every form of a picture, and only in those drawn so."""

from __future__ import annotations

import re

import pytest

from dtflab import viz
from dtflab.viz.drawing import front_end, marks
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import DEFAULT, PROJECTOR, current, room
from dtflab.viz.drawing.svg import tag, text_width, wrapped
from dtflab.viz.drawing.tables import page
from tests.viz.programs import mlp, traced


@pytest.fixture(autouse=True)
def default_again():
    yield
    viz.style("default")


def draw():
    return viz.timeline(traced(mlp()))


def test_the_smallest_text_of_a_projector_has_16_points_and_the_thinnest_line_3_pixels():
    viz.style("projector")
    svg = draw().svg
    width, units = (float(re.search(pattern, svg)[1]) for pattern in (r' width="([\d.]+)"', r'viewBox="0 0 ([\d.]+)'))
    pixels = width / units
    sizes = [float(size) * pixels for size in re.findall(r"font-size:([\d.]+)px", svg)]
    assert min(sizes) == pytest.approx(16 * 96 / 72, abs=0.01)
    lines = [float(width) * pixels for width in re.findall(r'stroke-width(?::|=")([\d.]+)', svg)]
    assert min(lines) == pytest.approx(3, abs=0.01)


def test_a_picture_keeps_the_style_that_it_was_drawn_in():
    before = draw()
    plain = before.svg, before.html
    viz.style("projector")
    large = draw()
    assert (before.svg, before.html) == plain
    viz.style("default")
    assert "projector" in large.svg and "projector" in large.html
    assert (draw().svg, draw().html) == plain


def test_the_rules_of_a_projector_touch_no_other_picture_of_the_page():
    viz.style("projector")
    styles = re.findall(r"<style>(.*?)</style>", draw().html)
    selectors = [each for style in styles for each in re.findall(r"(?:^|[},{])(\.dtf[^{}]*)\{", style)]
    rules = [one for each in selectors for one in each.split(",") if not one.startswith((".dtf-drawing", ".dtf-still"))]
    assert rules and all(".projector" in one for one in rules)


def test_controls_of_a_live_picture_are_as_large_as_the_text_around_it():
    css = (front_end.MODULE.parent / "src" / "live.css").read_text(encoding="utf-8")
    sizes = re.findall(r"\bfont(?:-size)?: ([^;}]*)", css)
    assert len(sizes) > 8 and all("var(--dtf-size, 12px)" in size or size == "inherit" for size in sizes)
    plain = draw().html
    viz.style("projector")
    assert ".dtf-picture{overflow-x:auto;--dtf-size:12px}" in plain
    assert f".dtf-picture.projector{{overflow-x:auto;--dtf-size:{PROJECTOR.pixels(12)}}}" in draw().html


BESIDE_THE_FILES, WITHOUT = 828, 1086  # pixels of an output in JupyterLab, in a window of 1280


def test_a_page_for_a_projector_fits_beside_the_file_browser_with_text_of_14_pixels():
    viz.style("projector")
    assert current() is PROJECTOR
    assert room() == 452 and room(200) == 172
    svg = draw().svg
    page, least, units = (
        float(re.search(p, svg)[1]) for p in (r' width="([\d.]+)"', r"min-width:([\d.]+)", r'viewBox="0 0 ([\d.]+)')
    )
    assert least < BESIDE_THE_FILES < page < WITHOUT and "max-width:100%" in svg
    smallest = min(float(size) for size in re.findall(r"font-size:([\d.]+)px", svg))
    assert smallest * least / units == pytest.approx(14, abs=0.01)  # scrolled before it is smaller than that
    assert smallest * BESIDE_THE_FILES / units > 18


@pytest.mark.parametrize("name, width, most", [("default", 828, 1035), ("projector", 931, 1489)])
def test_a_picture_takes_the_width_of_its_page_up_to_a_limit_and_a_file_has_its_own(name, width, most):
    viz.style(name)
    picture = draw()
    style = re.search(r'<svg[^>]* style="([^"]*)"', picture.html)[1]
    assert style.startswith("width:100%;max-width:") and float(re.search(r"max-width:([\d.]+)px", style)[1]) == (
        pytest.approx(most, abs=1)
    )
    assert "width:100%;max-width" not in picture.svg and float(re.search(r' width="([\d.]+)"', picture.svg)[1]) == (
        pytest.approx(width, abs=1)
    )


def test_a_page_for_one_reader_is_as_wide_as_the_output_beside_the_file_browser():
    assert DEFAULT.width * DEFAULT.scale == BESIDE_THE_FILES


def test_an_unknown_style_is_told():
    with pytest.raises(ValueError, match=r"no style 'beamer'. There are 'default', 'projector'"):
        viz.style("beamer")
    assert current() is DEFAULT


def test_a_heading_that_is_too_wide_goes_on_below():
    short, long = marks.heading("Title", "one step", 400), marks.heading("Title", "one step of many words " * 9, 400)
    assert short.height == 20 and short.count("<text") == 2
    lines = re.findall(r"<text[^>]*>([^<]*)</text>", long)[1:]
    assert long.height == 20 + marks.LINE * len(lines) and all(text_width(line) <= 400 for line in lines)
    assert " ".join(lines).split() == ("one step of many words " * 9).split()


def test_text_is_wrapped_between_words_and_a_long_word_is_shortened():
    assert wrapped("a b c", 1000) == ["a b c"] and wrapped("", 10) == [""]
    cut = wrapped("first " + "x" * 50 + " last", 100)
    assert [cut[0], cut[-1]] == ["first", "last"] and "…" in cut[1] and len(cut) == 3


def test_rules_of_one_kind_of_picture_are_not_those_of_another():
    """Both may have a class of one name, and stand on one page."""
    svg = [Picture(tag("g"), (10, 10), f".dtf .held{{opacity:{n}}}", "", [], "").svg for n in (0, 1)]
    own = [re.search(r"\.dtf(\.\w+) \.held", one)[1] for one in svg]
    assert own[0] != own[1] and all(f'class="dtf {name[1:]} alone"' in one for name, one in zip(own, svg, strict=True))
    viz.style("projector")
    large = Picture(tag("g"), (10, 10), ".dtf .grid{stroke-opacity:.1}", "", [], "").svg
    assert large.index(".grid{stroke-opacity:.1}") < large.index(".grid{stroke-opacity:.45}")  # alike, so the last wins


def test_pages_of_tables_grow_too():
    plain = page("head", [], [("t", ["a"], [[1]])])
    viz.style("projector")
    large = page("head", [], [("t", ["a"], [[1]])])
    sizes = [float(size) for size in re.findall(r"font-size:([\d.]+)px", large)]
    assert min(sizes) >= 16 * 96 / 72 and 'class="dtf-page projector"' in large and ".dtf-page " not in large
    assert "projector" not in plain
