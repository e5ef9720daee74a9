"""Answers to split/q1 by a second author, who had seen the exercise alone."""

import numpy as np

import dtflab as tf


def halves(x, first, second, devices):
    half = first.shape[1] // 2
    parts = []
    for device, units in zip(devices, (slice(0, half), slice(half, None))):
        with tf.device(device):
            hidden = tf.nn.relu(tf.matmul(x, first[:, units]))
            parts.append(tf.matmul(hidden, second[units]))
    with tf.device(devices[0]):
        return parts[0] + parts[1]


def even_and_odd_units(x, first, second, devices):
    """Any half of the hidden units will do."""
    partial = []
    for number, device in enumerate(devices):
        with tf.device(device):
            layer = tf.maximum(tf.matmul(x, np.ascontiguousarray(first[:, number::2])), 0)
            partial.append(tf.matmul(layer, np.ascontiguousarray(second[number::2])))
    with tf.device(devices[1]):
        return tf.add_n(partial)


def added_on_the_cpu(x, first, second, devices):
    firsts = np.split(first, len(devices), axis=1)
    seconds = np.split(second, len(devices), axis=0)

    def part(device, a, b):
        with tf.device(device):
            return tf.matmul(tf.nn.relu(x @ tf.constant(a)), tf.constant(b))

    outputs = list(map(part, devices, firsts, seconds))
    with tf.device("/cpu:0"):
        return tf.add(*outputs)


def one_gpu_alone(x, first, second, devices):
    with tf.device(devices[0]):
        return tf.matmul(tf.nn.relu(tf.matmul(x, first)), second)


def between_the_layers(x, first, second, devices):
    with tf.device(devices[0]):
        hidden = tf.nn.relu(tf.matmul(x, first))
    with tf.device(devices[1]):
        return tf.matmul(hidden, second)


def halves_joined_after_each_layer(x, first, second, devices):
    hidden = []
    for device, columns in zip(devices, np.split(first, 2, axis=1)):
        with tf.device(device):
            hidden.append(tf.nn.relu(tf.matmul(x, columns)))
    outputs = []
    for device, columns in zip(devices, np.array_split(second, 2, axis=1)):
        with tf.device(device):
            outputs.append(tf.matmul(tf.concat(hidden, axis=1), columns))
    with tf.device(devices[0]):
        return tf.concat(outputs, axis=1)


def halves_of_the_batch(x, first, second, devices):
    with tf.device("/cpu:0"):
        middle = tf.shape(x)[0] // 2
        pieces = [x[:middle], x[middle:]]
    outputs = []
    for device, piece in zip(devices, pieces):
        with tf.device(device):
            outputs.append(tf.matmul(tf.nn.relu(tf.matmul(piece, first)), second))
    with tf.device(devices[0]):
        return tf.concat(outputs, axis=0)


def joined_instead_of_added(x, first, second, devices):
    half = first.shape[1] // 2
    parts = []
    for device, units in zip(devices, (slice(0, half), slice(half, None))):
        with tf.device(device):
            parts.append(tf.matmul(tf.nn.relu(tf.matmul(x, first[:, units])), second[units]))
    with tf.device(devices[0]):
        return tf.concat(parts, axis=1)


def relu_of_the_output(x, first, second, devices):
    half = first.shape[1] // 2
    parts = []
    for device, units in zip(devices, (slice(0, half), slice(half, None))):
        with tf.device(device):
            parts.append(tf.matmul(tf.matmul(x, first[:, units]), second[units]))
    with tf.device(devices[0]):
        return tf.nn.relu(parts[0] + parts[1])


def inputs_cut(x, first, second, devices):
    """Rows of `first`, not columns, are cut: relu comes before the sum."""
    half = first.shape[0] // 2
    parts = []
    for device, rows in zip(devices, (slice(0, half), slice(half, None))):
        with tf.device(device):
            hidden = tf.nn.relu(tf.matmul(x[:, rows], first[rows]))
            parts.append(tf.matmul(hidden, second))
    with tf.device(devices[0]):
        return parts[0] + parts[1]


def python_does_it(x, first, second, devices):
    half = first.shape[1] // 2

    def computed(value, a, b):
        return np.float32(np.maximum(value @ a, 0) @ b)

    parts = []
    for device, units in zip(devices, (slice(0, half), slice(half, None))):
        with tf.device("/cpu:0"):
            part = tf.py_func(lambda value, u=units: computed(value, first[:, u], second[u]), [x], tf.float32)
            part.set_shape([x.shape[0], second.shape[1]])
        with tf.device(device):
            parts.append(tf.identity(part))
    with tf.device(devices[0]):
        return parts[0] + parts[1]


RIGHT = [halves, even_and_odd_units, added_on_the_cpu]
WRONG = {
    # The second GPU does nothing: one holds all weights.
    one_gpu_alone: "uses_one_gpu",
    # Cuts between the layers: they work one after the other, and the wide hidden layer is sent.
    between_the_layers: "cuts_between_layers",
    # Cuts both layers by columns, so that the wide hidden halves are exchanged.
    halves_joined_after_each_layer: "sends_hidden_units",
    # Data parallelism: cuts the batch, and each GPU holds all weights.
    halves_of_the_batch: "copies_the_weights",
    # Joins the two partial outputs by concat, where they must be added.
    joined_instead_of_added: "puts_side_by_side",
    # Applies relu to the sum in the end, not to the hidden units.
    relu_of_the_output: "forgets_relu",
    # Cuts the inputs (rows of `first`) instead of hidden units: relu of parts is not a part of relu.
    inputs_cut: "cuts_the_inputs",
    # Sly: multiplies in tf.py_func, which takes no virtual time and is not allowed.
    python_does_it: "runs_python",
}
