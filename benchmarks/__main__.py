"""Runs the workloads, the libraries in turns, and prints the table.

python -m benchmarks [--only NAME …] [--json FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any

from benchmarks.players import MODULES, Player
from benchmarks.workloads import WORKLOADS, Workload


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    arguments.add_argument("--only", metavar="NAME", nargs="+", choices=WORKLOADS, help=", ".join(WORKLOADS))
    arguments.add_argument("--json", metavar="FILE", help="write machine and values there, too")
    arguments.add_argument("--rounds", metavar="N", type=int, help="turns per workload instead of its own number")
    options = arguments.parse_args()
    chosen = {name: one for name, one in WORKLOADS.items() if name in (options.only or WORKLOADS)}
    players = {library: Player(library) for library in MODULES}
    print(f"{machine()}\n\n{_line('', *players, 'dtflab ÷ TensorFlow')}", flush=True)
    results = []
    for name, one in chosen.items():
        for row in play(name, one, players, options.rounds or one.rounds):
            print(
                _line(row["row"], *(_text(row.get(library), row["unit"]) for library in players), verdict(row)),
                flush=True,
            )
            results.append(row)
    for player in players.values():
        player.close()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": machine(), "rows": results}, file, indent=1, ensure_ascii=False)


def play(name: str, one: Workload, players: dict[str, Player], rounds: int) -> list[dict[str, Any]]:
    """The best value of every library for every row; they take turns, so that a busy minute hits all."""
    taking_part = [p for library, p in players.items() if library != "bare" or one.bare is not None]
    seen: dict[str, list[list[float]]] = {}
    for _ in range(rounds):
        for player in taking_part:
            seen.setdefault(player.library, []).append(player.measure(name))
    rows = []
    for i, (row, unit) in enumerate(one.rows.items()):
        best = max if unit.endswith("/s") else min
        values = {
            library: best(values[i] for values in measured if i < len(values)) for library, measured in seen.items()
        }
        rows.append({"workload": name, "row": row, "unit": unit, **values})
    return rows


def verdict(row: dict[str, Any]) -> str:
    """The ratio; where more is better, it should be above 1."""
    more = "  (more is better)" if row["unit"].endswith("/s") else ""
    return f"{row['dtflab'] / row['TensorFlow']:.2f}{more}"


def machine() -> str:
    """Where this was measured, and with what."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "grpcio", "tensorflow")]
    return f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {', '.join(versions)}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _text(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    digits = 0 if value >= 100 else 1 if value >= 10 else 3
    return f"{value:,.{digits}f} {unit}"


def _line(row: str, *cells: str) -> str:
    return f"{row:<58}" + "".join(f"{cell:>16}" for cell in cells[:-1]) + f"   {cells[-1]}"


if __name__ == "__main__":
    sys.exit(main())
