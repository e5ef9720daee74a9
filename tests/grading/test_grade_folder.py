"""`dtflab grade FOLDER`: whatever a submission does, it has a mark, the others have theirs, and nothing is left."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dtflab.grading import isolation
from dtflab.grading.sheets import COLUMNS
from tests.house import ROOT

CHECKS = """
from dtflab.grading.questions import Wrong, register

question = register("numbers/q9", "Double it", answer="twice", hints=("Add it.", "Multiply by 2."))

@question.check("Some number", points=3, seconds=2)
def any_number(answer, random):
    number = random.randrange(1, 1000)
    if (got := answer(number)) != 2 * number:
        raise Wrong(f"twice({number}) gave {got!r}; expected is {2 * number}")

@question.check("Nothing", points=1, seconds=2)
def nothing(answer, random):
    if answer(0) != 0:
        raise Wrong("twice(0) is 0")
"""
RIGHT = "def twice(n):\n    return 2 * n"
WRONG = "def twice(n):\n    return 3 * n"
ASKS = 'dtflab.grade("numbers/q9")'
SLEEPER = "86399"  # seconds: what processes that stay behind are known by

# What each does first; then comes a right answer, which counts.
HARMLESS = {
    "good": "import dtflab",
    "hangs": "while True:\n    pass",
    "hangs_deaf": "import time\nwhile True:\n    try:\n        time.sleep(9)\n    except BaseException:\n        pass",
    "exits": "import os\nos._exit(3)",
    "leaves": "import sys\nsys.exit(1)",
    "crashes": "import ctypes\nctypes.string_at(0)",
    "forks": "import os\nfor _ in range(3):\n    os.fork()",
    "bombs": "import os, signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
    f"for _ in range(8):\n    os.fork()\ntime.sleep({SLEEPER})",
    "daemon": f"import subprocess\nsubprocess.Popen(['sleep', '{SLEEPER}'], start_new_session=True)",
    "floods": "import sys\nfor _ in range(200):\n    print('x' * 100_000)\n    print('y' * 100_000, file=sys.stderr)",
    "prints": "for number in range(100_000):\n    print('step', number)",
    "slips": "def twice(n)\n    return 2",
    "eats": "kept = bytearray(10**11)",
    "moves": "import os, pathlib\npathlib.Path('left.txt').write_text('x')\nos.chdir('/')",
    "closes": "import sys\nsys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
    "magics": "%load_ext dtflab\ncluster = %dtf_cluster --ps 1 --worker 1\nawait __import__('asyncio').sleep(0)",
    "at_exit": "import atexit, threading, time\nthreading.Thread(target=time.sleep, args=(86399,)).start()\n"
    "atexit.register(time.sleep, 86399)",
}
TOLD = {
    "hangs": "Cell 1: stopped after 4 s",
    "hangs_deaf": "Cell 1 was left out. It did not end within 4 s, and could not be stopped.",
    "exits": "Cell 1 was left out. It ended with exit status 3.",
    "leaves": "Cell 1: SystemExit: 1",
    "crashes": "Cell 1 was left out. It crashed: signal SIGSEGV.",
    "slips": "Cell 1: SyntaxError in its line 1: expected ':'",
    "bombs": "Cell 1 was left out. Stopped: it started more than 64 processes.",
    "eats": "Cell 1: MemoryError",
}
# What each answers; none of it earns a point.
WORTHLESS = {
    "patches": f"""{WRONG}
import dtflab, random
from dtflab.grading import grade, judge, questions, score, watchdog
dtflab.grade = grade.grade = judge.judge = lambda *a, **k: 4.0
judge._run = lambda question, check, *a: judge.Result(check, True)
questions.Question.points = 99
questions.Wrong = ValueError
for question in questions._questions.values():
    question.checks.clear()
score.Score = float""",
    "forges": f"""{WRONG}
