"""`%dtf_replay`: a step, or a function, on a copy of a cluster in virtual time."""

from __future__ import annotations

import pytest

from tests.notebook.cells import cell, magic

WORK = """
def work(client):
    with tf.device(client.device):
        part = tf.square(tf.ones([100]), name="part")
    with tf.Session(client.target) as own:
        own.run(part)
with tf.device("/job:worker/task:0"):
    v = tf.Variable(2.0, name="v")
    x = tf.placeholder(tf.float32, [], name="x")
    add = tf.assign_add(v, x, name="add")
sess = tf.Session(cluster.target)
sess.run(v.initializer)
"""


@pytest.fixture
def virtual(shell):
    magic(shell, "%dtf_cluster --ps 1 --worker 2 --clock virtual", "cluster")
    shell.run_cell(WORK).raise_error()
    return shell


def test_a_step_is_replayed_with_the_values_of_its_session(virtual):
    picture = magic(virtual, "%dtf_replay add --feed {x: 3.0}", "p")
    assert picture.run.results == 5.0 and "add" in str(picture)
    virtual.run_cell("assert sess.run(v) == 2.0").raise_error()
    assert magic(virtual, "%dtf_replay add --feed {x: 3.0} --session sess", "p").run.hash == picture.run.hash


def test_a_function_is_replayed_as_a_cluster_runs_it(virtual):
    picture = magic(virtual, "%dtf_replay work", "p")
    assert {kernel.device for kernel in picture.run.kernels if kernel.name == "part"} == {
        f"/job:worker/replica:0/task:{i}/device:CPU:0" for i in range(2)
    }
    virtual.run_cell("mine = tf.Cluster(worker=1, clock='virtual')").raise_error()
    try:
        other = magic(virtual, "%dtf_replay work --cluster mine", "p")
    finally:
        virtual.user_ns["mine"].stop()
    assert len({kernel.device for kernel in other.run.kernels}) == 1
    assert magic(virtual, "p.fork(0.0, kill='worker:0')", "f").difference is not None


def test_bad_lines_are_explained(virtual):
    assert "Name a function, or what a step fetches" in cell(virtual, "%dtf_replay")
    assert "A step runs on the cluster of its session" in cell(virtual, "%dtf_replay add --cluster cluster")
    assert "--feed is for a step, and work is a function" in cell(virtual, "%dtf_replay work --feed {x: 1.0}")
    assert "No cluster named 'none' is running. Use --cluster cluster" in cell(
        virtual, "%dtf_replay work --cluster none"
    )


def test_real_time_is_refused_in_a_line(model):
    assert "runs in real time" in cell(model, "%dtf_replay y --feed {x: [1.0, 2.0]}")
    model.run_cell("def work(client): pass")
    shown = cell(model, "%dtf_replay work")
    assert "Make it with clock='virtual'" in shown and "Traceback" not in shown
