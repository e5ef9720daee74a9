"""Runs the workloads, the libraries in turns, and prints the table.

python -m benchmarks [--only NAME … | --write] [--json FILE] [--rounds N]

All rows are printed, also those that have no bar and those that miss theirs. `--write` also rewrites the section
`bench` of docs/measured.md.
"""

from __future__ import annotations

import argparse
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


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    which = arguments.add_mutually_exclusive_group()
    which.add_argument("--only", metavar="NAME", nargs="+", choices=WORKLOADS, help=", ".join(WORKLOADS))
    add_write(which)
    arguments.add_argument("--json", metavar="FILE", help="write machine and values there, too")
    arguments.add_argument("--rounds", metavar="N", type=int, help="turns per workload instead of its own number")
    options = arguments.parse_args()
    report = Report("bench")
    report.print(f"{machine()}\n\n{_line('', *MODULES, '÷ TensorFlow', '÷ bare', 'bar')}")
    results = []
    with contextlib.ExitStack() as closing:
        players = {library: closing.enter_context(contextlib.closing(Player(library))) for library in MODULES}
        for name in options.only or WORKLOADS:
            for row in play(name, WORKLOADS[name], players, options.rounds or WORKLOADS[name].rounds):
                cells = (_text(row.get(library), row["unit"]) for library in players)
                report.print(_line(row["row"], *cells, *_verdict(row)))
                results.append(row)
    missed = [row["row"] for row in results if row["reached"] is False]
    report.print(f"\n{load()}; rows that miss their bar: {len(missed)}")
    if options.write:
        report.write()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "rows": results}, file, indent=1, ensure_ascii=False)


def play(name: str, one: Workload, players: dict[str, Player], rounds: int) -> list[dict[str, Any]]:
    """The best value of every library for every row; they take turns, so that a busy minute hits all."""
    there = {"dtflab": True, "TensorFlow": one.in_tensorflow, "bare": one.bare is not None}
    taking_part = [player for library, player in players.items() if there[library]]
    seen: dict[str, list[list[float]]] = {}
    for _ in range(rounds):
        for player in taking_part:
            seen.setdefault(player.library, []).append(player.measure(name))
    rows = []
    for i, (text, row) in enumerate(one.rows.items()):
        best = max if row.more_is_better else min
        values = {  # a library without the last rows has fewer values
            library: best(values[i] for values in measured)
            for library, measured in seen.items()
            if i < len(measured[0])
        }
        rows.append({"workload": name, "row": text, "unit": row.unit, **values, **judged(row, values)})
    return rows


def judged(row: Row, values: dict[str, float]) -> dict[str, Any]:
    """The ratio that counts, the bar, and whether it is reached; None where there is none."""
    sign = "≥" if row.more_is_better else "≤"
    if row.limit is not None:
        reached = values["dtflab"] >= row.limit if row.more_is_better else values["dtflab"] <= row.limit
        return {"bar": f"{sign} {row.limit:g} {row.unit}", "reached": reached}
    if row.bar is None:
        return {"bar": None, "reached": None}
    ratio = values["dtflab"] / values[row.against]
    of = "" if row.against == "TensorFlow" else f" of {row.against}"
    return {
        "bar": f"{sign} {row.bar:g}{of}",
        "reached": ratio >= row.bar if row.more_is_better else ratio <= row.bar,
    }


def _verdict(row: dict[str, Any]) -> list[str]:
    """The ratios and the bar, as they are printed."""
    ratios = [f"{row['dtflab'] / row[other]:.2f}" if other in row else "" for other in ("TensorFlow", "bare")]
    word = {None: "", True: "  yes", False: "  NO"}[row["reached"]]
    return [*ratios, f"{row['bar'] or ''}{word}"]


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
    return f"{row:<58}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths)) + f"   {cells[-1]}"


if __name__ == "__main__":
    sys.exit(main())
