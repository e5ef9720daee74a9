"""A grader that fails itself: it says so, with its line, and takes it for nobody's mistake."""

from __future__ import annotations

import csv
import json
import runpy

import pytest

from dtflab.grading import judge, questions
from dtflab.grading.questions import Wrong, register
from tests.grading.classroom import ASKS, RIGHT, WRONG, grade, percent

OWN = """
from dtflab.grading import Wrong, register

question = register("numbers/q9", "Double it", answer="twice", hints=("Add it.",))

@question.check("Some number", points=3)
def some(answer, random):
    if answer(4) != 8:
        raise Wrong("twice(4) is 8", evidence="wrong")

@question.check("Large", points=2)
def large(answer, random):
    return undefined(answer(4))

@question.mistake("That is thrice.")
def thrice(seen):
    return seen["no text has keys"]
"""
ITSELF = (
    "The check has failed, not twice: the teacher has to mend it. Line 13 of own.py raised "
    "NameError: name 'undefined' is not defined."
)
MISTAKES = (
    "The grader has failed, not twice: the check must be fixed. Line 17 of own.py raised "
    "TypeError: string indices must be integers"
)
ANSWERS = {"right": RIGHT, "wrong": WRONG, "dies": "import os\ndef twice(n):\n    os._exit(0)"}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    base = tmp_path_factory.mktemp("broken")
    for folder in ("checks", "ex9"):
        (base / folder).mkdir()
    (base / "checks/own.py").write_text(OWN)
    for student, answer in ANSWERS.items():
        (base / f"ex9/{student}.py").write_text(percent(answer, ASKS))
    files = [f"--{kind}={base / f'marks.{kind}'}" for kind in ("json", "csv", "html")]
    done = grade(base / "ex9", f"--checks={base / 'checks'}", *files)
    assert (base / "marks.json").exists(), done.stderr
    return done, base


def test_the_grader_is_named_with_its_line_and_the_status_is_1(graded):
    done, base = graded
    found = {one["student"]: one for one in json.loads((base / "marks.json").read_text())["submissions"]}
    assert (done.returncode, done.stderr) == (1, "")
    assert found["right"]["failed"] == f"numbers/q9, Large: {ITSELF}" and found["right"]["notes"] == []
    assert found["wrong"]["failed"].startswith(f"numbers/q9, Some number: {MISTAKES}")
    assert [check["broken"] for check in found["right"]["questions"][0]["checks"]] == [False, True]
    for text in (ITSELF, MISTAKES):
        assert text in done.stdout and text.partition(" of own.py")[0] in (base / "marks.html").read_text()


def test_what_was_judged_counts_and_other_marks_are_as_they_were(graded):
    done, base = graded
    with (base / "marks.csv").open() as file:
        points = {row["student_id"]: row["score"] for row in csv.DictReader(file)}
    assert points == {"right": "3.0", "wrong": "0.0", "dies": "0.0"}
    assert "twice was being judged when its process ended" in (base / "marks.json").read_text(), (
        "that one did it itself"
    )
    assert "3 files, 2 could not be graded" in done.stdout


@pytest.fixture
def question(monkeypatch):
    monkeypatch.setattr(questions, "_questions", {})
    return register("numbers/q9", "Double it", answer="twice", hints=("Add it.",))


ANSWERS_FAULT = {
    "wrong type": lambda answer, random: answer(1) + 1,
    "wrong length": lambda answer, random: [answer(1)][1],
    "wrong index": lambda answer, random: [][answer(1)],
}


@pytest.mark.parametrize("name", ANSWERS_FAULT)
def test_what_a_wrong_value_brings_about_in_a_check_is_the_answers(question, name):
    question.check("One", points=1)(ANSWERS_FAULT[name])
    (result,) = judge.judge(question, {"twice": lambda n: None}).results
    assert not result.broken and not result.passed and result.message.startswith("The check's line")
    assert "answer(1)" not in result.message, "the line of a teacher's check is not shown"


def test_an_answers_own_error_is_never_the_checks(question, tmp_path):
    @question.check("One", points=1)
    def one(answer, random):
        raise Wrong("no") if answer(1) else RuntimeError("of the check")

    (tmp_path / "cell.py").write_text("def twice(n):\n    raise RuntimeError('of the answer')")
    (result,) = judge.judge(question, runpy.run_path(tmp_path / "cell.py")).results
    assert not result.broken and result.message.endswith("raised RuntimeError: of the answer")
    (result,) = judge.judge(question, {"twice": lambda n: 0}).results
    assert result.broken and "raised RuntimeError: of the check." in result.message
    assert "Wrong(" not in result.message
