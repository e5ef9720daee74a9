"""Accumulators on devices: who waits is seen, and goes with its step, its container or its session."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.queues.shared_accumulator import Accumulator, DenseAccumulator, SparseAccumulator, Take
from tests.ops.test_queue import Running, until


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def cluster():
    with tf.Cluster(ps=1, worker=1) as cluster:
        yield cluster


def test_a_cluster_tells_who_waits_at_which_accumulator(cluster):
    with tf.device("/job:ps"):
        q = tf.ConditionalAccumulator(tf.float32, [], shared_name="sum", name="q")
    add, take = q.apply_grad(4.0), q.take_grad(2)
    with tf.Session(cluster.target) as session:
        session.run(add)
        taking = Running(lambda: session.run(take))
        until(lambda: any("accumulator" in line for line in cluster.waits()))
        (line,) = (line.split(" (step")[0] for line in cluster.waits() if "accumulator" in line)
        assert line.endswith("waits at accumulator 'sum' with 1 gradients for 2")
        session.run(add)
        assert taking.result() == 4.0
        assert not any("accumulator" in line for line in cluster.waits())


def test_closing_the_session_says_what_was_cancelled(cluster):
    q = tf.ConditionalAccumulator(tf.float32, [])
    take = q.take_grad(1)
    session = tf.Session(cluster.target)
    taking = Running(lambda: session.run(take))
    until(lambda: any("accumulator" in line for line in cluster.waits()))
    session.close()
    with pytest.raises(errors.CancelledError, match="TakeGrad operation was cancelled"):
        taking.result()


def test_resetting_the_container_sends_takers_away(cluster):
    with tf.device("/job:ps"):
        q = tf.ConditionalAccumulator(tf.float32, [], shared_name="sum")
    take = q.take_grad(1)
    with tf.Session(cluster.target) as session:
        taking = Running(lambda: session.run(take))
        until(lambda: any("accumulator" in line for line in cluster.waits()))
        tf.Session.reset(cluster.target)
        with pytest.raises(errors.OpError):
            taking.result()


def test_a_gradient_of_another_dtype_is_neither_given_nor_taken():
    """TensorFlow's process ends when one is taken."""
    q = tf.ConditionalAccumulator(tf.float32, [])
    handle = q.accumulator_ref
    take = apply_op("ResourceAccumulatorTakeGradient", handle=handle, num_required=1, dtype=tf.float64)
    give = apply_op(
        "ResourceAccumulatorApplyGradient", handle=handle, local_step=0, gradient=tf.constant(1, tf.float64)
    )
    with tf.Session() as session:
        for wrong in (take, give):
            with pytest.raises(errors.InvalidArgumentError, match="have: double expected: float"):
                session.run(wrong)


def a_taker(accumulator: Accumulator, required: int) -> list[object]:
    """Somebody in line; the list will hold what it gets."""
    got: list[object] = []
    accumulator.take(Take(required, lambda mean, error: got.append(mean if error is None else error)))
    return got


def test_the_first_in_line_keeps_those_behind_it_waiting():
    accumulator = DenseAccumulator("a", dtypes.float32, TensorShape(None), "SUM")
    one = dtypes.float32.as_numpy_dtype(1)
    first, second = a_taker(accumulator, 3), a_taker(accumulator, 1)
    for _ in range(2):
        accumulator.apply(0, (one,))
        assert (first, second) == ([], [])
    accumulator.apply(0, (one,))
    assert (first, second) == ([3.0], [])
    accumulator.apply(0, (one,))
    assert second == []  # of the step before
    accumulator.apply(1, (one,))
    assert second == [1.0]


def test_a_gradient_that_does_not_fit_changes_nothing():
    accumulator = SparseAccumulator("a", dtypes.float32, TensorShape([2, 1]), "MEAN")
    fits = (np.array([0]), np.ones([1, 1], np.float32), None)
    accumulator.apply(0, fits)
    with pytest.raises(errors.InvalidArgumentError, match="exceeded"):
        accumulator.apply(0, (np.array([2]), np.ones([1, 1], np.float32), None))
    assert accumulator.num_accumulated == 1


def test_what_was_given_is_not_written_to():
    accumulator = DenseAccumulator("a", dtypes.float32, TensorShape([2]), "MEAN")
    given = [np.array([1.0, 2.0], np.float32) for _ in range(3)]
    for gradient in given:
        gradient.flags.writeable = False
        accumulator.apply(0, (gradient,))
    assert a_taker(accumulator, 1)[0].tolist() == [1.0, 2.0]


def test_going_back_in_time_is_said(caplog):
    accumulator = DenseAccumulator("a", dtypes.float32, TensorShape([]), "MEAN")
    accumulator.set_global_step(5)
    assert caplog.text == ""
    accumulator.set_global_step(3)
    assert "Attempt to set current_global_step_ to smaller value: current_global_step_ = 5 >= 3" in caplog.text
