"""The benchmarks run; what they measure is nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.__main__ import judged
from benchmarks.workloads import WORKLOADS, Row
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
        assert row["bar"] == "≤ 0.15" and row["reached"] == (row["dtflab"] / row["TensorFlow"] <= 0.15)
        assert row["row"] in done.stdout
    assert written["machine"] in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("row", "dtflab", "other", "reached"),
    [
        (Row("µs", 0.15), 14, 100, True),
        (Row("µs", 0.15), 16, 100, False),
        (Row("el/s", 5), 500, 100, True),
        (Row("el/s", 5), 499, 100, False),
        (Row("µs"), 1, 100, None),
        (Row("s", limit=15), 15, 1, True),
        (Row("s", limit=15), 16, 100, False),
        (Row("M events/s", limit=0.8), 0.7, 0.1, False),
    ],
)
def test_a_bar_is_below_a_time_and_above_a_rate(row, dtflab, other, reached):
    assert judged(row, {"dtflab": dtflab, "TensorFlow": other})["reached"] is reached


def test_the_tables_of_the_issues():
    """Their rows have bars: what `make bench` prints."""
    bars = {name: row.bar for one in WORKLOADS.values() for name, row in one.rows.items() if row.bar is not None}
    processes = [0.5, 0.5, 0.5, 0.5, 0.6, 0.6, 1, 2, 2, 2, 0.3]
    runtime = [0.1, 0.15, 0.15, 0.2, 0.25, 0.3, 0.3, 0.3, 0.98, 1, 1, 1.5, 1.5, 1.8, 3, 5]
    networks = [0.4, 0.4]
    data = [0.8, 1, 1]
    engine = [3]
    assert sorted(bars.values()) == sorted(processes + runtime + networks + data + engine)
    limits = {name: row.limit for one in WORKLOADS.values() for name, row in one.rows.items() if row.limit is not None}
    assert sorted(limits.values()) == [0.2, 0.8, 1, 15, 40]  # of the simulator
