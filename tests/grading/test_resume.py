"""A grading that is killed keeps its marks: `--resume` goes on from the journal. A killer costs itself, nobody else."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dtflab.grading import batch, hidden_marks
from dtflab.grading.catalogue import find
from dtflab.grading.journal import GradingJournal, Work
from dtflab.grading.submissions import Submission
from dtflab.grading.workplace import clear_dead, workplace
from tests.cluster.two_tasks import until
from tests.grading.classroom import (
    ASKS,
    RIGHT,
    WITHOUT_NAMESPACES,
    WRONG,
    grade,
    need_namespaces,
    own_seconds,
    percent,
    sleepers,
)
from tests.house import ROOT

pytestmark = pytest.mark.processes  # the command starts some
SLEEPER = own_seconds(5)  # what processes that stay behind are known by
HONEST = {"ada": RIGHT, "bob": WRONG, "dan": RIGHT, "erin": "def twice(n):\n    return 0", "fay": WRONG}
# A supervisor is between a submission and the grader: a signal for the grader must look for it.
KILLS_THE_GRADER = f"""
import os, pathlib, subprocess, time
subprocess.Popen(["sleep", "{SLEEPER}"])
subprocess.Popen(["sleep", "{SLEEPER}"], start_new_session=True)
above = pathlib.Path(f"/proc/{{os.getppid()}}/stat").read_text().rpartition(")")[2].split()[1]
os.kill(int(above), 9)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def without_the_killer(folders):
    """The marks of the honest files by themselves."""
    checks, work, marks = folders
    for student, cell in HONEST.items():
        (work / f"{student}.py").write_text(percent(cell, ASKS))
    done = grade(work, f"--checks={checks}", f"--json={marks / 'm.json'}", "--jobs=2")
    assert done.returncode == 0, done.stdout + done.stderr
    return marks_in(marks / "m.json")


def marks_in(path):
    """The parts of each mark that count, by student."""
    found = {one["student"]: one for one in json.loads(path.read_text())["submissions"]}
    return {student: (one["points"], one["failed"], one["notes"], results_of(one)) for student, one in found.items()}


def results_of(one):
    return [check["message"] for question in one["questions"] for check in question["checks"]]


# All processes that it can reach; it makes sure that these are its own, since the test's are among the others.
KILLS_ALL = """
import os
pids = [name for name in os.listdir("/proc") if name.isdigit()]
assert os.getppid() == 1 and len(pids) < 9, pids
os.kill(1, 9)
os.kill(os.getppid(), 9)
for pid in pids:
    os.kill(int(pid), 0)
try:
    os.kill(-1, 9)
except ProcessLookupError:
    print("nobody else is there")
"""


def test_in_namespaces_nobody_else_can_be_killed(folders, tmp_path):
    """Neither the grader nor another submission; a file that tries it has done nothing, and has its own mark."""
    need_namespaces()
    checks, _, _ = folders
    when_asked = KILLS_ALL.replace("\n", "\n    ").rstrip()
    asked = f"def twice(n):\n    {when_asked}\n    return 2 * n"
    for student, cells in {"ada": [RIGHT], "bob": [KILLS_ALL, RIGHT], "cy": [asked]}.items():
        (tmp_path / f"{student}.py").write_text(percent(*cells, ASKS))
    done = grade(tmp_path, f"--checks={checks}", f"--json={tmp_path / 'm.json'}", "--jobs=2")
    assert done.returncode == 0, done.stdout + done.stderr
    marks = {one["student"]: one for one in json.loads((tmp_path / "m.json").read_text())["submissions"]}
    assert [marks[student]["points"] for student in ("ada", "bob", "cy")] == [4, 4, 4]
    assert marks["bob"]["output"] == "nobody else is there\n" and marks["bob"]["notes"] == []


def test_a_file_that_kills_its_parent_costs_only_itself(folders, tmp_path):
    checks, _, _ = folders
    killer = "import os\nos.kill(os.getppid(), 9)"
    when_asked = "def twice(n):\n    os.kill(os.getppid(), 9)\n    return 2 * n"
    for student, cells in {"ada": [RIGHT], "bob": [killer, RIGHT], "cy": ["import os", when_asked]}.items():
        (tmp_path / f"{student}.py").write_text(percent(*cells, ASKS))
    done = grade(tmp_path, f"--checks={checks}", f"--json={tmp_path / 'm.json'}", "--jobs=2", namespaces=False)
    assert done.returncode == 1, done.stdout + done.stderr
    marks = marks_in(tmp_path / "m.json")
    assert [marks[student][0] for student in ("ada", "bob", "cy")] == [4, 0, 0]
    assert marks["bob"][1] == "It killed the process that watches it. None of its answers counts."


