"""Answers of other authors, right and wrong, are in `answers/<id>.py`: the same answer has the same marks for all."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from dtflab.grading.catalogue import find
from dtflab.grading.judge import judge
from tests.grading.answers import some_of

FOLDER = Path(__file__).parent / "answers"
IDS = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/q*.py"))
STUDENTS = [("0", ""), ("0", "ada"), ("0", "grace"), ("winter", "ada"), ("2026-11", "Łukasz 7")]


def answers(id):
    """The `RIGHT` answers of a file; its `WRONG` ones, each with the mistake whose hint it gets, "" for none."""
    found = runpy.run_path(str(FOLDER / f"{id}.py"))
    return found["RIGHT"], found["WRONG"]


def reports(id, answer):
    question = find(id)
    return [judge(question, {question.answer: answer}, *student) for student in some_of(STUDENTS, answer.__name__)]


RIGHT = [pytest.param(id, one, id=f"{id}-{one.__name__}") for id in IDS for one in answers(id)[0]]
WRONG = [pytest.param(id, *pair, id=f"{id}-{pair[0].__name__}") for id in IDS for pair in answers(id)[1].items()]


@pytest.mark.parametrize("id, answer", RIGHT)
def test_a_right_answer_has_full_marks_for_every_student(id, answer):
    for report in reports(id, answer):
        assert report.points == 10, [result.message for result in report.results if not result.passed]


@pytest.mark.parametrize("id, answer, mistake", WRONG)
def test_a_wrong_answer_loses_the_same_marks_for_every_student_and_gets_no_other_hint(id, answer, mistake):
    found = reports(id, answer)
    assert len({report.points for report in found}) == 1 and found[0].points < 10, [one.points for one in found]
    for report in found:
        failed = [result for result in report.results if not result.passed]
        assert {result.mistake for result in failed} - {""} == {mistake} - {""}, [result.message for result in failed]
        assert all(result.message and not result.broken for result in failed)


def test_each_question_here_has_three_wrong_answers_and_a_right_one_at_least():
    for id in IDS:
        right, wrong = answers(id)
        assert len(right) >= 1 and len(wrong) >= 3, id
