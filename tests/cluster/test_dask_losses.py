"""Training goes on when a Dask worker is lost, with the task that it held: on another one, from the checkpoint."""

from __future__ import annotations

import threading

import pytest

import dtflab as tf
from dtflab.cluster.dask_task import DaskTask
from tests.cluster.dask_clusters import children_of, dask_client, kill_worker_of, nothing_left, start_threads_that_stay

STEPS = 60


@pytest.fixture(scope="module", autouse=True)
def threads_that_stay():
    pytest.importorskip("distributed")
    start_threads_that_stay()


@pytest.fixture
def client():
    with dask_client(workers=3) as client:
        yield client


def trainer(folder, reached):
    """A worker's program: the slope of a line by asynchronous descent, with a checkpoint each fifth step.

    `reached(step)` is called after each of its steps.
    """

    def train(client):
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [], initializer=tf.zeros_initializer(), use_resource=False)
            loss = tf.square(w - 3.0)
            descend = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)
        with tf.train.MonitoredTrainingSession(
            master=client.target,
            is_chief=client.is_chief,
            checkpoint_dir=str(folder),
            save_checkpoint_steps=5,
            save_checkpoint_secs=None,
            save_summaries_steps=None,
            log_step_count_steps=None,
            hooks=[tf.train.StopAtStepHook(last_step=STEPS)],
        ) as session:
            value = None
            while not session.should_stop():
                _, number, value = session.run([descend, step, w])
                reached(int(number))
        return float(value)

    return train


class Fault:
    """Once all clients have got so far, kill the Dask worker of a task; they go on when it has another place."""

    def __init__(self, cluster, job, index, clients):
        self._cluster, self._lost = cluster, cluster.task(job, index)
        self._barrier = threading.Barrier(clients, self._kill, timeout=120)
        self._of_thread = threading.local()
        self.before = self._lost.worker, self._lost.address

    def _kill(self):
        kill_worker_of(self._cluster, self._lost.job, self._lost.index)

    def __call__(self, step):
        if step >= 10 and not getattr(self._of_thread, "waited", False):
            self._of_thread.waited = True
            self._barrier.wait()


@pytest.mark.parametrize("job", ["ps", "worker"])
def test_training_goes_on_from_the_checkpoint_at_a_new_address(client, tmp_path, job):
    """Lose a parameter server, with its variables, or the chief's task, the master of its session."""
    with tf.Cluster(engine="dask", client=client, ps=1, worker=3, allow_files=tmp_path) as cluster:
        fault = Fault(cluster, job, 0, clients=3)
        slopes = cluster.run(trainer(tmp_path, fault), grace=60)
        task = cluster.task(job)
        assert task.worker != fault.before[0] and task.address != fault.before[1] and task.state == "running"
        tf.summary.FileWriterCache.clear()
        assert all(abs(slope - 3.0) < 0.1 for slope in slopes)
        assert tf.train.latest_checkpoint(str(tmp_path)) is not None
    assert children_of(client) == []


def test_a_worker_that_is_lost_while_the_cluster_starts(client, monkeypatch):
    """The worker dies as soon as it has the task, before that serves; the start goes on elsewhere."""
    begin = DaskTask.begin
    places = []

    def begin_and_lose(task, worker, gpu):
        begin(task, worker, gpu)
        places.append(worker)
        if len(places) == 1:
            threading.Thread(
                target=client.run, args=(_die,), kwargs={"workers": [worker], "on_error": "ignore"}
            ).start()

    monkeypatch.setattr(DaskTask, "begin", begin_and_lose)
    with tf.Cluster(engine="dask", client=client, worker=1) as cluster, tf.Session(cluster.target) as session:
        assert session.run(tf.constant(7)) == 7
        assert len(places) == 2 and places[0] != places[1]
    nothing_left(client)


def _die():
    import os

    os._exit(1)
