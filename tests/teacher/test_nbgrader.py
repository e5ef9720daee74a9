"""The real nbgrader, as a teacher uses it: release, five submissions, marks, feedback, a sheet."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from dtflab.grading.catalogue import find
from notebooks import build
from tests.forks import imported
from tests.grading.classroom import need_namespaces
from tests.house import ROOT
from tests.teacher.submissions import NAME, SOLUTION, SOURCE, STUB, answered, curious, findings, spilled, write_exam
from tests.teacher.venv import environment, tool

CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "dtflab"
c.Execute.timeout_func = lambda cell: 2 if "while True" in cell.source else 600
c.Execute.startup_timeout = c.Execute.iopub_timeout = 600
"""


pytestmark = pytest.mark.timeout(3000)  # the first test does all that nbgrader does; the machine may be busy
NOISE = "import sys, warnings; print('noise', file=sys.stderr); warnings.warn('noise')\n    "
ANSWERS = {
    "good": (SOLUTION, 10.0),
    "half": (SOLUTION.replace('op.get_attr("dtype").size', "1"), 7.0),
    "empty": (STUB, 0.0),
    "hanging": ("import time; time.sleep(99)", 0.0),
    "noisy": (NOISE + SOLUTION, 10.0),
}


def submission(name):
    notebook = answered(ANSWERS[name][0])
    if name == "hanging":
        notebook.cells[-1].source = "while True: pass"  # a cell outside of the grader that never ends, too
    return build.text_of(notebook)


