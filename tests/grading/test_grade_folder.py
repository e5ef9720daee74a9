"""`dtflab grade FOLDER`: whatever a submission does, it has a mark, the others have theirs, and nothing is left."""

from __future__ import annotations

import csv
import json
import re

import pytest

from dtflab.grading.batch import READ, SHIPPED
from dtflab.grading.mark_sheets import COLUMNS
from tests.grading.classroom import ASKS, RIGHT, WRONG, grade, own_seconds, percent, sleepers
from tests.house import ROOT

pytestmark = pytest.mark.timeout(900)
SLEEPER = own_seconds(3)  # what processes that stay behind are known by

# What each does first; then comes a right answer, which counts.
HARMLESS = {
    "good": "import dtflab",
    "hangs": "while True:\n    pass",
    "hangs_deaf": "import time\nwhile True:\n    try:\n        time.sleep(9)\n    except BaseException:\n        pass",
    "exits": "import os\nos._exit(3)",
    "leaves": "import sys\nsys.exit(1)",
    "quits": "exit()\nraise ValueError('left out')",
    "crashes": "import ctypes\nctypes.string_at(0)",
    "forks": "import os\nfor _ in range(3):\n    os.fork()",
    "bombs": "import os, signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
    f"for _ in range(8):\n    os.fork()\ntime.sleep({SLEEPER})",
    "daemon": f"import subprocess\nsubprocess.Popen(['sleep', '{SLEEPER}'], start_new_session=True)",
    "floods": "import sys\nfor _ in range(50):\n    print('x' * 100_000)\n    print('y' * 100_000, file=sys.stderr)",
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
    "quits": "Cell 1: SystemExit: the cell called exit() or quit(), which ends a kernel. "
    "Here only the rest of the cell was skipped",
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
score.Score.__repr__ = lambda self: "4.0"
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
    "lends": f"{WRONG}\nimport dtflab as F\nF.own, F.grade = F.grade, print\n\n# %%\nF.grade = F.own",
    "stub": "def twice(n):\n    raise NotImplementedError()\n\n# %%\nimport dtflab\ndtflab.grade = lambda *_: 4.0",
    "repr": f"{WRONG}\nfrom dtflab.grading.score import Score\nScore.__repr__ = lambda self: '4.0'",
    "judge": f"{WRONG}\nfrom dtflab.grading import judge\njudge.judge = lambda *_: 4",
    "is_another": f"{WRONG}\nclass F:\n    grade = print\ndtflab = F",
}

NONE = {"junk": b"\x00\xff junk", "no_cells": b'{"cells": 3}', "nothing": b"", "nested": b"[" * 99_999}


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


@pytest.mark.parametrize("name", HARMLESS)
def test_a_right_answer_counts_whatever_comes_before_it(graded, name):
    _, marks = graded
    assert marks[name]["points"] == marks[name]["max"] == 4, marks[name]
    assert marks[name]["failed"] == ""
    assert [note for note in marks[name]["notes"] if note == TOLD[name]] if name in TOLD else not marks[name]["notes"]


@pytest.mark.parametrize("name", WORTHLESS)
def test_what_is_worth_nothing_gets_nothing(graded, name):
    _, marks = graded
    assert (marks[name]["points"], marks[name]["max"]) == (int(WRONG in WORTHLESS[name]), 4), marks[name]
    assert marks[name]["failed"] == ""


def test_what_was_wrong_is_told(graded):
    _, marks = graded
    first = {name: marks[name]["questions"][0]["checks"][0]["message"] for name in WORTHLESS}
    assert first["patches"].startswith("twice(") and "expected: " in first["patches"]
    assert first["dies_when_asked"] == "twice was being judged when its process ended. It ended the whole process."
    assert first["hangs_when_asked"] == "Stopped after 2 s: twice does not come to an end."
    assert "gave None; expected: " in first["reads_secrets"] and marks["reads_secrets"]["notes"] == []
    assert "There is no twice yet" in marks["deletes_the_question"]["questions"][0]["next_step"]


def test_what_is_rebound_is_reported(graded):
    _, marks = graded
    replaces = {
        "patches": ", ".join(
            f"dtflab.{name} (cell 1)" for name in ("grade", "grading.grade.grade", "grading.judge._run")
        )
        + " and 4 more",
        "lends": "dtflab.grade (cell 1)",
        "is_another": "dtflab (cell 1)",
        "stub": "dtflab.grade (cell 2)",
        "repr": "dtflab.grading.score.Score (cell 1)",
        "judge": "dtflab.grading.judge.judge (cell 1)",
    }
    for name, one in marks.items():
        found = [note for note in one["notes"] if note.startswith(READ)]
        told = f"it replaced {replaces.get(name)}. Its points here do not depend on that."
        assert len(found) == (name in replaces) and all(told in note for note in found), (name, one["notes"])
        assert not found or found[0] == one["notes"][0], "it comes first"


