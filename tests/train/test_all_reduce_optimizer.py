"""AllReduceOptimizer next to SyncReplicasOptimizer: equal weights, by other ways."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.cluster.addresses import free_addresses
from dtflab.train.collectives.schedule import ALGORITHMS
from tests.house import ROOT

WORKERS, STEPS = 3, 4
SECONDS = 120.0
OPTIMIZERS = {
    "SGD": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adam": lambda: tf.train.AdamOptimizer(0.05),
}


@pytest.fixture(scope="module")
def cluster():
    with tf.Cluster(ps=2, worker=WORKERS) as cluster:
        yield cluster


def model(index, seed):
    """A loss of two layers on the worker's own data; `seed` is of the first weights."""
    rng, own = np.random.default_rng(seed), np.random.default_rng(100 + index)
    x, y = own.normal(size=(8, 4)).astype(np.float32), own.normal(size=(8, 2)).astype(np.float32)
    with tf.variable_scope("model"):
        layers = [
            tf.Variable(rng.normal(size=(4, 5)).astype(np.float32), name="w1"),
            tf.Variable(rng.normal(size=5).astype(np.float32), name="b1", use_resource=True),
            tf.Variable(rng.normal(size=(5, 2)).astype(np.float32), name="w2"),
        ]
    w1, b1, w2 = layers
    return tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w1) + b1), w2) - y)), layers


def by_parameter_servers(client, optimizer, together):
    """After each step at the barrier `together`: else who is fast may take a slow one's token and make its step."""
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        step = tf.train.get_or_create_global_step()
        loss, variables = model(client.index, seed=0)
        sync = tf.train.SyncReplicasOptimizer(optimizer(), WORKERS)
        train = sync.minimize(loss, global_step=step)
        values = [v.read_value() for v in variables]
    hooks = [sync.make_session_run_hook(client.is_chief, num_tokens=0)]
    with tf.train.MonitoredTrainingSession(
        client.target, client.is_chief, hooks=hooks, log_step_count_steps=None, stop_grace_period_secs=0
    ) as session:
        for _ in range(STEPS):
            session.run(train)
            together.wait(SECONDS)
        return [*session.run(values), session.run(step)] if client.is_chief else None