@pytest.fixture(scope="module")
def nbgrader():
    """Runs one of its commands."""
    with imported("nbgrader.apps.nbgraderapp", python=tool("python")) as python:

        def run(course, *arguments):
            done = subprocess.run(
                [*python, tool("nbgrader"), *arguments],
                cwd=course, env=environment(course), capture_output=True, text=True, timeout=800,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr

        yield run


@pytest.fixture(scope="module")
def course(tmp_path_factory, nbgrader):
    """A course in which everything has been done that nbgrader does."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "nbgrader_config.py").write_text(CONFIG)
    source = folder / "source" / NAME / f"{NAME}.ipynb"
    source.parent.mkdir(parents=True)
    source.write_text(build.text_of(build.exercise(SOURCE, solved=True)), encoding="utf-8")
    nbgrader(folder, "generate_assignment", NAME, "--create")
    for name in ANSWERS:
        path = folder / "submitted" / name / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(submission(name), encoding="utf-8")
    nbgrader(folder, "autograde", NAME, "--create")
    nbgrader(folder, "generate_feedback", NAME)
    nbgrader(folder, "export", "--to", "grades.csv")
    return folder


def test_the_released_notebook_is_ours_cell_for_cell(course):
    released = nbformat.read(course / "release" / NAME / f"{NAME}.ipynb", as_version=4)
    ours = nbformat.read(ROOT / "exercises" / f"{NAME}.ipynb", as_version=4)
    assert [seen(cell) for cell in released.cells] == [seen(cell) for cell in ours.cells]


def seen(cell):
    """All of a cell but what nbgrader adds to it: a checksum, and the locks for JupyterLab."""
    metadata = {**cell.metadata, "nbgrader": {**cell.metadata.get("nbgrader", {})}}
    for added in ("checksum", "cell_type"):
        metadata["nbgrader"].pop(added, None)
    for lock in ("deletable", "editable"):
        metadata.pop(lock, None)
    return cell.id, cell.cell_type, cell.source, metadata


def test_marks_are_as_expected(course):
    marks = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in rows(course / "grades.csv")}
    assert marks == {name: (points, 10.0) for name, (_, points) in ANSWERS.items()}


def test_our_sheet_has_the_columns_of_nbgraders(course):
    from dtflab.grading.mark_sheets import COLUMNS

    with (course / "grades.csv").open() as file:
        assert tuple(next(csv.reader(file))) == COLUMNS


@pytest.mark.parametrize("name", ANSWERS)
def test_feedback_shows_the_report_and_no_check(course, name):
    page = (course / "feedback" / name / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    expected = {"empty": "is not written yet", "hanging": "Stopped after 4 s"}.get(name, "fewest bytes so far")
    assert expected in page
    assert "BEGIN SOLUTION" not in page and "def balanced(" not in page


def test_feedback_on_a_mistake_has_the_cure(course):
    """In a student's own notebook it comes with the second try; after autograde no other try counts."""
    page = (course / "feedback" / "half" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    (made,) = (one for one in find("placement/q1").mistakes if one.name == "counts_elements")
    assert made.cure and made.text in page


def rows(sheet):
    """The rows of a sheet, by student."""
    with sheet.open() as file:
        return sorted(csv.DictReader(file), key=lambda row: row["student_id"])


def test_dtflab_grades_the_same_folder_alike(course):
    """The marks of `dtflab grade` on nbgrader's folder of submissions are nbgrader's."""
    done = subprocess.run(
        [sys.executable, "-m", "dtflab", "grade", str(course / "submitted"), "--csv", str(course / "ours.csv"),
         "--cell-timeout=5"],
        cwd=ROOT, env={**os.environ}, capture_output=True, text=True, timeout=800,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    keys = ("assignment", "student_id", "score", "max_score")
    theirs, ours = ([[row[key] for key in keys] for row in rows(course / name)] for name in ("grades.csv", "ours.csv"))
    assert ours == theirs


def test_a_choice_is_released_without_its_letters_and_costs_no_points(tmp_path, nbgrader):
    name = "ex01_no_pins"
    (tmp_path / "nbgrader_config.py").write_text(CONFIG)
    build.write_nbgrader(tmp_path)
    nbgrader(tmp_path, "generate_assignment", name, "--create")
    released = nbformat.read(tmp_path / "release" / name / f"{name}.ipynb", as_version=4)
    ours = nbformat.read(ROOT / "exercises" / f"{name}.ipynb", as_version=4)
    assert [seen(cell) for cell in released.cells] == [seen(cell) for cell in ours.cells]

    notebook = build.exercise(ROOT / "solutions" / f"{name}.py", solved=True)
    (choice,) = (cell for cell in notebook.cells if cell.source == 'dtflab.predict("placement/q3", "CE")')
    choice.source = 'dtflab.predict("placement/q3", "ABD")'
    exchanged(tmp_path, nbgrader, name, notebook)
    nbgrader(tmp_path, "autograde", name, "--create")
    nbgrader(tmp_path, "export", "--to", "grades.csv")
    (ada,) = (row for row in rows(tmp_path / "grades.csv") if row["assignment"] == name)
    assert (float(ada["score"]), float(ada["max_score"])) == (10.0, 10.0)


def exchanged(course, nbgrader, name, notebook):
    """Hand in a notebook as the page says, through nbgrader's exchange: release, submit, collect."""
    exchange, own = course / "exchange", course / "own"
    (own / name).mkdir(parents=True)
    exchange.mkdir()
    exchange.chmod(0o777)  # nbgrader asks for that
    for folder in (course, own):
        (folder / "nbgrader_config.py").write_text(f"{CONFIG}c.Exchange.root = {str(exchange)!r}\n")
    (own / name / f"{name}.ipynb").write_text(build.text_of(notebook), encoding="utf-8")
    nbgrader(course, "release_assignment", name)
    nbgrader(own, "submit", name)
    nbgrader(course, "collect", name)


# In a notebook whose environment has a seed nothing is graded; and what is rebound here alone has points here, which
# don't stand.
SETS = 'import os\nos.environ["DTFLAB_GRADE_SEED"] = "0"\n'
REBINDS = """import os
if "NBGRADER_EXECUTION" in os.environ:
    dtflab.grade = lambda *_: 10
"""


@pytest.fixture(scope="module")
def exam(tmp_path_factory, nbgrader):
    """A teacher's folder after the whole flow of hidden checks, by the commands of the page: `course` and `exam`."""
    need_namespaces()
    home = tmp_path_factory.mktemp("teacher")
    course, exam = home / "course", write_exam(home / "exam")
    course.mkdir()
    (home / "tmp").mkdir()
    (course / "nbgrader_config.py").write_text(CONFIG)

    def run(*command, status=0, **more):
        own = {**environment(home), "TMPDIR": str(home / "tmp"), **more}
        done = subprocess.run(command, cwd=course, env=own, capture_output=True, text=True, timeout=800,
                              stdin=subprocess.DEVNULL)  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done

    build_it = str(ROOT / "notebooks/build.py")
    run(sys.executable, build_it, "--nbgrader", str(course), "--checks", str(exam))
    nbgrader(course, "generate_assignment", NAME, "--create")
    for name in ("good", "half", "sets", "rebinds"):
        notebook = nbformat.read(course / "release" / NAME / f"{NAME}.ipynb", as_version=4)
        cell = next(cell for cell in notebook.cells if STUB in cell.source)
        code = "look_once()\n    " + ANSWERS[{"sets": "good", "rebinds": "half"}.get(name, name)][0]
        cell.source = curious(cell.source.replace(f"# YOUR CODE HERE\n    {STUB}", code), home)
        cell.source = {"sets": SETS, "rebinds": REBINDS}.get(name, "") + cell.source
        path = course / "submitted" / name / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(build.text_of(notebook), encoding="utf-8")
    run("bash", "-c", f"{without()}\nwithout ../exam nbgrader autograde {NAME} --create")
    done = run(tool("python"), "-m", "dtflab", "grade", "submitted", "--checks", "../exam", "--gradebook",
               "gradebook.db", status=1, DTFLAB_GRADE_SEED=(exam / "seed").read_text())  # fmt: skip
    (home / "said").write_text(done.stderr)
    nbgrader(course, "generate_feedback", NAME)
    nbgrader(course, "export", "--to", "grades.csv")
    return home


def without():
    """The shell's function that the page gives, as it stands there."""
    page = (ROOT / "docs/teacher_grading.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^without\(\) \{.*?^\}", page, re.M | re.S)
    return found


def test_hidden_marks_are_added_to_the_gradebook(exam):
    marks = {
        row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in rows(exam / "course/grades.csv")
    }
    assert marks == {"good": (12.0, 12.0), "half": (9.0, 12.0), "sets": (2.0, 12.0), "rebinds": (9.0, 12.0)}


def test_public_points_that_differ_from_ours_are_said(exam):
    told = sorted(line.partition(". Read the file")[0] for line in (exam / "said").read_text().splitlines())
    assert told == [
        "dtflab grade: rebinds: nbgrader has 10 points for placement/q1, and the same checks give 7 here",
        "dtflab grade: sets: nbgrader has 0 points for placement/q1, and the same checks give 10 here",
    ]


AGAIN = """
import json, sys
from pathlib import Path
from dtflab.grading.batch import Graded
from dtflab.grading.catalogue import find
from dtflab.grading.hidden_marks import to_gradebook
from dtflab.grading.judge import Report, Result
from dtflab.grading.submissions import Submission
from nbgrader.api import Gradebook

name, book, question = sys.argv[1], Path("gradebook.db").absolute(), find("placement/q1")
lost = Report(question, [Result(check, check.points != 3) for check in question.checks], "0", "")  # 4 of 10 points
file = Graded(Submission(Path(f"{name}.ipynb"), "rebinds", name, ""), [lost])

def seen(manual=None):
    with Gradebook(f"sqlite:///{book}") as there:
        grade = there.find_grade("placement-q1", name, name, "rebinds")
        if manual is not None:
            grade.manual_score, grade.needs_manual_grade = manual, False
            there.db.commit()
        return [grade.auto_score, grade.manual_score, grade.needs_manual_grade, grade.score]

print(json.dumps([seen(), len(to_gradebook([file], str(book))), seen(), seen(8.0),
                  len(to_gradebook([file], str(book))), seen()]))
"""


def test_points_of_a_kernel_that_rebound_its_grader_wait_for_a_person(exam, tmp_path):
    """The score is what the checks give outside of that kernel, until a person gives another one, which stays."""
    shutil.copy(exam / "course/gradebook.db", tmp_path)
    done = subprocess.run(
        [tool("python"), "-c", AGAIN, NAME], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        [10.0, 7.0, True, 7.0], 1, [10.0, 4.0, True, 4.0], [10.0, 8.0, False, 8.0], 0, [10.0, 8.0, False, 8.0],
    ]  # fmt: skip


def test_a_curious_kernel_finds_neither_the_hidden_checks_nor_the_seed(exam):
    assert findings(exam) == ["LOOKED", "LOOKED AGAIN"]


def test_nothing_of_them_is_in_the_feedback_or_anywhere_in_the_course(exam):
    assert spilled(exam) == [exam / "exam/more.py", exam / "exam/seed"]
    for name in ("good", "half"):
        page = (exam / "course/feedback" / name / NAME / f"{NAME}.html").read_text(encoding="utf-8")
        assert "more points" in page and "Seven ps tasks" not in page


def test_a_notebook_with_a_seed_of_its_own_is_told_so_and_grades_nothing(exam):
    page = (exam / "course/feedback/sets" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "DTFLAB_GRADE_SEED is set in this notebook" in page and "Unset it." in page
