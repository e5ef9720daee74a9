import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, strategies as st

from dtflab.base.text_table import plural
from dtflab.viz.drawing.names import forms
from dtflab.viz.drawing.svg import Markup, arrow_head, hatch_path, join, line_path, number, shorten, tag, text_width
from dtflab.viz.drawing.units import byte_size, duration, moment, ticks


@given(st.text(), st.text())
def test_nothing_breaks_out(inside, attribute):
    element = ET.fromstring(tag("text", inside, title=attribute))
    assert (element.tag, element.text or "", [*element]) == ("text", element.text or "", [])
    assert element.attrib.keys() == {"title"}


def test_text_is_escaped_once():
    assert tag("g", tag("text", "a<b>&c")) == "<g><text>a&lt;b&gt;&amp;c</text></g>"
    assert join(["<", Markup("<br/>")]) == "&lt;<br/>"
    assert tag("text", class_="x", font_size=12, d=None, title='"') == '<text class="x" font-size="12" title="&quot;"/>'


@pytest.mark.parametrize(
    ("value", "text"),
    [(1, "1"), (1.0, "1"), (0.5, "0.5"), (1 / 3, "0.33"), (-0.001, "0"), (120, "120"), (1e6, "1000000")],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


@given(st.text(max_size=60), st.floats(0, 300))
def test_shortened_text_fits(text, room):
    short = shorten(text, room)
    assert text_width(short) <= max(room, text_width("…")) or short == text
    assert short == text or text_width(text) > room


def test_shortening_keeps_both_ends():
    assert shorten("softmax_cross_entropy_with_logits", 120) == "softmax_cr…logits"
    assert shorten("MatMul", 120) == "MatMul"


TOWERS = [f"tower_{t}/layer_{n}/{op}" for t in range(2) for n in range(3) for op in ("MatMul", "Relu", "BiasAdd")]
GRADIENTS = [f"gradients/tower/layer_{n}/MatMul_grad/tuple/control_dependency" for n in range(9)]


@pytest.mark.parametrize(("names", "room"), [(TOWERS, 100), (TOWERS, 120), (GRADIENTS, 60), (GRADIENTS, 160)])
def test_names_are_cut_where_they_are_the_same(names, room):
    cuts = [shorten(name, room, 11, others=names) for name in names]
    assert len({*cuts}) == len(names) > len({shorten(name, room, 11) for name in names})
    assert max(text_width(cut, 11) for cut in cuts) <= room


def test_a_name_has_the_forms_that_no_other_of_the_picture_has():
    alike = forms(["net/w", "net/b/w", "net/a/Relu", "net/a/MatMul"])
    assert alike["net/a/Relu"] == ["net/a/Relu", "a/Relu", "Relu"] and alike["net/w"][-1] == "w"
    towers = forms([*TOWERS, "loss"])
    assert towers["loss"] == ["loss"] and "Relu" not in [form for own in towers.values() for form in own[:-1]]
    assert len({own[1] for own in towers.values() if len(own) > 1}) == len(TOWERS), "cut to 90 pixels"


def test_lines():
    assert line_path([(0, 0), (0, 10)]) == "M0 0L0 10"
    assert line_path([(0, 0), (0, 10), (10, 10)], radius=4) == "M0 0L0 6Q0 10 4 10L10 10"
    assert arrow_head((0, 10), (0, 0), 6) == "M0 10L-3 4L3 4Z"
    assert hatch_path(0, 0, 12, 6).count("M") == 2


def test_units():
    assert [byte_size(n) for n in (0, 40, 999, 25600, 100_000, 4e6, 7e12)] == [
        "0 B", "40 B", "999 B", "25.6 kB", "100 kB", "4.0 MB", "7000 GB"
    ]  # fmt: skip
    assert [duration(t) for t in (0.82, 71.5, 214, 2230, 12_345, 1_500_000)] == [
        "0.82 µs", "71.5 µs", "214 µs", "2.23 ms", "12.3 ms", "1.50 s"
    ]  # fmt: skip
    assert (plural(1, "op"), plural(1200, "op")) == ("1 op", "1,200 ops")
    assert [*ticks(2.15, 8)] == [0, 0.5, 1, 1.5, 2]
    assert [*ticks(100, 4)] == [0, 25, 50, 75, 100]


def test_a_point_in_time_has_the_digits_of_a_live_picture():
    assert [moment(at) for at in (0, 680.25, 681, 1234.5, 2e6)] == ["0", "680.3 µs", "681 µs", "1.235 ms", "2 s"]