def by_all_reduce(client, optimizer, **kwargs):
    with tf.device(client.device):
        step = tf.train.get_or_create_global_step()
        loss, variables = model(client.index, seed=client.index)  # only the first one's weights count
        together = tf.train.AllReduceOptimizer(
            optimizer(), client.cluster_spec, client.index, timeout=SECONDS, **kwargs
        )
        train = together.minimize(loss, global_step=step)
        values = [v.read_value() for v in [*variables, *together.variables()]]
    hooks = [together.make_session_run_hook()]
    with tf.train.MonitoredTrainingSession(client.target, hooks=hooks, log_step_count_steps=None) as session:
        for _ in range(STEPS):
            session.run(train)
        weights = session.run(values)
        return weights[:3], session.run(step), weights[3:]


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_weights_are_those_of_synchronous_parameter_servers(algorithm, optimizer, cluster):
    together = threading.Barrier(WORKERS)
    *expected, steps = cluster.run(lambda client: by_parameter_servers(client, optimizer, together))[0]
    for task in cluster.tasks:
        tf.Session.reset(task.target)
    results = cluster.run(lambda client: by_all_reduce(client, optimizer, algorithm=algorithm))
    for weights, own_steps, slots in results:
        assert own_steps == steps == STEPS
        for one, other in zip(weights, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        assert [v.tobytes() for v in weights + slots] == [v.tobytes() for v in results[0][0] + results[0][2]]


def test_two_optimizers_side_by_side(cluster):
    """Each has its own variables, its own hook, its own queues; as one client with all data and both optimizers."""
    kinds = [OPTIMIZERS["momentum"], OPTIMIZERS["Adam"]]

    def work(client):
        with tf.device(client.device):
            loss, (w1, b1, w2) = model(client.index, seed=client.index)
            each = [tf.train.AllReduceOptimizer(k(), client.cluster_spec, client.index, timeout=SECONDS) for k in kinds]
            train = tf.group(each[0].minimize(loss, var_list=[w1, b1]), each[1].minimize(loss, var_list=[w2]))
            values = [v.read_value() for v in (w1, b1, w2)]
        hooks = [optimizer.make_session_run_hook() for optimizer in each]
        with tf.train.MonitoredTrainingSession(client.target, hooks=hooks, log_step_count_steps=None) as session:
            for _ in range(STEPS):
                session.run(train)
            return session.run(values)

    with tf.Graph().as_default(), tf.Session() as session:
        models = [model(index, seed=0) for index in range(WORKERS)]  # equal weights, which get equal gradients
        gradients = [tf.gradients(loss, variables) for loss, variables in models]
        means = [tf.add_n(list(grads)) / WORKERS for grads in zip(*gradients, strict=True)]
        trains = []
        for _, (w1, b1, w2) in models:
            trains.append(kinds[0]().apply_gradients([(means[0], w1), (means[1], b1)]))
            trains.append(kinds[1]().apply_gradients([(means[2], w2)]))
        session.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            session.run(trains)
        expected = session.run(models[0][1])
    for weights in cluster.run(work):
        for one, other in zip(weights, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bucket_bytes", [0, 40, 1 << 20])
def test_buckets_change_no_more_than_rounding(bucket_bytes, cluster):
    sgd = OPTIMIZERS["SGD"]
    ((one, *_), *_) = cluster.run(lambda client: by_all_reduce(client, sgd))
    ((other, *_), *_) = cluster.run(lambda client: by_all_reduce(client, sgd, bucket_bytes=bucket_bytes))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_weights_on_tasks_of_their_own_processes():
    """Servers are processes; the clients are threads here."""
    momentum = OPTIMIZERS["momentum"]
    with tf.Cluster(ps=1, worker=WORKERS, engine="process") as cluster:
        together = threading.Barrier(WORKERS)
        *expected, _ = cluster.run(lambda client: by_parameter_servers(client, momentum, together))[0]
        results = cluster.run(lambda client: by_all_reduce(client, momentum))
    for weights, _, _ in results:
        for one, other in zip(weights, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@contextlib.contextmanager
def worker_processes(steps):
    """A process per worker, each with its server and its client."""
    addresses = free_addresses(WORKERS)
    program = [sys.executable, "-m", "tests.train.all_reduce_worker"]
    running = [
        subprocess.Popen([*program, str(i), str(steps), *addresses], cwd=ROOT, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True) for i in range(WORKERS)
    ]  # fmt: skip
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.communicate()


def test_a_program_in_a_process_per_worker():
    """Each process ends as soon as its own training does, and takes its server along."""
    with worker_processes(STEPS) as running:
        outputs = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0] * WORKERS, outputs
    weights = [json.loads(out.splitlines()[-1]) for out, _ in outputs]
    assert weights == [weights[0]] * WORKERS
    expected = np.concatenate([value.ravel() for value in alone()])
    found = np.concatenate([np.frombuffer(bytes.fromhex(value)) for value in weights[0]])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_process_that_is_killed_ends_the_others():
    with worker_processes(steps=1_000_000) as running:
        assert [process.stdout.readline() for process in running] == ["training\n"] * WORKERS
        running[1].kill()
        others = [process.communicate(timeout=SECONDS)[1] for process in (running[0], running[2])]
    assert all("Error" in error for error in others)
    assert any("/job:worker/replica:0/task:1" in error for error in others), others


def alone():
    """The same training by one client: the mean loss of all workers' data, from the first one's weights."""
    from tests.train.all_reduce_worker import model as workers_model

    with tf.Graph().as_default(), tf.Session() as session:
        models = [workers_model(index) for index in range(WORKERS)]
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        grads = [tf.gradients(loss, variables) for loss, variables in models]
        first = models[0][1]
        follow = [v.assign(value.read_value()).op for _, vs in models[1:] for v, value in zip(vs, first, strict=True)]
        means = [tf.add_n(list(each)) / WORKERS for each in zip(*grads, strict=True)]
        train = optimizer.apply_gradients(zip(means, first, strict=True))
        session.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            session.run(follow)
            session.run(train)
        return session.run(first)


def test_all_go_on_from_the_first_ones_checkpoint(cluster, tmp_path):
    """Only the first has one; weights, slots and steps of the others follow."""

    def work(client, until):
        with tf.device(client.device):
            step = tf.train.get_or_create_global_step()
            loss, _ = model(client.index, seed=client.index)
            together = tf.train.AllReduceOptimizer(
                OPTIMIZERS["Adam"](), client.cluster_spec, client.index, timeout=SECONDS
            )
            train = together.minimize(loss, global_step=step)
            everything = [v.read_value() for v in tf.global_variables()]
        hooks = [together.make_session_run_hook(), tf.train.StopAtStepHook(last_step=until)]
        with tf.train.MonitoredTrainingSession(
            client.target,
            checkpoint_dir=str(tmp_path) if client.is_chief else None,
            save_checkpoint_steps=1,
            hooks=hooks,
            log_step_count_steps=None,
        ) as session:
            begun = session.run_step_fn(lambda step_context: step_context.session.run(everything))
            while not session.should_stop():
                session.run(train)
            return [value.tobytes() for value in begun]

    cluster.run(lambda client: work(client, 3))
    assert tf.train.load_variable(str(tmp_path), "global_step") == 3
    begun = cluster.run(lambda client: work(client, 5))
    tf.summary.FileWriterCache.clear()
    assert begun == [begun[0]] * WORKERS
    assert tf.train.load_variable(str(tmp_path), "global_step") == 5


# -- rows ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_gradients_of_rows_are_gathered_and_not_made_dense(optimizer, cluster):
    """One worker with all lookups gives the same: rows that nobody looked up do not move, not even by momentum."""
    rows = [[0, 1], [1, 1], [4, 0]]

    def loss_of(table, chosen):
        return tf.reduce_sum(tf.square(tf.gather(table, chosen) - 3.0))

    def work(client):
        with tf.device(client.device):
            table = tf.Variable(np.zeros((6, 2), np.float32), name="table")
            together = tf.train.AllReduceOptimizer(optimizer(), client.cluster_spec, client.index, timeout=SECONDS)
            train = together.minimize(loss_of(table, rows[client.index]))
        assert isinstance(together.compute_gradients(loss_of(table, rows[0]))[0][0], tf.IndexedSlices)
        hooks = [together.make_session_run_hook()]
        with tf.train.MonitoredTrainingSession(client.target, hooks=hooks, log_step_count_steps=None) as session:
            for _ in range(STEPS):
                session.run(train)
            return session.run(table)

    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.Variable(np.zeros((6, 2), np.float32))
        train = optimizer().minimize(tf.add_n([loss_of(table, chosen) for chosen in rows]) / WORKERS)
        session.run(tf.global_variables_initializer())
        for _ in range(STEPS):
            session.run(train)
        expected = session.run(table)
    for found in cluster.run(work):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert (found[[2, 3, 5]] == 0).all()


# -- the graph ----------------------------------------------------------------------------------------------------


@pytest.fixture
def spec():
    return {"ps": ["p:1"], "worker": ["a:1", "b:1"]}


def test_buckets_are_filled_from_the_last_variable_on(spec):
    """Each with gradients of one dtype, as many as fit; their names tell what travels together."""
    with tf.Graph().as_default() as graph, tf.device("/job:worker/task:0"):
        variables = [tf.Variable(np.ones(4, dtype), name=f"v{i}") for i, dtype in enumerate(["f4", "f4", "f8", "f4"])]
        optimizer = tf.train.AllReduceOptimizer(OPTIMIZERS["SGD"](), spec, 0, bucket_bytes=32)
        optimizer.apply_gradients([(tf.ones_like(v), v) for v in variables])
        lines = optimizer._group.tensors()
    buckets = [line.partition(": ")[2] for line in lines]
    assert buckets == ["v3 float32 (4,), v1 float32 (4,)", "v2 float64 (4,)", "v0 float32 (4,)"]
    assert graph.get_operation_by_name("all_reduce/bucket_0/joined").device == "/job:worker/task:0"


def test_a_variable_without_gradient_stays(spec):
    with tf.Graph().as_default(), tf.device("/job:worker/task:1"):
        used, unused = tf.Variable(1.0, name="used"), tf.Variable(1.0, name="unused")
        optimizer = tf.train.AllReduceOptimizer(OPTIMIZERS["SGD"](), spec, 1)
        optimizer.minimize(used * 2.0, var_list=[used, unused])
        assert [line.split(": ")[1] for line in optimizer._group.tensors()] == ["used float32 ()"]


def test_wrong_use_is_told(spec):
    sgd = OPTIMIZERS["SGD"]()
    with pytest.raises(ValueError, match="There is no /job:worker/task:2 in the cluster: it has tasks"):
        tf.train.AllReduceOptimizer(sgd, spec, 2)
    with pytest.raises(ValueError, match="Unknown all-reduce algorithm 'star'"):
        tf.train.AllReduceOptimizer(sgd, spec, 0, algorithm="star")
    with pytest.raises(ValueError, match="bucket_bytes=-1: give"):
        tf.train.AllReduceOptimizer(sgd, spec, 0, bucket_bytes=-1)
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="shared")
        with pytest.raises(ValueError, match="but shared of /job:worker/task:1 is on /job:ps/task:0: build the "):
            tf.train.AllReduceOptimizer(sgd, spec, 1).minimize(v * 2.0)
