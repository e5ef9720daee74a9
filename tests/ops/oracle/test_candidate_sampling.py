"""Candidate samplers and the losses that use them, next to TensorFlow: graphs, samples, losses and sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both

TRUE = np.array([[0], [3], [7], [3]], np.int64)
PAIRS = np.array([[0, 1], [3, 3], [7, 19], [3, 0]], np.int64)

SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda tf: tf.nn.uniform_candidate_sampler(TRUE, 1, 5, True, 20, seed=3),
    "log_uniform": lambda tf: tf.random.log_uniform_candidate_sampler(PAIRS, 2, 5, False, 20, name="s"),
    "learned": lambda tf: tf.nn.learned_unigram_candidate_sampler(TRUE, 1, 5, True, 20, seed=3),
    "fixed": lambda tf: tf.nn.fixed_unigram_candidate_sampler(
        TRUE, 1, 5, True, 20, distortion=0.75, unigrams=[float(i) for i in range(1, 21)], seed=3
    ),
    "all": lambda tf: tf.nn.all_candidate_sampler(PAIRS, 2, 20, True, seed=4),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_samples_over_several_steps(name):
    def run(tf):
        tf.set_random_seed(5)
        samples = SAMPLERS[name](tf)
        with tf.Session() as sess:
            return [value for _ in range(4) for value in sess.run(list(samples))]

    assert_same_graph(lambda tf: (tf.set_random_seed(5), SAMPLERS[name](tf)))
    theirs, ours = both(run)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 1e-6)


def test_a_vocabulary_file(tmp_path):
    path = tmp_path / "words.csv"
    path.write_text("".join(f"word{i},more,{i + 1}\n" for i in range(8)))

    def run(tf):
        samples = tf.nn.fixed_unigram_candidate_sampler(TRUE, 1, 6, True, 8, vocab_file=str(path), seed=2)
        with tf.Session() as sess:
            return sess.run(list(samples))

    for theirs, ours in zip(*both(run), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-6)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "range": ({"true_classes": [[20]]}, r"out of range \[0, 20\), received 20"),
    "columns": ({"true_classes": [[1, 2]]}, "must have num_true columns"),
    "rank": ({"true_classes": [1]}, "must be a matrix"),
    "too many": ({"true_classes": [[1]], "num_sampled": 21}, "range is too small"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_in_a_step(name):
    given, words = BAD[name]

    def run(tf):
        true_classes = tf.placeholder(tf.int64)
        sampled = tf.nn.uniform_candidate_sampler(true_classes, 1, given.get("num_sampled", 2), True, 20)
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=words):
            sess.run(sampled[0], {true_classes: given["true_classes"]})

    both(run)


@pytest.mark.parametrize("more", [{}, {"vocab_file": "x", "unigrams": [1.0]}, {"unigrams": [1.0]}])
def test_unigrams_that_make_no_sampler(more):
    def run(tf):
        sampled = tf.nn.fixed_unigram_candidate_sampler(TRUE, 1, 2, True, 20, **more)
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(sampled[0])
        return [words for words in ("Must provide either", "Must only provide one", "must be equal to weights size")
                if words in str(caught.value)]  # fmt: skip

    theirs, ours = both(run)
    assert ours == theirs
    assert len(ours) == 1


def test_fewer_possible_classes_than_samples_is_an_error_and_no_endless_loop():
    import dtflab as tf

    with tf.Graph().as_default():
        sampled = tf.nn.fixed_unigram_candidate_sampler([[0]], 1, 3, True, 4, unigrams=[1.0, 2.0, 0.0, 0.0])
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="only 2 have a weight above 0"):
            sess.run(sampled[0])


# -- the losses -------------------------------------------------------------------------------------------------------


def a_net(tf: Any, dtype: Any = np.float32, parts: int = 1) -> tuple[list[Any], Any, Any]:
    random = np.random.default_rng(0)
    table = random.normal(size=(20, 4)).astype(dtype)
    weights = [tf.Variable(table[i::parts], name=f"w{i}", use_resource=False) for i in range(parts)]
    biases = tf.Variable(random.normal(size=20).astype(dtype), name="b", use_resource=False)
    return weights, biases, tf.constant(random.normal(size=(4, 4)).astype(dtype))


LOSSES: dict[str, Callable[[Any], Any]] = {}


def loss(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    LOSSES[function.__name__] = function
    return function


@loss
def nce(tf):
    weights, biases, x = a_net(tf)
    return tf.nn.nce_loss(weights[0], biases, TRUE, x, 5, 20), [*weights, biases, x]


@loss
def nce_of_several_classes_on_parts(tf):
    weights, biases, x = a_net(tf, parts=3)
    sampled = tf.nn.uniform_candidate_sampler(PAIRS, 2, 6, True, 20)
    found = tf.nn.nce_loss(weights, biases, tf.constant(PAIRS, tf.int32), x, 6, 20, 2, sampled, True, "mod", "mine")
    return found, [*weights, biases, x]


@loss
def sampled_softmax(tf):
    weights, biases, x = a_net(tf)
    return tf.nn.sampled_softmax_loss(weights[0], biases, TRUE, x, 7, 20), [*weights, biases, x]


@loss
def sampled_softmax_with_hits(tf):
    weights, biases, x = a_net(tf)
    sampled = [tf.constant([3, 0, 3, 5], tf.int64), tf.ones([4, 2]) * 0.5, tf.constant([0.1, 0.2, 0.3, 0.4])]
    found = tf.nn.sampled_softmax_loss(weights, biases, PAIRS, x, 4, 20, 2, sampled, partition_strategy="div", seed=3)
    return found, [*weights, biases, x]


@loss
def all_candidates(tf):
    weights, biases, x = a_net(tf)
    sampled = tf.nn.all_candidate_sampler(TRUE, 1, 20, True)
    return tf.nn.sampled_softmax_loss(weights[0], biases, TRUE, x, 20, 20, sampled_values=sampled), [biases, x]


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    def program(tf):
        tf.set_random_seed(5)
        return LOSSES[name](tf)

    def run(tf):
        losses, parameters = program(tf)
        slopes = [tf.convert_to_tensor(slope) for slope in tf.gradients(losses, parameters)]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return sess.run([losses, *slopes]) + sess.run([losses])

    assert_same_graph(program)
    for theirs, ours in zip(*both(run), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5)


@pytest.mark.parametrize("optimizer", ["GradientDescentOptimizer", "AdagradOptimizer", "AdamOptimizer"])
def test_only_the_rows_that_were_looked_up_are_updated(optimizer):
    def run(tf):
        tf.set_random_seed(5)
        losses, _ = LOSSES["nce"](tf)
        train = getattr(tf.train, optimizer)(0.5).minimize(tf.reduce_mean(losses))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(3):
                sess.run(train)
            return sess.run(tf.trainable_variables())

    assert_same_graph(lambda tf: getattr(tf.train, optimizer)(0.5).minimize(LOSSES["nce"](tf)[0]))
    for theirs, ours in zip(*both(run), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-5)
