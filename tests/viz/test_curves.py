"""Curves: a matplotlib Figure, shown as a Picture that follows the page, saved as any file."""

import itertools
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dtflab import viz
from dtflab.viz.drawing.figures import CARD, EDGE, INK, RULE, SOFT, drawing
from dtflab.viz.drawing.palette import VIOLETS
from dtflab.viz.drawing.picture import Picture
from tests.viz.texts import clipped, overlapping, texts

X = np.arange(50)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def default_again():
    yield
    viz.style("default")


LINES = ["var(--fg)", VIOLETS[2].line.lower(), "var(--soft)"]


def paths(picture, colour):
    """The paths that are drawn with a colour."""
    root = ET.fromstring(picture.svg.partition("\n")[2])
    return [path for path in root.iter(f"{SVG}path") if f"stroke:{colour}" in path.get("style", "")]


def points(path):
    """Where a path of straight lines goes, gaps as new beginnings."""
    return [tuple(map(float, pair.split())) for pair in re.findall(r"[ML]([-\d.]+ [-\d.]+)", path.get("d"))]


def test_a_figure_with_labels_and_distinct_lines():
    figure = viz.curve(X, {"train": X * 2.0, "test": X * 3.0}, "step", "loss (nats)", title="Loss")
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title("left")) == ("step", "loss (nats)", "Loss")
    for look in ("get_color", "get_linestyle", "get_marker"):
        assert len({getattr(line, look)() for line in axes.lines}) == 2
    assert {text.get_text() for text in axes.texts} == {"train", "test"}


def test_the_drawing_has_the_points_where_the_scales_have_them():
    y = np.array([1.0, 3.0, np.nan, 2.0, 2.0])
    picture = viz.curve(range(5), {"loss": y}, "step", "loss").picture
    line, *markers = paths(picture, LINES[0])
    found = points(line)
    assert line.get("d").count("M") == 2 and len(found) == 4  # a gap
    steps = np.diff([x for x, _ in found])
    assert steps == pytest.approx([steps[0], 2 * steps[0], steps[0]], abs=0.02)
    heights = [y for _, y in found]
    assert heights[2] == heights[3] and heights[0] - heights[2] == pytest.approx(heights[2] - heights[1], abs=0.02)
    assert [float(marker.get("data-at")) for marker in markers] == [x for x, _ in found]  # as a wide page moves them
    numbers = {one.text: one for one in texts(picture.svg)[0]}
    assert (numbers["4"].left + numbers["4"].right) / 2 - 14 == pytest.approx(found[-1][0], abs=0.5)


