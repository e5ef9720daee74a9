"""The points of hidden checks for other graders: in nbgrader's gradebook and otter's results.json.

Both run the notebook and the public checks in one kernel. Hidden checks are asked afterwards, by `dtflab grade`, and
their points go where `build.py --nbgrader --checks` has reserved room for them: a task cell per question, whose points
nbgrader leaves to a person.

Rule: only the points of hidden checks are written, and writing them again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dtflab.grading.batch import Graded
from dtflab.grading.judge import Report
from dtflab.grading.otter import name_of
from dtflab.grading.questions import Question


def grade_id(question: Question) -> str:
    """The name of the cell, or test, that has a question's hidden points."""
    return f"{name_of(question)}-hidden"


def task_cell(question: Question) -> tuple[str, dict[str, Any]]:
    """The text and the metadata of the cell that reserves a question's hidden points."""
    points = question.part(hidden=True).points
    text = f"### {question.id}: {points} more points\n\nThey are for checks that run after you have handed this in."
    kind = {"grade": False, "grade_id": grade_id(question), "locked": True, "points": points}
    return text, {"nbgrader": kind | {"schema_version": 3, "solution": False, "task": True}}


def to_gradebook(all_graded: Sequence[Graded], database: str) -> list[str]:
    """Write the points of each student's file; a sentence for each that is not written.

    `database` is nbgrader's `db_url`, or the path of gradebook.db.
    """
    from nbgrader.api import Gradebook, MissingEntry  # the teacher's; not a part of the package

    missing = _not_judged(all_graded)
    url = database if "://" in database else f"sqlite:///{Path(database).absolute()}"
    with Gradebook(url) as book:
        for one, report in _hidden(all_graded):
            submission = one.submission
            assignment = submission.assignment.partition("/")[0]
            cell = grade_id(report.question)
            try:
                grade = book.find_grade(cell, submission.name, assignment, submission.student)
            except MissingEntry:
                missing.append(f"{submission.student}, {assignment}: nbgrader has no {cell}. Autograde it first.")
                continue
            grade.manual_score, grade.needs_manual_grade = float(_points(report)), False
        book.db.commit()
    return missing


def to_otter(all_graded: Sequence[Graded], results: Path) -> list[str]:
    """Add a test per question to the results of `otter run`; one of the same name is replaced.

    A sentence for each question that is not written.
    """
    found = json.loads(results.read_text(encoding="utf-8"))
    added = [_test(report) for _, report in _hidden(all_graded)]
    names = {test["name"] for test in added}
    found["tests"] = [*(test for test in found["tests"] if test.get("name") not in names), *added]
    results.write_text(json.dumps(found, indent=4), encoding="utf-8")
    return _not_judged(all_graded)


def _test(report: Report) -> dict[str, Any]:
    hidden = [result for result in report.results if result.check.hidden]
    told = ["passed" if one.passed else one.message or report.next_step for one in hidden]
    output = "\n".join(f"{one.check.title}: {text}" for one, text in zip(hidden, told))
    most = sum(result.check.points for result in hidden)
    return {"name": grade_id(report.question), "score": _points(report), "max_score": most, "output": output}


def _hidden(all_graded: Sequence[Graded], judged: bool = True) -> Iterator[tuple[Graded, Report]]:
    """The reports with hidden checks that were judged, or were not, of the files that count and were handed in."""
    for one in all_graded:
        for report in one.reports if one.counts and one.handed_in else ():
            hidden = [result for result in report.results if result.check.hidden]
            known = not one.failed and not any(result.starved or result.broken for result in hidden)
            if hidden and known == judged:
                yield one, report


def _not_judged(all_graded: Sequence[Graded]) -> list[str]:
    return [
        f"{one.submission.student or one.submission.name}: the hidden checks of {report.question.id} were not judged, "
        "so no points are written for them."
        for one, report in _hidden(all_graded, judged=False)
    ]


def _points(report: Report) -> int:
    return sum(result.points for result in report.results if result.check.hidden)
