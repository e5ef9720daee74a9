"""Folders of a class: checks, submissions, marks."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from dtflab.grading import judge
from tests.grading.classroom import CHECKS

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """A mark is worth ten answers, each with seconds of its own: on a busy machine that is long."""
    for item in items:
        if item.path.parent == HERE and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(autouse=True)
def no_limit_by_the_clock(monkeypatch):
    """An answer has its own seconds: the machine of the tests may be busy for longer than a cell of a notebook has."""
    monkeypatch.setattr(judge, "CELL", math.inf)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The checks, the submissions, and a place for the marks."""
    base = tmp_path_factory.mktemp("class")
    checks, work, marks = base / "checks", base / "ex9", base / "marks"
    for folder in (checks, work, marks):
        folder.mkdir()
    (checks / "numbers.py").write_text(CHECKS)
    return checks, work, marks
