"""`dtflab.grade("placement/q1")`: grade an answer of the notebook, or ask for a hint.

The answer is found by its name where `grade` is called: in the notebook's cells, or a script's lines. So a notebook may
be renamed and copied, and needs no setting.

Rule: help comes in stages, so that something is left to find out. The first report on a mistake names it, and the cure
follows when another try shows the same mistake. The last hint, nearly the answer, is given only after a try.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from dtflab.base.ipython import current_shell
from dtflab.grading.catalogue import all_questions, find
from dtflab.grading.judge import Report, Result, is_autograded, judge
from dtflab.grading.questions import Question
from dtflab.grading.score import Score
from dtflab.machine.console import in_notebook, show

SECRET = ("DTFLAB_CHECKS", "DTFLAB_GRADE_SEED")  # refused in IPython


class Try(NamedTuple):
    """A try at a question: the answer's code, and the results of the checks so far, by name.

    Checks may be called one at a time, as otter does: all of them belong to one try.
    """

    code: CodeType | None
    results: dict[str, Result]

    def is_same(self, other: Try) -> bool:
        """Whether the code is the same, and no check that both have says anything else."""
        both = self.results.keys() & other.results.keys()
        return self.code == other.code and all(self.results[n].message == other.results[n].message for n in both)


_given: dict[str, int] = {}  # hints that each question has given
_last: dict[str, Try] = {}  # the last try at each question
_shown: dict[str, dict[str, Try]] = {}  # for each question that was tried: the first try that showed a mistake
_LATER = "If your next try shows the same mistake, the report says how to fix it."
_NOT_GIVEN = object()


class Hint(str):
    """One step of help. Its repr is the text, so that it reads as one where it is the value of a cell."""

    def __repr__(self) -> str:
        return str(self)


def grade(id: str, answer: Any = _NOT_GIVEN, *, hint: bool = False) -> Any:
    """The Score of an answer; with `hint`, the next hint for it instead.

    `id` is a question's, `placement/q1`, or its end if that is enough, `q1`. The answer is what the caller's namespace
    has under the question's name for it, or `answer`. Nothing that the answer does is raised; LookupError lists the
    questions if none has that id.

    The numbers in a question follow from the environment's DTFLAB_STUDENT (default empty) and, outside of IPython,
    DTFLAB_GRADE_SEED (a text, default 0), which a teacher may keep secret.
    """
    _refuse_secrets()
    question = find(id)
    if hint:
        return next_hint(question)
    caller = sys._getframe(1)
    given = {question.answer: answer} if answer is not _NOT_GIVEN else {**caller.f_globals, **caller.f_locals}
    return grade_all([question], given)


def check(id: str, name: str = "", answer: Any = _NOT_GIVEN) -> bool:
    """Whether an answer passes the check of that name, or all checks of the question. Findings are printed.

    For the doctests of otter-grader, and for scripts. The answer is found as `grade` finds it; LookupError lists the
    questions or the checks if none has that name.
    """
    _refuse_secrets()
    question = find(id)
    if name:
        question = question.only(name)
    caller = sys._getframe(1)
    given = {question.answer: answer} if answer is not _NOT_GIVEN else {**caller.f_globals, **caller.f_locals}
    score = Score([_judged(question, given)])
    if score < score.max:
        show(score.text)
    return score == score.max


def _refuse_secrets() -> None:
    """Raise RuntimeError in IPython, a notebook or not, where any code could read a teacher's checks and seed."""
    where = "notebook's" if in_notebook() else "IPython's"
    for name in SECRET:
        if current_shell() is not None and os.environ.get(name):
            raise RuntimeError(
                f"{name} is set in this {where} environment, where the code that is graded can read it. Unset it. "
                "Hidden checks and a seed of your own are for the command: dtflab grade FOLDER --checks DIR"
            )


def grade_all(questions: list[Question], namespace: Mapping[str, Any]) -> Score:
    """The Score of the answers in `namespace`. The rest is printed on a terminal, which shows only the number."""
    score = Score([_judged(question, namespace) for question in questions])
    if not in_notebook():
        show(score.text)
    return score


def _judged(question: Question, namespace: Mapping[str, Any]) -> Report:
    """The report on an answer, without the cures that come at a later stage. nbgrader's feedback has all of them."""
    report = judge(question, namespace)
    if report.as_shipped:
        return report
    this = _try(question, namespace[question.answer], report.results)
    report.earlier = list(takewhile(lambda one: one.check not in question.checks, this.results.values()))
    shown = _shown.setdefault(question.id, {})
    for result in report.results:
        if result.cure and shown.setdefault(result.mistake, this).is_same(this) and not is_autograded():
            result.cure = _LATER
    return report


def _try(question: Question, answer: Any, results: Sequence[Result]) -> Try:
    """The try that these results belong to: the last one, if it is the same, or a new one."""
    this = Try(_code(answer), {result.check.name: result for result in results})
    last = _last.get(question.id)
    if last is not None and last.is_same(this):
        last.results.update(this.results)
        return last
    _last[question.id] = this
    return this


def _code(answer: Any) -> CodeType | None:
    """The code of a Python function, the same after its cell has run again; None for other objects."""
    return _without_lines(answer.__code__) if isinstance(answer, FunctionType) else None


def _without_lines(code: CodeType) -> CodeType:
    """Code that equals itself below a new comment, too: only the numbers of its lines have changed."""
    inner = tuple(_without_lines(one) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_consts=inner)


def next_hint(question: Question) -> Hint:
    """The next step of help. The last one needs a try, and is repeated with a note that no more follow."""
    given, count = _given.get(question.id, 0), len(question.hints)
    step = min(given + 1, count)
    if 1 < step == count and question.id not in _shown:
        return Hint(
            f"The last of {count} hints nearly gives the answer away. Write {question.answer} first and grade it, "
            f'dtflab.grade("{question.id}"), then ask again.'
        )
    _given[question.id] = step
    hint = f"Hint {step} of {count}: {question.hints[step - 1]}"
    return Hint(hint if given < count else f"There are no more hints. The last one was:\n{hint}")


def chosen(text: str, every: bool, namespace: Mapping[str, Any]) -> list[Question]:
    """The questions that `%dtf_grade` means: the one of an id, all, or those with an answer in the notebook.

    LookupError says what to name if there are none.
    """
    _refuse_secrets()
    if text and every:
        raise LookupError(f"{text}, or all questions? Name one, or say --all: not both")
    questions = all_questions()
    written = {question.answer for question in questions if _is_written_here(question.answer, namespace)}
    if text:
        return [find(text, written)]
    here = questions if every else [question for question in questions if question.answer in written]
    if not here:
        names = ", ".join(f"{question.id} ({question.answer})" for question in questions)
        raise LookupError(
            "None of the answers is here yet: no cell has defined a function of that name. The questions, and what "
            f"their answers are called: {names}"
        )
    return here


def _is_written_here(name: str, namespace: Mapping[str, Any]) -> bool:
    """True for a function of the notebook, False for an op or a setting that has the name of an answer."""
    value = namespace.get(name)
    return callable(value) and getattr(value, "__module__", None) == namespace.get("__name__")
