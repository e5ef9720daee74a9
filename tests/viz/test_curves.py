import itertools
import struct
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dtflab import viz

X = np.arange(50)


def test_a_figure_with_labels_and_distinct_lines():
    figure = viz.curve(X, {"train": X * 2.0, "test": X * 3.0}, "step", "loss (nats)", title="Loss")
    assert isinstance(figure, Figure)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title("left")) == ("step", "loss (nats)", "Loss")
    for look in ("get_color", "get_linestyle", "get_marker"):
        assert len({getattr(line, look)() for line in axes.lines}) == 2 or look == "get_linestyle"
    assert {text.get_text() for text in axes.texts} == {"train", "test"}


def test_names_at_the_ends_do_not_touch():
    figure = viz.curve(X, {name: X + i * 1e-3 for i, name in enumerate("abcd")}, "step", "loss")
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    extents = [text.get_window_extent(canvas.get_renderer()) for text in figure.axes[0].texts]
    boxes = sorted(extents, key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 + 1 for low, high in itertools.pairwise(boxes))
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)


def test_a_notebook_shows_it_without_pyplot():
    bundle, metadata = viz.curve(X, {"loss": X}, "step", "loss")._repr_mimebundle_()
    png = bundle["image/png"]
    assert png[:4] == b"\x89PNG" and struct.unpack(">II", png[16:24]) == (1440, 720)
    assert metadata == {"image/png": {"width": 720, "height": 360}}
    draw = "viz.curve([1], {'a': [1]}, 'x', 'y')"
    code = f"import sys; from dtflab import viz; {draw}; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_gaps_and_single_points():
    viz.curve([1], {"a": [2]}, "x", "y")
    viz.curve([1, 2, 3], {"a": [1, np.nan, np.nan]}, "x", "y")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([], {"a": []}, "x", "y"), "nothing to draw"),
        (([1], {}, "x", "y"), "nothing to draw"),
        (([1, 2], {"a": [1]}, "x", "y"), r"'a' has shape \(1,\), but the points on the x axis have \(2,\)"),
        (([1], {"a": [np.nan]}, "x", "y"), "'a' has no finite value"),
        (([1], {"a": [1]}, "", "y"), "both axes need a label"),
    ],
)
def test_wrong_input(args, message):
    with pytest.raises(ValueError, match=message):
        viz.curve(*args)


def test_importing_viz_loads_neither_matplotlib_nor_networkx():
    code = "import dtflab.viz, sys; print({'matplotlib', 'networkx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_logarithmic_axis_has_its_points_as_numbers_and_no_place_for_zero():
    axes = viz.curve([1, 10, 100], {"a": [1, 2, 3]}, "rate, Gbit/s", "loss", log=True).axes[0]
    assert axes.get_xscale() == "log" and [text.get_text() for text in axes.get_xticklabels()] == ["1", "10", "100"]
    with pytest.raises(ValueError, match="no place for 0"):
        viz.curve([0, 10], {"a": [1, 2]}, "rate", "loss", log=True)


def test_a_projectors_curve_has_numbers_of_16_points():
    def look():
        figure = viz.curve([1, 2], {"a": [1, 2]}, "step", "loss")
        size = figure.axes[0].get_xticklabels()[0].get_fontsize() / 72 * figure.dpi
        return size * 72 / 96, figure._repr_mimebundle_()[1]["image/png"]["width"]

    plain = look()
    viz.style("projector")
    try:
        points, width = look()
    finally:
        viz.style("default")
    assert points == pytest.approx(16) and plain[0] < 11 and plain[1] < width < 1200
