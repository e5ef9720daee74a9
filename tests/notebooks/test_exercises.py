"""Exercises in a real kernel: as shipped, solved, and with answers that hang or talk; what nbgrader would see."""

from __future__ import annotations

import nbclient
import nbformat
import pytest

from dtflab.grading.score import JSON
from notebooks import build
from tests.house import ROOT

SOURCES = sorted((ROOT / "solutions").glob("ex*.py"))
EACH = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
STUB = "raise NotImplementedError()"


def executed(notebook, folder):
    nbclient.NotebookClient(
        notebook, timeout=120, allow_errors=True, resources={"metadata": {"path": folder}}
    ).execute()
    return notebook


def graded(notebook):
    """The data of each cell that grades."""
    found = []
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            assert [output.output_type for output in cell.outputs] == ["execute_result"], cell.outputs
            (output,) = cell.outputs
            assert float(output.data["text/plain"]) == output.data[JSON]["points"]
            found.append(output.data[JSON])
    return found


def errors(notebook):
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"] == []
    return {output.ename for output in outputs if output.output_type == "error"}


def answered(source, code):
    """The exercise with `code` written in place of the first stub."""
    notebook = build.exercise(source)
    cell = next(cell for cell in notebook.cells if STUB in cell.source)
    cell.source = cell.source.replace(STUB, code)
    return notebook


def test_there_is_an_exercise():
    assert "ex01_placement" in [path.stem for path in SOURCES]


def twice(notebook):
    """All cells, and all cells again in the same kernel, as who presses «Run All» two times."""
    notebook.cells += [nbformat.from_dict({**cell, "id": f"again-{i}"}) for i, cell in enumerate(notebook.cells)]
    return notebook


@EACH
def test_the_solution_runs_clean_with_full_marks(source, tmp_path):
    notebook = executed(twice(build.exercise(source, solved=True)), tmp_path)
    assert errors(notebook) == set()
    assert all(score["points"] == score["max"] > 0 for score in graded(notebook))


IN_THE_CALLERS_GRAPH = """build()
    with tf.Session(target) as sess:
        lost = [name.decode() for name in sess.run(tf.report_uninitialized_variables())]
        tf.train.Saver([v for v in tf.global_variables() if v.op.name not in lost]).save(sess, path)
    return lost"""


def test_the_last_cell_has_a_graph_for_an_answer_that_makes_none(tmp_path):
    notebook = executed(answered(ROOT / "solutions" / "ex05_rescue.py", IN_THE_CALLERS_GRAPH), tmp_path)
    assert errors(notebook) == set() and "lost: ['step']" in notebook.cells[-1].outputs[0].text


@EACH
def test_the_exercise_as_shipped_gets_nothing_and_says_what_to_do_next(source, tmp_path):
    path = ROOT / "exercises" / f"{source.stem}.ipynb"
    notebook = executed(nbformat.read(path, as_version=4), tmp_path)
    assert errors(notebook) <= {"NotImplementedError"}  # of cells that try what is not written yet
    for score in graded(notebook):
        assert score["points"] == 0
        assert all("is not written yet" in question["next_step"] for question in score["questions"])


@EACH
def test_the_exercise_holds_nothing_of_the_solution(source):
    path = ROOT / "exercises" / f"{source.stem}.ipynb"
    assert "SOLUTION" not in path.read_text(encoding="utf-8")


ANSWERS = {
    "hangs": ("while True: pass", "Stopped after 4 s"),
    "hangs deaf": ("import time; time.sleep(8)", "Stopped after 4 s"),
    "talks": ("import sys, warnings; print('x' * 9999, file=sys.stderr); warnings.warn('w')", "returned was None"),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.timeout(120)
def test_answers_that_hang_or_talk_are_results(name, tmp_path):
    notebook = answered(ROOT / "solutions" / "ex01_placement.py", ANSWERS[name][0])
    del notebook.cells[-1]  # it runs the answer outside of the grader
    (score,) = graded(executed(notebook, tmp_path))
    assert errors(notebook) == set()
    assert score["points"] == 0
    told = score["questions"][0]["checks"][0]
    assert ANSWERS[name][1] in told["message"]
    assert ("characters more" in told["output"]) == (name == "talks")