FORGES = """
import os, stat
for name in os.listdir(f"/proc/{os.getppid()}/fd"):
    path = f"/proc/{os.getppid()}/fd/{name}"
    if int(name) > 2 and stat.S_ISFIFO(os.stat(path).st_mode):
        with open(path, "wb", buffering=0) as pipe:
            pipe.write(b"1\\n0\\ngarbage\\n")
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="without /proc nothing finds these pipes")
def test_a_file_that_writes_to_the_pipes_of_its_parent_costs_only_itself(folders, tmp_path):
    checks, _, _ = folders
    for student, cells in {"ada": [RIGHT], "bob": [FORGES, RIGHT], "cy": [RIGHT]}.items():
        (tmp_path / f"{student}.py").write_text(percent(*cells, ASKS))
    done = grade(tmp_path, f"--checks={checks}", f"--json={tmp_path / 'm.json'}", namespaces=False)
    assert "Traceback" not in done.stdout + done.stderr
    marks = marks_in(tmp_path / "m.json")
    assert [marks[student][0] for student in ("ada", "cy")] == [4, 4] and "bob" in marks


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="without /proc this killer does not find the grader")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_kills_the_grader_costs_only_itself(jobs, folders, without_the_killer, tmp_path):
    checks, work, _ = folders
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "carol.py").write_text(percent(KILLS_THE_GRADER, RIGHT, ASKS))
    sheet, files = tmp_path / "marks.json", [work, tmp_path / "carol.py"]

    def go_on(*more):
        options = (f"--checks={checks}", f"--json={sheet}", f"--jobs={jobs}", "--questions=numbers/q9")
        return grade(*files, *options, *more, namespaces=False, TMPDIR=str(temporary))

    first = go_on()
    assert first.returncode == -9 and not sheet.exists()
    until(lambda: len(sleepers(SLEEPER)) == 1, "only what left its session is still there")
    second = go_on("--resume")
    assert second.returncode == -9
    third = go_on("--resume")
    assert third.returncode == 1 and "Resumed: 5 of 6 files have a mark already.\n" in third.stdout, third.stdout
    marks = marks_in(sheet)
    points, failed, *_ = marks.pop("carol")
    assert marks == without_the_killer
    assert points == 0 and failed.startswith("The grading was killed twice while this file ran, the second time")
    assert sleepers(SLEEPER) == [] and list(temporary.glob("dtflab-grade-*")) == []


STOPS_THE_GRADER = """
import os, pathlib, signal
above = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
os.kill(int(above), signal.SIGSTOP)
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="without /proc this file does not find the grader")
def test_a_grader_that_was_stopped_goes_on_and_has_written_its_marks(folders, tmp_path):
    checks, _, _ = folders
    for student, cells in {"ada": [RIGHT], "bob": [STOPS_THE_GRADER, RIGHT], "cy": [RIGHT]}.items():
        (tmp_path / f"{student}.py").write_text(percent(*cells, ASKS))
    options = (f"--checks={checks}", f"--json={tmp_path / 'm.json'}", "--jobs=1")
    called = [sys.executable, "-c", WITHOUT_NAMESPACES, "grade", str(tmp_path), *options]
    with subprocess.Popen(called, cwd=ROOT, stdout=subprocess.PIPE, text=True) as grader:
        try:
            until(lambda: state_of(grader.pid) == "T", "the grader is stopped")
            begun = [json.loads(line)[0] for line in (tmp_path / "m.journal").read_text().splitlines()]
            assert begun == ["begin", "mark", "begin"], "ada's mark is on the disk"
            grader.send_signal(signal.SIGCONT)
            out, _ = grader.communicate(timeout=300)
        finally:
            grader.kill()
    assert grader.returncode == 0, out
    assert [mark[0] for mark in marks_in(tmp_path / "m.json").values()] == [4, 4, 4]


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_killer_is_tried_again_by_itself_after_all_others(tmp_path):
    """A file that only happened to run at the same time as a killer has its mark like any other."""
    order, running = [], []

    def task(name, alone, known=False):
        def run(stopped):
            running.append(name)
            order.append((name, len(running)) if alone else name)
            running.remove(name)
            return batch.Graded(Submission(tmp_path, name, "ex", ""))

        return batch.Task(run, alone, known)

    tasks = [task("suspect", True), task("a", False), task("other suspect", True), task("b", False)]
    graded = batch.grade_all(tasks, 4, lambda one: None)
    assert [one.submission.student for one in graded] == ["suspect", "a", "other suspect", "b"]
    assert sorted(order[:2]) == ["a", "b"] and order[2:] == [("suspect", 1), ("other suspect", 1)]
    order.clear()
    batch.grade_all([task("a", False), task("known", False, True), task("b", False)], 1, lambda one: None)
    assert order == ["known", "a", "b"], "what needs no run does not wait for what runs long"


