"""Mutants that are left out are known by what they are, not by where they stand."""

from __future__ import annotations

import inspect

import pytest

from dtflab.grading.catalogue import find
from tests.grading import mutants, oracles
from tests.grading.answers import solution, wrong_answers
from tests.grading.oracles import ORACLES


@pytest.mark.parametrize("id", mutants.SPINS)
def test_just_the_mutant_that_spins_is_left_out(id):
    question = find(id)
    every, kept = list(mutants._every(question)), mutants.mutants(question)
    (spins,) = [one for one in every if one not in kept]
    assert spins.change.endswith(mutants.SPINS[id])


@pytest.mark.parametrize("text, count", [("'gone()' dropped", 0), ("1 → 2", 1), ("0 → 1", 2)])
def test_a_name_that_no_mutant_has_or_several_is_an_error(text, count, monkeypatch):
    question = find("data/q1")
    changes = ["line 3: 0 → 1", "line 4: 0 → 1", "line 5: 1 → 2"]
    monkeypatch.setattr(mutants, "_every", lambda question: [mutants.Mutant(change, "") for change in changes])
    monkeypatch.setitem(mutants.SPINS, "data/q1", text)
    if count == 1:
        assert [one.change for one in mutants.mutants(question)] == changes[:2]
        return
    with pytest.raises(LookupError, match=f"of data/q1, and {count} mutants are that"):
        mutants.mutants(question)


@pytest.mark.parametrize("id", ORACLES)
def test_an_oracle_agrees_with_the_solution_and_with_no_mistake_that_it_knows(id, tmp_path):
    question = find(id)
    assert ORACLES[id](solution(question, tmp_path))
    assert not ORACLES[id](wrong_answers(question)[KNOWN[id]])


KNOWN = {
    "clusters/q1": "gives_a_gpu_twice",
    "data/q1": "always_waits",
    "data/q3": "adds_again",
    "input/q1": "loses_the_end",
    "many/q1": "reports_training",
    "memory/q1": "forgets_the_context",
    "placement/q1": "counts_elements",
    "placement/q3": "takes_integers_for_the_cpu",
    "placement/q4": "counts_the_ops",
    "queues/q1": "one_queue",
    "split/q1": "forgets_relu",
    "welcome/q1": "adds_in_several_ops",
}


@pytest.mark.parametrize("says, marks", [(True, ["equal"]), (False, ["escaped"]), (None, ["escaped"]), (1 / 2, [])])
def test_full_marks_without_an_oracle_that_agrees_are_an_escape(says, marks, tmp_path, monkeypatch):
    """None: the question has no oracle. Half: a mutant that loses marks asks none."""
    tally = mutants.Tally(find("queues/q1"), tmp_path)
    monkeypatch.setattr(mutants.Tally, "_loses", lambda self, mutant: says == 1 / 2)
    monkeypatch.setattr(mutants, "ORACLES", {} if says is None else {"queues/q1": lambda answer: says})
    tally.judge(mutants.Mutant("line 1: 0 → 1", mutants.answer_cell(tally.question)))
    assert [name for name in ("equal", "escaped") if getattr(tally, name)] == marks
    assert tally.caught == (not marks)


def test_an_oracle_that_raises_does_not_agree(tmp_path, monkeypatch):
    def raises(answer):
        raise IndexError("devices[-2]")

    monkeypatch.setattr(mutants, "ORACLES", {"queues/q1": raises})
    tally = mutants.Tally(find("queues/q1"), tmp_path)
    assert not tally._is_right(mutants.Mutant("none", mutants.answer_cell(tally.question)))


def test_oracles_import_no_checks():
    assert "grading.checks" not in inspect.getsource(oracles)
