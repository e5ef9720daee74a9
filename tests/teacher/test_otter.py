"""The real otter-grader, on the tests that `dtflab export --otter` writes."""

from __future__ import annotations

import json
import subprocess

import pytest

from dtflab.__main__ import main
from dtflab.grading.catalogue import all_questions, find
from dtflab.grading.grade import _LATER
from dtflab.grading.otter import name_of, text
from notebooks import build
from tests.forks import imported
from tests.teacher.submissions import SEED, SOLUTION, answered, curious, findings, spilled, write_exam
from tests.teacher.venv import environment, tool

pytestmark = pytest.mark.timeout(2000)  # the machine may be busy
HALF = SOLUTION.replace('op.get_attr("dtype").size', "1")
Q1 = "placement/q1"
(COUNTS,) = (mistake for mistake in find(Q1).mistakes if mistake.name == "counts_elements")


@pytest.fixture(scope="module")
def python():
    with imported("otter.cli", python=tool("python")) as python:
        yield python


def run(folder, *command, **more):
    """The output of a command; `more` is added to its environment."""
    done = subprocess.run(
        command,
        cwd=folder, env=environment(folder) | more, capture_output=True, text=True, timeout=800,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def autograder(tmp_path_factory, python):
    """otter's own archive, with our tests in it."""
    folder = tmp_path_factory.mktemp("otter")
    with pytest.raises(SystemExit) as ended:
        main(["export", "--otter", str(folder / "tests"), "--questions", Q1])
    assert ended.value.code == 0
    arguments = ["-t", "tests", "-o", "autograder.zip", "--no-environment", "--no-requirements"]
    run(folder, *python, tool("otter"), "generate", *arguments)
    return folder


def otter_run(autograder, python, folder, notebook, **more):
    """The tests in the results of `otter run`, in a folder of the teacher's own."""
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "submission.ipynb").write_text(build.text_of(notebook), encoding="utf-8")
    archive = str(autograder / "autograder.zip")
    run(
        folder,
        *[*python, tool("otter"), "run", "-a", archive, "-o", ".", "--no-logo", "submission.ipynb"],
        TMPDIR=str(folder / "tmp"), **more,
    )  # fmt: skip
    return json.loads((folder / "results.json").read_text())["tests"]


def curious_answer(code, folder):
    """The exercise with an answer, and a search for the hidden checks around it."""
    notebook = answered(f"look_once()\n    {code}")
    cell = next(cell for cell in notebook.cells if code in cell.source)
    cell.source = curious(cell.source, folder)
    return notebook


def test_otter_run_gives_the_points_of_each_check(autograder, python, tmp_path):
    results = otter_run(autograder, python, tmp_path, answered(HALF))
    (test,) = (test for test in results if test["name"] == name_of(find(Q1)))
    assert (test["score"], test["max_score"]) == (7.0, 10.0)
    assert "not the fewest bytes" in test["output"], "otter shows what the check printed"
    assert test["output"].count(f"Hint: {COUNTS.diagnosis} {_LATER}") == 1 and COUNTS.cure not in test["output"]
    assert test["output"].count("Caused by the same mistake as in “") == 1


def test_hidden_marks_are_added_to_its_results_and_a_curious_kernel_finds_nothing_of_them(autograder, python, tmp_path):
    """The exam is put there when otter has run."""
    results = otter_run(autograder, python, tmp_path, curious_answer(SOLUTION, tmp_path))
    assert findings(tmp_path) == ["LOOKED", "LOOKED AGAIN"]
    (test,) = (test for test in results if test["name"] == name_of(find(Q1)))
    assert (test["score"], test["max_score"]) == (10.0, 10.0)

    exam = write_exam(tmp_path / "exam")
    seed = {"DTFLAB_GRADE_SEED": (exam / "seed").read_text()}
    for _ in range(2):  # the second time changes nothing
        command = ["-m", "dtflab", "grade", "submission.ipynb", "--checks", "exam", "--otter-results", "results.json"]
        run(tmp_path, tool("python"), *command, **seed)
    added = json.loads((tmp_path / "results.json").read_text())["tests"]
    assert added[: len(results)] == results, "what otter has written stays"
    (hidden,) = added[len(results) :]
    assert hidden == {
        "name": "placement-q1-hidden",
        "score": 2,
        "max_score": 2,
        "visibility": "hidden",
        "output": "Seven ps tasks: passed",
    }
    assert spilled(tmp_path) == [exam / "more.py", exam / "seed"]


def test_an_exam_that_lies_there_while_otter_runs_is_found_and_one_in_its_environment_is_refused(
    autograder, python, tmp_path
):
    """The same search has eyes; and what the page says about it is so."""
    exam = write_exam(tmp_path / "exam")
    notebook = curious_answer(SOLUTION, tmp_path)
    results = otter_run(autograder, python, tmp_path, notebook, DTFLAB_CHECKS=str(exam), DTFLAB_GRADE_SEED=SEED)
    found = findings(tmp_path)
    for place in ("os.environ seed", "proc environ seed", "disk seed", "disk chec", "uncovered chec"):
        assert f"FOUND {place}" in found
    (test,) = (test for test in results if test["name"] == name_of(find(Q1)))
    assert test["score"] == 0 and "DTFLAB_CHECKS is set in this notebook's environment" in test["output"]


def test_a_student_checks_in_the_notebook(autograder, python):
    """`grader.check` next to our own cell."""
    (autograder / "check.py").write_text(
        "import otter, dtflab as tf\nimport dtflab\n"
        f"def balance_by_bytes(ps_tasks, worker):\n    {SOLUTION}\n"
        f"print(otter.Notebook(tests_dir='tests').check({name_of(find(Q1))!r}))",
        encoding="utf-8",
    )
    assert "results: All test cases passed!" in run(autograder, *python, "check.py")


def test_its_tests_give_the_cure_when_another_try_shows_the_mistake(autograder, python):
    """All tests of a call are one try; a comment in the cell makes none."""
    cells = (HALF, HALF, f"# mine\n    {HALF}", f"print()\n    {HALF}")
    tries = "".join(f"def balance_by_bytes(ps_tasks, worker):\n    {code}\nprint('TRY', checked())\n" for code in cells)
    (autograder / "tries.py").write_text(
        "import otter, dtflab as tf\nimport dtflab\n"
        f"def checked(): return otter.Notebook(tests_dir='tests').check({name_of(find(Q1))!r})\n{tries}",
        encoding="utf-8",
    )
    _, *told = run(autograder, *python, "tries.py").split("TRY")
    assert [COUNTS.cure in one for one in told] == [False, False, False, True]
    assert [one.count("Caused by the same mistake as in “") for one in told] == [1] * 4


@pytest.mark.parametrize("question", all_questions(), ids=lambda question: question.id)
def test_a_test_says_nothing_of_its_checks(question):
    written = text(question)
    assert [f'"{check.name}")' in written for check in question.checks] == [True] * len(question.checks)
    assert written.count(">>>") == 2 * len(question.checks) and "def " not in written
