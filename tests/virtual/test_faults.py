"""Faults at exact moments: killed, restarted, slow; and deadlocks, which report which thread waits for what."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.hardware.parts import Processor
from dtflab.virtual.deadlock import DeadlockError
from tests.virtual.small_program import CPU, GPU, MADE_UP, NETWORK


def counts(client, last_step, times, **session):
    """Adds one to the global step, on the ps, with some work on the worker in between; notes when each step ended."""
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec)):
        step = tf.train.get_or_create_global_step()
        with tf.device(client.device):
            work = tf.reduce_sum(tf.ones([300, 1000]) * tf.cast(step, tf.float32))
        train_op = tf.assign_add(step, tf.cast(work >= 0.0, tf.int64))  # by 1
    hooks = [tf.train.StopAtStepHook(last_step=last_step)]
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief, hooks=hooks, **session) as sess:
        while not sess.should_stop():
            times.append((int(sess.run(train_op)), tf.sim.now()))


def two_workers(**options):
    return tf.Cluster(ps=1, worker=2, cpu=CPU, network=NETWORK, clock="virtual", **options)


def test_a_killed_ps_is_waited_for_and_its_step_begins_again_from_the_checkpoint(tmp_path, monkeypatch):
    times = [[], []]
    monkeypatch.setitem(sys.modules, "dtflab.cluster.worker_stub", None)  # nobody asks the real network for it
    with two_workers() as cluster:
        cluster.at(0.5, cluster.kill, "ps")
        cluster.at(3.0, cluster.restart, "ps")
        cluster.run(
            lambda client: counts(
                client, 1000, times[client.index], checkpoint_dir=str(tmp_path) if client.is_chief else None,
                save_checkpoint_steps=20,
            )
        )  # fmt: skip
    tf.summary.FileWriterCache.clear()
    moments = [moment for _, moment in times[0]]
    assert not [moment for moment in moments if 0.51 < moment < 3.0]
    before = [step for step, moment in times[0] if moment < 0.51][-1]
    after = next(step for step, moment in times[0] if moment > 3.0)
    assert before - 20 <= after <= before + 2 and after > 20  # from the last checkpoint, not from 0
    assert times[0][-1][0] >= 999


def test_a_step_fails_at_the_moment_at_which_a_task_that_it_needs_is_killed():
    def program(client):
        with tf.device("/job:ps/task:0"):
            taken = tf.FIFOQueue(3, tf.float32, shared_name="empty").dequeue()
        with tf.Session(client.target) as session, pytest.raises(errors.UnavailableError, match=r"job:ps.*was stopped"):
            session.run(taken)
        return tf.sim.now()

    with two_workers() as cluster:
        cluster.at(12.5, cluster.kill, "ps")
        assert cluster.run(program) == [12.5, 12.5]


@pytest.mark.parametrize("kind", ["queue", "accumulator"])
def test_a_step_that_is_all_on_a_killed_task_says_that_it_was_lost(kind):
    """Not that its op was cancelled, which nobody would try again."""
    with two_workers() as cluster, tf.Graph().as_default(), tf.device("/job:ps"):
        queue, sums = tf.FIFOQueue(3, tf.float32), tf.ConditionalAccumulator(tf.float32, shape=[])
        waits = queue.dequeue().op if kind == "queue" else sums.take_grad(1).op
        cluster.at(1.0, cluster.kill, "ps")
        with tf.Session(cluster.target) as session, pytest.raises(errors.UnavailableError, match=r"job:ps.*stopped"):
            session.run(waits)
        assert cluster.now() == 1.0


def test_synchronous_training_goes_on_when_its_servers_are_started_again():
    def program(client):
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec)):
            step = tf.train.get_or_create_global_step()
            weights = tf.get_variable("weights", [4])
            optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 2)
            train = optimizer.minimize(tf.reduce_sum(weights**2), step)
        hooks = [optimizer.make_session_run_hook(client.is_chief, num_tokens=0), tf.train.StopAtStepHook(last_step=99)]
        with tf.train.MonitoredTrainingSession(
            client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=0
        ) as session:
            while not session.should_stop():
                session.run(train)
                tf.sim.sleep(0.01)
        return tf.sim.now()

    with two_workers() as cluster:
        cluster.at(0.5, cluster.kill, "ps")
        cluster.at(2.0, cluster.restart, "ps")
        assert all(2.9 < ended < 6 for ended in cluster.run(program))


def test_a_killed_worker_goes_on_when_it_is_started_again():
    times = [[], []]
    with two_workers() as cluster:
        cluster.at(0.5, cluster.kill, "worker", 1)
        cluster.at(2.0, cluster.restart, "worker", 1)
        cluster.run(lambda client: counts(client, 500, times[client.index]))
    meanwhile = [[moment for _, moment in ended if 0.51 < moment < 2.0] for ended in times]
    assert len(meanwhile[0]) > 50 and meanwhile[1] == []
    assert len([moment for _, moment in times[1] if moment > 2.0]) > 10


def test_who_waits_for_a_task_that_nobody_starts_again_is_told_of_a_deadlock(capsys):
    times = [[], []]
    with two_workers() as cluster:
        cluster.at(0.5, cluster.kill, "worker", 1)
        with pytest.raises(
            DeadlockError, match=r"client /job:worker/task:1 waits for a session: .* has lost"
        ) as failed:
            cluster.run(lambda client: counts(client, 500, times[client.index]))
        assert "client /job:worker/task:0" not in str(failed.value)  # it has ended
        assert times[0][-1][0] == 500 and cluster.now() < 200
    assert 1 <= "".join(capsys.readouterr()).count("still waiting for a session") <= 6


def test_who_waits_for_a_task_waits_as_long_as_something_is_due():
    times = [[], []]
    with two_workers() as cluster:
        cluster.at(0.1, cluster.kill, "worker", 1)
        cluster.at(5000.0, cluster.restart, "worker", 1)
        cluster.at(9000.0, lambda: None)  # and then nothing any more
        cluster.run(lambda client: counts(client, 100, times[client.index]))
    assert times[1][-1][1] > 5000.0


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_a_slow_task_takes_that_many_times_as_long(factor):
    def seconds(slowed):
        def program(client):
            with tf.device(client.device), tf.Session(client.target) as session:
                began = tf.sim.now()
                session.run(tf.ones([1000, 1000]) * tf.placeholder_with_default(2.0, []))
                return tf.sim.now() - began

        with two_workers() as cluster:
            if slowed:
                cluster.slow("worker", 1, factor)
            return cluster.run(program)

    plain, slow = seconds(False), seconds(True)
    assert slow[0] == plain[0]
    assert slow[1] == pytest.approx(factor * plain[1])


def test_a_task_is_slow_from_a_moment_on():
    with two_workers() as cluster:
        cluster.at(1.0, cluster.slow, "worker", 0, 10.0)
        cluster.at(2.0, cluster.slow, "worker", 0, 1.0)
        times = []
        cluster.run(lambda client: counts(client, 300, times if client.is_chief else []))
    steps = np.array([moment for _, moment in times])
    before, meanwhile, after = (
        np.diff(steps[(steps > first) & (steps < last)]).mean() for first, last in ((0.1, 1.0), (1.1, 2.0), (2.2, 9.0))
    )
    assert meanwhile > 5 * before and after == pytest.approx(before, rel=0.2)


@pytest.mark.parametrize("job", ["ps", "worker"])  # the card that sends, the card that receives
def test_a_slow_network_card_delays_what_passes_it(job):
    def program(client):
        if not client.is_chief:
            return 0.0
        with tf.device("/job:ps/task:0"):
            sent = tf.identity(tf.placeholder_with_default(np.ones(1_000_000, np.float32), [1_000_000]))
        with tf.device(client.device), tf.Session(client.target) as session:
            got = tf.identity(sent)[0] + 1.0
            began = tf.sim.now()
            session.run(got)
            return tf.sim.now() - began

    with two_workers() as cluster:
        plain = cluster.run(program)
        cluster.slow(job, network=5.0)
        slow = cluster.run(program)
        cluster.slow(job)
        again = cluster.run(program)
    assert max(slow) == pytest.approx(5 * max(plain), rel=0.02)
    assert again == pytest.approx(plain)


@pytest.mark.parametrize("wrong", [{"factor": 0}, {"factor": -1}, {"network": float("inf")}, {"factor": float("nan")}])
def test_nothing_is_infinitely_fast_or_slow(wrong):
    with two_workers() as cluster, pytest.raises(ValueError, match="must be above 0, and finite"):
        cluster.slow("worker", 0, **wrong)


# -- hosts and their memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cores", "tasks"), [(1, 4), (2, 4), (4, 4), (4, 2)])
def test_the_cores_of_a_host_are_shared_by_its_tasks(cores, tasks):
    """Each task has four kernels of a second, as one core is the whole of its share."""
    cpu = Processor("a CPU", "CPU", {"float32": 8e4}, 1 << 36, 1e15, 0.0, cores, MADE_UP)

    def program(client):
        with tf.device(client.device), tf.Session(client.target) as session:
            one = tf.placeholder(tf.float32, [40_000 // cores])
            session.run([tf.negative(one).op for _ in range(4)], {one: np.zeros(one.shape.as_list(), np.float32)})

    spec = {"worker": [f"one-host:{2222 + index}" for index in range(tasks)]}
    with tf.Cluster(spec, cpu=cpu, network=NETWORK, clock="virtual") as cluster:
        cluster.run(program)
        assert cluster.now() == pytest.approx(4.0 * tasks / cores, rel=1e-6)


def test_a_batch_that_does_not_fit_fails_on_the_simulated_gpu_too():
    def program(client):
        with tf.device(f"{client.device}/gpu:0"), tf.Session(client.target) as session:
            rows = tf.placeholder(tf.int32, [])
            total = tf.reduce_sum(tf.random_uniform([rows, 1000]))
            session.run(total, {rows: 1000})
            session.run(total, {rows: 100_000})

    with (
        tf.Cluster(
            worker=1, gpu=GPU, gpus=1, gpu_memory="400MiB", cpu=CPU, network=NETWORK, clock="virtual"
        ) as cluster,
        pytest.raises(errors.ResourceExhaustedError, match="100000,1000"),
    ):
        cluster.run(program)


# -- deadlocks -------------------------------------------------------------------------------------------------------


def dequeues(client):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(3, tf.float32, shared_name="empty", name="empty")
    with tf.Session(client.target) as session:
        session.run(queue.dequeue(name="taken"))


def enqueues(client):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(2, tf.float32, shared_name="full", name="full")
    with tf.Session(client.target) as session:
        while True:
            session.run(queue.enqueue(1.0, name="put"))


def takes_too_few(client):
    with tf.device("/job:ps/task:0"):
        gradients = tf.ConditionalAccumulator(tf.float32, [], shared_name="sum", name="sum")
    with tf.Session(client.target) as session:
        session.run(gradients.apply_grad(1.0))
        session.run(gradients.take_grad(3, name="mean"))


def joins_itself(client):
    coord = tf.train.Coordinator()
    coord.wait_for_stop()


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (dequeues, ["'empty' with 0 of 3 elements", "taken", "client /job:worker/task:1 waits for step"]),
        (enqueues, ["'full' with 2 of 2 elements", "put"]),
        (takes_too_few, ["accumulator 'sum' with 2 gradients for 3", "mean"]),
        (joins_itself, ["client /job:worker/task:0 waits for", "MainThread"]),
    ],
)
def test_a_deadlock_says_who_waits_for_what(program, says):
    with two_workers() as cluster:
        with pytest.raises(DeadlockError) as caught:
            cluster.run(program)
        assert [part for part in says if part not in str(caught.value)] == []
        assert cluster.run(lambda client: client.index) == [0, 1]  # and the cluster goes on


def test_threads_that_rest_are_not_told_of_a_deadlock(capfd):
    """Threads of data sets, queue runners and writers wait to be asked: they go on, and write nothing to stderr."""
    with tf.Cluster(ps=1, worker=1, clock="virtual") as cluster, tf.Graph().as_default():
        rows = tf.data.make_one_shot_iterator(tf.data.Dataset.range(100).prefetch(2)).get_next()
        names = tf.train.string_input_producer(["a", "b"]).dequeue()
        taken = tf.FIFOQueue(3, tf.float32).dequeue()
        with tf.Session(cluster.target) as session:
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            assert session.run([rows, names])[0] == 0
            for _ in range(2):
                with pytest.raises(DeadlockError, match="0 of 3 elements"):
                    session.run(taken)
            assert [session.run(rows) for _ in range(5)] == [1, 2, 3, 4, 5]
            with pytest.raises(DeadlockError):  # the error of the producer, whose queue was full
                coordinator.join(threads)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_only_finite_times_pass(seconds):
    with two_workers() as cluster:
        with pytest.raises(ValueError, match="finite"):
            tf.sim.sleep(seconds)
        if seconds < 0:
            cluster.at(seconds, tf.sim.now)  # it has passed: at once
        else:
            with pytest.raises(ValueError, match="finite"):
                cluster.at(seconds, tf.sim.now)


@pytest.mark.parametrize("wrong", [{"seed": "a"}, {"seed": -1}, {"seed": 1.5}, {"stragglers": 0.2}])
def test_chance_is_described_by_a_whole_number_and_a_distribution(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.*give a"):
        tf.Cluster(ps=1, clock="virtual", **wrong)


def test_a_step_may_have_a_time_limit_of_virtual_seconds():
    with two_workers() as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as session:
        taken = tf.FIFOQueue(3, tf.float32).dequeue()
        with pytest.raises(errors.DeadlineExceededError):
            session.run(taken, options=tf.RunOptions(timeout_in_ms=2500))
        assert cluster.now() == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("lost", "timeout_ms", "error"),
    [
        ("ps", 0, tf.errors.UnavailableError),
        ("worker", 0, tf.errors.UnavailableError),
        (None, 100, tf.errors.DeadlineExceededError),
    ],
)
def test_a_step_fails_at_the_moment_of_the_fault_though_a_kernel_would_take_longer(lost, timeout_ms, error):
    """A product of a quarter of a second is under way when its task goes, or when the time is up."""
    slow = Processor("slow", "CPU", {"float32": 1e9}, 1 << 34, 1e10, 1e-6, 1, "made up")
    with tf.Cluster(ps=1, worker=1, cpu=slow, clock="virtual") as cluster, tf.Graph().as_default():
        with tf.device("/job:ps"):
            product = tf.matmul(*[tf.ones([400, 400]) * tf.placeholder_with_default(1.0, [])] * 2)
        with tf.device("/job:worker"):
            total = tf.reduce_sum(product)
        if lost:
            cluster.at(0.1, cluster.kill, lost, 0)
        with tf.Session(cluster.target) as sess, pytest.raises(error):
            sess.run(total, options=tf.RunOptions(timeout_in_ms=timeout_ms))
        assert cluster.now() == pytest.approx(0.1)


def test_a_slow_worker_does_not_hold_the_servers_card():
    """Three of four push on at full speed while the fourth's card takes ten times as long."""

    def program(client):
        with tf.device(client.device):
            gradient = tf.ones([1_000_000])
        with tf.device("/job:ps/task:0"), tf.Session(client.target) as session:
            total = tf.reduce_sum(gradient)
            session.run(total)
            began = tf.sim.now()
            for _ in range(5):
                session.run(total)
            return tf.sim.now() - began

    with tf.Cluster(ps=1, worker=4, network="10Gb/s", clock="virtual") as cluster:
        plain = cluster.run(program)
        cluster.slow("worker", 3, network=10.0)
        *others, slow = cluster.run(program)
    assert max(others) <= max(plain)
    assert slow > 2 * max(others)
