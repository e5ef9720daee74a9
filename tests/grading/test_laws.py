"""The laws of the course, for every question: full marks, none, and each mistake its own hint."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import math
import re
import sys

import pytest

from dtflab.grading import grade
from dtflab.grading.catalogue import find
from dtflab.grading.judge import judge
from dtflab.grading.questions import MOST, Question
from tests.grading.answers import (
    QUESTIONS,
    SOLUTIONS,
    answers_of_others,
    hints_of,
    mark,
    solution,
    some_of,
    source_of,
    stub,
    wrong_answers,
)
from tests.grading.mutants import ENOUGH, Tally, sample, total
from tests.grading.rare_mistakes import RARE
from tests.house import ROOT

EACH = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
WRONG = [(question, name) for question in QUESTIONS for name in wrong_answers(question)]
WORDS = 45  # in a hint, or in what a check says of an answer
SEEDS = [("0", ""), ("0", "ada"), ("0", "grace"), ("winter", ""), ("winter", "ada"), ("2026-11", "Łukasz 7")]


@EACH
@pytest.mark.parametrize("seed, student", SEEDS)
def test_the_solution_gets_full_marks_for_every_seed_and_student(question, seed, student, tmp_path, monkeypatch):
    monkeypatch.setenv("DTFLAB_GRADE_SEED", seed)
    monkeypatch.setenv("DTFLAB_STUDENT", student)
    score = mark(question, solution(question, tmp_path))
    assert score == score.max == question.points, score.text


@EACH
def test_the_exercise_as_shipped_gets_nothing_and_says_what_to_do_next(question, tmp_path):
    score = mark(question, stub(question, tmp_path))
    assert score == 0
    assert "is not written yet. Replace `raise NotImplementedError()`" in score.text


@EACH
def test_an_answer_that_is_not_there_gets_nothing_and_says_what_to_do_next(question):
    from dtflab.grading.grade import grade_all

    score = grade_all([question], {})
    assert score == 0 and f"There is no {question.answer} yet. Run the cell" in score.text


@EACH
def test_an_answer_that_gives_none_gets_nothing(question):
    assert mark(question, lambda *args, **kwargs: None) == 0


@EACH
def test_no_function_of_the_module_is_an_answer(question):
    """Nor is a method of one of its classes. A student can import all of them."""
    module = sys.modules[question.checks[0].judge.__module__]
    own = [one for one in vars(module).values() if getattr(one, "__module__", "") == module.__name__]
    methods = [one for kind in own if isinstance(kind, type) for one in vars(kind).values()]
    found = [one.__func__ if isinstance(one, staticmethod | classmethod) else one for one in (*own, *methods)]
    functions = [one for one in found if callable(one) and _takes_as_many(one, question)]
    assert [one for one in functions if _is_right(question, one)] == []


def _takes_as_many(function, question):
    """True if it takes the arguments of an answer, as the catalogued wrong ones do."""
    (some, *_) = wrong_answers(question).values()
    with contextlib.suppress(TypeError, ValueError):
        inspect.signature(function).bind(*inspect.signature(some).parameters)
        return True
    return False


def _is_right(question, answer):
    return judge(question, {question.answer: answer}, "0", "", wall=math.inf).points == question.points


@EACH
def test_three_mistakes_or_more_are_catalogued_and_each_has_a_wrong_answer(question):
    assert len(question.mistakes) >= 3
    assert set(wrong_answers(question)) == {mistake.name for mistake in question.mistakes}


@pytest.mark.parametrize("question, name", WRONG, ids=[f"{question.id}-{name}" for question, name in WRONG])
def test_a_wrong_answer_loses_as_many_marks_for_everyone_and_gets_the_hint_that_fits(question, name, monkeypatch):
    """As many for any seed and student. The hint is said once, though several checks may have found the mistake."""
    seeds, answer = [SEEDS[0], *some_of(SEEDS[1:], name, 1)], wrong_answers(question)[name]
    reports = [judged(question.id, name, *one) for one in seeds]
    assert len({report.points for report in reports}) == 1, [(*one, r.points) for one, r in zip(seeds, reports)]
    (said,) = {mistake.diagnosis for mistake in question.mistakes if mistake.name == name}
    for report in reports:
        assert report.points < question.points
        assert hints_of(report) == {name}, text_of(report)
        assert max(words(result.message) for result in report.results) <= WORDS, text_of(report)
        monkeypatch.setattr(grade, "judge", lambda *given, report=report: report)  # it was judged above
        score = mark(question, answer)
        assert score.text.count(said) == score.html.count(score_html(said)) == 1, score.text


@functools.cache
def judged(id, name, seed, student):
    """The report of a catalogued mistake: two laws look at those of the first seed."""
    question = find(id)
    return judge(question, {question.answer: wrong_answers(question)[name]}, seed, student, wall=math.inf)


@EACH
def test_each_check_refuses_an_answer_that_another_check_lets_pass(question):
    """Else it would judge nothing of its own. Answers are tried until that is shown of all checks."""
    others = answers_of_others(question.id)[1]
    untold = {check.name for check in question.checks}
    known = (judged(question.id, name, *SEEDS[0]) for name in wrong_answers(question))
    rare = (
        judge(question, {question.answer: answer}, *SEEDS[0], wall=math.inf)
        for answer in (*RARE.get(question.id, []), *others)
    )
    for report in itertools.chain(known, rare):
        failed = {result.check.name for result in report.results if not result.passed}
        untold -= failed if len(failed) < len(report.results) else set()
        if not untold:
            return
    pytest.fail(f"{sorted(untold)} refuse only what all others refuse: add an answer to `rare_mistakes.py`")


def text_of(report):
    return "\n".join(f"{result.check.name}: {result.message} {result.mistake}" for result in report.results)


def score_html(text):
    from dtflab.grading.report_pages import with_code

    return with_code(text)


@EACH
def test_texts_and_points_add_up(question):
    assert question.points == sum(check.points for check in question.checks) > 0
    assert sum(check.seconds for check in question.checks) <= MOST
    assert len(question.hints) >= 2 and len(set(question.hints)) == len(question.hints)
    assert len({mistake.text for mistake in question.mistakes}) == len(question.mistakes)


@EACH
def test_no_text_is_longer_than_a_reader_takes_in(question):
    texts = [*question.hints, *(one.text for one in question.mistakes), *(one.why for one in question.choices)]
    assert {text: words(text) for text in texts if words(text) > WORDS} == {}


def words(text):
    """How many words a text has; signs and numbers alone are none."""
    return sum(any(map(str.isalpha, word)) for word in text.split())


CODE = re.compile(r"\w\([^)\s]|(?<![=!<>])=(?!=)")  # a call with arguments, an assignment


@EACH
def test_the_first_hint_is_a_nudge(question):
    """A first hint says where to look, and the code is the student's own; later hints may show some."""
    assert not CODE.search(question.hints[0])


