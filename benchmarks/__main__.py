"""Runs the workloads, the libraries in turns, and prints the table.

python -m benchmarks [--only NAME … | --write] [--json FILE] [--rounds N]

All rows are printed, also those that have no bar and those that miss theirs. `--write` also rewrites the section
`bench` of docs/measured.md.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from typing import Any

from benchmarks.measured import Report, add_write, load, processor
from benchmarks.players import MODULES, Player, environment
from benchmarks.workloads import WORKLOADS, Row, Workload

_HOW = (
    "The best round of each; a round is its best batch, or between processes the median of its calls. bare: NumPy\n"
    "kernels, or a socket with the same bytes; *: as many steps of dtflab that do nothing. Where bare is worse than\n"
    "the bar, a value within 1.25 times of it does: “yes (floor)”."
)
_NEAR = 1.25


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    which = arguments.add_mutually_exclusive_group()
    which.add_argument("--only", metavar="NAME", nargs="+", choices=WORKLOADS, help=", ".join(WORKLOADS))
    add_write(which)
    arguments.add_argument("--json", metavar="FILE", help="write machine and values there, too")
    arguments.add_argument("--rounds", metavar="N", type=int, help="turns per workload instead of its own number")
    options = arguments.parse_args()
    report = Report("bench")
    report.print(f"{machine()}\n{load()} at the beginning\n{_HOW}")
    report.print("\n" + _line("", *MODULES, "÷ TensorFlow", "÷ bare", "   bar"))
    results = []
    with contextlib.ExitStack() as closing:
        players = {library: closing.enter_context(contextlib.closing(Player(library))) for library in MODULES}
        for name in options.only or WORKLOADS:
            workload = WORKLOADS[name]
            for row in play(name, workload, players, options.rounds or workload.rounds):
                report.print(_line(row["row"], *_cells(row, workload.empty is not None)))
                results.append(row)
    verdicts = collections.Counter(row["verdict"] for row in results if row["verdict"])
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
    report.print(f"\n{load()} at the end; bars: {counted}")
    if options.write:
        report.write()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "rows": results}, file, indent=1, ensure_ascii=False)


def play(name: str, one: Workload, players: dict[str, Player], rounds: int) -> list[dict[str, Any]]:
    """The best value of every library for every row; they take turns, so that a busy minute hits all."""
    turns = [("dtflab", "dtflab", "prepare")]  # the column, the player, and what it measures
    if one.in_tensorflow:
        turns.append(("TensorFlow", "TensorFlow", "prepare"))
    if one.bare:
        turns.append(("bare", "bare", "bare"))
    if one.empty:
        turns.append(("bare", "dtflab", "empty"))
    seen: dict[str, list[list[float]]] = {}
    for _ in range(rounds):
        for column, player, part in turns:
            seen.setdefault(column, []).append(players[player].measure(name, part))
    rows = []
    for i, (text, row) in enumerate(one.rows.items()):
        best = max if row.more_is_better else min
        values = {  # a column without the last rows has fewer values
            column: best(values[i] for values in measured) for column, measured in seen.items() if i < len(measured[0])
        }
        rows.append({"workload": name, "row": text, "unit": row.unit, **values, **judged(row, values)})
    return rows


def judged(row: Row, values: dict[str, float]) -> dict[str, Any]:
    """The bar, and the verdict: "yes (number)", "yes (floor)" or "NO"; None where there is nothing to reach.

    A floor counts only where it is worse than the number, so that nothing could reach that.
    """
    sign = "≥" if row.more_is_better else "≤"
    if row.aim is not None:
        return {"bar": f"aim {row.aim:g} {row.unit}", "verdict": None}
    if row.limit is not None:
        text, number = f"{sign} {row.limit:g} {row.unit}", row.limit
    elif row.bar is not None:
        of = "" if row.against == "TensorFlow" else f" of {row.against}"
        text, number = f"{sign} {row.bar:g}{of}", row.bar * values[row.against]
    else:
        return {"bar": None, "verdict": None}
    if row.or_bare is not None:
        text += f" or {row.or_bare:g} of bare"
    if not _worse(row, values["dtflab"], number):
        return {"bar": text, "verdict": "yes (number)"}
    floor = _floor_to_reach(row, values.get("bare"), number)
    return {"bar": text, "verdict": "NO" if floor is None or _worse(row, values["dtflab"], floor) else "yes (floor)"}


def _floor_to_reach(row: Row, bare: float | None, number: float) -> float | None:
    """A value near the floor that does as well as the number; None where only the number counts.

    The value that a row is compared with is not its floor.
    """
    if bare is None or row.against == "bare":
        return None
    if row.or_bare is not None:
        return row.or_bare * bare
    if not _worse(row, bare, number):
        return None
    return bare / _NEAR if row.more_is_better else bare * _NEAR


def _worse(row: Row, value: float, other: float) -> bool:
    return value < other if row.more_is_better else value > other


def _cells(row: dict[str, Any], empty: bool) -> list[str]:
    """The values, the ratios, and the bar with the verdict, as they are printed."""
    values = [_text(row.get(column), row["unit"]) for column in MODULES]
    ratios = [f"{row['dtflab'] / row[other]:.2f}" if other in row else "" for other in ("TensorFlow", "bare")]
    return [*values, *ratios, f"{'*' if empty else ' '}  {row['bar'] or '':<24}{row['verdict'] or ''}".rstrip()]


def machine() -> str:
    """Where this was measured, and with what."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "grpcio", "tensorflow")]
    python = f"Python {platform.python_version()}"
    return f"{processor()}, {os.cpu_count()} cores, {python}, {', '.join(versions)}, {_blas()}"


def _blas() -> str:
    """NumPy's BLAS and its kernels, as the players have it."""
    program = (
        "import numpy, threadpoolctl as t; "
        "print(*(f\"{i['internal_api']} {i['version']} {i.get('architecture', '')}\" for i in t.threadpool_info()))"
    )
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=True).stdout.strip()


def _text(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if value >= 100 else 1 if value >= 10 else 3
    return f"{value:,.{digits}f} {unit}"


def _line(row: str, *cells: str) -> str:
    widths = [16] * len(MODULES) + [14, 9]
    return f"{row:<60}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths)) + cells[-1]


if __name__ == "__main__":
    sys.exit(main())