# -- without processes ---------------------------------------------------------------------------------------


@pytest.fixture
def resumed(tmp_path, monkeypatch, capsys):
    """A class of three on placement/q1, graded once. A call says who is graded when it is resumed."""
    (tmp_path / "ex").mkdir()
    for student in ("ada", "bob", "cy"):
        (tmp_path / f"ex/{student}.py").write_text(percent(f"{student} = 1", 'dtflab.grade("placement/q1")'))
    ran = []

    def lost(submission, code, questions, options, stopped, *, known):
        ran.append(submission.student)
        return batch.Graded(submission, [batch._lost(one, f"no, {submission.student}") for one in questions])

    monkeypatch.setattr(batch, "grade", lost)
    monkeypatch.chdir(tmp_path)

    def call(*arguments, path="ex"):
        from dtflab.__main__ import main

        ran.clear()
        with pytest.raises(SystemExit) as ended:
            main(["grade", path, "--csv=m.csv", "--json=m.json", *arguments])
        assert ended.value.code == 0, capsys.readouterr()
        return sorted(ran)

    assert call() == ["ada", "bob", "cy"]
    return call


def test_what_has_its_mark_is_not_run_again(resumed, tmp_path, capsys):
    before = (tmp_path / "m.csv").read_text(), (tmp_path / "m.json").read_text()
    (tmp_path / "m.csv").unlink()
    assert resumed("--resume", "--jobs=3") == [] and "Resumed: 3 of 3 files" in capsys.readouterr().out
    assert ((tmp_path / "m.csv").read_text(), (tmp_path / "m.json").read_text()) == before
    assert resumed() == ["ada", "bob", "cy"], "without --resume all are graded"


def test_hidden_points_are_added_from_marks_that_are_kept(resumed, tmp_path, monkeypatch):
    (tmp_path / "results.json").write_text('{"tests": []}')
    given = []
    monkeypatch.setattr(hidden_marks, "to_otter", lambda graded, results: given.extend(graded) or [])
    assert resumed("--resume", "--otter-results=results.json", path="ex/ada.py") == []
    assert [one.reports[0].question.id for one in given] == ["placement/q1"]


def test_a_changed_or_new_file_is_graded(resumed, tmp_path):
    (tmp_path / "ex/bob.py").write_text(percent("bob = 2", 'dtflab.grade("placement/q1")'))
    (tmp_path / "ex/dan.py").write_text(percent("dan = 2", 'dtflab.grade("placement/q1")'))
    assert resumed("--resume") == ["bob", "dan"]
    assert resumed("--resume") == []


def test_other_questions_limits_or_seeds_are_another_grading(resumed, monkeypatch):
    for changed in (["--questions=placement/q2"], ["--timeout=60"], ["--cell-timeout=9"], ["--memory=2"]):
        assert resumed("--resume", *changed) == ["ada", "bob", "cy"], changed
    monkeypatch.setenv("DTFLAB_GRADE_SEED", "winter")
    assert resumed("--resume") == ["ada", "bob", "cy"]
    assert resumed("--resume", "--student=zoe", path="ex/ada.py") == ["zoe"]


def test_changed_checks_are_another_grading(tmp_path):
    question, (checks,) = find("placement/q1"), [tmp_path / "checks"]
    checks.mkdir()
    (checks / "own.py").write_text("1")
    options = batch.Options(checks=str(checks))

    def resumed():
        journal = GradingJournal(tmp_path / "m.journal", resume=True)
        task = journal.task(Work(Submission(tmp_path / "ada.py", "ada", "ex", ""), [], [question], options, []))
        task.run(lambda: False)
        return journal.resumed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "grade", lambda one, code, questions, *_, **__: batch.none(one, questions, "no"))
        assert [resumed(), resumed()] == [0, 1]
        (checks / "own.py").write_text("2")
        assert [resumed(), resumed()] == [0, 1]


@pytest.mark.parametrize("lost", [1, 40])
def test_a_last_line_that_is_cut_off_costs_one_mark(resumed, tmp_path, lost):
    journal = tmp_path / "m.journal"
    whole = journal.read_bytes()
    *_, last = whole.splitlines()
    journal.write_bytes(whole[:-lost])
    again = resumed("--resume")
    assert again == ([] if lost == 1 else [json.loads(last)[2]["student"]])
    assert resumed("--resume") == [], "what follows a line that was cut off stands on its own line"


