"""split/q1 accepts every cut that is inside the budget, whichever way it is written."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf

Q1 = "split/q1"


def cut(parts, make, add):
    """A right answer that gives the hidden units `parts(hidden)` to the GPUs."""

    def split_net(x, first, second, devices):
        outputs = []
        for gpu, units in zip(devices, parts(first.shape[1])):
            with tf.device(gpu):
                outputs.append(tf.nn.relu(x @ make(first[:, units])) @ make(second[units]))
        return add(outputs, devices)

    return split_net


def added_on(index):
    def add(outputs, devices):
        with tf.device(devices[index]):
            return tf.add_n(outputs)

    return add


def on_the_cpu(outputs, devices):
    with tf.device("/cpu:0"):
        return outputs[1] + outputs[0]


def in_halves(hidden):
    return [slice(0, hidden // 2), slice(hidden // 2, None)]


def a_little_uneven(hidden):
    return [slice(0, int(0.46 * hidden)), slice(int(0.46 * hidden), None)]


def odd_and_even(hidden):
    return [slice(0, None, 2), slice(1, None, 2)]


def in_four(x, first, second, devices):
    """Two parts on each GPU."""
    outputs = []
    for i in range(4):
        with tf.device(devices[i % 2]):
            columns, rows = np.array_split(first, 4, axis=1)[i], np.array_split(second, 4, axis=0)[i]
            outputs.append(tf.matmul(tf.nn.relu(tf.matmul(x, columns)), rows))
    sums = []
    for i, gpu in enumerate(devices):
        with tf.device(gpu):
            sums.append(outputs[i] + outputs[i + 2])
    with tf.device(devices[0]):
        return tf.add(*sums)


RIGHT = {
    "halves as constants": cut(in_halves, tf.constant, added_on(0)),
    "added on the other GPU": cut(in_halves, tf.constant, added_on(1)),
    "added on the CPU": cut(in_halves, tf.constant, on_the_cpu),
    "halves as variables": cut(in_halves, tf.Variable, added_on(0)),
    "a little uneven": cut(a_little_uneven, tf.constant, added_on(0)),
    "odd and even units": cut(odd_and_even, tf.constant, lambda outputs, devices: sum(outputs)),
    "four parts": in_four,
}


@pytest.mark.parametrize("name", RIGHT)
def test_every_right_answer_gets_full_marks(name):
    score = tf.grade(Q1, RIGHT[name])
    assert score == 10, score.text


def by_columns(x, first, second, devices):
    """Faster than on one GPU, but the hidden units are sent."""
    for weights in (first, second):
        parts = []
        for gpu, columns in zip(devices, np.split(weights, 2, axis=1)):
            with tf.device(gpu):
                part = tf.matmul(x, columns)
                parts.append(tf.nn.relu(part) if weights is first else part)
        x = tf.concat(parts, axis=1)
    return x


@pytest.mark.parametrize("seed", range(3))
def test_only_a_cut_through_both_layers_is_inside_the_budget(seed, monkeypatch):
    monkeypatch.setenv("DTFLAB_GRADE_SEED", str(seed))
    passed = {result.check.name: result.passed for result in tf.grade(Q1, by_columns).reports[0].results}
    assert passed["values"] and passed["shares"] and not passed["budget"]


def test_what_is_no_tensor_is_told():
    score = tf.grade(Q1, lambda x, first, second, devices: np.zeros(3))
    assert score == 0 and "A tensor, the output of the net, is expected" in score.text


def test_the_timeline_of_the_answer_is_shown():
    score = tf.grade(Q1, by_columns)
    assert "Your step: " in score.html and "<svg" in score.html


def test_weights_that_are_cut_on_one_gpu_and_travel_are_not_called_the_work_of_one_gpu():
    def split_net(x, first, second, devices):
        columns, rows = tf.split(tf.constant(first), 2, axis=1), tf.split(tf.constant(second), 2)
        outputs = []
        for gpu, a, b in zip(devices, columns, rows):
            with tf.device(gpu):
                outputs.append(tf.nn.relu(x @ a) @ b)
        return tf.add_n(outputs)

    text = tf.grade(Q1, split_net).text
    assert "The weights are not on the GPUs that work with them" in text and "does all the work" not in text


def test_a_function_of_numpy_on_a_tensor_is_an_error_and_no_exercise_as_shipped():
    text = tf.grade(Q1, lambda x, first, second, devices: np.maximum(x @ first, 0) @ second).text
    assert "Cannot convert a symbolic tf.Tensor" in text and "is not written yet" not in text


def test_weights_in_float16_are_too_few_bytes_and_not_called_elsewhere():
    halves = cut(in_halves, lambda weights: tf.cast(weights.astype(np.float16), tf.float32), added_on(0))
    text = tf.grade(Q1, halves).text
    assert "expected: 984 kB, all weights of both layers, in float32." in text
