"""The real otter-grader, on the tests that `dtflab export --otter` writes."""

from __future__ import annotations

import json
import subprocess

import pytest

from dtflab.__main__ import main
from dtflab.grading.catalogue import all_questions, find
from dtflab.grading.otter import name_of, text
from notebooks import build
from tests.forks import imported
from tests.teacher.submissions import EXAM, SOLUTION, answered
from tests.teacher.venv import environment, tool

pytestmark = pytest.mark.timeout(2000)  # the machine may be busy
ANSWERS = {
    "good": (SOLUTION, 10.0),
    "half": (SOLUTION.replace('op.get_attr("dtype").size', "1"), 8.0),
}
Q1 = "placement/q1"


@pytest.fixture(scope="module")
def python():
    with imported("otter.cli", python=tool("python")) as python:
        yield python


def run(folder, *command):
    """The output of a command."""
    done = subprocess.run(
        command,
        cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=800, stdin=subprocess.DEVNULL,
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


@pytest.mark.parametrize("name", ANSWERS)
def test_otter_run_gives_the_points_of_each_check(autograder, python, name):
    code, points = ANSWERS[name]
    folder = autograder / name
    folder.mkdir()
    (folder / "submission.ipynb").write_text(build.text_of(answered(code)), encoding="utf-8")
    run(folder, *python, tool("otter"), "run", "-a", "../autograder.zip", "-o", ".", "--no-logo", "submission.ipynb")
    results = json.loads((folder / "results.json").read_text())["tests"]
    (test,) = (test for test in results if test["name"] == name_of(find(Q1)))
    assert (test["score"], test["max_score"]) == (points, 10.0)
    if name == "half":
        assert "1,000 bool are 1,000" in test["output"], "otter shows what the check printed"
    add_hidden(folder, python)
    added = json.loads((folder / "results.json").read_text())["tests"]
    assert added[: len(results)] == results, "what otter has written stays"
    assert added[len(results) :] == [
        {"name": "placement-q1-hidden", "score": 2, "max_score": 2, "output": "Seven ps tasks: passed"}
    ]


def add_hidden(folder, python):
    """The command of the page, twice: the second time changes nothing."""
    (folder / "exam").mkdir()
    (folder / "exam/more.py").write_text(EXAM)
    options = ["--checks", "exam", "--otter-results", "results.json"]
    for _ in range(2):
        run(folder, tool("python"), "-m", "dtflab", "grade", "submission.ipynb", *options)


def test_a_student_checks_in_the_notebook(autograder, python):
    """`grader.check` next to our own cell."""
    (autograder / "check.py").write_text(
        "import otter, dtflab as tf\nimport dtflab\n"
        f"def balance_by_bytes(ps_tasks, worker):\n    {SOLUTION}\n"
        f"print(otter.Notebook(tests_dir='tests').check({name_of(find(Q1))!r}))",
        encoding="utf-8",
    )
    assert "results: All test cases passed!" in run(autograder, *python, "check.py")


@pytest.mark.parametrize("question", all_questions(), ids=lambda question: question.id)
def test_a_test_says_nothing_of_its_checks(question):
    written = text(question)
    assert [f'"{check.name}")' in written for check in question.checks] == [True] * len(question.checks)
    assert written.count(">>>") == 2 * len(question.checks) and "def " not in written
