"""Submissions that look for the hidden checks and the secret seed, wherever their process can look."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import pytest

from dtflab.grading import isolation
from tests.grading.classroom import ASKS, CHECKS, RIGHT, grade, need_namespaces, no_rights, percent
from tests.grading.curious import looking_for

pytestmark = pytest.mark.processes
# Not in this file, which is on the disk, too.
SEED, HIDDEN, TOKEN = (f"{what} {uuid.uuid4()}" for what in ("seed", "check", "token"))
NAMESPACES = pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "none"])

EVERYWHERE = """
in_memory()
in_proc(os.listdir("/proc"))
on_disk(ROOT, "/tmp")
def twice(n):
    in_memory()
    return 2 * n
print("LOOKED")
"""
# Without namespaces files can be read, and the environments of other programs, but not that of the grader.
IN_ITSELF = """
in_memory()
in_proc(["self", *ancestors()])
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
            looks = looking_for(SEED, HIDDEN, TOKEN)
            where = EVERYWHERE.replace("ROOT", repr(str(base))) if namespaces else IN_ITSELF
            (base / "ex9/curious.py").write_text(percent(looks, where, ASKS))
            sheet = base / f"marks-{namespaces}.json"
            ended = grade(base / "ex9", f"--checks={base / 'exam'}", f"--json={sheet}", "--cell-timeout=200",
                          "--timeout=400", namespaces=namespaces, before=[] if namespaces else no_rights(),
                          DTFLAB_GRADE_SEED=SEED, API_TOKEN=TOKEN)  # fmt: skip
            assert ended.returncode == 0, ended.stdout + ended.stderr
            found = {one["student"]: one for one in json.loads(sheet.read_text())["submissions"]}
            done[namespaces] = ended, found["curious"]
        return done[namespaces]

    return marks


@NAMESPACES
def test_neither_hidden_checks_nor_the_seed_nor_a_token_are_found(trial, namespaces):
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
    code = f"{looking_for(text)}\nkept = [{text!r}]\nin_memory()\non_disk({str(tmp_path)!r})\n"
    ended = isolation.run(
        [sys.executable, "-c", code],
        isolation.Limits(60),
        tmp_path,
        environment={"PYTHONPATH": str(Path.cwd())},
    )
    assert f"FOUND gc {text[:4]}" in ended.output and f"FOUND disk {text[:4]}" in ended.output, ended