def test_lines_that_mean_nothing_are_passed_over(resumed, tmp_path):
    lines = (tmp_path / "m.journal").read_bytes().splitlines()
    event, key, mark = json.loads(lines[-1])
    junk = [b"\xff\x00", b"", b"3", b'{"a": 1}', b"[1, 2]", b'["mark", 3, {}]', b'["mark", [], {}]', b"[" * 99_999]
    (tmp_path / "m.journal").write_bytes(b"\n".join([*junk, *lines, *junk]))
    assert resumed("--resume") == []
    for damaged in (None, 3, {}, mark | {"reports": []}, mark | {"reports": [{}]}, mark | {"notes": 3}):
        (tmp_path / "m.journal").write_bytes(b"\n".join([*lines, json.dumps([event, key, damaged]).encode()]))
        assert resumed("--resume") == [mark["student"]], damaged


def killed(journal, submission):
    """The grading ends while a file runs, and writes nothing more; the next one's journal."""

    class Killed(BaseException):
        pass

    def grade(*arguments, **options):
        lines = journal.read_bytes()
        raise Killed(lines)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "grade", grade)
        with pytest.raises(Killed) as ended:
            task_of(journal, submission)[1].run(lambda: False)
    journal.write_bytes(ended.value.args[0])


def task_of(path, submission):
    journal = GradingJournal(path, resume=True)
    return journal, journal.task(Work(submission, [], [find("placement/q1")], batch.Options(), []))


def test_who_runs_when_the_grading_ends_is_tried_once_more_and_alone(tmp_path):
    path, ada = tmp_path / "m.journal", Submission(tmp_path / "ada.py", "ada", "ex", "")
    for suspects, alone in (([], False), (["ada"], True)):
        journal, task = task_of(path, ada)
        assert (journal.suspects, task.alone) == (suspects, alone)
        killed(path, ada)
    journal, task = task_of(path, ada)
    found = task.run(lambda: False)
    assert journal.suspects == [] and not task.alone
    assert found.score == 0 and found.failed.startswith("The grading was killed twice while this file ran")
    assert task_of(path, Submission(tmp_path / "ada.py", "bob", "ex", ""))[0].suspects == [], "not another one's"


@pytest.mark.parametrize("end", ["stopped", "an error", "no process"])
def test_an_end_that_no_file_brought_about_makes_nobody_a_suspect(end, tmp_path, monkeypatch):
    """Ctrl-C, an error of the grader itself, a machine without room for a process."""
    path, ada = tmp_path / "m.journal", Submission(tmp_path / "ada.py", "ada", "ex", "")

    def grade(submission, code, questions, options, stopped, *, known):
        if end == "an error":
            raise ZeroDivisionError
        found = batch.none(submission, questions, "no")
        found.was_run = end != "no process"
        return found

    monkeypatch.setattr(batch, "grade", grade)
    with contextlib.suppress(ZeroDivisionError):
        task_of(path, ada)[1].run(lambda: end == "stopped")
    journal, task = task_of(path, ada)
    assert (journal.suspects, journal.resumed, task.alone) == ([], 0, False)


def test_a_full_disk_costs_the_journal_only(resumed, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert resumed() == ["ada", "bob", "cy"]
    assert "m.journal could not be written: No space left on device" in capsys.readouterr().err


# -- what stays of a grading that was killed ------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_grading_left_is_cleared_and_nothing_else(temporary):
    code = (
        "import os, subprocess; from dtflab.grading.workplace import workplace; place = workplace(); "
        "folder = place.__enter__(); "
        f"subprocess.Popen(['sleep', '{SLEEPER}'], env={{'HOME': str(folder / 'x')}}, start_new_session=True); "
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "TMPDIR": str(temporary)}, check=False)
    (dead,) = temporary.glob("dtflab-grade-*")
    (temporary / "kept").mkdir()
    (temporary / "dtflab-grade-link").symlink_to(temporary / "kept")
    (temporary / "dtflab-grade-mine").mkdir()
    assert len(sleepers(SLEEPER)) == 1
    with workplace() as living:
        clear_dead()
        names = {path.name for path in temporary.iterdir()}
        assert names == {"kept", "dtflab-grade-link", "dtflab-grade-mine", living.name} and dead.name not in names
    assert not living.exists() and sleepers(SLEEPER) == []
