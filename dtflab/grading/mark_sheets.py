"""The marks of many submissions: a table for the terminal, CSV with nbgrader's columns, JSON. Pure functions."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any

from dtflab.base.text_table import plural
from dtflab.grading.batch import Graded
from dtflab.grading.class_figures import remarks

# Those of `nbgrader export`; the names, the address and the due date are in nbgrader's database only.
COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)
_FORMULA = re.compile(r"^[=+\-@\t\r]")
# What moves the cursor of a terminal, or turns the direction of what follows.
_MOVES = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def csv_text(all_graded: Sequence[Graded]) -> str:
    """A row per student and assignment: that of the file that counts."""
    out = io.StringIO()
    sheet = csv.writer(out, lineterminator="\n")
    sheet.writerow(COLUMNS)
    for one in filter(lambda one: one.counts, all_graded):
        submission, score = one.submission, one.score
        who = (_cell(submission.assignment), "", _cell(submission.timestamp), _cell(submission.student), "", "", "")
        sheet.writerow((*who, float(score), 0.0, float(score), score.max))
    return out.getvalue()


def _cell(text: str) -> str:
    """A name that a spreadsheet does not take for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text


def data(all_graded: Sequence[Graded]) -> dict[str, Any]:
    """All that is known, as plain data."""
    return {"submissions": [_data(one) for one in all_graded]}


def _data(one: Graded) -> dict[str, Any]:
    return {
        "file": str(one.submission.path) if one.handed_in else "",
        "student": one.submission.student,
        "assignment": one.submission.assignment,
        "timestamp": one.submission.timestamp,
        **{name: getattr(one, name) for name in ("counts", "failed", "notes", "output")},
        "seconds": round(one.seconds, 2),
        **one.score.json,
    }


def text(all_graded: Sequence[Graded]) -> str:
    """A line per file, and what is to be said about it; a file's own words can neither end a line nor go back in it."""
    width = max((len(one.submission.student) for one in all_graded), default=0)
    lines = []
    for one in all_graded:
        lines.append(f"{one.submission.student:{width}}  {points_of(one):>9}  {one.submission.assignment}")
        lines += [f"{'':{width}}  {note}" for note in (*failure_of(one), *remarks(one))]
    files, failed = sum(one.handed_in for one in all_graded), sum(bool(one.failed) for one in all_graded)
    lines.append(f"{plural(files, 'file')}, {failed} could not be graded")
    return "\n".join(_MOVES.sub(lambda found: repr(found[0])[1:-1], line) for line in lines)


def points_of(one: Graded) -> str:
    """The points of a file and the most that it could have: `8/10`."""
    return f"{float(one.score):g}/{one.score.max:g}"


def notes_on(one: Graded) -> list[str]:
    """All sentences about a file, first why it could not be graded."""
    return [*failure_of(one), *one.notes]


def failure_of(one: Graded) -> list[str]:
    return [f"Not graded: {one.failed}"] if one.failed else []
