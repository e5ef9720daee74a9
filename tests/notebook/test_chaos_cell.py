"""`%%dtf_chaos`: a cell in which tasks fail, with what happened below it."""

from __future__ import annotations

import pytest

from tests.notebook.cells import cell, magic

CELL = """%%dtf_chaos --kill worker:1@step2 --slow ps:0=2x {}
with tf.device("/job:worker/task:1"):
    there = tf.Variable(1.0)
with tf.Session(cluster.target) as sess:
    sess.run(there.initializer)
    try:
        sess.run(there)
    except tf.errors.UnavailableError as error:
        lost = str(error)
len(lost) > 0"""


@pytest.fixture
def two(shell):
    magic(shell, "%dtf_cluster --ps 1 --worker 2", "cluster")
    return shell


def test_tasks_fail_in_the_cell(two):
    shown = cell(two, CELL.format(""))
    assert "/job:worker/replica:0/task:1" in two.user_ns["lost"] and two.user_ns["_"] is True
    for text in ("Chaos in cluster: 3 events, 2 steps", "slow              ps:0      2x", "killed            worker:1"):
        assert text in shown
    assert two.user_ns["cluster"].chaos is None
    states = [state for _, _, state in two.user_ns["cluster"].rows()]
    assert states == ["running", "running", "killed"]


def test_quotes_are_for_the_shell(two):
    shown = cell(two, """%%dtf_chaos --partition "ps|worker:1" --drop 'RunGraph:1' --seed 3\npass""")
    assert "ps:0 | worker:1" in shown and "RunGraph:1" in shown


def test_an_error_of_the_cell_is_shown_as_one_and_the_faults_end(two):
    shown = cell(two, "%%dtf_chaos --stop worker:0\n1 / 0")
    assert "ZeroDivisionError" in shown and "stopped" in shown and "goes on" in shown
    assert two.user_ns["cluster"].chaos is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--kill wroker:1", "--kill='wroker:1' names the task 'wroker:1' (did you mean worker:1?)"),
        ("--drop RecvTensor", "For example: --drop='RecvTensor:0.1'"),
        ("--kil worker:1", "Unknown option --kil. Did you mean --kill? For example: %%dtf_chaos"),
        ("--kill", "--kill needs a value. For example: %%dtf_chaos --kill worker:1@step5"),
        ("", "Name a fault: --kill, --slow, --drop, --partition, --stop. For example: %%dtf_chaos --kill"),
        ("--kill ps --name other", "No cluster named 'other' is running. Use --name cluster."),
    ],
)
def test_a_wrong_line_says_what_is_right(two, line, says):
    shown = cell(two, f"%%dtf_chaos {line}\npass")
    assert "UsageError" in shown and says in shown


def test_help(two):
    assert "--drop RecvTensor:0.1" in two.find_cell_magic("dtf_chaos").__doc__
    assert "kill worker:1@step5" in cell(two, "%%dtf_chaos --help\nran = 1") and "ran" not in two.user_ns
