"""`%%dtf_run`: a cell on one task; otherwise a cell like any other."""

from __future__ import annotations

import re

import pytest
from IPython.utils.capture import capture_output

from tests.notebook.cells import cell, magic

CELL = """%%dtf_run --on /job:worker/task:1
y = tf.add(tf.constant(2.0), 3.0, name="y")
with tf.device(None):
    free = tf.constant(1.0, name="free")  # goes to where the session's server is
where = sess.placed_nodes(free)[0].device
y.eval()"""


@pytest.fixture
def two(shell):
    magic(shell, "%dtf_cluster --ps 1 --worker 2", "cluster")
    return shell


def test_a_cell_runs_inside_of_its_device_with_a_session_to_its_server(two):
    two.run_cell(CELL).raise_error()
    names = two.user_ns
    assert names["y"].device == "/job:worker/task:1" and names["where"].startswith("/job:worker/replica:0/task:1/")
    assert names["_"] == 5.0  # its value was shown as that of any cell
    two.run_cell("z = tf.constant(1.0)").raise_error()
    assert names["z"].device == "" and names["sess"].run(names["y"]) == 5.0


def test_a_part_of_a_task_is_a_device_too(two):
    two.run_cell("%%dtf_run --on /job:ps/task:0/device:CPU:0\nv = tf.constant(1)").raise_error()
    assert two.user_ns["v"].device == "/job:ps/task:0/device:CPU:0"


def test_cells_of_a_task_share_their_session_while_it_serves(two):
    def session(text="%%dtf_run --on /job:worker/task:1\npass"):
        two.run_cell(text).raise_error()
        return two.user_ns["sess"]

    first = session()
    assert session() is first is session("%%dtf_run --on worker:1\npass")
    assert session("%%dtf_run --on /job:worker/task:0\npass") is not first
    two.run_cell("sess0 = sess")
    assert session() is first
    first.close()
    second = session()
    assert second is not first
    two.user_ns["cluster"].restart("worker", 1)
    third = session("%%dtf_run --on /job:worker/task:1\nassert tf.constant(4).eval() == 4")
    assert third is not second
    two.run_cell("tf.reset_default_graph()")
    assert session() is not third


def test_errors_and_magics_are_those_of_a_cell(two):
    shown = cell(two, "%%dtf_run --on /job:worker/task:1\nkept = 1\n1 / 0")
    assert "ZeroDivisionError: division by zero" in shown and "----> 2 1 / 0" in shown
    assert re.match(r"(?s)-*\nZeroDivisionError +Traceback [^\n]*\n(File|Cell|Input)[^\n]*\n +1 kept = 1", shown), shown
    assert "task_cell.py" not in shown and "run_cell_magic" not in shown
    assert two.user_ns["kept"] == 1
    result = two.run_cell("%%dtf_run --on /job:worker/task:1\n1 / 0", silent=True)
    assert isinstance(result.error_in_exec, ZeroDivisionError)  # Run All stops here
    shown = cell(two, "%%dtf_run --on /job:worker/task:1\nif\n")
    assert "SyntaxError" in shown and ".py" not in shown
    shown = cell(two, "%%dtf_run --on /job:worker/task:1\nsess.run(tf.placeholder(tf.float32))")
    assert "must feed a value" in shown and "run_cell_magic" not in shown
    two.run_cell("%%dtf_run --on /job:worker/task:1\nx = tf.constant(1)\np = %dtf_placement x").raise_error()
    assert two.user_ns["p"].sentence.startswith("Graph of 1 op")
    assert two.run_cell("tf.constant(0).device").result == ""  # whatever happened in the cells before


def test_a_session_without_a_target_is_named_as_local(two):
    text = (
        "%%dtf_run --on /job:worker/task:1\nwith tf.device(None), tf.Session({}) as own:\n    own.run(tf.constant(1))"
    )
    local = "A session without a target ran in this process, not on the cluster"
    assert [local in cell(two, text.format(target)) for target in ("", "sess.sess_str")] == [True, False]


def test_a_semicolon_hides_the_last_value(two):
    head = "%%dtf_run --on /job:worker/task:1\n"
    assert "2" in cell(two, f"{head}1 + 1").split()
    for hidden in ("1 + 1;", "1 + 1;  # that's two"):
        assert cell(two, head + hidden).strip() == ""
    assert "3" in cell(two, f"{head}1 + 2  # not the end;").split()
    two.run_cell(f"{head}kept = 7; kept + 1;").raise_error()
    assert two.user_ns["kept"] == 7


