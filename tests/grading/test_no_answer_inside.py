"""No function of the checks answers their question, as a student could import it. Truths are runs, and are seen."""

from __future__ import annotations

import importlib
import inspect

import pytest

from dtflab.grading.catalogue import find
from dtflab.grading.judge import judge
from tests.grading.answers import QUESTIONS, solution

IDS = [question.id for question in QUESTIONS]


def callables(question):
    """Each function of the module, and each way to make one of its tuples of the arguments and ask that."""
    module = importlib.import_module(question.checks[0].judge.__module__)
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", "") != module.__name__ or name in {one.name for one in question.checks}:
            continue
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            for member in {name for name in vars(thing) if not name.startswith("_")}:
                yield f"{name}.{member}", asking(thing, member)


def asking(kind, member):
    def answer(*args):
        found = getattr(kind(*args), member)
        return found() if callable(found) else found

    return answer


@pytest.mark.parametrize("id", IDS)
def test_no_function_of_the_checks_has_full_marks_as_an_answer(id):
    question = find(id)
    tried = dict(callables(question))
    assert tried
    for name, function in tried.items():
        # The first check that fails is enough, and what is tried may never end.
        report = judge(question.only(question.checks[0].name), {question.answer: function}, "0", "", wall=20.0)
        if report.points == question.checks[0].points:
            assert judge(question, {question.answer: function}, "0", "").points < question.points, name


def test_a_function_that_answers_is_found(monkeypatch, tmp_path):
    question = find("parallel/q1")
    module = importlib.import_module(question.checks[0].judge.__module__)
    answer = solution(question, tmp_path)
    monkeypatch.setattr(answer, "__module__", module.__name__)
    monkeypatch.setattr(module, "_helper", answer, raising=False)
    with pytest.raises(AssertionError, match="_helper"):
        test_no_function_of_the_checks_has_full_marks_as_an_answer("parallel/q1")
