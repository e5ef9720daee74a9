"""An exercise from its solution. The solution is what people write; the student's form and the marks follow from it.

    ### BEGIN SOLUTION
    ...                     # becomes nbgrader's own stub, so that its generate_assignment makes the same cells
    ### END SOLUTION

    dtflab.predict("topic/q1", "CE")     # the right letters become ""

Rules: nothing about grading is written twice. The cell of an answer is known by these marks, the cell that grades by
its call `dtflab.grade("topic/q1")`; ids and points come from the questions. A source that breaks a rule is refused,
with its line: a teacher must not find out from students.
"""

from __future__ import annotations

import re
from typing import Any

from dtflab.grading.catalogue import find

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = ("# YOUR CODE HERE", "raise NotImplementedError()")
_PREDICTS = re.compile(r'^(dtflab\.predict\("[\w/]+", )"\w*"\)$', re.MULTILINE)
_GRADES = re.compile(r'^dtflab\.grade\("([\w/]+)"\)$', re.MULTILINE)


class SourceError(ValueError):
    """A solution that no exercise can be made of."""


def student_version(source: str) -> str:
    """The text with solutions cut out, each replaced by a stub that raises NotImplementedError, and without letters."""
    kept: list[str] = []
    inside = 0  # the line where the solution began
    for number, line in enumerate(source.split("\n"), 1):
        if BEGIN in line or END in line:
            if (BEGIN in line) == bool(inside):
                why = f"after that of line {inside}" if inside else "without a begin"
                raise SourceError(f"line {number}: {line.strip()!r} {why}")
            if not inside:
                indent = line[: len(line) - len(line.lstrip())]
                kept += [indent + text for text in STUB]
            inside = 0 if inside else number
        elif not inside:
            kept.append(line)
    if inside:
        raise SourceError(f"line {inside}: a solution begins but never ends ({END} is missing)")
    return without_letters("\n".join(kept))


def without_letters(source: str) -> str:
    """The text with the right letters of a prediction taken out; it runs as it stands, and asks to choose."""
    return _PREDICTS.sub(r'\1"")', source)


def cell_metadata(cells: list[str]) -> list[dict[str, Any]]:
    """nbgrader's metadata for each cell of code of a solution, {} for those that it need not know.

    An answer is followed by the cell that grades it, and no question is asked twice.
    """
    found: list[dict[str, Any]] = [{} for _ in cells]
    answers: list[int] = []
    asked: list[str] = []
    for i, cell in enumerate(cells):
        if BEGIN in cell:
            answers.append(i)
        for id in _GRADES.findall(cell):
            if not answers or id in asked or _last_line(cell) != f'dtflab.grade("{id}")':
                raise SourceError(f"{id}: it needs a solution before it, is asked once, and ends its cell")
            name = id.replace("/", "-")
            found[i] = _nbgrader(name, grade=True, points=find(id).part(hidden=False).points)
            for part, answer in enumerate(answers):
                found[answer] = _nbgrader(f"{name}-answer{part or ''}", grade=False)
            answers, asked = [], [*asked, id]
    if answers or not asked:
        raise SourceError('each solution is followed by the cell that grades it: dtflab.grade("topic/q1")')
    return found


def _last_line(cell: str) -> str:
    return cell.rstrip().rpartition("\n")[2]


def _nbgrader(grade_id: str, grade: bool, points: int | None = None) -> dict[str, Any]:
    """Version 3 of its metadata; the cell that grades is locked, so that autograde restores it."""
    kind = {"grade": grade, "grade_id": grade_id, "locked": grade}
    kind |= {"schema_version": 3, "solution": not grade, "task": False}
    return {"nbgrader": kind | ({"points": points} if points is not None else {})}
