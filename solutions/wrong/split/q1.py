"""Wrong answers to split/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import numpy as np

import dtflab as tf


def partial_outputs(x, columns, rows, devices, between=tf.nn.relu):
    """On each device, what the hidden units of its columns and rows give."""
    outputs = []
    for gpu, a, b in zip(devices, columns, rows):
        with tf.device(gpu):
            outputs.append(tf.matmul(between(tf.matmul(x, a)), b))
    return outputs


def halves(x, first, second, devices, between=tf.nn.relu):
    """The right way, but that the partial outputs are not added yet."""
    return partial_outputs(x, np.split(first, 2, axis=1), np.split(second, 2, axis=0), devices, between)


def forgets_relu(x, first, second, devices):
    return tf.add_n(halves(x, first, second, devices, between=lambda hidden: hidden))


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


def relu_at_the_end(x, first, second, devices):
    return tf.nn.relu(tf.add_n(halves(x, first, second, devices)))


def mixes_up_the_halves(x, first, second, devices):
    columns, rows = np.split(first, 2, axis=1), np.split(second, 2, axis=0)
    return tf.add_n(partial_outputs(x, columns, rows[::-1], devices))


def cuts_the_inputs(x, first, second, devices):
    hidden = []
    for gpu, part, rows in zip(devices, tf.split(x, 2, axis=1), np.split(first, 2, axis=0)):
        with tf.device(gpu):
            hidden.append(tf.nn.relu(tf.matmul(part, rows)))
    outputs = []
    for gpu, units, rows in zip(devices, tf.split(tf.add_n(hidden), 2, axis=1), np.split(second, 2, axis=0)):
        with tf.device(gpu):
            outputs.append(tf.matmul(units, rows))
    return tf.add_n(outputs)


def decoys(first, second, devices):
    """Weights on the GPUs that nothing multiplies."""
    numbers = []
    for gpu, columns, rows in zip(devices, np.split(first, 2, axis=1), np.split(second, 2, axis=0)):
        with tf.device(gpu):
            numbers += [tf.constant(columns)[0, 0], tf.constant(rows)[0, 0]]
    return numbers


def runs_python(x, first, second, devices):
    """NumPy takes no virtual time."""
    held = decoys(first, second, devices)
    with tf.device("/cpu:0"):
        output = tf.py_func(lambda x: np.maximum(x @ first, 0) @ second, [x], tf.float32)
        return tf.reshape(output, [x.shape[0].value, second.shape[1]]) + 0 * tf.add_n(held)


def computes_on_the_cpu(x, first, second, devices):
    return tf.add_n(halves(x, first, second, ["/cpu:0"] * 2))


def copies_the_first_layer(x, first, second, devices):
    outputs = []
    for part, (gpu, rows) in enumerate(zip(devices, np.split(second, 2, axis=0))):
        with tf.device(gpu):
            hidden = tf.split(tf.nn.relu(tf.matmul(x, first)), 2, axis=1)[part]
            outputs.append(tf.matmul(hidden, rows))
    return tf.add_n(outputs)


def cuts_unevenly(x, first, second, devices):
    at = [int(0.8 * first.shape[1])]
    return tf.add_n(partial_outputs(x, np.split(first, at, axis=1), np.split(second, at, axis=0), devices))


def loses_the_last_units(x, first, second, devices):
    half = first.shape[1] // 2
    units = [list(range(half - 1)), list(range(half, 2 * half - 1))]
    columns, rows = zip(*((first[:, some], second[some]) for some in units))
    return tf.add_n(partial_outputs(x, columns, rows, devices))


def exchanges_sums(x, first, second, devices):
    sums = []
    for i, (gpu, part) in enumerate(zip(devices, np.split(first, 2, axis=0))):
        with tf.device(gpu):
            sums.append(tf.matmul(tf.split(x, 2, axis=1)[i], part))
    outputs = []
    for i, (gpu, rows) in enumerate(zip(devices, np.split(second, 2, axis=0))):
        with tf.device(gpu):
            hidden = tf.nn.relu(tf.add_n(sums))
            outputs.append(tf.matmul(tf.split(hidden, 2, axis=1)[i], rows))
    return tf.add_n(outputs)
