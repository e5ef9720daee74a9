"""Exercises in a real kernel: as shipped, solved, and with answers that hang or talk; what nbgrader would see."""

from __future__ import annotations

import json
import re
from itertools import combinations

import nbformat
import pytest
from nbformat import v4

from dtflab.grading.catalogue import find
from dtflab.grading.score import JSON
from notebooks import build
from tests.forks import imported
from tests.house import ROOT
from tests.notebooks.kernels import execute

pytestmark = pytest.mark.timeout(900)
SOURCES = sorted((ROOT / "solutions").glob("ex*.py"))
EACH = pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
STUB = "raise NotImplementedError()"


# On a busy machine an answer has its own seconds all the same (tests/grading shows the limit by the clock).
IN_NO_HURRY = v4.new_code_cell("from dtflab.grading import judge\njudge.CELL = float('inf')")


@pytest.fixture(scope="module", autouse=True)
def forked_kernels(tmp_path_factory):
    """Kernels that need not import dtflab: most exercises take less time than that. Lessons run in fresh ones."""
    spec = tmp_path_factory.mktemp("jupyter") / "kernels" / "forked" / "kernel.json"
    spec.parent.mkdir(parents=True)
    with imported("ipykernel.kernelapp", "dtflab.notebook.magics") as python:
        command = [*python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec.write_text(json.dumps({"argv": command, "display_name": "forked", "language": "python"}))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUPYTER_PATH", str(spec.parents[2]))
            yield


def executed(notebook, folder):
    notebook.cells.insert(0, nbformat.from_dict(IN_NO_HURRY))
    execute(notebook, folder, allow_errors=True, kernel_name="forked")
    assert notebook.cells.pop(0).outputs == []
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
    """All cells, and all cells again in the same kernel, as who presses "Run All" two times."""
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
    "talks": (
        "import sys, warnings; print('x' * 9999, file=sys.stderr); warnings.warn('w')",
        "(…)`, not None",
    ),
}


ENOUGH = v4.new_code_cell("from dtflab.grading import judge\njudge.MOST = 4.0")  # all of it for the first check


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_that_hang_or_talk_are_results(name, tmp_path):
    notebook = answered(ROOT / "solutions" / "ex01_placement.py", ANSWERS[name][0])
    *cells, _ = notebook.cells  # the last one runs the answer outside of the grader
    notebook.cells = [ENOUGH, *cells]
    (score,) = graded(executed(notebook, tmp_path))
    assert errors(notebook) == set()
    assert score["points"] == 0
    result = score["questions"][0]["checks"][0]
    assert ANSWERS[name][1] in result["message"]
    assert ("characters more" in result["output"]) == (name == "talks")


# What the run between a choice and the task has to show: a line for each letter, and each thing that `look` names.
SHOWN = {
    "memory/q1": (
        "OOM when allocating .*GPU:0 by",
        "Of card 0 of .* program 1 holds 3785 MiB",
        "The first program has ended, and the second one has its 4 MB",
    ),
    "placement/q2": (
        "Square  +pinned to '' +placed on /job:worker/replica:0/task:0/device:GPU:0",
        "Square_1 +pinned to '/device:CPU:0' +placed on /job:worker/replica:0/task:0/device:CPU:0",
        "Square_3 +pinned to '/job:worker/task:1' +placed on /job:worker/replica:0/task:1/device:GPU:0",
        "StringJoin +pinned to '' +placed on /job:worker/replica:0/task:0/device:CPU:0",
    ),
    "placement/q3": (
        "(?s)^(?!.*placed on GPU:1)",
        "number +Square +kernels for GPU and CPU +placed on GPU:0",
        "text +AsString +kernels for CPU +placed on CPU:0",
        "text/input +Const +kernels for GPU and CPU +placed on CPU:0",
        "counter +VariableV2 +kernels for CPU +placed on CPU:0",
        "counter/read +Identity +kernels for GPU and CPU +placed on CPU:0",
    ),
    "placement/q4": (
        "/task:0/device:GPU:1 +RecvTensor .*weights/read from .*\n.*/device:GPU:1 +runs a\n.*/device:GPU:1 +runs b",
        "/task:1/device:CPU:0 +RecvTensor .*weights/read from .*\n.*/device:CPU:0 +runs c",
        "reads:\n/task:0/device:GPU:0 +runs d",
        "changes:\n/task:0/device:GPU:0 +RecvTensor .*update/value from .*\n/task:0/device:GPU:0 +runs update",
    ),
    "parallel/q1": (),  # a picture: below
    "parallel/q2": (
        "3.81 MiB +Fill.*\n3.81 MiB +Fill",
        "Nobody waits:\n.*large\n.*large_1\n.*large_2\n.*small\n",
        "The large ones wait for the small one:\n.*small\n",
        "plain 0.0 0.0 0.0\nafter 1.0 2.0 3.0\nupdate is on /device:CPU:0 and after on /device:GPU:0",
    ),
    "shared/q1": ("A 1.0\nB has no value\nC 1.0\nD has no value\nE has no value",),
}


def shown_above_the_task(source, folder):
    """The code cells down to the task, and what they show."""
    notebook = build.exercise(source)
    (task,) = (i for i, cell in enumerate(notebook.cells) if "## Your task" in cell.source)
    del notebook.cells[task:]
    executed(notebook, folder)
    assert errors(notebook) == set()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return code, "\n".join(output.get("text") or output.data["text/plain"] for cell in code for output in cell.outputs)


def test_the_first_exercise_shows_the_lost_updates_that_it_is_about(tmp_path):
    source = ROOT / "solutions" / "ex00_welcome.py"
    _, shown = shown_above_the_task(source, tmp_path)
    assert shown.split() == ["/job:ps/task:0", "2", "100", "300"], shown
    assert "# It is 100: two of three additions are lost." in source.read_text(encoding="utf-8")


@pytest.mark.parametrize("id", SHOWN)
def test_the_run_below_a_choice_shows_what_its_answers_say(id, tmp_path):
    (source,) = (path for path in SOURCES if f'dtflab.predict("{id}"' in path.read_text(encoding="utf-8"))
    code, shown = shown_above_the_task(source, tmp_path)
    assert [pattern for pattern in SHOWN[id] if not re.search(pattern, shown)] == [], shown
    named = {name for choice in find(id).choices for name in re.findall("`(.*?)`", choice.look)}
    assert {name for name in named if name not in shown + "".join(cell.source for cell in code)} == set()


def test_the_bars_of_the_exercise_on_parallel_ops_overlap_as_its_letters_say(tmp_path):
    notebook = build.exercise(ROOT / "solutions" / "ex03_same_time.py")
    (run,) = (i for i, cell in enumerate(notebook.cells) if "%dtf_timeline" in cell.source)
    del notebook.cells[run + 1 :]
    notebook.cells.append(v4.new_code_cell(BARS))
    begin, end = zip(*json.loads(executed(notebook, tmp_path).cells[-1].outputs[0].text))
    p, q, r, s, t = range(5)
    overlap = {
        pair: begin[pair[0]] < end[pair[1]] and begin[pair[1]] < end[pair[0]] for pair in combinations(range(5), 2)
    }
    assert [overlap[p, r], overlap[r, s], overlap[s, t], overlap[p, q]] == [True, True, True, False]


BARS = """import json
nodes = {node.node_name: node for device in sess.trace(products).step_stats.dev_stats for node in device.node_stats}
times = [(nodes[op.name].all_start_micros, nodes[op.name].op_end_rel_micros) for op in products]
print(json.dumps([(begin, begin + length) for begin, length in times]))"""
