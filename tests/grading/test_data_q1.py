"""data/q1 accepts every right way to train together."""

from __future__ import annotations

import contextlib
from random import Random

import numpy as np
import pytest

import dtflab as tf
from dtflab.grading.checks.data_training import Loss, run
from tests.grading.answers import full_marks

Q1 = "data/q1"


def with_spare_time(client, build_loss, rate, sync, steps):
    """A device setter of its own, a check of the global step in the place of a hook, the optimizer's words by name."""
    workers = len(client.cluster_spec.as_dict()["worker"])
    place = tf.train.replica_device_setter(ps_tasks=1, worker_device=f"/job:worker/task:{client.index}/cpu:0")
    began = tf.sim.now()
    with tf.device(place):
        count = tf.train.create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(learning_rate=rate)
        hooks = []
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(
                optimizer, replicas_to_aggregate=workers, total_num_replicas=workers
            )
            hooks = [optimizer.make_session_run_hook(is_chief=client.is_chief)]
        gradients = optimizer.compute_gradients(build_loss())
        step = optimizer.apply_gradients(gradients, global_step=count)
    hooks.append(tf.train.StopAtStepHook(last_step=steps))
    session = tf.train.MonitoredTrainingSession(
        master=client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=2
    )
    with session:
        while not session.should_stop():
            session.run([step])
    return tf.sim.now() - began


def without_a_grace_period(client, build_loss, rate, sync, steps):
    workers = client.cluster_spec.num_tasks("worker")
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        loss = build_loss()
        count = tf.train.get_or_create_global_step()
        plain = tf.train.GradientDescentOptimizer(rate)
        both = tf.train.SyncReplicasOptimizer(plain, workers) if sync else plain
        step = both.minimize(loss, count)
    hooks = [both.make_session_run_hook(client.is_chief)] if sync else []
    began = tf.sim.now()
    with tf.train.MonitoredTrainingSession(
        client.target, client.is_chief, hooks=[*hooks, tf.train.StopAtStepHook(last_step=steps)]
    ) as sess:
        while not sess.should_stop():
            sess.run(step)
    return tf.sim.now() - began


@pytest.mark.parametrize("answer", [with_spare_time, without_a_grace_period], ids=lambda answer: answer.__name__)
@pytest.mark.parametrize("seed", ["0", "5"])
def test_every_right_answer_gets_full_marks(answer, seed, monkeypatch):
    full_marks(Q1, answer, monkeypatch, seeds=[seed])


def test_what_trains_nothing_is_told():
    score = tf.grade(Q1, lambda client, build_loss, rate, sync, steps: None)
    assert score == 0 and "that of worker 0 returned None, though it computed for 0 s" in score.text


@pytest.mark.parametrize("seed", [6, 10])
def test_workers_that_saw_an_old_step_may_begin_one_more(seed):
    """A session's hook may read the global step before the others have moved it on. (Of these seeds, four workers.)"""
    seen = run(without_a_grace_period, Random(seed), sync=False)
    assert seen.workers == 4 and seen.steps + seen.workers < seen.taken <= seen.most


def test_the_loss_that_workers_build_has_no_function_that_trains():
    loss, shapes = Loss(Random(0)), []
    for function in filter(callable, vars(Loss).values()):
        with contextlib.suppress(Exception):
            shapes.append(np.shape(function(loss, 0.3, 5)))
    assert (64, 10) not in shapes
