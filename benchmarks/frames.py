"""Prints how long a notebook waits for each picture, and for each move of a slider of the what-if demo.

python -m benchmarks.frames [--rounds N] [--write]

A frame is everything between a call and the text that JupyterLab receives: what is computed, laid out and written as
SVG or HTML. The pictures are those of `tests/viz/gallery.py`, the sliders those of `notebooks/src/demos/what_if.py`.
`--write` rewrites the section `frames` of docs/measured.md.
"""

from __future__ import annotations

import argparse
import runpy
import statistics
import time
from collections.abc import Callable
from functools import partial

from benchmarks.__main__ import machine
from benchmarks.measured import ROOT, Report, add_write, load
from dtflab import viz
from tests.viz.gallery import drawings

SLIDERS = {"network": ("1Gb/s", "10Gb/s", "100Gb/s"), "workers": (1, 3, 8, 32), "gpu": ("K40", "V100", "H100")}
PLACE = {"network": "10Gb/s", "workers": 4, "gpu": "K40"}  # of the other two sliders


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frames", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", metavar="N", type=int, default=9, help="frames of each picture (default: 9)")
    add_write(parser)
    options = parser.parse_args(arguments)
    report = Report("frames")
    report.print(f"{machine()}\n\n{_line('picture', 'median', 'slowest', 'size')}")
    with drawings() as pictures:
        for name, draw in pictures.items():
            report.print(_frames(name, [draw], options.rounds))
    report.print(f"\n{_line('slider moved', 'median', 'slowest', 'size')}")
    demo = runpy.run_path(str(ROOT / "notebooks" / "src" / "demos" / "what_if.py"))
    with demo["cluster"]:
        for name, values in SLIDERS.items():
            moves = [partial(demo["what_if"], **PLACE | {name: value}) for value in values]
            report.print(_frames(f"{name}: {', '.join(map(str, values))}", moves, options.rounds))
    report.print(f"\n{load()}")
    if options.write:
        report.write()


def _frames(name: str, draws: list[Callable[[], viz.Picture]], rounds: int) -> str:
    """The first round is not counted: it imports what the picture needs."""
    seconds, size = [], 0
    for _ in range(rounds + 1):
        for draw in draws:
            started = time.perf_counter()
            size = max(size, len(draw().html))
            seconds.append(time.perf_counter() - started)
    counted = seconds[len(draws) :]
    return _line(name, *(f"{1e3 * of(counted):.1f} ms" for of in (statistics.median, max)), f"{size / 1e3:.0f} KB")


def _line(name: str, *cells: str) -> str:
    return f"{name:<34}" + "".join(f"{cell:>14}" for cell in cells)


if __name__ == "__main__":
    main()
