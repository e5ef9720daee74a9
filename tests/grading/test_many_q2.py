"""many/q2 accepts every right ensemble, whichever way it is written."""

from __future__ import annotations

import heapq
from random import Random

import numpy as np
import pytest

import dtflab as tf
from dtflab.grading.catalogue import find
from dtflab.grading.checks import many_ensemble
from tests.grading.answers import full_marks

Q2 = "many/q2"


def net(images, hidden, name):
    with tf.variable_scope(name):
        return tf.layers.dense(tf.layers.dense(images, hidden, tf.nn.relu, name="hidden"), 10, name="logits")


def logits_of(one, images):
    with tf.container(one.container), tf.device(one.device):
        return net(images, one.hidden, one.container)


def with_a_heap(results, images):
    best = heapq.nlargest(3, results, key=lambda one: one.accuracy)
    votes = tf.stack([tf.nn.softmax(logits_of(one, images)) for one in best])
    return tf.argmax(tf.reduce_mean(votes, axis=0), axis=-1, output_type=tf.int32)


def by_numpy_order(results, images):
    """Softmax written out, the sum made on one of the devices."""
    order = np.argsort([-one.accuracy for one in results])[:3]
    powers = [tf.exp(logits_of(results[i], images)) for i in order]
    parts = [power / tf.reduce_sum(power, axis=1, keepdims=True) for power in powers]
    with tf.device(results[order[0]].device):
        return tf.math.top_k(sum(parts), k=1).indices[:, 0]


def with_its_own_layers(results, images):
    """Variables by name, without the net that is given; by logarithms of probabilities' sum."""
    said = []
    for one in sorted(results, key=lambda one: one.accuracy, reverse=True)[:3]:
        with tf.device(one.device), tf.container(one.container), tf.variable_scope(one.container):
            hidden = tf.get_variable("hidden/kernel", [64, one.hidden]), tf.get_variable("hidden/bias", [one.hidden])
            last = tf.get_variable("logits/kernel", [one.hidden, 10]), tf.get_variable("logits/bias", [10])
            layer = tf.nn.relu(images @ hidden[0] + hidden[1])
            said.append(tf.nn.log_softmax(layer @ last[0] + last[1]))
    return tf.argmax(tf.reduce_logsumexp(tf.stack(said), axis=0), 1)


@pytest.mark.parametrize("answer", [with_a_heap, by_numpy_order, with_its_own_layers], ids=lambda one: one.__name__)
@pytest.mark.parametrize("seed", ["0", "autumn"])
def test_every_right_answer_gets_full_marks(answer, seed, monkeypatch):
    full_marks(Q2, answer, monkeypatch, seeds=[seed])


BAD = {
    "nothing": (lambda results, images: None, "A tensor of classes, whole numbers, is expected, not None"),
    "probabilities": (lambda results, images: tf.nn.softmax(images), "A tensor of classes, whole numbers, is expected"),
    "one class for all": (
        lambda results, images: tf.constant(3),
        "the classes have shape []; expected: [200], a class for each image",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_ensemble_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q2, answer)
    assert score == 0 and message in score.text


def test_all_nets_on_one_device_lose_the_points_for_devices():
    """The variables where they are, the products elsewhere."""

    def elsewhere(results, images):
        said = []
        for one in sorted(results, key=lambda one: one.accuracy)[-3:]:
            with tf.container(one.container), tf.variable_scope(one.container):
                with tf.device(one.device):
                    kernel, bias = (
                        tf.get_variable("hidden/kernel", [64, one.hidden]), tf.get_variable("hidden/bias", [one.hidden])
                    )  # fmt: skip
                    last = tf.get_variable("logits/kernel", [one.hidden, 10]), tf.get_variable("logits/bias", [10])
                with tf.device("/job:worker/task:0"):
                    said.append(tf.nn.softmax(tf.nn.relu(images @ kernel + bias) @ last[0] + last[1]))
        return tf.argmax(sum(said), axis=1)

    passed = {result.check.name: result.passed for result in tf.grade(Q2, elsewhere).reports[0].results}
    assert passed["together"] and not passed["apart"]


def test_a_largest_number_along_the_images_is_told_by_its_shape():
    def ensemble(results, images):
        with tf.device(results[0].device):
            return tf.argmax(tf.nn.softmax(images[:, :10]), axis=0)

    assert "For 200 images the classes have shape [10]; expected: [200]" in tf.grade("many/q2", ensemble).text


def test_a_way_that_no_mistake_explains_gets_no_hint_by_chance():
    for seed in range(12):
        made = many_ensemble.members(Random(seed))
        best = many_ensemble.best_three
        devices = tuple(one.result.device for one in best(made))
        seen = many_ensemble.Seen(made, many_ensemble.classes_of(made, best, many_ensemble.flatter), devices)
        assert find(Q2).diagnosis(seen) is None, seed
