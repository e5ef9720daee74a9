"""The benchmarks run; what they measure is nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.workloads import WORKLOADS
from tests.house import ROOT

pytest.importorskip("tensorflow")


def test_a_workload_runs_on_both_libraries(tmp_path):
    file = tmp_path / "values.json"
    command = [sys.executable, "-m", "benchmarks", "--only", "scalar-local", "--rounds", "1", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    written = json.loads(file.read_text())
    assert [row["row"] for row in written["rows"]] == list(WORKLOADS["scalar-local"].rows)
    for row in written["rows"]:
        assert row["unit"] == "µs" and row["dtflab"] > 0 and row["TensorFlow"] > 0
        assert row["bar"] == "≤ 0.15" and row["verdict"] in ("yes (number)", "NO")
        assert row["row"] in done.stdout
    assert written["machine"] in done.stdout
    assert done.stderr == ""


def test_the_tables_of_the_issues():
    """Their rows have bars, and some aims."""
    rows = [row for one in WORKLOADS.values() for row in one.rows.values()]
    processes = [0.3, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6, 1, 2, 2, 2]
    steps = [0.1, 0.15, 0.15, 0.2, 0.25, 0.3, 0.3, 0.3, 0.97, 1.5]
    data = [0.8, 1, 1, 1, 1, 1, 1, 1, 1.3, 2, 4]
    networks = [0.4, 0.7, 0.8, 0.8, 1.2, 1.5, 1.5]
    engine = [3]
    assert sorted(row.bar for row in rows if row.bar) == sorted(processes + steps + data + networks + engine)
    assert sorted(row.limit for row in rows if row.limit) == [0.2, 0.8, 1, 15, 40]  # of the simulator
    assert [row.aim for row in rows if row.aim] == [0.7, 5]


def test_the_rows_with_a_floor():
    """Issue 16 asks for one of each row of its tables."""
    without = {name for name, one in WORKLOADS.items() if not (one.bare or one.empty)}
    assert without == {
        *("start-threads", "scalar-local", "scalar-server", "graph"),
        *("queue-threads", "input", "data", "ps", "sim", "sim-runner", "all-reduce", "in-step"),
    }
