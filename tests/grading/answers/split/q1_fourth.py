"""Answers to split/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import numpy as np

import dtflab as tf


# "neither holds more than 60% of them": both arrays become constants as a whole on each GPU, and are cut there.
def split_cut_on_the_gpu(x, first, second, devices):
    half = first.shape[1] // 2
    parts = []
    for number, device in enumerate(devices):
        with tf.device(device):
            columns = tf.slice(tf.constant(first), [0, number * half], [-1, half])
            rows = tf.slice(tf.constant(second), [number * half, 0], [half, -1])
            parts.append(tf.matmul(tf.nn.relu(tf.matmul(x, columns)), rows))
    return tf.add_n(parts)


# "a step takes at most 75% of the time": after the first layer the GPUs send each other their halves of the wide
# hidden layer, as in the lesson; each computes half of the outputs.
def split_exchange_hidden(x, first, second, devices):
    hidden = []
    for device, columns in zip(devices, np.split(first, 2, axis=1)):
        with tf.device(device):
            hidden.append(tf.nn.relu(tf.matmul(x, columns)))
    middle = (second.shape[1] + 1) // 2
    outputs = []
    for device, columns in zip(devices, (second[:, :middle], second[:, middle:])):
        with tf.device(device):
            outputs.append(tf.matmul(tf.concat(hidden, axis=1), columns))
    return tf.concat(outputs, axis=1)


# "The GPUs do the multiplying": the second product is computed on the CPU.
def split_second_on_cpu(x, first, second, devices):
    hidden = []
    for device, columns in zip(devices, np.split(first, 2, axis=1)):
        with tf.device(device):
            hidden.append(tf.nn.relu(tf.matmul(x, columns)))
    with tf.device("/cpu:0"):
        return tf.matmul(tf.concat(hidden, axis=1), second)


# Right: even hidden units on one GPU, odd ones on the other, everything transposed.
def split_even_and_odd(x, first, second, devices):
    def part(number, device):
        units = slice(number, None, len(devices))
        into, out = np.ascontiguousarray(first[:, units].T), np.ascontiguousarray(second[units].T)
        with tf.device(device):
            hidden = tf.maximum(tf.matmul(into, x, transpose_b=True), 0.0)
            return tf.matmul(hidden, out, transpose_a=True, transpose_b=True)

    one, two = (part(*pair) for pair in enumerate(devices))
    with tf.device(devices[-1]):
        return one + two


RIGHT = [split_even_and_odd]
WRONG = {
    # All weights are constants on each of the GPUs, which only compute with a half of them.
    split_cut_on_the_gpu: "copies_the_weights",
    # The GPUs send each other their halves of the wide hidden layer, which takes longer than the budget
    # allows.
    split_exchange_hidden: "sends_hidden_units",
    # The second layer is multiplied on the CPU instead of the GPUs.
    split_second_on_cpu: "computes_on_the_cpu",
}
