"""docs/faults.md is what its figures say, and these are of the faults, moments and engines that there are."""

from __future__ import annotations

import importlib.util
import json

import pytest

from tests.faults import cases
from tests.faults.moments import MOMENTS
from tests.house import ROOT

PATH = ROOT / "docs" / "faults.py"
FIGURES = json.loads(PATH.with_suffix(".json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def writer():
    spec = importlib.util.spec_from_file_location("faults_page", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_its_figures_say(writer):
    assert PATH.with_suffix(".md").read_text(encoding="utf-8") == writer.page(FIGURES), "python docs/faults.py"
    assert json.loads(writer.as_text(FIGURES)) == FIGURES


def test_the_figures_are_of_the_cases_that_there_are(writer):
    assert set(FIGURES) == {*cases.ENGINES, *writer.RUNS}
    for engine in cases.ENGINES:
        assert [tuple(row[:3]) for row in FIGURES[engine]["rows"]] == list(cases.all_cases(engine)), engine


def test_every_killed_task_was_reported_and_came_back():
    """On whichever engine, TensorFlow's included; of Dask's tasks, a new session waits for the next life."""
    killed = [row for found in FIGURES.values() for row in found.get("rows", ()) if row[0] == "killed"]
    assert not [row for row in killed if row[6] or not (row[3].endswith("Error") or row[3] == "goes on")]


@pytest.mark.parametrize("engine", cases.OF_DTFLAB)
def test_no_case_waits_and_every_task_is_accepted_again(engine):
    assert not [row for row in FIGURES[engine]["rows"] if row[3] == "waits" or row[6]]


def test_the_page_counts_what_was_seen(writer):
    rows = [("killed", moment, "a ps", "UnavailableError", "gone", 0.5, "") for moment in MOMENTS]
    assert f"{len(rows)} of {len(rows)} end with an error within 0.50 s; {len(rows)} work again" in writer._summed(rows)
    rows[0] = (*rows[0][:3], "waits", "still waiting", 6.0, "AbortedError: again")
    assert f"{len(rows) - 1} of {len(rows)} end with an error" in writer._summed(rows)
    assert "**afterwards AbortedError: again**" in writer._cell(rows[0][3:], {("waits", "still waiting"): "a"})
