"""The bars of the dynamic placer on the fixed suite, in modelled time; `python -m benchmarks.placer` prints them."""

from __future__ import annotations

import pytest

from benchmarks.placement_suite import CASES, outcome

HAND = 1.062  # at most that many times the placement by hand
IN_TURNS = 0.85  # of a placement in turns, where there is attention


@pytest.mark.parametrize("name", CASES)
def test_bars_of_the_suite(name):
    found = outcome(CASES[name]())
    assert found.dynamic <= found.single
    if found.by_hand is not None:
        assert found.dynamic <= HAND * found.by_hand
    if name == "seq2seq, 4 layers":
        assert found.by_hand < 0.6 * found.single  # it is a good one, or that bar would be low
    if "attention" in name:
        assert found.dynamic <= IN_TURNS * found.in_turns
