"""Answers of other authors, right and wrong, are in `answers/<id>.py`; each is handed in by one of a few students.

That an answer has the same marks for all of them is a law that `test_laws` holds, with the catalogue's.
"""

from __future__ import annotations

import pytest

from dtflab.grading.catalogue import find
from dtflab.grading.judge import judge
from tests.grading.answers import QUESTIONS, answers_of_others, hints_of, ids_of_others, some_of

IDS = ids_of_others()
STUDENTS = [("0", ""), ("0", "ada"), ("0", "grace"), ("winter", "ada"), ("2026-11", "Łukasz 7")]


def report(id, answer):
    question, (student,) = find(id), some_of(STUDENTS, answer.__name__, 1)
    return judge(question, {question.answer: answer}, *student)


RIGHT = [pytest.param(id, one, id=f"{id}-{one.__name__}") for id in IDS for one in answers_of_others(id)[0]]
WRONG = [
    pytest.param(id, *pair, id=f"{id}-{pair[0].__name__}") for id in IDS for pair in answers_of_others(id)[1].items()
]


@pytest.mark.parametrize("id, answer", RIGHT)
def test_a_right_answer_has_full_marks(id, answer):
    found = report(id, answer)
    assert found.points == 10, [result.message for result in found.results if not result.passed]


@pytest.mark.parametrize("id, answer, mistake", WRONG)
def test_a_wrong_answer_loses_marks_and_gets_no_other_hint(id, answer, mistake):
    found = report(id, answer)
    failed = [result for result in found.results if not result.passed]
    assert found.points < 10
    assert hints_of(found) == {*mistake.split()}, [result.message for result in failed]
    assert all(result.message and not result.broken for result in failed)


@pytest.mark.parametrize("id", IDS)
def test_no_two_answers_to_a_question_have_one_name(id):
    right, wrong = answers_of_others(id)
    names = [answer.__name__ for answer in (*right, *wrong)]
    assert sorted(names) == sorted(set(names))


def test_each_question_has_three_wrong_answers_here_at_least():
    assert [question.id for question in QUESTIONS] == IDS
    for id in IDS:
        assert len(answers_of_others(id)[1]) >= 3, id