def test_names_at_the_ends_do_not_touch():
    figure = viz.curve(X, {name: X + i * 1e-3 for i, name in enumerate("abcdefg")}, "step", "loss", height=2.8)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    extents = [text.get_window_extent(canvas.get_renderer()) for text in figure.axes[0].texts]
    boxes = sorted(extents, key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in itertools.pairwise(boxes))
    assert all(box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1 for box in boxes)
    assert clipped(figure.picture.svg) == overlapping(figure.picture.svg) == []
    drawn = [len(paths(figure.picture, colour)) // 19 for colour in LINES]  # each a line, 17 points and a key
    assert drawn == [3, 2, 2]  # names stand away from their lines: all after a marker, also one that is at its place


def test_dots_are_all_marked_and_have_no_line_between():
    y = np.random.RandomState(0).permutation(50)
    (axes,) = viz.curve(X, {"few": y, "many": y[::-1]}, "place", "number", dots=True).axes
    assert [(line.get_linestyle(), line.get_markevery()) for line in axes.lines] == [("None", 1)] * 2
    assert len({line.get_marker() for line in axes.lines}) == 2


def test_names_have_a_marker_where_there_are_several():
    picture = viz.curve(X, {"a": X, "b": X * 3}, "step", "loss").picture
    alone = viz.curve(X, {"a": X}, "step", "loss").picture
    assert [len(paths(picture, colour)) for colour in LINES[:2]] == [19, 19]  # a line, 17 points, a key
    assert len(paths(alone, LINES[0])) == 18


@pytest.mark.parametrize(
    ("values", "begins"),
    [
        ([56e3, 170e3], 0.0),  # a third as fast is a third as high
        ([0.0, 0.3], 0.0),
        ([2.0, np.nan, 5.0], 0.0),
        ([0.90, 0.97], None),  # the differences count
        ([60.0, 110.0], None),
        ([-1.0, 5.0], None),
    ],
)
def test_values_far_from_each_other_have_an_axis_that_begins_at_0(values, begins):
    low = viz.curve(range(len(values)), {"a": values}, "step", "value").axes[0].get_ylim()[0]
    assert low == begins if begins is not None else low not in (0.0,) and low <= np.nanmin(values)


@pytest.mark.parametrize("title", ["", "a title"])
def test_the_label_on_top_of_the_axis_is_within_the_figure(title):
    figure = viz.curve([0, 1], {"a": [1.0, 2.0]}, "step", "loss", title=title)
    FigureCanvasAgg(figure).draw()
    assert figure.axes[0].yaxis.label.get_window_extent().y1 <= figure.bbox.y1


def test_counts_have_whole_numbers_along_both_axes():
    figure = viz.curve(range(4), {"version": [1, 1, np.nan, 2]}, "query", "version that answered")
    FigureCanvasAgg(figure).draw()
    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
        assert all(tick == round(tick) for tick in axis.get_ticklocs())
    figure = viz.curve(range(4), {"loss": [1, 1, 1.25, 2]}, "step", "loss")
    assert any(tick != round(tick) for tick in figure.axes[0].get_yticks())


def test_a_notebook_shows_a_picture_without_pyplot():
    figure = viz.curve(X, {"loss": X}, "step", "loss")
    bundle = figure._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"} and bundle["text/html"] == figure.picture.html
    assert bundle["text/plain"] == str(figure) == repr(figure) and "49    49" in bundle["text/plain"]
    draw = "viz.curve([1], {'a': [1]}, 'x', 'y')._repr_mimebundle_()"
    code = f"import sys; from dtflab import viz; {draw}; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_it_follows_the_page_and_has_no_ids():
    html = viz.curve(X, {"a": X, "b": -X}, "step", "loss", title="Loss").picture.html
    live = html[html.index("<svg") : html.index("</svg>")]
    fixed = set(re.findall(r"#[0-9a-f]{6}", live.partition("</style>")[2]))
    assert fixed == {LINES[1]}  # all else are the page's colours
    assert {"var(--fg)", "var(--soft)", "var(--bg)"} <= set(re.findall(r"var\(--\w+\)", live.partition("</style>")[2]))
    assert " id=" not in html and "url(" not in html and not {CARD, EDGE, INK, RULE, SOFT} & fixed


def test_sixty_points_of_three_lines_are_small():
    x = np.linspace(0, 1.5, 61)
    html = viz.curve(x, {name: np.sin(i + x * 9) for i, name in enumerate("abc")}, "time (s)", "loss").picture.html
    assert len(html) < 100_000


def test_it_says_what_it_shows_and_has_its_data():
    y = [3.0, np.nan, 0.5, 1.0]
    picture = viz.curve([1, 2, 4, 8], {"async": y, "sync": [1, 2, 3, 4]}, "workers", "loss").picture
    assert picture.sentence.startswith(
        "loss over workers. async: from 3 to 1, lowest 0.5, highest 3; sync: from 1 to 4"
    )
    ((title, heads, rows),) = picture.tables
    assert (title, heads) == ("loss over workers", ("workers", "async", "sync"))
    assert rows == [("1", "3", "1"), ("2", "", "2"), ("4", "0.5", "3"), ("8", "1", "4")]
    many = np.arange(1000)
    ((title, _, rows),) = viz.curve(many, {"a": many}, "step", "loss").picture.tables
    assert title == "loss over step (one of 5 points)" and [row[0] for row in rows] == [f"{n}" for n in many[::5]]


def test_what_a_person_changes_in_the_figure_is_in_the_picture():
    figure = viz.curve(X, {"loss": X.astype(float)}, "step", "loss")
    whole = points(paths(figure.picture, LINES[0])[0])
    axes = figure.axes[0]
    axes.set(xlim=(10, 20), xlabel="update")
    axes.text(12, 15, "here", rotation=30, alpha=0.5)
    axes.set_yscale("log")
    picture = figure.picture
    assert ">update</text>" in picture.svg and 'transform="rotate(-30 ' in picture.svg and "10^1" in picture.svg
    part = points(paths(picture, LINES[0])[0])
    left, right = axes.bbox.x0, axes.bbox.x1
    assert len(part) < len(whole) and all(left - 1 <= x <= right + 1 for x, _ in part)


def test_any_figure_of_matplotlib_is_drawn():
    figure = Figure(figsize=(4, 2), dpi=100)
    axes = figure.add_subplot()
    axes.bar([1, 2], [3, 4], color="#123456", alpha=0.25)
    axes.set_ylabel("two\nlines")
    svg = Picture(drawing(figure), (400, 200), "", "bars", [], "").svg
    assert svg.count("fill:#123456;opacity:0.25") == 2 and ">lines</text>" in svg


@pytest.mark.parametrize(
    ("suffix", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml"), ("html", b"<!doc")]
)
def test_files(tmp_path, suffix, begins):
    figure = viz.curve(X, {"loss": X}, "step", "loss")
    figure.save(tmp_path / f"saved.{suffix}")
    assert (tmp_path / f"saved.{suffix}").read_bytes().startswith(begins)
    if suffix != "html":
        figure.savefig(tmp_path / f"other.{suffix}")
        assert (tmp_path / f"other.{suffix}").read_bytes().startswith(begins)
    if suffix == "svg":
        assert (tmp_path / "saved.svg").read_text() == figure.picture.svg


def test_gaps_and_single_points():
    for xs, ys in (([1], [2]), ([1, 2, 3], [1, np.nan, np.nan])):
        picture = viz.curve(xs, {"a": ys}, "x", "y").picture
        assert paths(picture, LINES[0])[-1].get("d").count("Z") == 1  # one marker


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([], {"a": []}, "x", "y"), "nothing to draw"),
        (([1], {}, "x", "y"), "nothing to draw"),
        (([1, 2], {"a": [1]}, "x", "y"), r"'a' has shape \(1,\), but the points on the x axis have \(2,\)"),
        (([1], {"a": [np.nan]}, "x", "y"), "'a' has no finite value"),
        (([1], {"a": [1]}, "", "y"), "Both axes need a label"),
    ],
)
def test_wrong_input(args, message):
    with pytest.raises(ValueError, match=message):
        viz.curve(*args)


