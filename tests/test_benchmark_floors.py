"""The networks by hand compute what the graphs do, so that their time is a floor."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import dtflab as tf
from benchmarks.workloads import by_hand, training

pytestmark = pytest.mark.processes  # the workloads import what starts some


def in_graph(network, batch, steps):
    """Weights before and after some steps on the benchmark's examples."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, labels, train = network(tf)[:3]
        session.run(tf.global_variables_initializer())
        before = session.run(tf.trainable_variables())
        for _ in range(steps):
            session.run(train, dict(zip((x, labels), training.examples(784, batch), strict=True)))
        return before, session.run(tf.trainable_variables())


def perceptron(library, adam=False):
    return training.perceptron(library, training.SMALL, library.train.AdamOptimizer() if adam else None)


NETWORKS = {
    "gradient descent": (perceptron, by_hand.perceptron, 100),
    "adam": (
        functools.partial(perceptron, adam=True),
        functools.partial(by_hand.perceptron, update=by_hand.adam()),
        100,
    ),
    "convolutional": (training.convolutional, lambda *all: by_hand.convolutional(*all)[0], 32),
    "static": (functools.partial(training.recurrent, unrolled=True), lambda *all: by_hand.recurrent(*all)[0], 100),
    "dynamic": (functools.partial(training.recurrent, unrolled=False), lambda *all: by_hand.recurrent(*all)[0], 100),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_steps_by_hand_change_the_weights_as_the_graph_does(name):
    network, hand, batch = NETWORKS[name]
    before, after = in_graph(network, batch, 3)
    weights = [weight.copy() for weight in before]
    step = hand(weights, *training.examples(784, batch))
    for _ in range(3):
        step()
    for old, expected, found in zip(before, after, weights, strict=True):
        moved = np.abs(expected - old).max()
        assert moved > 0
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * moved)
