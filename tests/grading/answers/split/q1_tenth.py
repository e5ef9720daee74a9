"""Answers to split/q1, two layers on two GPUs, by a tenth author."""

import numpy as np

import dtflab as tf


def every_other_unit_ten(x, first, second, devices):
    """Deal the hidden units out in turn, as cards; the CPU adds what both give."""
    answers = []
    for number, device in enumerate(devices):
        columns = np.ascontiguousarray(first[:, number :: len(devices)])
        rows = np.ascontiguousarray(second[number :: len(devices)])
        with tf.device(device):
            units = tf.nn.relu(tf.matmul(x, columns))
            answers.append(tf.matmul(units, rows))
    with tf.device("/device:CPU:0"):
        return tf.add(answers[0], answers[1])


def seven_tenths_and_three_ten(x, first, second, devices):
    """Give the first device seven tenths of the hidden units, as it adds the results anyway."""
    cut = first.shape[1] * 7 // 10
    with tf.device(devices[1]):
        small = tf.matmul(tf.nn.relu(tf.matmul(x, first[:, cut:])), second[cut:])
    with tf.device(devices[0]):
        large = tf.matmul(tf.nn.relu(tf.matmul(x, first[:, :cut])), second[:cut])
        return large + small


def half_of_the_batch_ten(x, first, second, devices):
    """Let each device compute half of the examples."""
    answers = []
    with tf.device("/cpu:0"):
        half = tf.shape(x)[0] // 2
        parts = [x[:half], x[half:]]
    for part, device in zip(parts, devices):
        with tf.device(device):
            answers.append(tf.matmul(tf.nn.relu(tf.matmul(part, first)), second))
    with tf.device("/cpu:0"):
        return tf.concat(answers, axis=0)


def adds_up_in_python_ten(x, first, second, devices):
    """Compute half of the units on each device, and add the two results with NumPy."""
    half = first.shape[1] // 2
    answers = []
    for device, mine in zip(devices, (slice(0, half), slice(half, None))):
        with tf.device(device):
            answers.append(tf.matmul(tf.nn.relu(tf.matmul(x, first[:, mine])), second[mine]))
    with tf.device("/cpu:0"):
        output = tf.py_func(np.add, answers, answers[0].dtype)
    output.set_shape([x.shape[0], second.shape[1]])
    return output


RIGHT = [every_other_unit_ten]
WRONG = {
    seven_tenths_and_three_ten: "cuts_unevenly",
    half_of_the_batch_ten: "copies_the_weights",
    adds_up_in_python_ten: "runs_python",
}
