"""Prints how costs grow with size, side by side with TensorFlow, and draws the curves.

python -m benchmarks.scaling [--only CURVE … | --write] [--largest N]

Each curve has two new processes, one per library, which take turns at each size. `--largest` leaves out what is larger.
`--write` measures all of them, and rewrites the section `scaling` of docs/measured.md and the pictures in it.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import textwrap
from collections.abc import Sequence

from benchmarks.__main__ import machine
from benchmarks.curves import CURVES, Curve
from benchmarks.measured import Report, add_write, load
from benchmarks.players import Player
from dtflab import viz

_WIDTH = 118


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", metavar="CURVE", nargs="+", choices=CURVES, help=", ".join(CURVES))
    add_write(which)
    parser.add_argument("--largest", metavar="N", type=int, default=math.inf, help="leave out what is larger")
    options = parser.parse_args(arguments)
    report = Report("scaling")
    report.print(f"{machine()}\n{load()} at the beginning")
    for name in options.only or CURVES:
        if sizes := [size for size in CURVES[name].sizes if size <= options.largest]:
            show(CURVES[name], sizes, report)
    report.print(f"{load()} at the end")
    if options.write:
        report.write()


def show(one: Curve, sizes: Sequence[int], report: Report) -> None:
    """Measure a curve, print its table and draw it."""
    report.print("\n" + textwrap.fill(one.says, _WIDTH))
    largest = {"dtflab": math.inf} | ({"TensorFlow": one.in_tensorflow} if one.in_tensorflow else {})
    cell = 2 + max(map(len, [*largest, *one.lines]))
    report.print(_row(cell, one.unit, *(line for line in one.lines for _ in largest)))
    report.print(_row(cell, one.size, *[*largest] * len(one.lines)))
    rows = []
    with contextlib.ExitStack() as closing:
        players = [closing.enter_context(contextlib.closing(Player(library))) for library in largest]
        for size in sizes:
            values = [
                player.measure(one.name, str(size)) if size <= largest[player.library] else [math.nan] * len(one.lines)
                for player in players
            ]
            rows.append([value for line in zip(*values, strict=True) for value in line])
            report.print(_row(cell, f"{size:,}", *map(_text, rows[-1])))
    names = [_name(one, line, library) for line in one.lines for library in largest]
    lines = dict(list(zip(names, zip(*rows, strict=True), strict=True))[one.drawn * len(largest) :])
    seen = [value for line in lines.values() for value in line if not math.isnan(value)]
    wide = max(seen) > 10 * min(seen)
    report.picture(one.name, viz.curve(sizes, lines, one.size, one.unit, log=True, log_values=wide))


def _name(one: Curve, line: str, library: str) -> str:
    """The name of a line of the picture: what sets it apart from the others."""
    return line if not one.in_tensorflow else library if len(one.lines) == 1 else f"{line}, {library}"


def _text(value: float) -> str:
    return "" if math.isnan(value) else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _row(width: int, name: str, *cells: str) -> str:
    return f"{name:<24}" + "".join(f"{cell:>{width}}" for cell in cells)


if __name__ == "__main__":
    main()