def test_no_two_answers_have_one_name():
    """`%dtf_grade` finds the questions of a notebook by the names of their answers."""
    names = [question.answer for question in QUESTIONS]
    assert sorted(names) == sorted(set(names))


@EACH
def test_no_function_of_another_notebook_has_the_name_of_an_answer(question):
    """Nor does a lesson use it for its own things, so that nobody is used to it."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in (*SOLUTIONS.glob("ex*.py"), *(ROOT / "notebooks/src").rglob("*.py"))
    ]
    defines = re.compile(rf"^(def|class) {question.answer}\b", re.MULTILINE)
    assert [text[:40] for text in texts if defines.search(text)] == [source_of(question)[:40]]


@pytest.fixture(scope="module")
def tallies():
    """The tallies of all questions that were judged."""
    return []


@EACH
@pytest.mark.timeout(1200)
def test_mutants_that_behave_differently_lose_marks(question, tallies, tmp_path, record_property):
    """A sample of them; `python -m tests.grading.mutants` judges all."""
    tally = Tally(question, tmp_path)
    for mutant in sample(question):
        tally.judge(mutant)
    tallies.append(tally)
    record_property("mutants", str(tally))
    assert tally.judged >= 10
    assert tally.share >= ENOUGH, str(tally)


def test_of_all_mutants_nearly_all_lose_marks(tallies, record_property):
    if not tallies:
        pytest.skip("no question's mutants were judged")
    record_property("mutation score", total(tallies))
    assert sum(one.caught for one in tallies) / sum(one.judged for one in tallies) >= ENOUGH


@EACH
def test_each_mistake_says_something_that_no_other_one_says(question):
    texts = [mistake.text for mistake in question.mistakes]
    assert all(texts) and len(set(texts)) == len(texts)
    first = [mistake.diagnosis for mistake in question.mistakes]
    assert len(set(first)) == len(first), "the cure comes later"


def test_a_mistake_says_its_text_or_the_docstring_of_its_function():
    def halves(seen):
        """Twice means times two.
        Not half."""

    question = Question("numbers/q9", "Double it", "twice", ())
    question.mistake()(halves)
    question.mistake("Half.")(halves)
    assert [mistake.text for mistake in question.mistakes] == ["Twice means times two. Not half.", "Half."]
