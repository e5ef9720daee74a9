"""Training by all-reduce in virtual time: real weights, equal runs, and an end for all when one is lost."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors

WORKERS = 4


def train(steps=5, lost_at=None, algorithm="ring"):
    """(weights per worker, seconds, hash of the log), or each worker's error when worker 2 is lost meanwhile."""
    seen = {}

    def work(client):
        rng = np.random.default_rng(client.index)
        with tf.device(client.device):
            step = tf.train.get_or_create_global_step()
        with tf.device(f"{client.device}/gpu:0"):
            w = tf.Variable(rng.normal(size=(3, 2)).astype(np.float32), name="w")
            loss = tf.reduce_mean(tf.square(tf.matmul(rng.normal(size=(8, 3)).astype(np.float32), w) - 1.0))
            optimizer = tf.train.AllReduceOptimizer(
                tf.train.AdamOptimizer(0.1), client.cluster_spec, client.index, algorithm=algorithm
            )
            train_op = optimizer.minimize(loss, global_step=step)
        hooks = [optimizer.make_session_run_hook(), tf.train.StopAtStepHook(steps)]
        try:
            with tf.train.MonitoredTrainingSession(client.target, hooks=hooks, log_step_count_steps=None) as session:
                while not session.should_stop():
                    seen[client.index] = session.run([train_op, w])[1].tolist()
        except errors.OpError as error:
            seen[client.index] = error

    with tf.Cluster(worker=WORKERS, gpus=1, gpu="K40", network="10Gb/s", clock="virtual", seed=1) as cluster:
        if lost_at is not None:
            cluster.at(lost_at, cluster.kill, "worker", 2)
        cluster.run(work)
        return [seen[index] for index in range(WORKERS)], cluster.now(), cluster.log().hash()


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving_doubling"])
def test_runs_are_equal_event_for_event_and_weights_on_all_workers(algorithm):
    first, second = train(algorithm=algorithm), train(algorithm=algorithm)
    assert first == second
    weights, *_ = first
    assert weights == [weights[0]] * WORKERS


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving_doubling"])
def test_all_end_when_a_task_is_lost_at_an_exact_moment(algorithm):
    """In any round of a step: by telling each other, not by the timeout of ten minutes."""
    _, seconds, _ = train(steps=20, algorithm=algorithm)
    for part in (0.85, 0.9, 0.93):
        ends, later, _ = train(steps=20, lost_at=seconds * part, algorithm=algorithm)
        assert all(isinstance(end, errors.OpError) for end in ends)
        assert any(isinstance(end, errors.UnavailableError) and "task:2" in str(end) for end in ends)
        assert later < seconds + 1


def test_a_task_that_is_lost_while_the_others_say_goodbye_keeps_nobody():
    _, seconds, _ = train(steps=20)
    for part in (0.97, 0.98, 0.99):
        weights, later, _ = train(steps=20, lost_at=seconds * part)
        trained = [end for end in weights if not isinstance(end, errors.OpError)]
        assert trained == [trained[0]] * len(trained)
        assert later < seconds + 1


def test_a_task_that_is_lost_before_the_first_step_is_named():
    ends, later, _ = train(lost_at=0.01)
    assert all(isinstance(end, errors.OpError) for end in ends)
    assert any("task:2" in str(end) for end in ends)
    assert later < 2 * 600
