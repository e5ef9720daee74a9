"""Wrong answers to split/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import numpy as np

import dtflab as tf


def halves(x, first, second, devices):
    """The right way, but that the partial outputs are not added yet."""
    outputs = []
    for gpu, columns, rows in zip(devices, np.split(first, 2, axis=1), np.split(second, 2, axis=0)):
        with tf.device(gpu):
            outputs.append(tf.matmul(tf.nn.relu(tf.matmul(x, columns)), rows))
    return outputs


def forgets_relu(x, first, second, devices):
    outputs = []
    for gpu, columns, rows in zip(devices, np.split(first, 2, axis=1), np.split(second, 2, axis=0)):
        with tf.device(gpu):
            outputs.append(tf.matmul(tf.matmul(x, columns), rows))
    return tf.add_n(outputs)


def puts_side_by_side(x, first, second, devices):
    return tf.concat(halves(x, first, second, devices), axis=1)


def takes_the_mean(x, first, second, devices):
    return tf.reduce_mean(tf.stack(halves(x, first, second, devices)), axis=0)


def loses_a_half(x, first, second, devices):
    return halves(x, first, second, devices)[0]


def copies_the_weights(x, first, second, devices):
    outputs = []
    for gpu, rows in zip(devices, tf.split(x, 2)):
        with tf.device(gpu):
            outputs.append(tf.matmul(tf.nn.relu(tf.matmul(rows, first)), second))
    return tf.concat(outputs, axis=0)


def leaves_weights_elsewhere(x, first, second, devices):
    with tf.device("/cpu:0"):
        columns, rows = tf.split(tf.constant(first), 2, axis=1), tf.split(tf.constant(second), 2, axis=0)
    outputs = []
    for i, gpu in enumerate(devices):
        with tf.device(gpu):
            outputs.append(tf.matmul(tf.nn.relu(tf.matmul(x, columns[i])), rows[i]))
    return tf.add_n(outputs)


def uses_one_gpu(x, first, second, devices):
    with tf.device(devices[0]):
        return tf.matmul(tf.nn.relu(tf.matmul(x, first)), second)


def cuts_between_layers(x, first, second, devices):
    with tf.device(devices[0]):
        hidden = tf.nn.relu(tf.matmul(x, first))
    with tf.device(devices[1]):
        return tf.matmul(hidden, second)


def sends_hidden_units(x, first, second, devices):
    hidden, outputs = [], []
    for gpu, columns in zip(devices, np.split(first, 2, axis=1)):
        with tf.device(gpu):
            hidden.append(tf.nn.relu(tf.matmul(x, columns)))
    for gpu, columns in zip(devices, np.split(second, 2, axis=1)):
        with tf.device(gpu):
            outputs.append(tf.matmul(tf.concat(hidden, axis=1), columns))
    return tf.concat(outputs, axis=1)
