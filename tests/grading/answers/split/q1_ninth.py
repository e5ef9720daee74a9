import numpy as np

import dtflab as tf


# "neither holds more than 60% of them": each GPU holds all weights, and cuts out its half in every step.
def split_net_whole_weights(x, first, second, devices):
    half = first.shape[1] // 2
    parts = []
    for number, device in enumerate(devices):
        units = slice(number * half, (number + 1) * half)
        with tf.device(device):
            hidden = tf.nn.relu(tf.matmul(x, tf.constant(first)[:, units]))
            parts.append(tf.matmul(hidden, tf.constant(second)[units]))
    with tf.device(devices[0]):
        return tf.add_n(parts)


# "neither holds more than 60% of them": the GPU that does not add gets more units, 62%.
def split_net_uneven(x, first, second, devices):
    cut = int(first.shape[1] * 0.38)
    parts = []
    for device, units in zip(devices, (slice(0, cut), slice(cut, None))):
        with tf.device(device):
            hidden = tf.nn.relu(tf.matmul(x, first[:, units]))
            parts.append(tf.matmul(hidden, second[units]))
    with tf.device(devices[0]):
        return parts[0] + parts[1]


# "The GPUs do the multiplying, each with weights of its own": the weights are on the CPU and are sent in each step.
def split_net_weights_on_cpu(x, first, second, devices):
    with tf.device("/cpu:0"):
        columns = tf.split(tf.constant(first), 2, axis=1)
        rows = tf.split(tf.constant(second), 2, axis=0)
    parts = []
    for device, mine, mine_too in zip(devices, columns, rows):
        with tf.device(device):
            parts.append(tf.matmul(tf.nn.relu(tf.matmul(x, mine)), mine_too))
    with tf.device(devices[0]):
        return tf.add_n(parts)


def split_net_every_other(x, first, second, devices):
    """Every other hidden unit; the second GPU goes on from what the first one has."""

    def half(start):
        columns = np.ascontiguousarray(first[:, start::2])
        rows = np.ascontiguousarray(second[start::2, :])
        with tf.device(devices[start]):
            before = tf.matmul(x, tf.constant(columns))
            return tf.matmul(tf.maximum(before, 0.0), tf.constant(rows))

    even, odd = half(0), half(1)
    with tf.device(devices[1]):
        return tf.add(even, odd)


RIGHT = [split_net_every_other]
WRONG = {
    # Both GPUs hold the whole matrices and cut their half out in the graph.
    split_net_whole_weights: "copies_the_weights",
    # The second GPU gets 62% of the hidden units, and so 62% of the weights.
    split_net_uneven: "cuts_unevenly",
    # The weights are constants on the CPU, so the GPUs have none of their own and all weights are sent in each step.
    split_net_weights_on_cpu: "leaves_weights_elsewhere",
}
