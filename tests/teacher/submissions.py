"""Submissions to one exercise, for graders of other people."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from notebooks import build
from tests.grading.curious import looking_for
from tests.house import ROOT

NAME = "ex01_placement"
SOURCE = ROOT / "solutions" / f"{NAME}.py"
STUB = "raise NotImplementedError()"
SECRET, SEED = f"check {uuid.uuid4()}", f"seed {uuid.uuid4()}"  # not in this file, which is on the disk, too
EXAM = f"""
from dtflab.grading import demand_rule, dense_net, find

@find("placement/q1").check("Seven ps tasks", points=2)
def seven(answer, random):
    return demand_rule(answer, dense_net(random), 7)  # {SECRET}
"""


def _solution() -> str:
    """The answer of a student who is right, in the place of the stub."""
    lines = SOURCE.read_text(encoding="utf-8").split("\n")
    first, last = (next(i for i, line in enumerate(lines) if mark in line) for mark in ("### BEGIN", "### END"))
    return "\n".join(lines[first + 1 : last]).lstrip()


SOLUTION = _solution()


def answered(code: str) -> Any:
    """The exercise with `code` in the place of the stub."""
    notebook = build.exercise(SOURCE)
    cell = next(cell for cell in notebook.cells if STUB in cell.source)
    cell.source = cell.source.replace(STUB, code)
    return notebook


def write_exam(folder: Path) -> Path:
    """The folder of a teacher's own checks, with the seed, as the page has them: one of each."""
    folder.mkdir()
    (folder / "more.py").write_text(EXAM)
    (folder / "seed").write_text(SEED)
    return folder


def curious(cell: str, home: Path) -> str:
    """A cell that looks for the checks and the seed in what its kernel reaches, and in `home`, the teacher's folder.

    It tries to uncover the exam there, too, and looks again in the answer when that is graded: in the first call of
    `look_once`. What it finds is in found.txt of that folder.
    """
    exam = home / "exam"
    return f"""{looking_for(SECRET, SEED)}
import subprocess
try:
    TO = open({str(home / "found.txt")!r}, "a", buffering=1)
except OSError:  # dtflab's own grading, where it can't be written
    pass
in_memory()
in_proc(["self", *ancestors()])
subprocess.run(["umount", {str(exam)!r}], capture_output=True)
for command in (["sh", "-c"], ["unshare", "-Urm", "sh", "-c"]):
    told = subprocess.run([*command, "umount {exam}; cat {exam}/*"], capture_output=True).stdout
    report("uncovered", told)
on_disk({str(home)!r})
print("LOOKED", file=TO)
looks = []
def look_once():
    if not looks:
        looks.append(in_memory())
        print("LOOKED AGAIN", file=TO)
{cell}"""


def findings(home: Path) -> list[str]:
    """The lines that a curious submission has written, each of them once."""
    return sorted(set((home / "found.txt").read_text().splitlines()))


def spilled(folder: Path) -> list[Path]:
    """The files in which one of the secrets stands."""
    secrets = [one.encode() for one in (SECRET, SEED)]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sorted(path for path in files if any(one in path.read_bytes() for one in secrets))
