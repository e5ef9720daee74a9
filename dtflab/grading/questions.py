"""The questions: what is asked, the checks that judge an answer, hints in steps, and the mistakes that people make.

    q = register("placement/q1", "Balance variables by bytes", answer="balance_by_bytes", hints=(...))

    @q.check("Variables go to parameter servers", points=3)
    def variables(answer, random): ...       # returns, or raises Wrong

    @q.mistake("You count variables, not bytes. ...")
    def round_robin(seen): ...               # True if that is what the evidence shows

A check is a plain function of the answer and of a `random.Random` that follows from the seed, the student and the check
alone, so that the same answer gets the same mark on any machine. It judges by a rule that every right answer obeys,
never by one right answer. What it finds wrong it raises as `Wrong`, with evidence; the first mistake that recognizes
the evidence gives the hint.

Some questions have sentences to choose from before a run, `q.choice("A", …)`: `choices` answers that, without points.

The first sentence about a mistake names it, the others are the cure: a student's report has those later (`grade`).

Rule: an id is `topic/name`, and the questions of a topic stand in `checks/topic.py`, large ones in a `topic_….py` of
their own: nothing of it is in the notebook, which may be renamed, copied and cut. A file of the same name that ends in
`.toml` has the title, the hints and the choices; what is said of a mistake is the docstring of its function.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

LIMIT = 4.0  # seconds for a check, as `meter` counts them
MOST = 20.0  # seconds for all checks of a question, hidden ones too
CELL = 25.0  # seconds on the clock for them in a cell of a notebook, to which nbgrader gives 30
_SENTENCE = re.compile(r"(?<=[.!?]) ")
Judge = Callable[[Any, Random], Any]
Shows = Callable[[Any], bool]
_questions: dict[str, Question] = {}
_teachers: list[bool] = []  # not empty while a teacher's own checks are loaded


class Wrong(Exception):
    """A wrong answer: sentences on what a check saw and expected, `evidence` for mistakes, a `picture` for people."""

    def __init__(self, message: str, evidence: Any = None, picture: Any = None) -> None:
        super().__init__(message)
        self.evidence = evidence
        self.picture = picture


class NotJudged(Exception):
    """The machine was too busy for a call of the answer to have its seconds."""


class Check(NamedTuple):
    """One thing that an answer is judged by; `judge` may return a picture of what it saw."""

    name: str
    title: str
    points: int
    judge: Judge
    seconds: float
    hidden: bool = False  # a teacher's own: it is judged outside of the process that runs the answer


class Mistake(NamedTuple):
    """A mistake that people make: how the evidence shows it, and what to tell them."""

    name: str
    text: str
    shows: Shows

    @property
    def diagnosis(self) -> str:
        """The first sentence: what was done."""
        return _SENTENCE.split(self.text, maxsplit=1)[0]

    @property
    def cure(self) -> str:
        """The other sentences: how to fix it. Empty if there are none."""
        return self.text[len(self.diagnosis) :].strip()


class Choice(NamedTuple):
    """A sentence to choose before a run: `look` says where the run shows if it is right, `why` gives the reason."""

    letter: str
    text: str
    right: bool
    look: str
    why: str


class Question:
    """A question of the course. `answer` is the name that the student's work has in the notebook."""

    def __init__(self, id: str, title: str, answer: str, hints: Sequence[str]) -> None:
        self.id = id
        self.title = title
        self.answer = answer
        self.hints = tuple(" ".join(hint.split()) for hint in hints)
        self.checks: list[Check] = []
        self.mistakes: list[Mistake] = []
        self.choices: list[Choice] = []

    @property
    def points(self) -> int:
        return sum(check.points for check in self.checks)

    def check(self, title: str, points: int, seconds: float = LIMIT) -> Callable[[Judge], Judge]:
        """Judge answers by the decorated function, for `points`; it is stopped after `seconds`."""

        def add(judge: Judge) -> Judge:
            if points < 1 or not 0 < seconds <= MOST:
                raise ValueError(f"{self.id}: at least 1 point and at most {MOST:g} s, not {points} and {seconds:g}.")
            self.checks.append(Check(judge.__name__, title, points, judge, seconds, bool(_teachers)))
            return judge

        return add

    def mistake(self, text: str = "") -> Callable[[Shows], Shows]:
        """Say `text`, by default the function's docstring, where it recognizes the evidence of a check that failed."""

        def add(shows: Shows) -> Shows:
            self.mistakes.append(Mistake(shows.__name__, text or " ".join((shows.__doc__ or "").split()), shows))
            return shows

        return add

    def choice(self, letter: str, text: str, *, right: bool, look: str, why: str) -> None:
        """Add a sentence that may be chosen. `text` is as in the notebook, with `code` in backquotes, as in the others.

        ValueError if `letter` is not the one that follows the last: A, B, C, …
        """
        if letter != (following := chr(ord("A") + len(self.choices))):
            raise ValueError(f"{self.id}: the next letter to choose is {following}, not {letter!r}")
        self.choices.append(Choice(letter, text, right, " ".join(look.split()), " ".join(why.split())))

    def only(self, name: str) -> Question:
        """The question with the check of that name alone; LookupError lists the names."""
        checks = [check for check in self.checks if check.name == name]
        if not checks:
            names = ", ".join(check.name for check in self.checks)
            raise LookupError(f"{self.id} has no check {name!r}. It has: {names}")
        return self._with(checks)

    def part(self, *, hidden: bool) -> Question:
        """The question with its hidden checks alone, or with the others."""
        return self._with([check for check in self.checks if check.hidden is hidden])

    def _with(self, checks: list[Check]) -> Question:
        part = Question(self.id, self.title, self.answer, self.hints)
        part.checks, part.mistakes = checks, self.mistakes
        return part

    def diagnosis(self, evidence: Any) -> Mistake | None:
        """The first mistake that the evidence shows."""
        return next((mistake for mistake in self.mistakes if mistake.shows(evidence)), None)


def register(id: str, title: str, answer: str, hints: Sequence[str]) -> Question:
    """A new question; ValueError for an id that is taken or is not `topic/name`."""
    topic, _, name = id.partition("/")
    if id in _questions or not topic.isidentifier() or not name.isidentifier():
        raise ValueError(f"an id must be unique and look like topic/name, unlike {id!r}")
    _questions[id] = Question(id, title, answer, hints)
    return _questions[id]


def from_toml(module: str) -> Question:
    """The question that the TOML file next to a module of checks states: its id, title, answer, hints and choices."""
    stated = tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))
    choices = stated.pop("choices", {})
    question = register(**stated)
    for letter, choice in choices.items():
        question.choice(letter, **choice)
    return question


@contextlib.contextmanager
def teachers_own() -> Iterator[None]:
    """Take checks that are registered inside for hidden ones, and all of it back if it ends with an error.

    A second try must not find half of it.
    """
    before = [(q, [*q.checks], [*q.mistakes], [*q.choices]) for q in _questions.values()]
    _teachers.append(True)
    try:
        yield
    except BaseException:
        _questions.clear()
        for question, checks, mistakes, choices in before:
            question.checks, question.mistakes, question.choices = checks, mistakes, choices
            _questions[question.id] = question
        raise
    finally:
        _teachers.pop()


def registered() -> list[Question]:
    """Every question that has been registered so far, by id."""
    return [_questions[id] for id in sorted(_questions)]