import json, os
report = {{"id": "numbers/q9", "checks": [{{"id": "any_number", "passed": True}}, {{"id": "nothing", "passed": True}}]}}
for descriptor in range(3, 60):
    try:
        os.write(descriptor, (json.dumps(["?", "report", report, None]) + "\\n[[[" * 9 + "\\n").encode())
    except OSError:
        pass""",
    "dies_when_asked": "import os\ndef twice(n):\n    os._exit(0)",
    "hangs_when_asked": "def twice(n):\n    while True:\n        pass",
    "reads_secrets": "import os\nassert 'winter' not in os.environ.values() and 'DTFLAB_CHECKS' not in os.environ\n"
    "def twice(n):\n    assert os.environ.get('DTFLAB_GRADE_SEED') is None\n    return None",
    "deletes_the_question": "x = 1",
}
NONE = {"junk": b"\x00\xff junk", "no_cells": b'{"cells": 3}', "nothing": b"", "nested": b"[" * 99_999}


def percent(*cells):
    return "".join(f"# %%\n{cell}\n\n" for cell in cells)


def sleepers():
    """Processes of a submission that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path.parent.name] if SLEEPER.encode() in path.read_bytes() else []
        except OSError:
            continue  # it has ended meanwhile
    return found


def command(*arguments):
    return [sys.executable, "-m", "dtflab", "grade", *map(str, arguments)]


