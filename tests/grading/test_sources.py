"""An exercise is its solution without the solution; a source that breaks a rule is refused with its line."""

from __future__ import annotations

import pytest

from dtflab.grading.sources import SourceError, cell_metadata, student_version

ANSWER = "def f(x):\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION"
GRADES = 'dtflab.grade("placement/q1")'


def test_a_solution_becomes_nbgraders_stub_at_its_indentation():
    assert student_version(ANSWER) == "def f(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
    assert student_version("a\n\nb") == "a\n\nb"


@pytest.mark.parametrize(
    "source, message",
    [
        ("### BEGIN SOLUTION\n### BEGIN SOLUTION", "line 2: .* after that of line 1"),
        ("x\n### END SOLUTION", "line 2: .* without a begin"),
        ("x\n### BEGIN SOLUTION\ny", "line 2: a solution begins but never ends .### END SOLUTION is missing."),
    ],
)
def test_marks_that_do_not_match_are_refused(source, message):
    with pytest.raises(SourceError, match=message):
        student_version(source)


def test_metadata_follows_from_the_cells():
    other, answer, grades = cell_metadata(["import dtflab", ANSWER, GRADES])
    assert other == {}
    assert answer["nbgrader"] == {
        "grade": False, "grade_id": "placement-q1-answer", "locked": False, "schema_version": 3, "solution": True,
        "task": False,
    }  # fmt: skip
    assert grades["nbgrader"] == {
        "grade": True, "grade_id": "placement-q1", "locked": True, "points": 10, "schema_version": 3,
        "solution": False, "task": False,
    }  # fmt: skip


def test_two_cells_may_answer_one_question():
    first, second, _ = cell_metadata([ANSWER, ANSWER, GRADES])
    assert [cell["nbgrader"]["grade_id"] for cell in (first, second)] == ["placement-q1-answer", "placement-q1-answer1"]


@pytest.mark.parametrize(
    "cells, error, message",
    [
        ([GRADES], SourceError, "needs a solution before it"),
        ([ANSWER, GRADES, GRADES], SourceError, "needs a solution before it"),
        ([ANSWER, GRADES, ANSWER, GRADES], SourceError, "is asked once"),
        ([ANSWER, f"{GRADES}\nx"], SourceError, "ends its cell"),
        ([ANSWER, "x"], SourceError, "is followed by the cell that grades it"),
        (["x"], SourceError, "is followed by the cell that grades it"),
        ([ANSWER, 'dtflab.grade("placement/q99")'], LookupError, "no question 'placement/q99'"),
    ],
)
def test_cells_that_break_a_rule_are_refused(cells, error, message):
    with pytest.raises(error, match=message):
        cell_metadata(cells)
