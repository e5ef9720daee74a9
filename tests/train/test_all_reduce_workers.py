"""All-reduce between clients with graphs of their own: values, failures, ends; and the optimizer on top of it."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.train.collectives.schedule import ALGORITHMS

SECONDS = 120.0  # long enough that only what hangs is noticed


@pytest.fixture(scope="module")
def cluster():
    with tf.Cluster(worker=5) as cluster:
        yield cluster


def spec_of(workers):
    """The first that many workers of the cluster; only their names count for a group."""
    return {"worker": [f"w{i}:1" for i in range(workers)]}


def run_group(cluster, workers, build, steps=1, feeds=None, **kwargs):
    """The results of each worker's `build(group)` in each of that many steps."""

    def work(client):
        if client.index >= workers:
            return None
        with tf.device(client.device):
            group = tf.train.WorkerGroup(spec_of(workers), client.index)
            fetches = build(group)
        hook = tf.train.AllReduceHook(group, timeout=SECONDS, **kwargs)
        with tf.train.MonitoredTrainingSession(client.target, hooks=[hook], log_step_count_steps=None) as session:
            return [session.run(fetches, feeds and feeds(client.index, step)) for step in range(steps)]

    return cluster.run(work)[:workers]


# -- values -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_step_reduces_what_the_workers_give_in_it(algorithm, workers, cluster):
    rng = np.random.default_rng(workers)
    given = rng.normal(size=(3, workers, 2, 5)).astype(np.float32)

    def build(group):
        fed = tf.placeholder(tf.float32, [2, 5], name="fed")
        return [group.all_reduce(fed, algorithm), group.all_reduce(fed, algorithm, "mean"), group.broadcast(fed)]

    results = run_group(cluster, workers, build, steps=3, feeds=lambda worker, step: {"fed:0": given[step, worker]})
    for step in range(3):
        total, mean, first = results[0][step]
        np.testing.assert_allclose(total, given[step].sum(0), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(mean, given[step].mean(0), rtol=1e-5, atol=1e-5)
        assert (first == given[step, 0]).all()
        for other in results[1:]:
            assert [value.tobytes() for value in other[step]] == [value.tobytes() for value in (total, mean, first)]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_both_forms_give_the_same_bits(algorithm, cluster):
    """One client with tensors on all tasks, or a client per task: the schedule is one, so the order of sums is."""
    values = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    between = run_group(cluster, 5, lambda group: group.all_reduce(tf.constant(values[group.index]), algorithm, "mean"))
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:
        tensors = []
        for worker in range(5):
            with tf.device(f"/job:worker/task:{worker}"):
                tensors.append(tf.constant(values[worker]))
        in_graph = session.run(tf.train.all_reduce(tensors, algorithm, "mean"))
    assert [worker[0].tobytes() for worker in between] == [value.tobytes() for value in in_graph]


def test_rows_are_gathered_in_the_order_of_workers(cluster):
    def build(group):
        rows = np.arange(group.index)  # one has none, the last has two
        slices = tf.IndexedSlices(tf.constant(np.full([len(rows), 2], group.index, np.float32)), tf.constant(rows))
        gathered = group.all_gather(slices, "mean")
        return gathered.indices, gathered.values

    for ((indices, values),) in run_group(cluster, 3, build):
        assert indices.tolist() == [0, 0, 1]
        np.testing.assert_allclose(values, np.float32([[1, 1], [2, 2], [2, 2]]) / 3)


def test_all_start_with_the_first_workers_variables(cluster):
    def build(group):
        with tf.device(group.device):
            made = [
                tf.Variable(np.float32([group.index, 1])),
                tf.Variable(np.float64([[group.index]]), use_resource=True),
                tf.Variable(np.int64(group.index + 5), trainable=False),
                tf.Variable([f"of {group.index}"], trainable=False),
            ]
        return [v.read_value() for v in made]

    for ((a, b, c, d),) in run_group(cluster, 4, build):
        assert (a.tolist(), b.tolist(), int(c), d.tolist()) == ([0, 1], [[0]], 5, [b"of 0"])


# -- failures -----------------------------------------------------------------------------------------------------


def failures(cluster, work):
    """The error of each worker, or None."""
    seen = {}

    def guarded(client):
        try:
            work(client)
        except Exception as error:
            seen[client.index] = error

    cluster.run(guarded)
    return [seen.get(index) for index in range(5)]


def training(client, workers=5, value=1.0, timeout=SECONDS, algorithm="ring"):
    """A session of one worker whose step adds up `value`."""
    with tf.device(client.device):
        group = tf.train.WorkerGroup(spec_of(workers), client.index)
        total = group.all_reduce(tf.convert_to_tensor(value, name="gradient"), algorithm, name="gradients")
    hook = tf.train.AllReduceHook(group, timeout=timeout)
    return tf.train.MonitoredTrainingSession(client.target, hooks=[hook], log_step_count_steps=None), total


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_fail_when_one_fails_and_the_next_training_begins_again(algorithm, cluster):
    def work(client):
        session, total = training(client, algorithm=algorithm)
        with session:
            for step in range(4):
                if client.index == 2 and step == 2:
                    raise RuntimeError("out of coffee")
                session.run(total)

    found = failures(cluster, work)
    assert isinstance(found[2], RuntimeError)
    others = [error for index, error in enumerate(found) if index != 2]
    assert all(isinstance(error, errors.InvalidArgumentError) for error in others)
    assert all(re.search(r"/job:worker/task:\d sent no part of gradients: it or", str(error)) for error in others)
    assert all("worker has failed" in str(error) for error in others)

    def again(client):
        session, total = training(client, algorithm=algorithm)
        with session:
            return session.run(total)

    assert cluster.run(again) == [5.0] * 5


def test_all_end_when_one_has_no_more_input(cluster):
    """The end of one worker's input is not an error, and the steps are those that all have made."""

    def work(client):
        session, total = training(client)
        steps = 0
        with session:
            while client.index != 1 or steps < 3:
                session.run(total)
                steps += 1
        return steps

    assert cluster.run(work) == [3] * 5


def test_a_worker_that_never_comes_is_named():
    """In virtual time, where nobody is late by chance."""

    ended = {}

    def work(client):
        if client.index != 3:
            try:
                training(client)[0].close()
            finally:
                ended[client.index] = cluster.now()

    with tf.Cluster(worker=5, clock="virtual") as cluster:
        found = failures(cluster, work)
        assert SECONDS <= cluster.now() < SECONDS + 10
    assert found[3] is None
    assert all(isinstance(found[index], errors.DeadlineExceededError) for index in (0, 1, 2, 4))
    assert ended[0] == max(ended.values())  # its process may end then, and with it what the others read
    assert "needs all workers, but /job:worker/task:3 did not come in time" in str(found[0])
    # The others have heard it from the first, or have given up on the first.
    assert all("did not come in time" in str(found[index]) for index in (1, 2, 4))


def test_tensors_that_differ_are_named(cluster):
    def work(client):
        value = np.ones(4 if client.index == 3 else 3, np.float32)
        session, _ = training(client, value=value)
        session.close()

    for error in failures(cluster, work):
        assert isinstance(error, errors.InvalidArgumentError)
        assert (
            "/job:worker/task:0 has gradients: gradient:0 float32 (3,), and /job:worker/task:3 has gradients: grad"
            in (str(error))
        )


def test_dtypes_that_differ_are_named(cluster):
    def work(client):
        session, _ = training(client, value=np.ones(3, "float16" if client.index == 1 else "float32"))
        session.close()

    for error in failures(cluster, work):
        assert "float32 (3,), and /job:worker/task:1 has gradients: gradient:0 float16 (3,)" in str(error)


def test_one_collective_more_is_named(cluster):
    def work(client):
        with tf.device(client.device):
            group = tf.train.WorkerGroup(client.cluster_spec, client.index)
            for name in ["a", "b"][: 1 if client.index == 4 else 2]:
                group.all_reduce(tf.constant(1.0, name=name), name=name)
        hook = tf.train.AllReduceHook(group, timeout=SECONDS)
        tf.train.MonitoredTrainingSession(client.target, hooks=[hook]).close()

    for error in failures(cluster, work):
        assert "/job:worker/task:0 has b_1: b:0 float32 (), and /job:worker/task:4 has nothing more" in str(error)


def test_a_hang_in_a_step_ends_by_the_timeout():
    """A worker lives, but does not take part in the step."""

    def work(client):
        session, total = training(client)
        with session:
            if client.index == 0:
                tf.sim.sleep(10 * SECONDS)
            else:
                session.run(total)

    with tf.Cluster(worker=5, clock="virtual") as cluster:
        found = failures(cluster, work)
    assert found[0] is None
    assert all(isinstance(error, errors.OpError) for error in found[1:])
    assert any(isinstance(error, errors.DeadlineExceededError) for error in found[1:])  # the others have heard of it


@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_all_end_when_a_task_is_lost(engine):
    """Neighbours see that the task does not answer; the others hear it from them. Nobody waits for it to come back."""
    trained = threading.Barrier(4)

    def work(client):
        session, total = training(client, workers=4, algorithm="tree")
        with session:
            session.run(total)
            trained.wait(SECONDS)
            if client.index == 3:
                client.cluster.kill("worker", 3)
            session.run(total)

    with tf.Cluster(worker=4, engine=engine) as cluster:
        found = failures(cluster, work)
    assert all(isinstance(error, errors.OpError) for error in found[:4])
    assert any(isinstance(error, errors.UnavailableError) and "task:3" in str(error) for error in found[:3])
