"""How two runs of a step compare: what counts as a difference, what is known, and how both are shown.

Runs on real TensorFlow: tests/interop/test_conformance.py.
"""

from __future__ import annotations

import html.parser

import ml_dtypes
import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.viz.conformance import MOST_ROWS, Conformance
from dtflab.viz.data.two_runs import COPIED, UNREAD, Run, deviation, shape_of, tolerance

CPUS = [f"/job:{job}/replica:0/task:{index}/device:CPU:0" for job, index in (("ps", 0), ("worker", 0), ("worker", 1))]
PS, W0, W1 = CPUS


def compared(ours, theirs, rtol=None):
    return Conformance(tf.Graph(), ours, theirs, rtol)


def marks(found):
    return {row.name: row.mark for row in found.rows}


def test_equal_runs_are_the_same():
    run = Run({"y:0": 1.0}, {"v:0": np.ones(3)}, {"y": (PS,)}, {("y:0", PS, W0): [4, 4]})
    found = compared(run, run)
    assert found.same and found.differences == []
    assert found.headline == "The same on dtflab and TensorFlow: 1 value, 1 variable, 1 placed op, 1 transfer."
    assert found.rows[-1].dtflab == "ps:0 → worker:0, 8 B, 2 times"
    assert "≠" not in repr(found) and "≈" not in repr(found)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Run({"y:0": np.float32(1.0)}), Run({"y:0": np.float32(1.001)})),
        (Run({"y:0": np.float32(1.0)}), Run({"y:0": np.float64(1.0)})),
        (Run({"y:0": np.ones(3)}), Run({"y:0": np.ones(2)})),
        (Run({"y:0": np.array([1, 2])}), Run({"y:0": np.array([1, 3])})),
        (Run({"y:0": b"one"}), Run({"y:0": b"two"})),
        (Run({"y:0": np.array([1.0, np.nan])}), Run({"y:0": np.array([1.0, 2.0])})),
        (Run(devices={"y": (PS,)}), Run(devices={"y": (W0,)})),
        (Run(devices={"y": (PS,)}), Run()),
        (Run(transfers={("y:0", PS, W0): [4]}), Run()),
        (Run(), Run(transfers={("y:0", PS, W0): [4]})),
        (Run(transfers={("y:0", PS, W0): [4]}), Run(transfers={("y:0", PS, W0): [8]})),
        (Run(transfers={("y:0", PS, W0): [4]}), Run(transfers={("y:0", PS, W0): [4, 4]})),
        (Run(error=errors.AbortedError.of("a")), Run(error=errors.InternalError.of("a"))),
        (Run(error=errors.AbortedError.of("a")), Run({"y:0": 1.0})),
    ],
)
def test_each_difference_is_marked(ours, theirs):
    found = compared(ours, theirs)
    assert not found.same and [row.mark for row in found.differences] == ["≠"] == [row.mark for row in found.rows]
    assert repr(found).count("≠") == 1 and found._repr_html_().count("<mark>≠</mark>") == 1


def test_a_size_that_one_does_not_report_is_not_compared():
    there = {("s:0", PS, W0): [None]}
    found = compared(Run(transfers={("s:0", PS, W0): [4]}), Run(transfers=there))
    assert found.same and found.rows[0][2:4] == ("ps:0 → worker:0, 4 B", "ps:0 → worker:0")


def test_known_differences_have_a_reason_and_do_not_count():
    ours = Run(
        devices={"c": (PS,)},
        transfers={("c:0", PS, W0): [4], ("^w", PS, W1): [0], ("^w", W0, W1): [0], ("c:0", PS, W1): [4]},
    )
    theirs = Run(devices={"c": (PS, W0)}, transfers={("w:0", PS, W1): [64]})
    found = compared(ours, theirs)
    assert [(row.name, row.mark, row.reason) for row in found.rows] == [
        ("c", "≈", COPIED), ("c:0", "≈", COPIED), ("^w", "≈", UNREAD), ("^w", "≠", ""), ("c:0", "≠", ""),
        ("w:0", "≈", UNREAD),
    ]  # fmt: skip
    assert found.remarks == [f"≈ {COPIED}", f"≈ {UNREAD}"] and len(found.differences) == 2
    assert max(map(len, repr(found).splitlines())) < 95
    assert compared(Run(devices=ours.devices), Run(devices=theirs.devices)).headline == (
        "The same on dtflab and TensorFlow, apart from 1 known difference: 1 placed op."
    )


@pytest.mark.parametrize(
    ("dtype", "roundings"), [(np.float32, 64), (np.float64, 64), (np.complex64, 64), (np.float16, 4), ("bfloat16", 4)]
)
def test_sums_in_another_order_are_the_same(dtype, roundings):
    dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    eps = float(ml_dtypes.finfo(dtype).eps)
    assert tolerance(np.zeros(2, dtype)) == roundings * eps
    large, one = 1.0 + 2 * roundings * eps, np.ones(2, dtype)
    assert deviation(np.array([large, 1.0], dtype), one) > tolerance(one)
    assert deviation(np.array([1.0 + eps, 1.0], dtype), one) <= tolerance(one)


def test_a_deviation_is_relative_to_the_largest_element():
    """A number that cancels is judged by the size of its neighbours."""
    assert deviation(np.array([1000.0, 1e-4]), np.array([1000.0, 0.0])) == pytest.approx(1e-7)
    assert deviation(np.array([np.inf, np.nan, 2.0]), np.array([np.inf, np.nan, 2.0])) == 0
    assert deviation(np.array([np.inf]), np.array([-np.inf])) == np.inf


def test_a_wider_tolerance_can_be_asked_for():
    ours, theirs = Run({"y:0": np.float32(1.0)}), Run({"y:0": np.float32(1.001)})
    assert compared(ours, theirs, rtol=0.01).same
    assert compared(ours, theirs).rows[0].tensorflow == "1.001, off by 1.0e-03"


def test_differences_come_first_and_long_tables_are_cut():
    names = [f"a_rather_long_scope/of_names/layer_{i}/weights:0" for i in range(100)]
    ours = {name: np.zeros([128, 256], np.float32) for name in names}
    found = compared(Run(ours), Run(ours | {names[70]: np.ones([128, 256], np.float32)}))
    lines = repr(found).splitlines()
    assert lines[4].startswith("≠  a_rather_long") and lines[4].endswith("off by 1.0e+00")
    assert lines[-1].endswith(f"… {100 - MOST_ROWS} more: see .rows")
    assert max(map(len, lines)) < 95


def test_the_page_has_every_row_and_is_whole():
    class Tags(html.parser.HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.rows = [], 0

        def handle_starttag(self, tag, attrs):
            self.open.append(tag)
            self.rows += tag == "tr"

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    run = Run({"<y>:0": 1.0}, {f"v{i}:0": 1.0 for i in range(100)})
    tags, page = Tags(), compared(run, run)._repr_html_()
    tags.feed(page)
    assert tags.open == [] and tags.rows == 101 + 2 and "&lt;y&gt;:0" in page  # two tables with heads


def test_the_shape_of_a_cluster_is_that_of_the_devices():
    with tf.Graph().as_default() as graph:
        tf.constant(1)
        assert shape_of(graph) == {"worker": range(1)}
        for device in ("/job:ps", "/job:worker/task:2/cpu:1", "/job:worker/task:0"):
            with tf.device(device):
                tf.constant(2)
        assert shape_of(graph) == {"ps": range(1), "worker": range(3)}
