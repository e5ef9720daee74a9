"""Submissions that look for the hidden checks and the secret seed, wherever their process can look."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import pytest

from dtflab.grading import isolation
from tests.grading.classroom import ASKS, CHECKS, RIGHT, grade, need_namespaces, percent

pytestmark = pytest.mark.processes
SEED, HIDDEN = f"seed {uuid.uuid4()}", f"check {uuid.uuid4()}"  # not in this file, which is on the disk, too
NAMESPACES = pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "none"])

# It knows what it looks for from back to front, so that it does not find itself. What it finds is printed.
LOOKS = """
import gc, inspect, os, sys, types
import dtflab

def report(where, text):
    reversed_text = (text if isinstance(text, str) else text.decode(errors="replace"))[::-1]
    for needle in NEEDLES:
        if needle in reversed_text:
            print("FOUND", where, needle[-4:][::-1])

def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""

def in_memory():
    report("os.environ", repr(dict(os.environ)))
    report("argv", repr([sys.argv, sys.orig_argv]))
    for thing in gc.get_objects():
        if isinstance(thing, (dict, list, tuple)):
            for one in list(thing.values() if isinstance(thing, dict) else thing):
                if isinstance(one, (str, bytes)):
                    report("gc", one)
        if isinstance(thing, types.FunctionType):
            report("constants", repr(thing.__code__.co_consts))
    for frame in inspect.stack():
        report("frames", repr(list(frame.frame.f_locals.values())))
        try:
            report("source", inspect.getsource(frame.frame))
        except OSError:
            pass
    for module in list(sys.modules.values()):
        report("module", repr([one for one in vars(module).values() if isinstance(one, str)]))

def in_proc(pids):
    for pid in pids:
        for name in ("environ", "cmdline"):
            report(f"proc {name}", read(f"/proc/{pid}/{name}"))
        try:
            fds = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for fd in fds:
            path = f"/proc/{pid}/fd/{fd}"
            if os.path.isfile(path):
                report("fd", read(path))

def on_disk(*roots):
    for root in roots:
        for folder, _, files in os.walk(root):
            for name in files:
                report("disk", read(os.path.join(folder, name)))
"""
EVERYWHERE = """
in_memory()
in_proc(os.listdir("/proc"))
on_disk(ROOT, "/tmp")
def twice(n):
    in_memory()
    return 2 * n
print("LOOKED")
"""
# Without namespaces files and the grader's command line can be read; nothing else.
IN_ITSELF = """
in_memory()
in_proc([os.getpid(), os.getppid()])
def twice(n):
    in_memory()
    return 2 * n
print("LOOKED")
"""


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """A class of one curious student and one other; the marks, with and without namespaces."""
    base, done = tmp_path_factory.mktemp("trial"), {}
    for name in ("exam", "ex9", "alone"):
        (base / name).mkdir()
    (base / "exam/own.py").write_text(f"{CHECKS}\nSECRET = {HIDDEN!r}\n")
    (base / "ex9/other.py").write_text(percent(f"# {HIDDEN}\n{RIGHT}", ASKS))

    def marks(namespaces):
        if namespaces not in done:
            looks = f"NEEDLES = {[SEED[::-1], HIDDEN[::-1]]}\n{LOOKS}"
            where = EVERYWHERE.replace("ROOT", repr(str(base))) if namespaces else IN_ITSELF
            (base / "ex9/curious.py").write_text(percent(looks, where, ASKS))
            sheet = base / f"marks-{namespaces}.json"
            ended = grade(base / "ex9", f"--checks={base / 'exam'}", f"--json={sheet}", "--cell-timeout=200",
                          "--timeout=400", namespaces=namespaces, DTFLAB_GRADE_SEED=SEED)  # fmt: skip
            assert ended.returncode == 0, ended.stdout + ended.stderr
            found = {one["student"]: one for one in json.loads(sheet.read_text())["submissions"]}
            done[namespaces] = ended, found["curious"]
        return done[namespaces]

    return marks


@NAMESPACES
def test_neither_hidden_checks_nor_the_seed_are_found(trial, namespaces):
    if namespaces:
        need_namespaces()
    _, curious = trial(namespaces)
    assert "LOOKED" in curious["output"], curious
    assert "FOUND" not in curious["output"], curious["output"]
    assert "FOUND" not in json.dumps(curious["questions"]) and curious["points"] == 4, curious


def test_the_command_says_what_holds_without_namespaces(trial):
    ended, _ = trial(False)
    assert "This system has no user and pid namespaces: a submission can read files here" in ended.stdout


@pytest.mark.parametrize("text", [SEED, HIDDEN], ids=["seed", "check"])
def test_the_search_finds_what_is_there(text, tmp_path):
    """The test of the test: the same search, in a process that holds the secret."""
    (tmp_path / "a.txt").write_text(text)
    code = f"NEEDLES = {[text[::-1]]}\n{LOOKS}\nkept = [{text!r}]\nin_memory()\non_disk({str(tmp_path)!r})\n"
    ended = isolation.run(
        [sys.executable, "-c", code],
        isolation.Limits(60),
        tmp_path,
        environment={"PYTHONPATH": str(Path.cwd())},
    )
    assert f"FOUND gc {text[:4]}" in ended.output and f"FOUND disk {text[:4]}" in ended.output, ended
