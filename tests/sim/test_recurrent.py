"""Recurrent layers over GPUs: what waits for what, in closed form."""

from __future__ import annotations

import pytest

from dtflab.sim.predictions.layers import TIMES
from dtflab.sim.predictions.points import Row
from dtflab.sim.predictions.recurrent import is_split, network, split_step_s, wavefront

ROW = Row("model", {"layers": 4, "units": 1024, "vocab": 32000, "attention": "GNMT (queries bottom layer)"})


@pytest.mark.parametrize(("times", "layers"), [(1, 1), (25, 4), (3, 8)])
def test_layers_on_gpus_of_their_own_run_side_by_side(times, layers):
    own, one = range(layers), [0] * layers
    assert wavefront(own, times, 1.0, 0.0) == times + layers - 1
    assert wavefront(one, times, 1.0, 0.0) == times * layers
    assert wavefront(own, times, 1.0, 0.0, circle=True) == times * layers, "each time waits for the one before"


def test_a_hop_counts_once_where_layers_follow_and_each_time_in_a_circle():
    assert wavefront(range(4), 25, 1.0, 0.5) == 28 + 3 * 0.5
    assert wavefront(range(4), 25, 1.0, 0.5, circle=True) == 100 + 25 * 3 * 0.5 + 24 * 0.5
    assert wavefront([0] * 4, 25, 1.0, 0.5, circle=True) == 100, "no hop within a GPU"


def test_two_layers_on_a_gpu_take_turns():
    assert wavefront([0, 1, 0, 1], 100, 1.0, 0.0) == pytest.approx(200, abs=8)


def test_one_gpu_takes_what_it_takes():
    for attention in ("standard (queries top layer)", "GNMT (queries bottom layer)"):
        assert split_step_s(2.4, ROW, attention, 1, 0.01) == pytest.approx(2.4)
        assert split_step_s(2.4, ROW, attention, 4, 0.0) < 2.4


def test_a_setup_that_says_nothing_has_the_attention_of_its_row():
    assert network(ROW, "") == network(ROW, "GNMT (queries bottom layer)")
    assert network(ROW, "standard (queries top layer)").circle
    assert network(ROW, "").projection == pytest.approx(32000 * 1024 / (8 * 1024**2))
    assert not network(Row("model", {**ROW.values, "attention": None}), "").circle, "without attention nothing closes"


def test_what_is_split_is_said_in_words():
    assert is_split(Row("the setup", {"parallelism": "model: RNN layers round-robin"}))
    assert not is_split(Row("the setup", {"parallelism": "data, NCCL all-reduce"}))
    assert TIMES == 25