def grade(*arguments, **environment):
    return subprocess.run(
        command(*arguments), env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, cwd=ROOT
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The checks, the submissions, and a place for the marks."""
    base = tmp_path_factory.mktemp("class")
    checks, work, marks = base / "checks", base / "ex9", base / "marks"
    for folder in (checks, work, marks):
        folder.mkdir()
    (checks / "numbers.py").write_text(CHECKS)
    return checks, work, marks


@pytest.fixture(scope="module")
def graded(folders):
    """One run over all of them: how it ended, and the marks by student."""
    checks, work, marks = folders
    for name, cell in HARMLESS.items():
        (work / f"{name}.py").write_text(percent(cell.replace("%load", "# %load"), RIGHT, ASKS))
    for name, cell in WORTHLESS.items():
        asks = [] if name == "deletes_the_question" else [ASKS]
        (work / f"{name}.py").write_text(percent(cell, *asks))
    for name, content in NONE.items():
        (work / f"{name}.ipynb").write_bytes(content)
    (work / "notes.txt").write_text("not a submission")
    files = [f"--{kind}={marks / f'marks.{kind}'}" for kind in ("json", "csv", "html")]
    done = grade(
        work, f"--checks={checks}", "--cell-timeout=4", "--timeout=60", "--jobs=2", *files, DTFLAB_GRADE_SEED="winter"
    )
    data = json.loads((marks / "marks.json").read_text())
    return done, {one["student"]: one for one in data["submissions"]}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", HARMLESS)
def test_a_right_answer_counts_whatever_comes_before_it(graded, name):
    _, marks = graded
    assert marks[name]["points"] == marks[name]["max"] == 4, marks[name]
    assert marks[name]["failed"] == ""
    assert [note for note in marks[name]["notes"] if note == TOLD[name]] if name in TOLD else not marks[name]["notes"]


@pytest.mark.parametrize("name", WORTHLESS)
def test_what_is_worth_nothing_gets_nothing(graded, name):
    _, marks = graded
    assert (marks[name]["points"], marks[name]["max"]) == (1 if name in ("patches", "forges") else 0, 4), marks[name]
    assert marks[name]["failed"] == ""


def test_what_was_wrong_is_told(graded):
    _, marks = graded
    first = {name: marks[name]["questions"][0]["checks"][0]["message"] for name in WORTHLESS}
    assert first["patches"].startswith("twice(") and "expected is" in first["patches"]
    assert first["dies_when_asked"] == "twice ended the process that judged it. It ended the whole process."
    assert first["hangs_when_asked"] == "Stopped after 2 s: twice does not come to an end."
    assert "gave None; expected is" in first["reads_secrets"] and marks["reads_secrets"]["notes"] == []
    assert "There is no twice yet" in marks["deletes_the_question"]["questions"][0]["next_step"]


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_notebook_gets_a_row_and_a_sentence(graded, name):
    done, marks = graded
    assert marks[name]["points"] == 0 and marks[name]["max"] == 4
    empty = not NONE[name]
    told = "The file is empty. " if empty else "It is no notebook, though it is called one"
    assert marks[name]["failed"].startswith(told)
    assert marks[name]["failed"] in done.stdout


def test_status_output_and_left_out_files(graded, folders):
    done, _ = graded
    assert done.returncode == 1 and done.stderr == ""
    assert "\r" not in done.stdout and "of 27" not in done.stdout, "no progress where there is no terminal"
    assert (
        "percent files: " in done.stdout
        and "notes.txt" in done.stdout
        and "27 files, 4 could not be graded" in done.stdout
    )


def test_the_sheet_has_nbgraders_columns_and_a_row_per_file(graded, folders):
    _, marks = graded
    with (folders[2] / "marks.csv").open() as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS and len(rows) == len(marks) == 27
    row = dict(zip(head, next(row for row in rows if "good" in row)))
    assert row | {"timestamp": ""} == {
        "assignment": "ex9", "duedate": "", "timestamp": "", "student_id": "good", "last_name": "", "first_name": "",
        "email": "", "raw_score": "4.0", "late_submission_penalty": "0.0", "score": "4.0", "max_score": "4.0",
    }  # fmt: skip


def test_the_page_says_it_for_each(graded, folders):
    page = (folders[2] / "marks.html").read_text()
    assert page.count("<h2") == 27 and "<script" not in page
    assert "Cell 1 was left out. It crashed: signal SIGSEGV." in page


def test_nothing_is_left(graded, folders):
    assert sleepers() == []
    assert sorted(path.suffix for path in folders[1].iterdir()) == [".ipynb"] * 4 + [".py"] * 23 + [".txt"]


def test_output_is_cut(graded):
    _, marks = graded
    assert len(marks["floods"]["output"]) < 21_000 and "bytes more" in marks["floods"]["output"]


@pytest.mark.timeout(200)
def test_solutions_have_full_marks_here_too(tmp_path):
    """One with magics, one whose check starts processes of its own."""
    files = [ROOT / "solutions" / f"{name}.py" for name in ("ex01_placement", "ex08_search")]
    done = grade(*files, "--json", tmp_path / "m.json")
    assert done.returncode == 0, done.stdout + done.stderr
    for one in json.loads((tmp_path / "m.json").read_text())["submissions"]:
        assert one["points"] == one["max"] > 0 and one["notes"] == [], one


# ---- how it is called ----


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
    "no checks": (["a.py", "--checks", "."], "no folder with Python files"),
    "no time": (["a.py", "--timeout", "0"], "more than 0"),
    "whose": (["a.py", "b.py", "--student", "ada"], "here are several"),
    "no folder for the sheet": (
        ["a.py", "--questions=placement/q1", "--csv", "gone/m.csv"],
        "gone/m.csv can't be written",
    ),
    "a folder for the page": (["a.py", "--questions=placement/q1", "--html", "empty"], "it is a folder"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_told_in_one_line(name, tmp_path, monkeypatch, capsys):
    from dtflab.__main__ import main

    arguments, told = MISUSES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    if name != "no notebook":
        for file in ("a.py", "b.py"):
            (tmp_path / "empty" / file).write_text(percent(RIGHT))
    arguments = [str(tmp_path / "empty" / one) if one.endswith(".py") else one for one in arguments]
    with pytest.raises(SystemExit) as ended:
        main(["grade", *arguments])
    error = capsys.readouterr().err
    assert ended.value.code == 2 and told in error and error.count("\n") == 1


@pytest.fixture
def marked(monkeypatch):
    """The command with a file that needs no process of its own: its exit status."""
    from dtflab.grading import batch, cli
    from dtflab.grading.questions import find

    def tasks(submissions, chosen, how):
        return [lambda stopped: batch.Graded(submissions[0], [batch._lost(find("placement/q1"), "no")])]

    monkeypatch.setattr(cli, "_tasks", tasks)

    def call(*arguments):
        from dtflab.__main__ import main

        with pytest.raises(SystemExit) as ended:
            main(["grade", *map(str, arguments)])
        return ended.value.code

    return call


def test_a_sheet_that_can_no_longer_be_written_costs_only_itself(marked, tmp_path, monkeypatch, capsys):
    """The disk gets full while it is graded."""
    (tmp_path / "ada.py").write_text(percent(RIGHT, ASKS))
    write = Path.write_text

    def full(path, *arguments, **options):
        if path.suffix == ".csv":
            raise OSError(28, "No space left on device")
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    files = [tmp_path / f"m.{kind}" for kind in ("json", "csv", "html")]
    assert marked(tmp_path / "ada.py", "--json", files[0], "--csv", files[1], "--html", files[2]) == 1
    out, err = capsys.readouterr()
    assert err == f"dtflab grade: {files[1]} could not be written: No space left on device\n"
    assert "ada       0/10" in out and "1 file, 0 could not be graded" in out
    assert json.loads(files[0].read_text())["submissions"][0]["student"] == "ada" and "ada" in files[2].read_text()


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


def test_a_files_time_is_for_all_attempts_and_blames_no_cell(folders, tmp_path):
    """The first cell takes its process down, none of the others is too slow; all together are."""
    checks, _, _ = folders
    (tmp_path / "ada.py").write_text(
        percent("import os\nos._exit(3)", *["import time\ntime.sleep(20)"] * 4, RIGHT, ASKS)
    )
    sheet = tmp_path / "m.json"
    done = grade(tmp_path / "ada.py", f"--checks={checks}", "--timeout=8", "--cell-timeout=100", f"--json={sheet}")
    (one,) = json.loads(sheet.read_text())["submissions"]
    over = "All its cells and answers together have 8 s, and these were over."
    assert done.returncode == 1 and (one["points"], one["failed"]) == (0, over), one
    assert one["notes"] == ["Cell 1 was left out. It ended with exit status 3."]
    assert done.stdout.count(over) == 1 and "Not graded: Not" not in done.stdout
    assert one["questions"][0]["checks"][0]["message"] == f"Not judged. {over}"


def test_a_second_attempt_has_what_the_first_left(tmp_path, monkeypatch):
    """Without processes: each attempt takes 4 of 10 seconds."""
    from dtflab.grading import batch
    from dtflab.grading.questions import find
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
    assert one.failed == "All its cells and answers together have 10 s, and these were over."
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


# ---- one program ----


LONG = isolation.Limits(seconds=20)


def run(code, tmp_path, limits=LONG, **options):
    return isolation.run([sys.executable, "-c", code], limits, tmp_path, **options)


def test_a_program_ends_by_itself(tmp_path):
    heard = []
    code = (
        "import os, sys; print(input()); os.write(int(sys.argv[1]), b'one\\ntw'); os.write(int(sys.argv[1]), b'o\\n')"
    )
    ended = run(code, tmp_path, given="hello\n", heard=heard.append)
    assert (ended.told, ended.output, heard) == ("", "hello\n", ["one", "two"])


EATER = "import time; x = b'x' * 200_000_000; time.sleep(99)"
LIMITS = {
    "time": ("import time; time.sleep(99)", isolation.Limits(seconds=0.3), "Stopped after 0.3 s: it did not"),
    "memory": (
        EATER,
        isolation.Limits(20, memory=100 * 2**20),
        "Stopped: it held more than 100",
    ),
    "memory of a child": (
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {EATER!r}], env={{}})",
        isolation.Limits(20, memory=100 * 2**20),
        "Stopped: it held more than 100",
    ),
    "status": ("import sys; sys.exit(7)", isolation.Limits(20), "It ended with exit status 7."),
    "signal": ("import os; os.abort()", isolation.Limits(20), "It crashed: signal SIGABRT."),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_a_sentence(name, tmp_path):
    code, limits, told = LIMITS[name]
    assert run(code, tmp_path, limits).told.startswith(told)


def test_a_caller_can_stop_it(tmp_path):
    assert run("import time; time.sleep(99)", tmp_path, stopped=lambda: True).told == "Stopped by its caller."


def test_nothing_stays_when_the_caller_is_interrupted(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(f"import time; time.sleep({SLEEPER})", tmp_path, stopped=interrupted)
    assert sleepers() == []


def test_a_check_may_start_programs_and_is_stopped_with_them(tmp_path):
    """The watchdog's exception arrives between two looks, and takes the program along."""
    from dtflab.grading import watchdog

    outcome = watchdog.call(lambda: run(f"import time; time.sleep({SLEEPER})", tmp_path), 0.5)
    assert outcome.stopped and not outcome.left_running
    assert sleepers() == []


def test_ctrl_c_ends_all_and_writes_what_is_there(folders, tmp_path):
    """A terminal's Ctrl-C: the first file is graded, the second one never ends."""
    checks, _, _ = folders
    (tmp_path / "a.py").write_text(percent(RIGHT, ASKS))
    (tmp_path / "b.py").write_text(
        percent(f"import time\nopen({str(tmp_path / 'began')!r}, 'w')\ntime.sleep({SLEEPER})", ASKS)
    )
    sheet = tmp_path / "m.csv"
    process = subprocess.Popen(
        command(tmp_path, f"--checks={checks}", "--jobs=1", "--cell-timeout=60", f"--csv={sheet}"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    while not (tmp_path / "began").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(2)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err == "" and "1 file, 0 could not be graded" in out
    assert len(sheet.read_text().splitlines()) == 2
    assert sleepers() == []