def test_importing_viz_loads_neither_matplotlib_nor_networkx():
    code = "import dtflab.viz, json, sys; print(json.dumps(sorted({'matplotlib', 'networkx'} & set(sys.modules))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_a_logarithmic_axis_has_its_points_as_numbers_and_no_place_for_zero():
    axes = viz.curve([1, 10, 100], {"a": [1, 2, 3]}, "rate, Gbit/s", "loss", log=True).axes[0]
    assert axes.get_xscale() == "log" and [text.get_text() for text in axes.get_xticklabels()] == ["1", "10", "100"]
    with pytest.raises(ValueError, match="no place for 0"):
        viz.curve([0, 10], {"a": [1, 2]}, "rate", "loss", log=True)


@pytest.mark.parametrize(
    ("xs", "log", "scale"),
    [
        ([1, 2, 4, 8], None, "log"),
        ([0.25, 0.5, 1], None, "log"),
        ([1, 2, 4, 8], False, "linear"),
        ([1, 2], None, "linear"),  # also the first two of 1, 2, 3
        ([1, 2, 4, 6], None, "linear"),
        ([0, 0, 0], None, "linear"),
    ],
)
def test_numbers_that_double_have_a_logarithmic_axis(xs, log, scale):
    axes = viz.curve(xs, {"a": xs}, "workers", "examples/s", log=log).axes[0]
    assert axes.get_xscale() == scale
    if scale == "log":
        assert [text.get_text() for text in axes.get_xticklabels()] == [f"{x:g}" for x in xs]


