"""conformance: one step on dtflab and on TensorFlow servers. How two runs compare: tests/viz/test_conformance.py."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import dtflab as tf

pytestmark = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install dtflab[tensorflow]")
PS, WORKER = "/job:ps/task:0", "/job:worker/task:1"


@pytest.fixture(scope="module")
def theirs():
    with tf.Cluster(ps=1, worker=2, engine="tensorflow") as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def trained_mlp():
    """Variables without seeds on the ps, an MLP on a worker, its training: the fetches and feeds of a step."""
    with tf.device(PS):
        w1, b1 = tf.get_variable("w1", [20, 16]), tf.get_variable("b1", [16], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", [16, 3])
        step = tf.train.get_or_create_global_step()
    with tf.device(WORKER):
        x, y = tf.placeholder(tf.float32, [None, 20], name="x"), tf.placeholder(tf.int32, [None], name="y")
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2, name="logits")
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step, name="train")
    random = np.random.RandomState(0)
    return [train, loss, logits], {x: random.randn(8, 20), y: random.randint(0, 3, 8)}


def rows(found, kind):
    return {row.name: row for row in found.rows if row.kind == kind}


def test_a_training_step_of_an_mlp_is_the_same(theirs):
    found = tf.conformance(*trained_mlp(), cluster=theirs)
    assert found.same and found.differences == [], found
    assert rows(found, "value").keys() == {"loss:0", "logits:0"}
    assert rows(found, "variable").keys() > {"w1:0", "w2:0", "w1/Momentum:0", "global_step:0"}
    assert rows(found, "variable")["global_step:0"][2:4] == ("1", "1")  # after the step, not before it
    assert rows(found, "placement")["MatMul"][2:4] == ("worker:1", "worker:1")
    assert rows(found, "transfer")["x:0"][2:4] == ("worker:0 → worker:1, 640 B",) * 2
    assert rows(found, "transfer")["gradients/add_grad/tuple/control_dependency_1:0"].dtflab == "worker:0 → ps:0, 64 B"
    known = {(row.kind, row.name) for row in found.rows if row.mark == "≈"}
    assert known == {
        ("placement", "Const"),
        ("transfer", "Const:0"),
        ("transfer", "^w1/read"),
        ("transfer", "w1/read:0"),
    }
    assert max(map(len, repr(found).splitlines())) < 95


def test_without_a_seed_the_numbers_differ_and_the_op_is_named(theirs):
    with tf.device(PS):
        v = tf.Variable(0.0, name="v")
    with tf.device(WORKER):
        seeded, drawn = tf.random_normal([3], seed=1, name="seeded"), tf.random_uniform([], name="drawn")
    found = tf.conformance([seeded, v.assign(drawn)], cluster=theirs)
    assert not found.same
    assert {(row.kind, row.name) for row in found.differences} == {("value", "Assign:0"), ("variable", "v:0")}
    assert found.headline.startswith("2 differences between dtflab and TensorFlow: 1 value, 1 variable, of 2 values, ")
    assert found.remarks[-1].startswith("Without a seed these ops draw other numbers in each run: drawn/RandomUniform.")
    assert repr(found).count("≠") == 2


def test_loops_and_branches_over_tasks_send_as_much(theirs):
    def body(i, a):
        with tf.device(PS):
            b = tf.cond(i > 1, lambda: a + 1.0, lambda: a * 3.0, name="chosen")
        return i + 1, b

    with tf.device(WORKER):
        found = tf.conformance(tf.while_loop(lambda i, a: i < 3, body, [0, tf.ones([10])]), cluster=theirs)
    assert found.same, found
    assert rows(found, "transfer")["while/chosen/Merge:0"][2:4] == ("ps:0 → worker:1, 120 B",) * 2  # three turns
    assert rows(found, "transfer")["^while/Identity"].tensorflow == "worker:1 → ps:0, order only"


def test_errors_are_compared_by_their_class(theirs):
    x = tf.placeholder(tf.float32, [], name="x")
    found = tf.conformance(x * 2.0, cluster=theirs)
    assert found.same and [row.kind for row in found.rows] == ["outcome"]
    assert "You must feed a value for placeholder tensor 'x'" in found.rows[0].tensorflow

    found = tf.conformance(tf.py_func(lambda: np.float32(3), [], tf.float32), cluster=theirs)  # of this process
    assert not found.same and found.rows[0].dtflab == "runs" and "Error" in found.rows[0].tensorflow


def test_a_step_that_waits_ends_on_both(theirs):
    with tf.device(PS):
        item = tf.FIFOQueue(1, tf.float32).dequeue()
    found = tf.conformance(item, cluster=theirs, timeout=0.5)
    assert found.same and found.rows[0].dtflab.startswith("DeadlineExceededError")
