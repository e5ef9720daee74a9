'''Questions as tests of otter-grader: a file in OK format for each, a test case for each check.

    test = {'name': 'placement-q1', 'points': None, 'suites': [{'cases': [{'code': """
        >>> dtflab.check("placement/q1", "kinds")
        True
        """, 'points': 3, …}, …

Rule: nothing of a check is in the file, so nothing can be read from it; what a check has to say it prints, and otter
shows it where True was expected.
'''

from __future__ import annotations

import pprint
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dtflab.grading.questions import Question


def export(questions: Sequence[Question], folder: Path) -> Iterator[Path]:
    """Write a file per question; gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for question in questions:
        path = folder / f"{name_of(question)}.py"
        path.write_text(text(question), encoding="utf-8")
        yield path


def name_of(question: Question) -> str:
    """The name of its test: `grader.check("placement-q1")`."""
    return question.id.replace("/", "-")


def text(question: Question) -> str:
    """The file's text."""
    suite = {"cases": _cases(question), "scored": True, "setup": "", "teardown": "", "type": "doctest"}
    test = {"name": name_of(question), "points": None, "suites": [suite]}
    return f"OK_FORMAT = True\n\ntest = {pprint.pformat(test, width=100, sort_dicts=False)}\n"


def _cases(question: Question) -> list[dict[str, Any]]:
    """The test cases of a question, one for each public check."""
    code, shown = '>>> import dtflab\n>>> dtflab.check("{}", "{}")\nTrue', {"hidden": False, "locked": False}
    checks = question.part(hidden=False).checks
    return [{"code": code.format(question.id, check.name), **shown, "points": check.points} for check in checks]