@pytest.mark.parametrize("style", ["default", "projector"])
@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("xs", [np.arange(1, 2000), 64 * 4 ** np.arange(10), 2 ** np.arange(31)])
def test_numbers_along_an_axis_and_its_unit_do_not_touch(style, log, xs):
    viz.style(style)
    svg = viz.curve(xs, {"a": xs}, "B", "B", log=log).picture.svg
    assert overlapping(svg) == clipped(svg) == []
    shown = [one.text for one in texts(svg)[0]]
    assert f"{xs[0] if log else 0:,}" in shown and not [text for text in shown if "e+" in text]


def test_counts_have_no_numbers_between():
    def shown(xs):
        svg = viz.curve(xs, {"a": xs}, "step", "loss", height=1.5).picture.svg
        return re.findall(r'class="mid"[^>]*>([^<]*)</text>', svg)

    assert shown(range(3)) == ["0", "1", "2"]
    assert "0.5" in shown(np.arange(5) / 2)


def test_a_curve_on_a_narrow_page_is_as_much_lower():
    viz.style("projector")
    wide, small = (viz.curve(X, {"a": X}, "step", "loss", height=height) for height in (3.6, 2.0))
    assert wide.get_figwidth() / wide.get_figheight() == pytest.approx(7.2 / 3.6)
    assert small.get_figheight() == pytest.approx(1.8)  # not so low that nothing is left of it


def test_a_projectors_curve_has_text_of_16_points_and_keeps_its_style():
    plain = viz.curve([1, 2], {"a": [1, 2]}, "step", "loss")
    viz.style("projector")
    large = viz.curve([1, 2], {"a": [1, 2]}, "step", "loss")
    viz.style("default")
    for figure, points_, pixels in ((plain, 11 * 0.75, 720 + 28), (large, 16, 480 * 16 * 96 / 72 / 11)):
        svg = figure.picture.svg
        width, units = (float(re.search(p, svg)[1]) for p in (r' width="([\d.]+)"', r'viewBox="0 0 ([\d.]+)'))
        least = min(float(size) for size in re.findall(r"font-size:([\d.]+)px", svg)) * width / units
        assert least * 72 / 96 == pytest.approx(points_, abs=0.02) and width == pytest.approx(pixels, abs=0.01)


def test_a_logarithmic_axis_of_values_keeps_names_next_to_their_lines_and_apart():
    ys = {"low": [0.2, 0.21], "near": [0.2, 0.2], "high": [10, 300]}
    figure = viz.curve([1, 100], ys, "size", "time (ms)", log=True, log_values=True)
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    figure.draw_without_rendering()
    numbers = [text.get_text() for text in axes.get_yticklabels()]
    assert {"0.1", "1", "10", "100"} <= set(numbers)
    heights = {text.get_text(): axes.transData.transform(text.xy)[1] for text in axes.texts}
    assert heights["near"] + 14 <= heights["low"] and heights["low"] + 100 < heights["high"]
    assert heights["high"] == pytest.approx(axes.transData.transform((100, 300))[1], abs=15)
    with pytest.raises(ValueError, match="no place for 0"):
        viz.curve([1, 2], {"a": [0, 1]}, "x", "y", log_values=True)
