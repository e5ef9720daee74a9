"""docs/measured.md: a section per command, with date, commit and processor; a command rewrites only its own.

Rule: nothing is written unasked. `--write` measures the whole table, so that a section is never half of one run.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from dtflab.base.page_parts import with_part

if TYPE_CHECKING:
    from dtflab.viz.curves import Curves

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "measured.md"
PICTURES = "measured"  # a folder next to the page


class Report:
    """Lines that are printed as they come, and written to the page when all are there."""

    def __init__(self, section: str) -> None:
        self.section = section
        self.lines: list[str] = []
        self._pictures: dict[str, Curves] = {}

    def print(self, line: str = "") -> None:
        """Print a line, or several."""
        self.lines.append(line)
        print(line, flush=True)

    def picture(self, name: str, curves: Curves) -> None:
        """Show curves at this place of the page."""
        self._pictures[f"{PICTURES}/{name}.svg"] = curves
        self.lines += ["```", "", f"![{curves.table[0]}]({PICTURES}/{name}.svg)", "", "```text"]

    def write(self) -> None:
        """Rewrite the section with what was printed, and its pictures."""
        for path, curves in self._pictures.items():
            (PAGE.parent / path).parent.mkdir(exist_ok=True)
            curves.save(PAGE.parent / path)
        today, commit = datetime.date.today().isoformat(), _commit()
        text = "\n".join([f"Measured on {today} at {commit}.", "", "```text", *self.lines, "```"])
        PAGE.write_bytes(with_part(PAGE.read_bytes().decode(), self.section, text).encode())
        print(f"\nwrote the section {self.section} of {PAGE}")


def add_write(arguments: argparse._ActionsContainer) -> None:
    """The option that all these commands have."""
    arguments.add_argument("--write", action="store_true", help="rewrite this command's section of docs/measured.md")


def processor() -> str:
    """The processor's name, as its system gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def load() -> str:
    """How busy the machine is: one program of these tables keeps one to two processors busy by itself."""
    return "load average " + ", ".join(f"{load:.1f}" for load in os.getloadavg())


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "an unknown commit"  # a copy without its repository, as on a borrowed GPU machine
