"""The class: which of a student's files counts, which students handed in nothing, and which files belong to no student.

Rules: of several files of one student for one assignment the best one counts: files have no time that can be trusted,
and a student who hands in a copy means no harm by it. Nothing is missing from an assignment that most of the others
did not hand in, either: one student's whole folder is not homework for all.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from dtflab.base.grouping import grouped
from dtflab.grading.batch import Graded, none
from dtflab.grading.submissions import Submission, same

NOTHING = "Nothing handed in."


def read_list(path: Path) -> list[str]:
    """The students of a class list: a name or an id per line, or the column `id` of a table, as nbgrader has it.

    (Marks have it as `student_id`.) ValueError if there is nobody in it; OSError if it can't be read.
    """
    try:
        lines = [same(line.strip()) for line in path.read_text(encoding="utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text. In a spreadsheet, save it as CSV UTF-8.") from None
    head = lines[0].lower() if lines else ""
    delimiter = ";" if ";" in head else ","
    columns = [name.strip().removeprefix("student_") for name in next(csv.reader([head], delimiter=delimiter), [])]
    if "id" in columns:
        at = columns.index("id")
        lines = ["".join(row[at : at + 1]).strip() for row in csv.reader(lines[1:], delimiter=delimiter)]
    students = list(dict.fromkeys(filter(None, lines)))
    if not students:
        raise ValueError(f"there is no student in {path}: write a name or an id per line, or a CSV with a column id")
    return students


def choose(all_graded: Sequence[Graded]) -> None:
    """Say of files of one student that answer the same questions of an assignment which one counts."""
    for files in grouped((_answered(one), one) for one in all_graded).values():
        if len(files) > 1:
            _choose(files)


def _answered(one: Graded) -> tuple[object, ...]:
    questions = (report.question.id for report in one.reports)
    return one.submission.student, one.submission.assignment, *questions


def _choose(files: Sequence[Graded]) -> None:
    """The one with the most points; among equals the original, not its copy."""
    best = max(files, key=lambda one: (float(one.score), not one.failed, not one.submission.is_copy))
    best.notes.insert(0, f"Counts: the best of {len(files)} files for this assignment.")
    for one in files:
        if one is not best:
            more = "more" if float(best.score) > float(one.score) else "as many"
            one.counts = False
            one.notes.insert(0, f"Does not count: {_short(best.submission.path)} has {more} points.")


def _short(path: Path) -> str:
    return same("/".join(path.parts[-2:]))


def with_class(all_graded: Sequence[Graded], students: Sequence[str], source: str) -> list[Graded]:
    """Add a row for each missing student of the list, and a note on files of others; `source` names the list."""
    handed_in: dict[str, dict[str, Graded]] = defaultdict(dict)  # by assignment and student
    for one in all_graded:
        handed_in[one.submission.assignment][one.submission.student] = one
        if one.submission.student not in students:
            one.notes.insert(0, f"{one.submission.student} is not in {source}: whose file is it?")
    active = {one.submission.student for one in all_graded}
    rows = list(all_graded)
    for assignment, by_student in handed_in.items():
        if 2 * len(by_student) > len(active):
            rows += _missing(assignment, by_student, students)
    return rows


def _missing(assignment: str, handed_in: dict[str, Graded], students: Sequence[str]) -> list[Graded]:
    """No points out of what most of the others can have."""
    asked = [tuple(report.question for report in one.reports) for one in handed_in.values()]
    questions, _ = Counter(asked).most_common(1)[0]
    rows = []
    for student in students:
        if student not in handed_in:
            row = none(Submission(Path(), student, assignment, ""), questions, NOTHING)
            row.failed, row.notes, row.handed_in = "", [NOTHING], False
            rows.append(row)
    return rows
