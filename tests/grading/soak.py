"""Grading a large class (`make soak-grade`): every mark is right, and the grader's memory is bounded. Linux only.

Honest and hostile submissions take turns. While `dtflab grade` runs, its memory, open files and threads are sampled.
Exit status 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.grading.classroom import ASKS, CHECKS, RIGHT, WRONG, command, percent
from tests.house import ROOT
from tests.soak.accounts import Sample, grown
from tests.soak.running import sample_of

PERIOD = 1.0  # seconds between two samples
# The cells of a student, and the points for them.
KINDS: dict[str, tuple[Sequence[str], float]] = {
    "right": ([RIGHT], 4),
    "wrong": ([WRONG], 1),
    "floods": (["print('x' * 3_000_000)", RIGHT], 4),
    "crashes": (["import ctypes\nctypes.string_at(0)", RIGHT], 4),
    "hogs": (["kept = bytearray(10**11)", RIGHT], 4),
    "dies": (["import os\ndef twice(n):\n    os._exit(0)"], 0),
    "forks": (["import os\nos.fork()", RIGHT], 4),
    "empty": ([], 0),
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.grading.soak", description="Grade a large class.")
    made.add_argument("--files", type=int, default=1000, metavar="N", help="submissions (%(default)s)")
    made.add_argument("--jobs", type=int, default=2, metavar="N", help="at a time (%(default)s)")
    return made


def hand_in(folder: Path, files: int) -> dict[str, float]:
    """Write that many submissions; the points that each must get."""
    points = {}
    for number, (kind, (cells, right)) in zip(range(files), itertools.cycle(KINDS.items())):
        student = f"{kind}{number:04}"
        (folder / f"{student}.py").write_text(percent(*cells, ASKS))
        points[student] = right
    return points


def grade(base: Path, jobs: int) -> tuple[int, list[Sample]]:
    """Grade the folder; the exit status, and what the grader held meanwhile."""
    options = [
        f"--checks={base / 'exam'}",
        f"--jobs={jobs}",
        *(f"--{form}={base / f'm.{form}'}" for form in ("csv", "html")),
    ]
    samples = []
    with subprocess.Popen(command(base / "ex9", *options), cwd=ROOT, stdout=subprocess.DEVNULL) as grader:
        try:
            while grader.poll() is None:
                with contextlib.suppress(OSError, KeyError):  # it has ended meanwhile
                    samples.append(sample_of(grader.pid))
                time.sleep(PERIOD)
        finally:
            grader.kill()
    return grader.returncode, samples


def wrong(base: Path, points: dict[str, float], status: int, samples: Sequence[Sample]) -> Iterator[str]:
    """The findings, a line each."""
    if status != 0:
        yield f"dtflab grade ended with status {status}"
        return
    with (base / "m.csv").open() as sheet:
        marks = {row["student_id"]: float(row["score"]) for row in csv.DictReader(sheet)}
    for student in points.keys() | marks.keys():
        if points.get(student) != marks.get(student):
            yield f"{student} has {marks.get(student)} points, not {points.get(student)}"
    yield from grown("the grader", samples)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 if something is wrong."""
    options = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="dtflab-soak-") as folder:
        base, began = Path(folder), time.monotonic()
        for name in ("exam", "ex9"):
            (base / name).mkdir()
        (base / "exam/numbers.py").write_text(CHECKS)
        points = hand_in(base / "ex9", options.files)
        status, samples = grade(base, options.jobs)
        findings = list(wrong(base, points, status, samples))
    most = max((sample.MB for sample in samples), default=0.0)
    print(f"{options.files} files in {time.monotonic() - began:.0f} s; the grader held at most {most:.0f} MB")
    print("\n".join(findings) or "Every mark is right, and nothing grew.")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
