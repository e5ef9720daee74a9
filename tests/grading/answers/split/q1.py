"""Answers to split/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import numpy as np

import dtflab as tf
from solutions.wrong.split.q1 import decoys, halves, partial_outputs


def cuts_unevenly(x, first, second, devices):
    at = [int(0.8 * first.shape[1])]
    return tf.add_n(partial_outputs(x, np.split(first, at, axis=1), np.split(second, at, axis=0), devices))


def returns_the_parts(x, first, second, devices):
    return halves(x, first, second, devices)


def takes_relu6(x, first, second, devices):
    """relu6 is another function for large numbers."""
    return tf.add_n(halves(x, first, second, devices, between=tf.nn.relu6))


def cuts_the_second_only(x, first, second, devices):
    """Each GPU has all of the first layer, and half of the second."""
    outputs = []
    for gpu, rows, part in zip(devices, np.split(second, 2, axis=0), (0, 1)):
        with tf.device(gpu):
            hidden = tf.split(tf.nn.relu(tf.matmul(x, first)), 2, axis=1)[part]
            outputs.append(tf.matmul(hidden, rows))
    return tf.add_n(outputs)


def multiplies_on_the_cpu_beside_decoys(x, first, second, devices):
    held = decoys(first, second, devices)
    with tf.device("/cpu:0"):
        return tf.matmul(tf.nn.relu(tf.matmul(x, first)), second) + 0 * tf.add_n(held)


RIGHT: list = []
WRONG = {
    cuts_unevenly: "cuts_unevenly",
    returns_the_parts: "puts_side_by_side",
    takes_relu6: "",
    cuts_the_second_only: "copies_the_first_layer",
    multiplies_on_the_cpu_beside_decoys: "computes_on_the_cpu",
}
