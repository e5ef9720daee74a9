"""Answers of an eighteenth author to split/q1: two layers over two GPUs."""

import dtflab as tf


def every_other_unit_eighteenth(x, first, second, devices):
    """Give each device every n-th hidden unit, and let each add its share to that of the device before."""
    n = len(devices)
    shares = []
    for number, device in enumerate(devices):
        with tf.device(device):
            units = tf.nn.relu(tf.matmul(x, first[:, number::n]))
            shares.append(tf.matmul(units, second[number::n]))
    output = shares[0]
    for share, device in zip(shares[1:], devices[1:]):
        with tf.device(device):
            output = tf.add(output, share)
    return output


def half_of_the_images_eighteenth(x, first, second, devices):
    """Cut the batch in two, and send each half through the net on a device of its own."""
    halves = []
    with tf.device("/cpu:0"):
        batches = tf.split(x, len(devices), axis=0)
    for batch, device in zip(batches, devices):
        with tf.device(device):
            halves.append(tf.matmul(tf.nn.relu(tf.matmul(batch, first)), second))
    with tf.device("/cpu:0"):
        return tf.concat(halves, axis=0)


def half_of_the_inputs_eighteenth(x, first, second, devices):
    """Give each device half of the inputs and their rows of the first weights, then half of the units for second."""
    inputs, hidden = first.shape
    shares = []
    for number, device in enumerate(devices):
        rows = slice(number * inputs // 2, (number + 1) * inputs // 2)
        units = slice(number * hidden // 2, (number + 1) * hidden // 2)
        with tf.device(device):
            layer = tf.nn.relu(tf.matmul(x[:, rows], first[rows]))
            shares.append(tf.matmul(layer[:, units], second[units]))
    with tf.device(devices[0]):
        return tf.add_n(shares)


def constants_on_the_cpu_eighteenth(x, first, second, devices):
    """Make constants of the weights at the beginning, cut them in the graph, and multiply on the two devices."""
    with tf.device("/cpu:0"):
        columns = tf.split(tf.constant(first), len(devices), axis=1)
        rows = tf.split(tf.constant(second), len(devices), axis=0)
    shares = []
    for device, column, row in zip(devices, columns, rows):
        with tf.device(device):
            shares.append(tf.matmul(tf.nn.relu(tf.matmul(x, column)), row))
    with tf.device("/cpu:0"):
        return tf.add_n(shares)


RIGHT = [every_other_unit_eighteenth]
WRONG = {
    half_of_the_images_eighteenth: "copies_the_weights",
    half_of_the_inputs_eighteenth: "",
    constants_on_the_cpu_eighteenth: "leaves_weights_elsewhere",
}
