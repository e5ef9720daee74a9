"""Write docs/interop.md: which programs run on which mixed clusters, by running them.

`python docs/interop.py` with TensorFlow installed; two minutes. `tests/interop/test_table.py` holds its rows and
columns to the tests that there are.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("interop.md")
sys.path.insert(0, str(TARGET.parent.parent))

from tests.interop import programs  # noqa: E402
from tests.interop.lab import MASTERS, WAYS, Way  # noqa: E402
from tests.interop.programs import rewriting  # noqa: E402

PASSED = {"passed": "✓", "failed": "✗"}
Results = dict[tuple[str, str], str]  # (test, how it was run) → outcome


class Outcomes:
    """A plugin of pytest that keeps what became of each test."""

    def __init__(self) -> None:
        self.found: Results = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.failed:
            name, _, parameters = report.nodeid.partition("[")
            self.found[name.rpartition(":")[2], parameters.rstrip("]")] = PASSED.get(report.outcome, "–")


def tests() -> list[tuple[str, str, str]]:
    """(test, its program's id, what it says of it) of each row."""
    rows = [("test_alone", f.__name__, _first_line(f)) for f in programs.ALONE]
    rows += [("test_together", f"{f.__name__}-{g.__name__}", _first_line(f)) for f, g in programs.TOGETHER]
    rows += [("test_afterwards", f"{f.__name__}-{g.__name__}", _first_line(f)) for f, g in programs.AFTERWARDS]
    return rows


def _first_line(function: Any) -> str:
    return str(function.__doc__).strip().partition("\n")[0]


def clusters() -> list[Way]:
    """The columns: each stands for both masters."""
    return [way for way in WAYS if way.master == "ps"]


def page(results: Results) -> str:
    """The whole page."""
    short = {"TensorFlow": "T", "dtflab": "d"}
    columns = clusters()
    lines = [
        "# Mixed clusters",
        "",
        "Written by `docs/interop.py`, which ran `tests/interop`. A column is a cluster: client, parameter server,",
        "worker, each TensorFlow (T) or dtflab (d). The first mark is for the parameter server as the session's",
        "master, the second for the worker. ✓: the values, errors and traces are those of TensorFlow alone.",
        "Processes of dtflab use a wire of their own among themselves, and gRPC with all others. TLS: d d d, where",
        "processes take certificates from `DTFLAB_CREDENTIALS`, and all is gRPC; TensorFlow's servers have no TLS.",
        "",
        "`dtflab.conformance(fetches, feeds)` compares a step of your own with TensorFlow's.",
        "",
        "| program | " + " | ".join(" ".join(short[kind] for kind in way[:3]) for way in columns) + " | TLS |",
        "| --- |" + " --- |" * (len(columns) + 1),
    ]
    for test, program, text in tests():
        cells = ["".join(results.get((test, f"{program}-{w}"), "?") for w in (way, way._replace(master="worker")))
                 for way in columns]  # fmt: skip
        cells.append("".join(results.get((f"{test}_over_tls", f"{program}-{master}"), "") for master in MASTERS))
        lines.append(f"| `{program.replace('-', '`, `')}`: {text} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Two programs in a row: two clients of different kinds; the column names the first.",
        "Session handles work where the value's task is dtflab's; TensorFlow's tasks have none.",
        "",
        "## What a TensorFlow master rewrites",
        "",
        "The ops that a worker gets instead of those that the client's program made. ✓: a dtflab worker runs them, for",
        "clients of both kinds, with the values of the graph as it was written.",
        "",
        "| program | ops | |",
        "| --- | --- | --- |",
    ]
    for name, (_, made) in rewriting.MADE.items():
        marks = "".join(results.get(("test_a_tensorflow_master_rewrites", f"{name}-{k}"), "?") for k in short)
        lines.append(f"| `{name}` | {', '.join(f'`{op}`' for op in sorted(made)) or 'none of its own'} | {marks} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the tests and write the page."""
    import pytest

    outcomes = Outcomes()
    folder = TARGET.parent.parent / "tests" / "interop"
    pytest.main(["-q", str(folder / "test_matrix.py"), str(folder / "test_rewrites.py")], plugins=[outcomes])
    TARGET.write_text(page(outcomes.found), encoding="utf-8")


if __name__ == "__main__":
    main()
