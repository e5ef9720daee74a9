"""SyncReplicasOptimizer next to TensorFlow's: its graph, and what workers on a real cluster compute together.

Each program plays a small scene by hand: which worker comes when, who is late, and what the variables are then. The
mathematics is written next to it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab
from dtflab.cluster.addresses import free_addresses
from tests.oracle.graph_defs import assert_same_graph, both

SECONDS = 60  # long enough that only what hangs is noticed
RATE = 2.0


# -- the graph --------------------------------------------------------------------------------------------------------


def build(tf: Any, use_resource: bool, **kwargs: Any) -> tuple[Any, Any]:
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
        w = tf.Variable([1.0, 2.0], name="w", use_resource=use_resource)
        unused = tf.Variable(1.0, name="unused", use_resource=use_resource)
    with tf.device("/job:ps/task:1"):
        table = tf.Variable(np.ones([3, 2], np.float32), name="table", use_resource=use_resource)
    with tf.device("/job:worker/task:1"):
        loss = tf.reduce_sum(w * w) + tf.reduce_sum(tf.gather(table, [2, 0]))
        sync = tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(0.1), **kwargs)
        train = sync.minimize(loss, step, var_list=[w, table, unused])
    return sync, train


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_same_graph(use_resource):
    def program(tf):
        with tf.variable_scope("model"):
            sync, train = build(tf, use_resource, replicas_to_aggregate=2, total_num_replicas=3, name="together")
        sync.get_init_tokens_op()
        sync.get_init_tokens_op(0)
        assert sync.get_slot_names() == ["m", "v"]
        assert sync.get_slot(tf.trainable_variables()[0], "m") in sync.variables()
        assert sync.get_chief_queue_runner().name == "sync_token_q"
        tf.group(sync.local_step_init_op, sync.chief_init_op, sync.ready_for_local_init_op, train)

    assert_same_graph(program)


def test_same_graph_with_averages_and_hooks():
    def program(tf):
        averages = tf.train.ExponentialMovingAverage(0.9)
        sync, _ = build(tf, False, replicas_to_aggregate=4, total_num_replicas=3, variable_averages=averages,
                        variables_to_average=tf.trainable_variables())  # fmt: skip
        sync.make_session_run_hook(True).begin()
        sync.make_session_run_hook(False).begin()
        sync.make_session_run_hook(True, num_tokens=5).begin()

    assert_same_graph(program)


WRONG: dict[str, Callable[[Any, Any], Any]] = {
    "no step": lambda tf, sync: sync.apply_gradients([(1.0, tf.Variable(1.0))]),
    "no variables": lambda tf, sync: sync.apply_gradients([], tf.train.create_global_step()),
    "runner too early": lambda tf, sync: sync.get_chief_queue_runner(),
    "tokens too early": lambda tf, sync: sync.get_init_tokens_op(),
    "hook too early": lambda tf, sync: sync.make_session_run_hook(True).begin(),
    "not a gradient": lambda tf, sync: sync.apply_gradients([("a", tf.Variable(1.0))], tf.train.create_global_step()),
    "too few tokens": lambda tf, sync: [
        sync.minimize(tf.Variable(1.0) * 2.0, tf.train.create_global_step()),
        sync.get_init_tokens_op(1),
    ],
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_same_errors(wrong):
    def error(tf):
        sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 5, total_num_replicas=2)
        try:
            wrong(tf, sync)
        except Exception as error:
            return type(error).__name__, str(error)
        return "nothing"

    theirs, ours = both(error)
    assert ours == theirs


# -- workers ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tensorflows_cluster():
    """Targets of three workers next to two parameter servers, in this process; they can't be stopped."""
    addresses = free_addresses(5)
    spec = {"ps": addresses[:2], "worker": addresses[2:]}
    servers = [real_tf.train.Server(spec, job, i) for job, tasks in spec.items() for i in range(len(tasks))]
    return [server.target for server in servers[2:]]


@contextlib.contextmanager
def dtflabs_cluster(tf: Any) -> Iterator[list[str]]:
    with tf.Cluster(ps=2, worker=3) as cluster:
        yield [cluster.task("worker", i).target for i in range(3)]


