"""Answers to split/q1 of a last batch, written from the exercise alone after the checks were done."""

import numpy as np

import dtflab as tf


def halves_of_hidden(x, first, second, devices):
    half = first.shape[1] // 2
    outputs = []
    for device, units in zip(devices, (slice(0, half), slice(half, None))):
        with tf.device(device):
            hidden = tf.nn.relu(tf.matmul(x, np.ascontiguousarray(first[:, units])))
            outputs.append(tf.matmul(hidden, np.ascontiguousarray(second[units])))
    with tf.device(devices[0]):
        return tf.add(outputs[0], outputs[1])


def halves_of_batch(x, first, second, devices):
    half = tf.shape(x)[0] // 2
    outputs = []
    for device, rows in zip(devices, (x[:half], x[half:])):
        with tf.device(device):
            outputs.append(tf.matmul(tf.nn.relu(tf.matmul(rows, first)), second))
    return tf.concat(outputs, axis=0)


def one_constant_for_both(x, first, second, devices):
    half = first.shape[1] // 2
    first = tf.constant(first)
    second = tf.constant(second)
    with tf.device(devices[0]):
        left = tf.matmul(tf.nn.relu(tf.matmul(x, first[:, :half])), second[:half])
    with tf.device(devices[1]):
        right = tf.matmul(tf.nn.relu(tf.matmul(x, first[:, half:])), second[half:])
        return left + right


def relu_after_the_sum(x, first, second, devices):
    parts = []
    for device, columns, rows in zip(devices, np.split(first, 2, axis=1), np.split(second, 2, axis=0)):
        with tf.device(device):
            parts.append(tf.matmul(tf.matmul(x, columns), rows))
    with tf.device(devices[0]):
        return tf.nn.relu(tf.add_n(parts))


RIGHT = [halves_of_hidden]
WRONG = {
    # Cuts the batch in place of the hidden layer, so each GPU holds all weights.
    halves_of_batch: "copies_the_weights",
    # Makes whole constants outside of the device blocks and slices them inside: the weights are not each GPU's own, one
    # place holds them all, and they are sent.
    one_constant_for_both: "cuts_unevenly",
    # Applies relu to the output once in place of the hidden units: another function.
    relu_after_the_sum: "forgets_relu",
}
