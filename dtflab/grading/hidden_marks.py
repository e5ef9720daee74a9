"""The points of hidden checks for other graders: in nbgrader's gradebook and otter's results.json.

Both run the notebook and the public checks in one kernel. Hidden checks are asked afterwards, by `dtflab grade`, and
their points go where `build.py --nbgrader --checks` has reserved room for them: a task cell per question, whose points
nbgrader leaves to a person.

What a submission changes in its own kernel may have given it points there. So the points of public checks are compared
with those that `dtflab grade` has found, and students whose points differ are named. In nbgrader's gradebook, points
beyond those do not stand: ours are the manual score, and nbgrader asks a person to grade the cell.

Rule: nothing that a person has graded is written over, and writing points again changes nothing.
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
    """Write the points of each student's file; a sentence for each that is not written, and for each difference.

    `database` is nbgrader's `db_url`, or the path of gradebook.db.
    """
    from nbgrader.api import Gradebook, MissingEntry  # the teacher's; not a part of the package

    said = _not_judged(all_graded)
    url = database if "://" in database else f"sqlite:///{Path(database).absolute()}"
    with Gradebook(url) as book:
        for one, report in _judged(all_graded):
            submission, question = one.submission, report.question
            assignment = submission.assignment.partition("/")[0]
            for hidden in {result.check.hidden for result in report.results}:
                cell = grade_id(question) if hidden else name_of(question)
                try:
                    grade = book.find_grade(cell, submission.name, assignment, submission.student)
                except MissingEntry:
                    said.append(f"{submission.student}, {assignment}: nbgrader has no {cell}. Autograde it first.")
                    continue
                ours = float(_points(report, hidden=hidden))
                if hidden:
                    grade.manual_score, grade.needs_manual_grade = ours, False
                elif grade.manual_score is None or grade.needs_manual_grade:  # else a person has graded it
                    said += _different(one, report, grade.auto_score, "nbgrader")
                    if (more := (grade.auto_score or 0.0) > ours) or grade.manual_score is not None:
                        grade.manual_score, grade.needs_manual_grade = ours, more
        book.db.commit()
    return said


def to_otter(all_graded: Sequence[Graded], results: Path) -> list[str]:
    """Add a test per question to the results of `otter run`; one of the same name is replaced.

    A sentence for each question that is not written, and for each difference.
    """
    found = json.loads(results.read_text(encoding="utf-8"))
    there = {test.get("name"): test.get("score") for test in found["tests"]}
    judged = [*_judged(all_graded)]
    said = _not_judged(all_graded)
    for one, report in judged:
        said += _different(one, report, there.get(name_of(report.question)), "otter")
    added = [_test(report) for _, report in judged if _has_hidden(report)]
    names = {test["name"] for test in added}
    found["tests"] = [*(test for test in found["tests"] if test.get("name") not in names), *added]
    results.write_text(json.dumps(found, indent=4), encoding="utf-8")
    return said


def _different(one: Graded, report: Report, theirs: float | None, grader: str) -> Iterator[str]:
    """A sentence if the public checks have other points in a kernel that grades itself; None says nothing yet."""
    ours = _points(report, hidden=False)
    if theirs is not None and theirs != ours:
        yield (
            f"{one.submission.student or one.submission.name}: {grader} has {theirs:g} points for "
            f"{report.question.id}, and the same checks give {ours} here. Read the file: it may have changed what "
            "grades it there."
        )


def _test(report: Report) -> dict[str, Any]:
    hidden = [result for result in report.results if result.check.hidden]
    told = (f"{one.check.title}: {'passed' if one.passed else one.message or report.next_step}" for one in hidden)
    points = {"score": _points(report, hidden=True), "max_score": sum(result.check.points for result in hidden)}
    return {"name": grade_id(report.question), **points, "visibility": "hidden", "output": "\n".join(told)}


def _judged(all_graded: Sequence[Graded], really: bool = True) -> Iterator[tuple[Graded, Report]]:
    """The reports that were judged, or were not, of the files that count and were handed in."""
    for one in all_graded:
        for report in one.reports if one.counts and one.handed_in else ():
            known = not one.failed and not any(result.starved or result.broken for result in report.results)
            if known == really:
                yield one, report


def _not_judged(all_graded: Sequence[Graded]) -> list[str]:
    return [
        f"{one.submission.student or one.submission.name}: the hidden checks of {report.question.id} were not judged, "
        "so no points are written for them."
        for one, report in _judged(all_graded, really=False)
        if _has_hidden(report)
    ]


def _has_hidden(report: Report) -> bool:
    return any(result.check.hidden for result in report.results)


def _points(report: Report, *, hidden: bool) -> int:
    return sum(result.points for result in report.results if result.check.hidden is hidden)
