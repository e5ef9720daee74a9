"""The repository's material for each question: its solution, its stub, its wrong answers, those of others."""

from __future__ import annotations

import random
import re
import runpy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from dtflab.grading.catalogue import all_questions
from dtflab.grading.grade import grade
from dtflab.grading.judge import Report
from dtflab.grading.questions import Question
from dtflab.grading.score import Score
from dtflab.grading.sources import BEGIN, END, student_version
from tests.house import ROOT

SOLUTIONS = ROOT / "solutions"
OTHERS = Path(__file__).parent / "answers"
QUESTIONS = all_questions()


def source_of(question: Question) -> str:
    """The only solution that asks the question."""
    texts = [path.read_text(encoding="utf-8") for path in SOLUTIONS.glob("ex*.py")]
    (text,) = (text for text in texts if f'dtflab.grade("{question.id}")' in text)
    return text


def answer_cell(question: Question) -> str:
    """The cell of the solution that answers the question."""
    import jupytext  # takes seconds to load

    cells = [cell.source for cell in jupytext.reads(source_of(question), fmt="py:percent").cells]
    asks = next(i for i, cell in enumerate(cells) if f'dtflab.grade("{question.id}")' in cell)
    return next(cell for cell in reversed(cells[:asks]) if BEGIN in cell and END in cell)


def answer(question: Question, cell: str, folder: Path) -> Any:
    """The value of the answer's name after the cell was run as a program, below its notebook's imports."""
    imports = "\n".join(re.findall(r"^(?:import|from) .*$", source_of(question), re.MULTILINE))
    path = folder / "answer.py"
    path.write_text(f"{imports}\n{cell}\n", encoding="utf-8")
    return runpy.run_path(str(path))[question.answer]


def solution(question: Question, folder: Path) -> Any:
    return answer(question, answer_cell(question), folder)


def stub(question: Question, folder: Path) -> Any:
    return answer(question, student_version(answer_cell(question)), folder)


def wrong_answers(question: Question) -> dict[str, Callable[..., Any]]:
    """The functions of `solutions/wrong/<id>.py`, by name; made again at each call, as some of them remember calls."""
    found = runpy.run_path(str(SOLUTIONS / "wrong" / f"{question.id}.py"))
    return {mistake.name: found[mistake.name] for mistake in question.mistakes if mistake.name in found}


def ids_of_others(folder: Path = OTHERS) -> list[str]:
    """The questions to which the folder has answers of other authors, each in one file or more."""
    return sorted({f"{path.parent.name}/{path.stem.partition('_')[0]}" for path in folder.glob("*/q*.py")})


def answers_of_others(id: str, folder: Path = OTHERS) -> tuple[list[Callable[..., Any]], dict[Callable[..., Any], str]]:
    """The `RIGHT` answers to a question; the `WRONG` ones, each with the mistakes whose hints it gets, "" for none."""
    topic, _, stem = id.partition("/")
    found = [runpy.run_path(str(path)) for path in sorted((folder / topic).glob(f"{stem}*.py"))]
    right = [answer for one in found for answer in one["RIGHT"]]
    return right, {answer: said for one in found for answer, said in one["WRONG"].items()}


def hints_of(report: Report) -> set[str]:
    """The mistakes that a report names."""
    return {result.mistake for result in report.results if not result.passed} - {""}


def mark(question: Question, answer: Any) -> Score:
    return grade(question.id, answer)


def full_marks(id: str, answer: Any, monkeypatch: pytest.MonkeyPatch, seeds: Iterable[str]) -> None:
    """The law of right answers, whatever they look like: 10 points, with each seed."""
    for seed in seeds:
        monkeypatch.setenv("DTFLAB_GRADE_SEED", seed)
        score = grade(id, answer)
        assert score == 10, score.text


def some_of(students: list[tuple[str, str]], name: str, count: int = 2) -> list[tuple[str, str]]:
    """That many of the students, others for another answer: all of them for each would take CI a quarter of an hour."""
    return random.Random(name).sample(students, count)
