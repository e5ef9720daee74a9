"""The demo of four engines: one program, four clusters, one accuracy, four timelines."""

from __future__ import annotations

import importlib.util
import re
import runpy

import pytest

from tests.house import ROOT
from tests.notebooks.lessons import lessons, wrong

ENGINES = {"inprocess": "dtflab", "process": "dtflab", "tensorflow": "tensorflow", "dask": "distributed"}
ACCURACY = re.compile(r"^(\w+) +accuracy ([\d.]+)%, \d+ ms", re.M)
pytestmark = pytest.mark.timeout(900)


@lessons("demos/engines")
def test_runs_clean_twice_in_one_kernel(ran, record_property):
    record_property(f"{ran.name}, both runs", f"{ran.seconds:.0f} s")
    assert wrong(ran.notebook) == []


@lessons("demos/engines")
def test_all_engines_reach_the_same_accuracy(ran):
    reached = {engine: float(accuracy) for engine, accuracy in ACCURACY.findall(ran.shown)}
    assert list(reached) == [engine for engine, package in ENGINES.items() if importlib.util.find_spec(package)]
    assert max(reached.values()) - min(reached.values()) <= 1.0 and min(reached.values()) > 90, reached


@lessons("demos/engines")
def test_each_engine_has_a_timeline_of_a_worker_and_its_parameter_server(ran):
    half = ran.notebook.cells[: len(ran.notebook.cells) // 2]
    shown = [output.get("data", {}).get("text/html", "") for cell in half for output in cell.get("outputs", [])]
    pictures = [html for html in shown if "<svg" in html]
    titles = [re.findall(r"Engine (\w+)<", html)[0] for html in pictures]
    assert titles == [engine for engine in ENGINES if importlib.util.find_spec(ENGINES[engine])]
    for html in pictures:
        assert all(name in html for name in ("ps:0", "worker:0", "receives", "weights"))


def test_engines_whose_packages_are_missing_are_named_and_left_out(tmp_path, monkeypatch, capsys):
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in ("tensorflow", "distributed") else there(name)
    )
    text = (ROOT / "notebooks" / "src" / "demos" / "engines.py").read_text(encoding="utf-8")
    (tmp_path / "engines.py").write_text(text.replace("tf.logging", "# tf.logging"), encoding="utf-8")
    demo = runpy.run_path(str(tmp_path / "engines.py"), {"display": print})
    said = capsys.readouterr().out
    assert demo["engines"] == list(demo["traces"]) == ["inprocess", "process"]
    assert 'tensorflow is missing: pip install "dtflab[tensorflow]"' in said
    assert 'dask       is missing: pip install "dtflab[dask]"' in said
    assert [engine for engine, _ in ACCURACY.findall(said)] == ["inprocess", "process"]
