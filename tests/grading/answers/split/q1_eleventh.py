"""Answers to split/q1: two layers on two GPUs."""

import numpy as np

import dtflab as tf


def every_other_unit_eleven(x, first, second, devices):
    """Output of a net whose hidden units are dealt out like cards."""
    shares = []
    for start, device in enumerate(devices):
        columns = np.ascontiguousarray(first[:, start :: len(devices)])
        rows = np.ascontiguousarray(second[start :: len(devices)])
        with tf.device(device):
            shares.append(tf.matmul(tf.nn.relu(tf.matmul(x, columns)), rows))
    with tf.device(devices[-1]):
        return tf.accumulate_n(shares)


def less_for_the_one_that_adds_eleven(x, first, second, devices):
    """Output of a net cut by hidden units: three eighths for the GPU that also adds, and five for the other."""
    cut = first.shape[1] * 3 // 8
    shares = []
    for device, mine in zip(devices, (slice(0, cut), slice(cut, None))):
        with tf.device(device):
            hidden = tf.nn.relu(tf.matmul(x, first[:, mine]))
            shares.append(tf.matmul(hidden, second[mine]))
    with tf.device(devices[0]):
        return tf.add(shares[0], shares[1])


def half_of_the_batch_eleven(x, first, second, devices):
    """Output of two whole nets, one for each half of the batch."""
    outputs = []
    for device, part in zip(devices, tf.split(x, 2)):
        with tf.device(device):
            outputs.append(tf.matmul(tf.nn.relu(tf.matmul(part, first)), second))
    with tf.device("/cpu:0"):
        return tf.concat(outputs, axis=0)


def weights_beside_the_input_eleven(x, first, second, devices):
    """Output of a net cut by hidden units, with the weights on the CPU, where x is."""
    with tf.device("/cpu:0"):
        columns = tf.split(tf.constant(first), 2, axis=1)
        rows = tf.split(tf.constant(second), 2, axis=0)
    shares = []
    for device, column, row in zip(devices, columns, rows):
        with tf.device(device):
            shares.append(tf.matmul(tf.nn.relu(tf.matmul(x, column)), row))
    with tf.device("/cpu:0"):
        return tf.add_n(shares)


RIGHT = [every_other_unit_eleven]
WRONG = {
    less_for_the_one_that_adds_eleven: "cuts_unevenly",
    half_of_the_batch_eleven: "copies_the_weights",
    weights_beside_the_input_eleven: "leaves_weights_elsewhere",
}
