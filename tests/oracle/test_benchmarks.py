"""The benchmarks run; what they measure is nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.house import ROOT

pytest.importorskip("tensorflow")


def test_a_workload_runs_on_both_libraries(tmp_path):
    file = tmp_path / "values.json"
    command = [sys.executable, "-m", "benchmarks", "--only", "scalar-local", "--rounds", "1", "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    written = json.loads(file.read_text())
    (row,) = written["rows"]
    assert row["unit"] == "µs" and row["dtflab"] > 0 and row["TensorFlow"] > 0
    assert written["machine"] in done.stdout and row["row"] in done.stdout
    assert done.stderr == ""