class Worker:
    """A worker: its own graph and session. The first is the chief."""

    def __init__(self, tf: Any, targets: Sequence[str], index: int, aggregate: int, total: int) -> None:
        self.index = index
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                self.step = tf.Variable(0, name="global_step", trainable=False)
                v0 = tf.Variable(0.0, name="v0")
            with tf.device("/job:ps/task:1"):
                v1 = tf.Variable(1.0, name="v1")
                rows = tf.Variable([[3.0], [4.0]], name="v_sparse")
            with tf.device(f"/job:worker/task:{index}"):
                g = 0.1 + index * 0.2
                grads = [tf.constant(g), tf.constant(0.8 + g)]
                grads.append(tf.IndexedSlices(tf.constant([[g]]), tf.constant([1]), tf.constant([2, 1])))
                self.sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(RATE), aggregate, total)
                self.train = self.sync.apply_gradients(list(zip(grads, [v0, v1, rows])), self.step)
                tokens = self.sync.get_init_tokens_op(total)
                init = tf.global_variables_initializer()
            self.variables = [v0, v1, rows]
            self.session = tf.Session(targets[index])
            if index == 0:
                self.session.run(init)
                self.session.run(self.sync.chief_init_op)
                self.session.run(tokens)
            else:
                self.session.run(self.sync.local_step_init_op)

    def values(self) -> list[Any]:
        """v0, v1, the row that has gradients, and this worker's own step."""
        v0, v1, rows, local = self.session.run([*self.variables, self.sync._local_step])
        assert rows[0, 0] == 3.0
        return [float(v0), float(v1), float(rows[1, 0]), int(local)]

    def until_step(self, number: int) -> None:
        """The chief updates in a thread of its own: wait for it."""
        deadline = time.monotonic() + SECONDS
        while self.session.run(self.step) != number:
            assert time.monotonic() < deadline, f"step {number} is never reached"


def together(workers: Sequence[Worker]) -> None:
    """All workers make one step at once."""
    failed: list[BaseException] = []

    def run(worker: Worker) -> None:
        try:
            worker.session.run(worker.train)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive(), "a worker still waits"
    assert failed == []


@contextlib.contextmanager
def training(tf: Any, targets: Sequence[str], aggregate: int, total: int) -> Iterator[list[Worker]]:
    """The workers, and the chief's thread; all sessions are closed in the end, which sends the thread away."""
    workers = [Worker(tf, targets, index, aggregate, total) for index in range(total)]
    coordinator = tf.train.Coordinator()
    chief = workers[0]
    threads = chief.sync.get_chief_queue_runner().create_threads(
        chief.session, coord=coordinator, daemon=True, start=True
    )
    try:
        yield workers
    finally:
        coordinator.request_stop()
        for worker in workers:
            worker.session.close()
        coordinator.join(threads, stop_grace_period_secs=SECONDS)


def on_both(scene: Callable[[Any, Sequence[str]], Any], theirs: Sequence[str]) -> list[Any]:
    """The outcome of the scene on TensorFlow's cluster and on dtflab's."""
    found = []
    with dtflabs_cluster(dtflab) as ours:
        for tf, targets in ((real_tf, theirs), (dtflab, ours)):
            for target in targets:
                tf.Session.reset(target)
            found.append(scene(tf, targets))
    return found


def after(*means: float) -> list[float]:
    """The variables after gradient descent along these means of the workers' first gradients."""
    total = RATE * sum(means)
    return [0 - total, 1 - total - RATE * 0.8 * len(means), 4 - total]


def test_two_workers(tensorflows_cluster):
    mean = (0.1 + 0.3) / 2

    def scene(tf, targets):
        shown = []
        with training(tf, targets, aggregate=2, total=2) as workers:
            one, other = workers
            shown.append(one.values())
            # The first tokens are there already, so the workers need not come at the same time.
            one.session.run(one.train)
            other.session.run(other.train)
            one.until_step(1)
            shown.append(other.values())
            # Those tokens were of step 0: what the workers give next is stale, and dropped.
            one.session.run(one.train)
            other.session.run(other.train)
            shown += [one.values(), other.values()]
            for number in (2, 3, 4):
                together(workers)
                one.until_step(number)
                shown.append(one.values())
        return shown

    theirs, ours = on_both(scene, tensorflows_cluster)
    np.testing.assert_allclose(ours, theirs, 1e-6)
    expected = [[*after(), 0], [*after(mean), 0], [*after(mean), 1], [*after(mean), 1]]
    expected += [[*after(*[mean] * n), n] for n in (2, 3, 4)]
    np.testing.assert_allclose(ours, expected, 1e-5, 1e-6)


def test_three_workers_of_which_one_is_spare(tensorflows_cluster):
    first, second = (0.1 + 0.5) / 2, (0.1 + 0.3) / 2

    def scene(tf, targets):
        shown = []
        with training(tf, targets, aggregate=2, total=3) as workers:
            one, two, three = workers
            one.session.run(one.train)
            three.session.run(three.train)
            one.until_step(1)  # two gradients were enough
            shown.append(two.values())
            two.session.run(two.train)  # too late: of step 0
            shown.append(two.values())
            for worker in workers:  # with a token of step 0 each
                worker.session.run(worker.train)
            shown += [worker.values() for worker in workers]
            together([one, two])
            one.until_step(2)
            shown.append(one.values())
        return shown

    theirs, ours = on_both(scene, tensorflows_cluster)
    np.testing.assert_allclose(ours, theirs, 1e-6)
    expected = [[*after(first), 0]] * 2 + [[*after(first), 1]] * 3 + [[*after(first, second), 2]]
    np.testing.assert_allclose(ours, expected, 1e-5, 1e-6)


