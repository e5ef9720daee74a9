"""The meter of a task: how long it has computed, while somebody asks."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.machine import meter as page
from dtflab.machine.meter import LEASE_S, Meter


class Clock:
    def __init__(self):
        self.at = 0.0

    def now(self):
        return self.at


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(page, "REAL", made)
    return made


def test_what_overlaps_counts_once_and_what_goes_on_counts_too(clock):
    meter = Meter()
    assert meter.busy() == 0.0 and meter.is_on
    with meter:
        clock.at = 1.0
        with meter:  # another thread, or a block within the block
            clock.at = 2.0
        assert meter.busy() == 2.0, "it still computes"
        clock.at = 3.0
    clock.at = 4.0
    assert meter.busy() == 3.0


def test_nobody_asks_any_more(clock):
    meter = Meter()
    meter.busy()
    for at, is_on in ((LEASE_S - 1.0, True), (LEASE_S + 1.0, False)):
        clock.at = at
        with meter:
            pass
        assert meter.is_on is is_on


def test_the_steps_that_begin_are_counted_once_for_all_devices():
    meter = Meter()
    assert not meter.counts(6) and meter.steps == 0, "nobody looks"
    meter.busy()
    for step in (7, 7, 8):
        assert meter.counts(step)
    assert meter.steps == 2


def test_a_step_is_metered_only_while_somebody_looks():
    with tf.Graph().as_default(), tf.Cluster(worker=1) as cluster:
        task = cluster.tasks[0].server.task
        x = tf.square(3.0)
        with tf.Session(cluster.target) as sess:
            assert sess.run(x) == 9.0 and task.meter.steps == 0
            task.meter.busy()
            assert sess.run(x) == 9.0 and task.meter.steps == 1 and task.meter.busy() > 0.0


def test_the_first_error_of_a_step_is_kept():
    with tf.Graph().as_default(), tf.Cluster(worker=1) as cluster, tf.Session(cluster.target) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError):
            sess.run(tf.check_numerics(tf.placeholder(tf.float32, name="x"), "bad"), {"x:0": float("nan")})
        (row,) = cluster.tasks[0].view("Vitals")
        assert row.error.startswith("InvalidArgumentError: bad : Tensor had NaN values")
