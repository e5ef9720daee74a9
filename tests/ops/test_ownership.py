"""Where reference counts can't be trusted, nothing is written into, and every value is the same."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys

import pytest

from dtflab.base import ownership
from tests.house import ROOT

real_count = sys.getrefcount
LIMITS = "SOLE_ARGUMENT", "SOLE_ELEMENT", "SOLE_ATTRIBUTE"


def limits():
    """The limits that the module has when it is loaded now."""
    spec = importlib.util.spec_from_file_location("ownership_again", ownership.__file__)
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    return [getattr(again, name) for name in LIMITS]


def off_by(numbers):
    """A count that is wrong by the next of `numbers`; the function itself holds its argument once more."""
    return lambda x: real_count(x) - 1 + next(numbers)


def without_a_third_holder(x):
    """The count without that of a view."""
    return min(real_count(x) - 1, 3)


def test_this_interpreter_counts_every_holder(monkeypatch):
    assert all(limit > 0 for limit in limits())
    monkeypatch.setattr(sys, "getrefcount", off_by(itertools.repeat(0)))
    assert limits() == [getattr(ownership, name) for name in LIMITS]


@pytest.mark.parametrize(
    "count",
    [
        off_by(itertools.repeat(1)),
        off_by(itertools.repeat(-1)),  # as CPython 3.14, which does not count local variables
        off_by(itertools.cycle([0, 0, 0, 1])),
        off_by(itertools.chain([0, 0, 0], itertools.cycle([0, -1]))),
        without_a_third_holder,
    ],
    ids=["one more", "one less", "sometimes one more", "sometimes one less", "two are enough"],
)
def test_a_wrong_count_is_noticed_when_the_module_is_loaded(count, monkeypatch):
    monkeypatch.setattr(sys, "getrefcount", count)
    assert limits() == [0, 0, 0]


def test_without_the_global_lock_no_count_is_trusted(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert limits() == [0, 0, 0]
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True)
    assert limits() != [0, 0, 0]


def outcome(wrong_by):
    command = [sys.executable, "-m", "tests.ops.uncertain_counts", str(wrong_by)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("wrong_by", [1, -1])
def test_training_and_kernels_give_the_same_bits_without_ownership(wrong_by, usual):
    """By six optimizers, with both kinds of variables, and in each kernel that may write into an input."""
    found = outcome(wrong_by)
    assert found["limits"] == [0, 0, 0] and found["taken"] == 0
    assert usual["limits"] != [0, 0, 0] and usual["taken"] > 1000
    assert found["digest"] == usual["digest"]


@pytest.fixture(scope="module")
def usual():
    return outcome(0)