def test_a_stub_that_replaces_grade_is_not_as_shipped_and_is_at_the_top_of_the_page(graded, folders):
    _, marks = graded
    assert SHIPPED not in marks["stub"]["notes"] and marks["stub"]["points"] == 0
    top = re.sub(r"<[^>]+>", "", (folders[2] / "marks.html").read_text().partition("The class")[0])
    assert "6 files replaced or changed code of the grader: is_another, judge, lends, patches, repr, stub." in top


CHANGES_A_CHECK = """
import gc, types
for one in gc.get_objects():
    if isinstance(one, types.FunctionType) and one.__module__ == "dtflab.grading.checks.placement":
        if one.__name__ == "kinds":
            one.__code__ = (lambda answer, random: None).__code__
"""


LEAVES_OUT_CHECKS = """
import gc
for one in gc.get_objects():
    if type(one).__name__ == "Question" and one.id == "placement/q1":
        one.checks[:] = [one.checks[0]._replace(judge=lambda answer, random: None, points=10)]
"""


@pytest.mark.parametrize(
    ("cell", "told"),
    [(CHANGES_A_CHECK, "dtflab.grading.checks.placement.kinds"), (LEAVES_OUT_CHECKS, "the checks of placement/q1")],
)
def test_a_check_that_is_changed_is_reported(tmp_path, cell, told):
    """A submission can find it in the memory of its process: that earns points, and a warning."""
    (tmp_path / "ada.py").write_text(percent(cell, "balance_by_bytes = print", 'dtflab.grade("placement/q1")'))
    done = grade(tmp_path / "ada.py")
    assert f"code was changed while it ran: {told}." in done.stdout, done


@pytest.mark.parametrize("name", NONE)
def test_what_is_no_notebook_gets_a_row_and_a_sentence(graded, name):
    done, marks = graded
    assert marks[name]["points"] == 0 and marks[name]["max"] == 4
    empty = not NONE[name]
    reason = "The file is empty. " if empty else "It is not a notebook, although its name says so"
    assert marks[name]["failed"].startswith(reason)
    assert marks[name]["failed"] in done.stdout


def test_status_output_and_left_out_files(graded, folders):
    done, _ = graded
    assert done.returncode == 1 and done.stderr == ""
    assert "\r" not in done.stdout and "of 33" not in done.stdout, "no progress where there is no terminal"
    assert (
        "percent files: " in done.stdout
        and "notes.txt" in done.stdout
        and "33 files, 4 could not be graded" in done.stdout
    )


def test_the_sheet_has_nbgraders_columns_and_a_row_per_file(graded, folders):
    _, marks = graded
    with (folders[2] / "marks.csv").open() as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == COLUMNS and len(rows) == len(marks) == 33
    row = dict(zip(head, next(row for row in rows if "good" in row)))
    assert row | {"timestamp": ""} == {
        "assignment": "ex9", "duedate": "", "timestamp": "", "student_id": "good", "last_name": "", "first_name": "",
        "email": "", "raw_score": "4.0", "late_submission_penalty": "0.0", "score": "4.0", "max_score": "4.0",
    }  # fmt: skip


def test_the_page_says_it_for_each(graded, folders):
    page = (folders[2] / "marks.html").read_text()
    assert page.count("<article") == 33 and "<script" not in page
    assert "Cell 1 was left out. It crashed: signal SIGSEGV." in page


def test_nothing_is_left(graded, folders):
    assert sleepers(SLEEPER) == []
    assert sorted(path.suffix for path in folders[1].iterdir()) == [".ipynb"] * 4 + [".py"] * 29 + [".txt"]


def test_output_is_cut(graded):
    _, marks = graded
    assert len(marks["floods"]["output"]) < 21_000 and "bytes more" in marks["floods"]["output"]


def test_solutions_have_full_marks_here_too(tmp_path):
    """One with magics, one whose check starts processes of its own."""
    files = [ROOT / "solutions" / f"{name}.py" for name in ("ex01_placement", "ex08_search")]
    done = grade(*files, "--json", tmp_path / "m.json")
    assert done.returncode == 0, done.stdout + done.stderr
    for one in json.loads((tmp_path / "m.json").read_text())["submissions"]:
        assert one["points"] == one["max"] > 0 and one["notes"] == [], one
