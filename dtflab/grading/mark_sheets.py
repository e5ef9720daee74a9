"""The marks of many submissions: a table for the terminal, CSV with nbgrader's columns, JSON, a page. Pure functions.

Rule: a page holds nothing that a submission could have written as HTML; its words are escaped, its pictures are not
shown.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dtflab.base.text_table import plural
from dtflab.grading import report_pages as pages
from dtflab.grading.batch import Graded
from dtflab.viz.drawing.svg import Markup, join, tag

# Those of `nbgrader export`; the names, the address and the due date are in nbgrader's database only.
COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)
_COUNTED = "Cells of text do not count: cell 3 is the third cell of code."
_FORMULA = re.compile(r"^[=+\-@\t\r]")


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
        "counts": one.counts,
        "failed": one.failed,
        "notes": one.notes,
        "seconds": round(one.seconds, 2),
        "output": one.output,
        **one.score.json,
    }


def text(all_graded: Sequence[Graded]) -> str:
    """A line per file, and what is to be said about it."""
    width = max((len(one.submission.student) for one in all_graded), default=0)
    lines = []
    for one in all_graded:
        lines.append(f"{one.submission.student:{width}}  {_points(one):>9}  {one.submission.assignment}")
        lines += [f"{'':{width}}  {note}" for note in _notes(one)]
    failed = sum(bool(one.failed) for one in all_graded)
    lines.append(f"{_files(all_graded)}, {failed} could not be graded")
    return "\n".join(lines)


def _files(all_graded: Sequence[Graded]) -> str:
    return plural(sum(one.handed_in for one in all_graded), "file")


def _points(one: Graded) -> str:
    return f"{float(one.score):g}/{one.score.max:g}"


def _notes(one: Graded) -> list[str]:
    return [*([f"Not graded: {one.failed}"] if one.failed else []), *one.notes]


def html(all_graded: Sequence[Graded]) -> str:
    """A page of its own: the table of all, then each one's report."""
    head = tag("tr", *(tag("th", name, scope="col") for name in ("student", "assignment", "points", "")))
    rows = (_row(number, one) for number, one in enumerate(all_graded))
    table = tag("table", tag("thead", head), tag("tbody", join(rows)), class_="all")
    title = f"Marks of {_files(all_graded)}"
    sections = (_section(number, one) for number, one in enumerate(all_graded))
    body = tag("body", tag("h1", title), table, tag("p", _COUNTED), *sections)
    style = Markup(Path(__file__).with_suffix(".css").read_text(encoding="utf-8"))
    top = tag("head", Markup('<meta charset="utf-8">'), tag("title", title), tag("style", style))
    return f"<!DOCTYPE html>\n{tag('html', top, body, lang='en')}\n"


def _row(number: int, one: Graded) -> Markup:
    name = tag("a", one.submission.student, href=f"#file-{number}")
    note = tag("div", f"Not graded: {one.failed}", class_="failed") if one.failed else _counted(one)
    points = tag("td", _points(one), class_="number")
    return tag("tr", tag("td", name), tag("td", one.submission.assignment), points, tag("td", note))


def _counted(one: Graded) -> str:
    """The first note, and how many more there are."""
    first, *others = one.notes or [""]
    return f"{first} (and {plural(len(others), 'more note')})" if others else first


def _section(number: int, one: Graded) -> Markup:
    title = tag("h2", f"{one.submission.student} · {one.submission.assignment} · {_points(one)}", id=f"file-{number}")
    notes = [tag("p", note, class_="failed" if one.failed else None) for note in _notes(one)]
    return join([title, *notes, Markup(pages.html(one.reports)), *_printed(one.output.strip())])


def _printed(output: str) -> list[Markup]:
    """The cells' printed output, folded: the exercise's own cells print the same for each student."""
    if not output:
        return []
    return [tag("details", tag("summary", f"Printed: {plural(len(output.splitlines()), 'line')}"), tag("pre", output))]
