"""Prints how good the dynamic placer is, in modelled time, and how long it takes, in real time.

python -m benchmarks.placer [--seeds N] [--ops N] [--write]

First the suite of `benchmarks/placement_suite.py`: makespans of one training step compared with the best single device,
the placement by hand and one in turns. Then random graphs of 4 to 9 ops on three devices, for which all placements are
tried (`--ops 12` takes half a minute for each of the largest). Last 5,000 ops on eight GPUs and a CPU. `--write`
rewrites the section `placer` of docs/measured.md.
"""

from __future__ import annotations

import argparse
import statistics
import time

from benchmarks.__main__ import machine
from benchmarks.measured import Report, add_write, load
from benchmarks.placement_suite import CASES, Case, best_of_all, layered, outcome, random_problem
from dtflab.placement.dynamic import best_assignment
from dtflab.placement.earliest_finish import by_time


def main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.placer", description=__doc__.splitlines()[0])
    arguments.add_argument("--seeds", metavar="N", type=int, default=20, help="small graphs of each size (default: 20)")
    arguments.add_argument("--ops", metavar="N", type=int, default=9, help="of the largest small graphs (default: 9)")
    add_write(arguments)
    options = arguments.parse_args()
    report = Report("placer")
    report.print(
        f"{machine()}\n\n{_line('one training step', 'nodes', 'dynamic', '÷ single', '÷ by hand', '÷ in turns', 's')}"
    )
    for name, make in CASES.items():
        report.print(_suite_line(name, make()))
    report.print("bars: ÷ single at most 1, ÷ by hand at most 1.062, with attention ÷ in turns at most 0.85\n")
    report.print(_line("three devices, ÷ the best of all", "graphs", "worst", "median", "greedy worst", "median", "s"))
    for count in range(4, options.ops + 1):
        report.print(_small_line(count, options.seeds))
    report.print("bars: worst at most 1.10, median at most 1.03\n")
    clock, processor = _seconds_for_5000()
    report.print(
        f"5,000 ops on 8 GPUs and a CPU: placed in {clock:.2f} s, {processor:.2f} s of processor time; bar: 2 s"
    )
    report.print(load())
    if options.write:
        report.write()


def _suite_line(name: str, case: Case) -> str:
    started = time.perf_counter()
    best_assignment(case.problem)
    seconds = time.perf_counter() - started
    found = outcome(case)
    by_hand = "" if found.by_hand is None else f"{found.dynamic / found.by_hand:.3f}"
    ratios = f"{found.dynamic / found.single:.3f}", by_hand, f"{found.dynamic / found.in_turns:.3f}"
    nodes = f"{len(case.problem.unit_of):,}"
    return _line(name, nodes, f"{1e3 * found.dynamic:.1f} ms", *ratios, f"{seconds:.2f}")


def _small_line(count: int, seeds: int) -> str:
    started = time.perf_counter()
    ratios: dict[str, list[float]] = {"dynamic": [], "greedy": []}
    for seed in range(seeds):
        problem = random_problem(seed, count)
        best = best_of_all(problem).makespan
        for name, place in (("dynamic", best_assignment), ("greedy", by_time)):
            ratios[name].append(problem.judge(place(problem))[0].makespan / best)
    cells = [f"{of(found):.3f}" for found in ratios.values() for of in (max, statistics.median)]
    return _line(f"{count} ops", str(seeds), *cells, f"{time.perf_counter() - started:.0f}")


def _seconds_for_5000() -> tuple[float, float]:
    """On the clock and on the processor: the best of three, for other programs may run next to this one."""
    problem, seconds = layered(0, layers=100, width=50, gpus=8).problem, []
    for _ in range(3):
        started, worked = time.perf_counter(), time.process_time()
        best_assignment(problem)
        seconds.append((time.perf_counter() - started, time.process_time() - worked))
    return min(seconds)


def _line(name: str, *cells: str) -> str:
    return f"{name:<34}" + "".join(f"{cell:>14}" for cell in cells)


if __name__ == "__main__":
    main()
