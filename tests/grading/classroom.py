"""A question of a teacher's own, answers to it, and `dtflab grade` as a teacher calls it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import ROOT

CHECKS = """
from dtflab.grading.questions import Wrong, register

question = register("numbers/q9", "Double it", answer="twice", hints=("Add it.", "Multiply by 2."))

@question.check("Some number", points=3, seconds=2)
def any_number(answer, random):
    number = random.randrange(1, 1000)
    if (got := answer(number)) != 2 * number:
        raise Wrong(f"twice({number}) gave {got!r}; expected: {2 * number}")

@question.check("Nothing", points=1, seconds=2)
def nothing(answer, random):
    if answer(0) != 0:
        raise Wrong("twice(0) is 0")
"""
RIGHT = "def twice(n):\n    return 2 * n"
WRONG = "def twice(n):\n    return 3 * n"
ASKS = 'dtflab.grade("numbers/q9")'


def percent(*cells):
    return "".join(f"# %%\n{cell}\n\n" for cell in cells)


def own_seconds(number):
    """For how long processes sleep that a test file is to find again: a number that no other run of it has."""
    return f"9{number}{os.getpid():07}"


def sleepers(seconds):
    """Processes that are still there, known by how long they sleep."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] if seconds.encode() in path.read_bytes() else []
        except OSError:
            continue  # it has ended meanwhile
    return found


def command(*arguments):
    return [sys.executable, "-m", "dtflab", "grade", *map(str, arguments)]


def need_namespaces():
    """Skip a test where the system lets no user make namespaces, by the word of another program."""
    asked = ["unshare", "-Urmpnif", "--mount-proc", "true"]
    if shutil.which("unshare") is None or subprocess.run(asked, capture_output=True).returncode != 0:
        pytest.skip("this system has no user namespaces")


# `dtflab grade` as on a system without user and pid namespaces.
WITHOUT_NAMESPACES = """
import sys
from dtflab.grading import isolation
isolation.can_seclude = lambda *_: False
from dtflab.__main__ import main
main(sys.argv[1:])
"""


def no_rights():
    """The beginning of a command that runs as the owner of the files here, without the rights of root."""
    rights = ["--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    return ["setpriv", *rights] if os.geteuid() == 0 else []


def grade(*arguments, namespaces=True, before=(), **environment):
    called = command(*arguments)
    if not namespaces:
        called = [sys.executable, "-c", WITHOUT_NAMESPACES, *called[3:]]
    return subprocess.run(
        [*before, *called], env={**os.environ, **environment}, capture_output=True, text=True, timeout=800, cwd=ROOT
    )
