"""`.save("x.png")`: every picture as pixels, in its colours and with its texts."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

import dtflab as tf
from dtflab.viz.drawing import png


def placed():
    """A small picture: one op on ps 0."""
    with tf.Graph().as_default() as graph, tf.device("/job:ps/task:0"):
        tf.constant(1.0, name="a")
    return tf.viz.placement(graph)


def pixels(content):
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(content))
    return np.asarray(image.convert("RGB"))


def test_a_png_has_the_colours_and_twice_the_pixels(tmp_path):
    pytest.importorskip("resvg_py")
    picture = placed()
    picture.save(tmp_path / "x.png")
    drawn = pixels((tmp_path / "x.png").read_bytes())
    width, height = map(float, re.search(r'width="([\d.]+)" height="([\d.]+)" style', picture.svg).groups())
    assert drawn.shape == (round(2 * height), round(2 * width), 3)
    shades = {tuple(one) for one in drawn.reshape(-1, 3)}
    assert {(0x00, 0x72, 0xB2), (255, 255, 255)} <= shades, "the ps' blue, on a light page"


def test_texts_are_drawn_also_without_fonts_of_the_system():
    resvg = pytest.importorskip("resvg_py")
    plain, drawn = png.plain(placed().svg), []
    for svg in (plain, re.sub(r"<text.*?</text>", "", plain)):
        fonts = [str(path) for path in png._fonts()]
        how = {"skip_system_fonts": True, "font_files": fonts, "sans_serif_family": png.FAMILY}
        drawn.append(bytes(resvg.svg_to_bytes(svg_string=svg, **how)))
    assert not np.array_equal(*map(pixels, drawn))


def test_nothing_is_left_that_resvg_does_not_know():
    plain = png.plain(placed().svg)
    assert "var(" not in plain and "@media" not in plain and "--fg" not in plain
    assert "fill:#1f2328" in plain


def test_without_resvg_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dtflab\[lab\]', or save as \.svg"):
        placed().save(tmp_path / "x.png")
    assert not [*tmp_path.iterdir()]


def test_another_form_is_none(tmp_path):
    with pytest.raises(ValueError, match=r"saved as \.svg, \.png or \.html, not 'x\.gif'"):
        placed().save(tmp_path / "x.gif")
