"""A loop and its gradient are the same wherever their parts lie, and in whatever order their nodes run."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine.hosts import simulate_gpus
from dtflab.runtime.runner import Step
from tests.seeded_step import SeededStep


def program(one: str, other: str) -> list[tf.Tensor]:
    """A loop over two places with a branch, a loop inside and an array: results, and gradients of both variables."""
    with tf.device(one):
        w = tf.Variable([0.5, -0.25], use_resource=False)
        r = tf.Variable([1.0, 2.0], use_resource=True)

    def inner(j, z):
        with tf.device(one):
            return j + 1, tf.tanh(z * w)

    def body(i, y, array):
        with tf.device(other):
            y = tf.sin(y * r) * w + tf.cast(i, tf.float32)
        y = tf.cond(i > 1, lambda: y * w, lambda: tf.while_loop(lambda j, _: j < i, inner, (0, y))[1])
        return i + 1, y, array.write(i, y)

    with tf.device(other):
        array = tf.TensorArray(tf.float32, 4)
        _, y, array = tf.while_loop(lambda i, *_: i < 4, body, (0, w + 1.0, array), swap_memory=True)
        y = y + tf.reduce_sum(array.stack(), 0)
    return [y, *tf.gradients(y, [w, r])]


def values(target: str, one: str, other: str, config: tf.ConfigProto | None = None, way=None) -> list[np.ndarray]:
    with tf.Graph().as_default():
        wanted = program(one, other)
        with tf.Session(target, config=config) as session:
            session.run(tf.global_variables_initializer())
            return session.run(wanted) if way is None else way(session, wanted)


@functools.cache
def expected() -> list[np.ndarray]:
    return values("", "", "")


def check(found: list[np.ndarray]) -> None:
    for a, b in zip(expected(), found, strict=True):
        np.testing.assert_array_equal(a, b)


TWO_CPUS = tf.ConfigProto(device_count={"CPU": 2})


def stepped(session, wanted):
    return session.step_through(wanted).finish()


def traced(session, wanted):
    metadata = tf.RunMetadata()
    found = session.run(wanted, options=tf.RunOptions(trace_level=3), run_metadata=metadata)
    ran = [node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats]
    assert ran.count("while/Sin") == ran.count("gradients/while/Sin_grad/Cos") == 4
    return found


@pytest.mark.parametrize("way", [None, stepped, traced])
@pytest.mark.parametrize("one, other", [("/cpu:0", "/cpu:0"), ("/cpu:0", "/cpu:1"), ("/cpu:1", "/cpu:0")])
def test_on_two_devices(one, other, way):
    check(values("", one, other, TWO_CPUS, way))


@pytest.mark.parametrize("one, other", [("/gpu:0", "/gpu:0"), ("/gpu:0", "/gpu:1"), ("/cpu:0", "/gpu:1")])
def test_on_gpus(one, other, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(2)
    try:
        check(values("", one, other))
    finally:
        simulate_gpus(None)


PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_on_two_tasks(engine):
    with tf.Cluster(ps=1, worker=1, engine=engine) as cluster:
        check(values(cluster.target, PS, WORKER))
        check(values(cluster.target, WORKER, PS))


def test_in_any_order():
    with tf.Cluster(ps=1, worker=1) as cluster:
        masters = [task.server.task.master for task in cluster.tasks]
        for seed in range(20):
            for master in masters:
                master.new_step = functools.partial(SeededStep, seed=seed)
            check(values(cluster.target, PS, WORKER))
            tf.Session.reset(cluster.target)
        for master in masters:
            master.new_step = Step
