"""Which task holds which variable."""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.viz.watched import W0, fits, texts, variable


def test_who_holds_which_variable():
    picture = tf.viz.variables(
        [
            variable(),
            variable(W0, "b", 100),
            variable(W0, "x", 300, "mine"),
            variable(name="u", nbytes=0, initialized=False),
        ]
    )
    assert {"400 B in 2 variables, 1 without a value", "400 B in 2 variables", "w"} <= set(texts(picture))
    assert "container mine" in picture.sentence and fits(picture)


def test_bytes_that_are_held_are_said_in_the_units_of_memory():
    picture = tf.viz.variables([variable(nbytes=25_600_000), variable(W0, "b", 1024)])
    assert {"24.4 MiB in 1 variable", "1.0 KiB in 1 variable"} <= set(texts(picture))
    assert "24.4 MiB on 2 devices" in picture.sentence and "<title>w\nfloat" in picture.svg and "kB" not in picture.svg


def test_variables_of_a_cluster_and_of_a_session():
    with tf.Cluster(ps=2, worker=1) as cluster:
        with tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
            for n in range(3):
                tf.get_variable(f"w{n}", [10, n + 1])
        with tf.Session(cluster.target) as sess:
            with pytest.raises(ValueError, match="No variable exists yet"):
                tf.viz.variables(cluster)
            sess.run(tf.global_variables_initializer())
            assert tf.variables_of(sess) == cluster.variables()
            assert [(v.name, v.task[5:9], v.shape, v.nbytes) for v in cluster.variables()] == [
                ("w0", "ps/r", (10, 1), 40), ("w2", "ps/r", (10, 3), 120), ("w1", "ps/r", (10, 2), 80)
            ]  # fmt: skip
            assert str(tf.viz.variables(sess)) == str(tf.viz.variables(cluster))


def test_variables_of_a_local_session_and_of_resources():
    tf.get_variable("r", [3], use_resource=True)
    tf.get_variable("plain", [2])
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sorted((v.name, v.nbytes, v.initialized) for v in tf.variables_of(sess)) == [
            ("plain", 8, True),
            ("r", 12, True),
        ]


def test_many_variables_on_many_tasks():
    tasks = [f"/job:ps/replica:0/task:{n}" for n in range(60)]
    picture = tf.viz.variables(
        [variable(task, f"layer{n}/a_long_name_of_weights", 100 * n) for task in tasks for n in range(40)]
    )
    assert "the 24 that hold most are drawn" in picture.sentence and "first 1,000 of 2,400" in picture.tables[1][0]
    assert fits(picture)