def test_await_is_told_and_nothing_runs(two):
    head = "%%dtf_run --on /job:worker/task:1\nimport asyncio\nran = 1\n"
    shown = cell(two, f"{head}await asyncio.sleep(0)")
    assert "A cell with such a magic can't await. Put `await …` into a cell of its own" in shown
    assert "Error:" in shown and "SyntaxError" not in shown and "ran" not in two.user_ns
    two.run_cell(f"{head}async def program():\n    await asyncio.sleep(0)").raise_error()
    assert two.user_ns["ran"] == 1


def test_another_cluster_by_its_name_or_by_pythons(two):
    magic(two, "%dtf_cluster --worker 1 --name other")
    two.run_cell("%%dtf_run --on /job:worker/task:0 --name other\nn = len(sess.list_devices())").raise_error()
    assert two.user_ns["n"] == 1  # the other one has three tasks
    two.run_cell("mine = tf.Cluster(chief=1)").raise_error()
    try:
        two.run_cell("%%dtf_run --on /job:chief/task:0 --name mine\ngot = tf.constant(7).eval()").raise_error()
    finally:
        two.user_ns["mine"].stop()
    assert two.user_ns["got"] == 7


def test_bad_lines_are_told_and_nothing_runs(two):
    shown = cell(two, "%%dtf_run --on /job:worker/task:7\nran = 1")
    assert "cluster has no task /job:worker/task:7. Did" in shown and shown.count("/job:ps") == 1
    assert "The tasks are /job:ps/task:0, /job:worker/task:0" in cell(two, "%%dtf_run\nran = 1")
    assert "'/gpu:0' does not name a task" in cell(two, "%%dtf_run --on /gpu:0\nran = 1")
    shown = cell(two, "%%dtf_run --on /jb:worker\nran = 1")
    assert "Malformed device specification '/jb:worker'. Did you mean /job:worker/task:1? The tasks are" in shown
    assert "cluster has no task /job:worker/task:9. Did you mean /job:worker/task:1?" in cell(
        two, "%%dtf_run --on worker:9\nran = 1"
    )
    assert "'worker'. Did you mean /job:worker/task:0?" in cell(two, "%%dtf_run --on worker\nran = 1")
    assert "No cluster named 'none' is running. Use --name cluster" in cell(
        two, "%%dtf_run --on /job:ps/task:0 --name none\n0"
    )
    assert "ran" not in two.user_ns


def test_without_a_cluster_it_says_how_to_start_one(shell):
    assert "Start one: %dtf_cluster --ps 1" in cell(shell, "%%dtf_run --on /job:ps/task:0\n0")


def test_sessions_are_closed_with_the_extension(two):
    two.run_cell(CELL).raise_error()
    session = two.user_ns["sess"]
    magic(two, "%unload_ext dtflab")
    with pytest.raises(RuntimeError, match="closed"):
        session.run("y:0")


# ---- --trace ----


def pictures(shell, text):
    """The titles of the timelines that a cell shows."""
    with capture_output() as shown:
        shell.run_cell(text)
    return [re.search(r"Step \d of \d", one.data["text/html"])[0] for one in shown.outputs if "text/html" in one.data]


def test_a_traced_cell_shows_the_timelines_of_its_steps(two):
    head = "%%dtf_run --on /job:worker/task:1 --trace\n"
    two.run_cell("z = tf.square(tf.ones([50]), name='z')").raise_error()
    assert pictures(two, f"{head}y = tf.negative(z)\ny.eval();") == ["Step 1 of 1"]
    assert two.user_ns["y"].device == "/job:worker/task:1"
    many = pictures(two, f"{head}for _ in range(5):\n    sess.run(y)")
    assert many == ["Step 3 of 5", "Step 4 of 5", "Step 5 of 5"]
    assert pictures(two, "%%dtf_run --on /job:worker/task:1\nsess.run(y);") == []
    times = two.ev("[data['end_us'] for _, data in tf.viz.digraph(y).nodes(data=True)]")
    assert None not in times, "the newest trace of a session is its last step"


def test_a_traced_cell_that_fails_shows_the_steps_before(two):
    two.run_cell("z = tf.square(tf.ones([50]))").raise_error()
    cells = "%%dtf_run --on /job:worker/task:1 --trace\nsess.run(z)\n1 / 0"
    assert pictures(two, cells) == ["Step 1 of 1"]
    assert "No step of `sess` has run" in cell(two, "%%dtf_run --on /job:worker/task:1 --trace\npass")


def test_a_step_with_a_trace_of_its_own_keeps_it(two):
    own = "metadata = tf.RunMetadata()\nsess.run(z, options=tf.RunOptions(trace_level=3), run_metadata=metadata);"
    two.run_cell("z = tf.square(tf.ones([50]))").raise_error()
    assert pictures(two, f"%%dtf_run --on /job:worker/task:1 --trace\n{own}") == []
    assert two.user_ns["metadata"].step_stats.dev_stats