def test_one_worker_gives_several_gradients_per_step():
    """More gradients to aggregate than workers: each waits for a token per gradient, not per step."""

    def scene(tf):
        step = tf.Variable(0, name="global_step", trainable=False)
        w = tf.Variable(1.0, name="w")
        x = tf.placeholder(tf.float32, [])
        sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.5), 2, total_num_replicas=1)
        train, tokens = sync.minimize(w * x, step), sync.get_init_tokens_op()
        shown = []
        with running(tf, sync, tokens) as session:
            for number, given in enumerate([(1.0, 3.0), (5.0, 7.0, 2.0)], start=1):
                for value in given:
                    session.run(train, {x: value})
                until(lambda number=number: session.run(step) == number)
                shown.append(session.run([w, step]))
        return shown

    theirs, ours = both(scene)
    # The third gradient, 5, is marked with the second token, of step 0 like the first: it comes too late.
    assert ours == theirs == [[0.0, 1], [0.0 - 0.5 * (7.0 + 2.0) / 2, 2]]


def test_averages_are_of_what_all_made_together():
    def scene(tf):
        step = tf.Variable(0, name="global_step", trainable=False)
        w = tf.Variable([1.0, 2.0], name="w")
        averages = tf.train.ExponentialMovingAverage(0.5)
        sync = tf.train.SyncReplicasOptimizer(
            tf.train.MomentumOptimizer(0.1, 0.9), 1, variable_averages=averages, variables_to_average=[w]
        )
        train, tokens = sync.minimize(tf.reduce_sum(w * w), step), sync.get_init_tokens_op(0)
        average, momentum = averages.average(w), sync.get_slot(w, "momentum")
        shown = []
        with running(tf, sync, tokens) as session:
            before = session.run(average)
            for _ in range(5):
                session.run(train)
                until(lambda before=before: (session.run(average) != before).all())  # the chief averages last
                before = session.run(average)
                shown.append([before, *session.run([w, momentum])])
        return shown

    theirs, ours = both(scene)
    np.testing.assert_allclose(ours, theirs, 1e-6)
    w, momentum, average = np.array([1.0, 2.0]), np.zeros(2), np.array([1.0, 2.0])
    for shown in ours:
        momentum = 0.9 * momentum + 2 * w
        w = w - 0.1 * momentum
        average = 0.5 * average + 0.5 * w
        np.testing.assert_allclose(shown, [average, w, momentum], 1e-5)


@contextlib.contextmanager
def running(tf: Any, sync: Any, tokens: Any) -> Iterator[Any]:
    """A session that is worker and chief in one."""
    init = tf.global_variables_initializer()
    coordinator = tf.train.Coordinator()
    session = tf.Session()
    session.run(init)
    session.run(sync.chief_init_op)
    session.run(tokens)
    threads = sync.get_chief_queue_runner().create_threads(session, coord=coordinator, daemon=True, start=True)
    try:
        yield session
    finally:
        coordinator.request_stop()
        session.close()
        coordinator.join(threads, stop_grace_period_secs=SECONDS)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "does not come about"


# -- in monitored sessions --------------------------------------------------------------------------------------------


def test_monitored_sessions_with_the_hook():
    """Between-graph replication as programs have it: a chief, a worker, hooks that do the rest."""
    tf = dtflab
    shown: dict[int, Any] = {}
    turn = threading.Barrier(2)  # who is a step ahead takes the other's token, and gives both gradients of the next

    def work(cluster: Any, index: int) -> None:
        with tf.Graph().as_default():
            setter = tf.train.replica_device_setter(cluster=cluster.spec, worker_device=f"/job:worker/task:{index}")
            with tf.device(setter):
                step = tf.train.get_or_create_global_step()
                w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
                sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2, 2)
                train = sync.minimize((index + 1.0) * tf.reduce_sum(w), step)
            hooks = [sync.make_session_run_hook(index == 0, num_tokens=0), tf.train.StopAtStepHook(last_step=5)]
            target = cluster.task("worker", index).target
            with tf.train.MonitoredTrainingSession(
                target, index == 0, hooks=hooks, stop_grace_period_secs=1, log_step_count_steps=None
            ) as session:
                while not session.should_stop():
                    turn.wait(SECONDS)
                    shown[index] = session.run([train, w, step])[1:]

    with tf.Cluster(ps=1, worker=2) as cluster:
        threads = [threading.Thread(target=work, args=(cluster, index)) for index in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a worker does not end"
        with tf.Graph().as_default(), tf.Session(cluster.target) as session, tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [2])
            np.testing.assert_allclose(session.run(w), 1 - 5 * 0.1 * 1.5 * np.ones(2), 1e-5)
    assert set(shown) == {0, 1}
