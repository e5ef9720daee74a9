"""The bounds of `conditions.py` let right answers pass, and no others: for every op that is judged by them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests import conditions
from tests.conditions import Exact
from tests.op_examples import ROUNDINGS
from tests.op_runs import in_double, runs_of, values_here

each_op = pytest.mark.parametrize("name", [name for name in ROUNDINGS if name != "BatchMatMulV3"])
FAR = 3  # times the bound: surely wrong


def judged(name: str) -> list[tuple[np.ndarray, Exact]]:
    """dtflab's answers that bounds are for, elements and all."""
    runs = runs_of(name)
    found = [
        (np.asarray(a), near)
        for answers, nears in zip(values_here(runs.built), runs.exact, strict=True)
        for a, near in zip(answers, nears, strict=True)
        if near is not None and a.size and conditions.is_inexact(a.dtype)
    ]
    return found


@each_op
def test_one_element_that_is_far_off_is_found(name):
    random = np.random.default_rng(0)
    for answer, near in judged(name):
        at = np.unravel_index(random.integers(answer.size), answer.shape)
        spoilt = conditions.widened(answer)
        assert not near.wrong(spoilt, "right")
        spoilt[at] += FAR * near.bound[at] + (near.bound[at] == 0)
        assert f"at {tuple(map(int, at))} spoilt" in near.wrong(spoilt, "spoilt")


@each_op
def test_bounds_are_some_roundings_wide(name):
    """The examples are conditioned well enough for bounds to mean something: at most 10 bits are lost."""
    for answer, near in judged(name):
        eps = float(ml_dtypes.finfo(answer.dtype).eps)
        assert near.bound.max() <= 1024 * eps * max(abs(near.value).max(), eps)


@each_op
def test_an_algorithm_that_loses_digits_is_found(name):
    """The algorithm gives the exact answer of inputs that were moved by more than a right one accounts for."""
    random, runs, found = np.random.default_rng(1), runs_of(name), []
    for built, nears in zip(runs.built, runs.exact, strict=True):
        compute, inputs = in_double(built)
        if inputs:
            coarse = FAR * ROUNDINGS[name] * float(ml_dtypes.finfo(inputs[0].dtype).eps)
            answers = compute([conditions.moved(conditions.widened(x), coarse, random) for x in inputs])
            found.append(any(near.wrong(a, "coarse") for a, near in zip(answers, nears, strict=True)))
    assert sum(found) >= len(found) / 2
