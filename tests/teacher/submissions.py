"""Submissions to one exercise, for graders of other people."""

from __future__ import annotations

from typing import Any

from notebooks import build
from tests.house import ROOT

NAME = "ex01_placement"
SOURCE = ROOT / "solutions" / f"{NAME}.py"
STUB = "raise NotImplementedError()"
EXAM = """
from dtflab.grading import demand_rule, dense_net, find

@find("placement/q1").check("Seven ps tasks", points=2)
def seven(answer, random):
    return demand_rule(answer, dense_net(random), 7)  # known to nobody
"""


def _solution() -> str:
    """The answer of a student who is right, in the place of the stub."""
    lines = SOURCE.read_text(encoding="utf-8").split("\n")
    first, last = (next(i for i, line in enumerate(lines) if mark in line) for mark in ("### BEGIN", "### END"))
    return "\n".join(lines[first + 1 : last]).lstrip()


SOLUTION = _solution()


def answered(code: str) -> Any:
    """The exercise with `code` in the place of the stub."""
    notebook = build.exercise(SOURCE)
    cell = next(cell for cell in notebook.cells if STUB in cell.source)
    cell.source = cell.source.replace(STUB, code)
    return notebook
