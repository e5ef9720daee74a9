"""Score: a mark that is a number for nbgrader and a table for people.

Rules, measured on nbgrader 0.9.6: it reads the `text/plain` of the cell's value as a number. A mark that is not a
number, negative or NaN counts as full marks, more than the cell's points stops the grading, a word on stderr before it
gets none. So a Score is finite, between 0 and its maximum, its repr is that number, and it is the last expression of
the cell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dtflab.grading import report_pages as pages
from dtflab.grading.judge import Report

JSON = "application/vnd.dtflab.score+json"


class Score(float):
    """Points of one or several answers. `.text` is the report, `.reports` its data, `.max` the points to be had."""

    reports: Sequence[Report]
    max: float

    def __new__(cls, reports: Sequence[Report]) -> Score:
        most = float(sum(report.question.points for report in reports))
        points = float(sum(report.points for report in reports))
        score = super().__new__(cls, min(max(points, 0.0), most) if math.isfinite(points) else 0.0)
        score.reports, score.max = reports, most
        return score

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.reports,)  # what a copy is made of; a float's own would be the number

    @property
    def text(self) -> str:
        return pages.text(self.reports)

    @property
    def html(self) -> str:
        return pages.html(self.reports)

    @property
    def json(self) -> dict[str, Any]:
        """Everything as plain data: for a teacher's scripts."""
        return {"points": float(self), "max": self.max, "questions": [pages.data(report) for report in self.reports]}

    def __str__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self.html, JSON: self.json}
