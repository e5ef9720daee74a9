"""Four workers in step: a ring of TensorFlow's and of ours, and training by parameter server and by all-reduce."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.servers import free_addresses
from benchmarks.workloads.training import examples, perceptron
from benchmarks.workloads.workload import KEPT, Measure, Row, best, in_threads, workload

WORKERS = 4


def _servers(tf: Any, **jobs: int) -> tuple[dict[str, list[str]], list[str]]:
    """The addresses of all tasks, which are in this process, and the targets of the workers."""
    addresses = iter(free_addresses(sum(jobs.values())))
    spec = {job: [next(addresses) for _ in range(count)] for job, count in jobs.items()}
    servers = {job: [tf.train.Server(spec, job, index) for index in range(count)] for job, count in jobs.items()}
    KEPT.append(servers)
    return spec, [server.target for server in servers["worker"]]


@workload("all-reduce", {"ring all-reduce of 1 MiB over 4 tasks in one process, one graph": Row("ms")})
def all_reduce(tf: Any) -> Measure:
    """TensorFlow's own ring is in its module of distribution strategies."""
    _, targets = _servers(tf, worker=WORKERS)
    with tf.Graph().as_default():
        tensors = []
        for index in range(WORKERS):
            with tf.device(f"/job:worker/task:{index}"):
                tensors.append(tf.Variable(np.ones(1 << 18, np.float32)).read_value())
        if hasattr(tf.train, "all_reduce"):
            reduced = tf.train.all_reduce(tensors)
        else:
            theirs = importlib.import_module("tensorflow.python.distribute.v1.all_reduce")
            reduced = theirs.build_ring_all_reduce(tensors, WORKERS, 1, [0], tf.add)
        together = tf.group(*reduced)
        session = tf.Session(targets[0])
        session.run(tf.global_variables_initializer())
    return lambda: [1000 * best(lambda: session.run(together), 2, 20)]


_WAYS = {"PS": "MLP 64-32-10, batch 32, 4 workers in step, 1 ps", "ring": "same, ring all-reduce", "tree": "same, tree"}


@workload("in-step", {row: Row("steps/s") for row in _WAYS.values()})
def in_step(tf: Any) -> Measure:
    """All tasks in one process. SyncReplicasOptimizer is on both sides, AllReduceOptimizer is dtflab's alone."""
    ways = [way for way in _WAYS if way == "PS" or hasattr(tf.train, "AllReduceOptimizer")]
    together = [_all_workers(tf, way) for way in ways]
    return lambda: [25 / best(steps, 1, batches=12) for steps in together]


def _all_workers(tf: Any, way: str) -> Callable[[], None]:
    """25 steps of all workers, each in a thread of its own."""
    spec, targets = _servers(tf, worker=WORKERS, **({"ps": 1} if way == "PS" else {}))
    steps = [_client(tf, spec, targets[index], index, way) for index in range(WORKERS)]

    return in_threads(steps, 25)


def _client(tf: Any, spec: Any, target: str, index: int, way: str) -> Callable[[], Any]:
    device = f"/job:worker/task:{index}"
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=spec, worker_device=device) if way == "PS" else device):
            step = tf.train.get_or_create_global_step()
            optimizer = tf.train.GradientDescentOptimizer(0.1)
            if way == "PS":
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, WORKERS)
            else:
                optimizer = tf.train.AllReduceOptimizer(optimizer, spec, index, algorithm=way)
            x, labels, train = perceptron(tf, (64, 32, 10), optimizer, step)
        session = tf.Session(target)
        if way != "PS" or index == 0:
            session.run(tf.global_variables_initializer())
        if way == "PS":
            _begin_in_step(session, optimizer, index == 0)
    feed = dict(zip((x, labels), examples(64, 32), strict=True))
    return lambda: session.run(train, feed)


def _begin_in_step(session: Any, optimizer: Any, chief: bool) -> None:
    """Do what SyncReplicasOptimizer's hook does."""
    with session.graph.as_default():
        session.run(optimizer.chief_init_op if chief else optimizer.local_step_init_op)
        if chief:
            optimizer.get_chief_queue_runner().create_threads(session, daemon=True, start=True)
            session.run(optimizer.get_init_tokens_op(0))  # with some, the second step's gradients may come too late
