"""The picture of kernels: what it says of each op and device is what the placer would say."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dtflab as tf
from dtflab.viz.drawing.svg import text_width


@pytest.fixture
def session():
    tf.simulate_gpus(2)
    with tf.Graph().as_default():
        with tf.device("/gpu:1"):
            values = tf.constant([1.0, 2.0], name="values")
            product = tf.multiply(values, values, name="product")
        with tf.device("/cpu:0"):
            steps = tf.Variable(0, name="steps")
        with tf.Session() as sess:
            yield sess, [product, steps]


def rows_of(picture):
    ((_, heads, rows),) = picture.tables
    return {row[0]: dict(zip(heads[1:], row[1:], strict=True)) for row in rows}


def test_each_cell_says_placed_able_or_unable(session):
    sess, fetches = session
    rows = rows_of(tf.viz.kernels(fetches, sess))
    assert rows["Mul float32"] == {"CPU:0": "has a kernel", "GPU:0": "has a kernel", "GPU:1": "1 op placed here"}
    assert rows["VariableV2 int32"] == {"CPU:0": "1 op placed here", "GPU:0": "no kernel", "GPU:1": "no kernel"}


def test_what_is_said_to_have_no_kernel_cannot_be_placed_there(session):
    sess, fetches = session
    rows = rows_of(tf.viz.kernels(fetches, sess))
    assert rows["VariableV2 int32"]["GPU:0"] == "no kernel"
    with tf.device("/gpu:0"):
        pinned = tf.Variable(0, name="pinned")
    with pytest.raises(tf.errors.InvalidArgumentError, match="VariableV2 with int32 has no GPU kernel"):
        sess.run(pinned.initializer)


def test_the_layers_name_the_library_and_the_hardware(session):
    sess, fetches = session
    rows = rows_of(tf.viz.kernels(fetches, sess))
    assert all(f"NumPy {np.__version__}" in word for word in rows["computed by"].values())
    assert rows["hardware"]["CPU:0"].startswith("CPU, ")
    assert rows["hardware"]["GPU:1"] == "GRID K520, simulated"


def test_the_sentence_and_the_text_name_what_no_gpu_can_do(session):
    sess, fetches = session
    picture = tf.viz.kernels(fetches, sess)
    assert "No GPU kernel: VariableV2 int32." in picture.sentence
    assert re.search(r"VariableV2 int32 +1 op placed here +no kernel +no kernel", picture.text)


@pytest.mark.parametrize("width", [828, 560])
def test_words_stay_in_their_cells(session, width):
    sess, fetches = session
    picture = tf.viz.kernels(fetches, sess, width=width)
    texts = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="s11 mid[^>]*>([^<]+)</text>', picture.svg)
    columns = sorted({float(x) for x, _, _ in texts})
    assert len(columns) == 3
    for _, y, text in texts:
        assert text_width(text, 11) <= columns[1] - columns[0] - 10
        assert float(y) < picture._size[1]


def test_a_graph_for_cpus_only():
    with tf.Graph().as_default(), tf.Session() as sess:
        picture = tf.viz.kernels(tf.constant(1.0, name="one"), sess)
    assert "All have GPU kernels." in picture.sentence
    assert [head for _, heads, _ in picture.tables for head in heads] == ["op", "CPU:0"]


def test_names_of_devices_stay_in_their_columns_on_a_narrow_page(session):
    sess, fetches = session
    svg = tf.viz.kernels(fetches, sess, width=330).svg
    starts = [float(x) - 4 for x in re.findall(r'<path d="M([\d.]+) 30h', svg)]  # of the badges
    labels = re.findall(r'<text x="([\d.]+)" y="(?:43|36|50)" class="b">([^<]+)<', svg)
    assert len(starts) == len(labels) == 3
    for (x, label), following in zip(labels, starts[1:], strict=False):
        assert float(x) + text_width(label, 12, bold=True) <= following
