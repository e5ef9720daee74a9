"""`dtflab grade`: how it is called, whose a file is, what it writes, what it says of misuse; and Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dtflab.grading import isolation
from dtflab.grading.catalogue import find
from tests.grading.classroom import ASKS, RIGHT, command, grade, own_seconds, percent, sleepers
from tests.house import ROOT

pytestmark = pytest.mark.timeout(900)
SLEEPER = own_seconds(2)  # what processes that stay behind are known by


def test_students_come_from_folders_and_from_the_option(folders, tmp_path):
    checks, _, _ = folders
    for path in ("ada/ex9/any.py", "bob/ex9.py"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(percent(RIGHT, ASKS))
    (tmp_path / "ada/ex9/timestamp.txt").write_text("2026-11-20 10:00:00 UTC\n")
    done = grade(tmp_path, "--csv", tmp_path / "m.csv", DTFLAB_CHECKS=str(checks))
    assert done.returncode == 0, done.stdout
    rows = [line.split(",")[:4] for line in (tmp_path / "m.csv").read_text().splitlines()[1:]]
    assert rows[0] == ["ex9", "", "2026-11-20 10:00:00 UTC", "ada"]
    assert (rows[1][0], rows[1][3]) == ("ex9", "bob")
    done = grade(tmp_path / "bob/ex9.py", "--student=carol", "--questions=numbers/q9", f"--checks={checks}")
    assert done.returncode == 0 and done.stdout.startswith("carol        4/4")


MISUSES = {
    "no such path": (["nowhere"], "there is no nowhere"),
    "no notebook": (["."], "there is no notebook in"),
    "no such question": (["a.py", "--questions", "none/q1"], "There is no question 'none/q1'"),
    "no checks": (["a.py", "--checks", "."], "has no Python files"),
    "no time": (["a.py", "--timeout", "0"], "greater than 0"),
    "no class": (["a.py", "--questions=placement/q1", "--students", "gone.txt"], "gone.txt can't be read"),
    "an empty class": (["a.py", "--students", "empty/nobody.txt"], "there is no student in empty/nobody.txt"),
    "nothing to resume": (["a.py", "--questions=placement/q1", "--resume"], "--resume needs the files of marks"),
    "no such part": (["a.py", "--questions", "part1=placement/q1"], "no file is called part1. There are: a"),
    "whose": (["a.py", "b.py", "--student", "ada"], "2 files were given"),
    "no folder for the sheet": (
        ["a.py", "--questions=placement/q1", "--csv", "empty/nobody.txt/m.csv"],
        "nobody.txt can be made: File exists",
    ),
    "a folder for the page": (["a.py", "--questions=placement/q1", "--html", "empty"], "it is a folder"),
}


def test_windows_is_refused_in_one_line(monkeypatch, capsys):
    from dtflab.__main__ import main
    from dtflab.grading import cli

    monkeypatch.setattr(cli, "os", SimpleNamespace(name="nt", cpu_count=os.cpu_count))
    with pytest.raises(SystemExit):
        main(["grade", "a.py"])
    assert "it needs Linux or macOS (on Windows: WSL)" in capsys.readouterr().err


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_told_in_one_line(name, tmp_path, monkeypatch, capsys):
    from dtflab.__main__ import main

    arguments, message = MISUSES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/nobody.txt").write_text("\n\n")
    if name != "no notebook":
        for file in ("a.py", "b.py"):
            (tmp_path / "empty" / file).write_text(percent(RIGHT))
    arguments = [str(tmp_path / "empty" / one) if one.endswith(".py") else one for one in arguments]
    with pytest.raises(SystemExit) as ended:
        main(["grade", *arguments])
    error = capsys.readouterr().err
    assert ended.value.code == 2 and message in error and error.count("\n") == 1


@pytest.fixture
def marked(monkeypatch):
    """The command with a file that needs no process of its own: its exit status."""
    from dtflab.grading import batch, cli
    from dtflab.grading.catalogue import find

    def tasks(submissions, *others):
        return [batch.Task(lambda stopped: batch.Graded(submissions[0], [batch._lost(find("placement/q1"), "no")]))]

    monkeypatch.setattr(cli, "_tasks", tasks)

    def call(*arguments):
        from dtflab.__main__ import main

        with pytest.raises(SystemExit) as ended:
            main(["grade", *map(str, arguments)])
        return ended.value.code

    return call


@pytest.mark.processes
def test_a_sheet_that_can_no_longer_be_written_costs_only_itself(marked, tmp_path, monkeypatch, capsys):
    """The disk gets full while it is graded."""
    (tmp_path / "ada.py").write_text(percent(RIGHT, ASKS))
    write = Path.write_text

    def full(path, *arguments, **options):
        if path.suffix == ".csv":
            raise OSError(28, "No space left on device")
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    files = [tmp_path / "marks/new" / f"m.{kind}" for kind in ("json", "csv", "html")]  # the folder is made
    assert marked(tmp_path / "ada.py", "--json", files[0], "--csv", files[1], "--html", files[2]) == 1
    out, err = capsys.readouterr()
    assert err == f"dtflab grade: {files[1]} could not be written: No space left on device\n"
    assert "ada       0/10" in out and "1 file, 0 could not be graded" in out
    assert json.loads(files[0].read_text())["submissions"][0]["student"] == "ada" and "ada" in files[2].read_text()


@pytest.mark.processes
def test_files_are_written_where_nobody_reads_the_table(marked, tmp_path, monkeypatch):
    (tmp_path / "ada.py").write_text(percent(RIGHT, ASKS))

    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    with pytest.raises(BrokenPipeError):
        from dtflab.__main__ import main

        main(["grade", str(tmp_path / "ada.py"), "--csv", str(tmp_path / "m.csv")])
    assert "ada" in (tmp_path / "m.csv").read_text()


LOOK = "Look for a loop that does not end, or grade the file alone with a longer --timeout."
NEED_NOT = f"What ran then need not be what took the time. {LOOK}"


def test_a_files_time_is_for_all_attempts_and_it_says_what_ran_at_the_end(folders, tmp_path):
    """The first cell takes its process down, none of the others is too slow; all together are."""
    checks, _, _ = folders
    (tmp_path / "ada.py").write_text(
        percent("import os\nos._exit(3)", *["import time\ntime.sleep(20)"] * 4, RIGHT, ASKS)
    )
    sheet = tmp_path / "m.json"
    done = grade(tmp_path / "ada.py", f"--checks={checks}", "--timeout=8", "--cell-timeout=100", f"--json={sheet}")
    (one,) = json.loads(sheet.read_text())["submissions"]
    over = f"All its cells and answers together have 8 s, and these were over while cell 2 ran. {NEED_NOT}"
    assert done.returncode == 1 and (one["points"], one["failed"]) == (0, over), one
    assert one["notes"] == ["Cell 1 was left out. It ended with exit status 3."]
    assert done.stdout.count(over) == 1 and "Not graded: Not" not in done.stdout
    assert one["questions"][0]["checks"][0]["message"] == f"Not judged. {over}"


@pytest.mark.parametrize("kind", ["hidden", "public"])
def test_an_endless_answer_that_takes_a_files_time_is_named_with_its_check(folders, tmp_path, kind):
    """An answer that holds the interpreter's lock can't be stopped. The first of the hidden checks passes."""
    checks, _, _ = folders
    first = find("placement/q1").checks[0].title
    question, name, titled = {
        "hidden": ("numbers/q9", "twice", "Nothing"), "public": ("placement/q1", "balance_by_bytes", first)
    }[kind]  # fmt: skip
    deaf = f"import re\ndef {name}(n, *_):\n    return 2 * n if n and not _ else re.match('(a+)+$', 'a' * 99 + 'b')"
    (tmp_path / "ada.py").write_text(percent(deaf, f'dtflab.grade("{question}")'))
    sheet = tmp_path / "m.json"
    done = grade(tmp_path / "ada.py", f"--checks={checks}", "--timeout=8", f"--json={sheet}")
    (one,) = json.loads(sheet.read_text())["submissions"]
    where = f"while {question} was judged, in the check “{titled}”"
    assert one["failed"] == f"All its cells and answers together have 8 s, and these were over {where}. {NEED_NOT}", (
        done
    )


def test_a_second_attempt_has_what_the_first_left(tmp_path, monkeypatch):
    """No process is started: each attempt takes 4 of 10 seconds."""
    from dtflab.grading import batch
    from dtflab.grading.submissions import Submission

    now, had = [100.0], []

    def run(command, limits, folder, **how):
        had.append(limits.seconds)
        now[0] += min(limits.seconds, 4)
        return isolation.Ended("It crashed.", "", 4)

    monkeypatch.setattr(batch.isolation, "run", run)
    monkeypatch.setattr(batch.time, "monotonic", lambda: now[0])
    options = batch.Options(isolation.Limits(seconds=10))
    one = batch.grade(Submission(tmp_path, "ada", "ex", ""), ["1"], [find("placement/q1")], options)
    assert had == [10, 6, 2] and one.notes == ["It crashed."]
    assert one.failed == f"All its cells and answers together have 10 s, and these were over. {LOOK}"
    options = batch.Options(isolation.Limits(seconds=100))
    one = batch.grade(Submission(tmp_path, "ada", "ex", ""), ["1"], [find("placement/q1")], options)
    assert len(had) == 3 + batch.ATTEMPTS and one.failed == "4 attempts came to no end."


def test_usage_names_the_command_as_it_was_called(monkeypatch, capsys):
    from dtflab.__main__ import main

    for path, name in (("/venv/bin/dtflab", "dtflab"), ("/lib/dtflab/__main__.py", "python -m dtflab")):
        monkeypatch.setattr(sys, "argv", [path])
        with pytest.raises(SystemExit):
            main(["--help"])
        assert capsys.readouterr().out.startswith(f"usage: {name} [-h]")


def test_a_check_that_cannot_be_loaded_stops_the_grading(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "a.ipynb").write_text("x")
    done = grade(tmp_path / "a.ipynb", f"--checks={tmp_path}")
    assert done.returncode == 2 and "broken.py can't be loaded: ZeroDivisionError" in done.stderr


def test_ctrl_c_ends_all_and_writes_what_is_there(folders, tmp_path):
    """A terminal's Ctrl-C: the first file is graded, the second one never ends."""
    checks, _, _ = folders
    (tmp_path / "a.py").write_text(percent(RIGHT, ASKS))
    (tmp_path / "b.py").write_text(percent(f"import subprocess\nsubprocess.run(['sleep', '{SLEEPER}'])", ASKS))
    sheet = tmp_path / "m.csv"
    process = subprocess.Popen(
        command(tmp_path, f"--checks={checks}", "--jobs=1", "--cell-timeout=60", f"--csv={sheet}"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    while not sleepers(SLEEPER):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(2)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130 and err == ""
    assert out.endswith("1 file, 0 could not be graded\nInterrupted: 1 file not graded\n")
    assert len(sheet.read_text().splitlines()) == 2
    assert sleepers(SLEEPER) == []
