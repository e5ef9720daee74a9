"""Wrong answers to data/q3, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def cut(tensors, devices):
    parts = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(tf.split(tensor, len(tensors)))
    return parts


def first_round(parts, devices):
    n = len(devices)
    for s in range(n - 1):
        for i in range(n):
            after, c = (i + 1) % n, (i - s) % n
            with tf.device(devices[after]):
                parts[after][c] = parts[after][c] + parts[i][c]


def joined(parts, devices):
    sums = []
    for mine, device in zip(parts, devices):
        with tf.device(device):
            sums.append(tf.concat(mine, axis=0))
    return sums


def one_server(tensors, devices):
    with tf.device(devices[0]):
        total = tf.add_n(tensors)
    return joined([[total]] * len(devices), devices)


def sends_whole_tensors(tensors, devices):
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.add_n(tensors))
    return sums


def stops_half_way(tensors, devices):
    parts = cut(tensors, devices)
    first_round(parts, devices)
    return joined(parts, devices)


def adds_again(tensors, devices):
    parts, n = cut(tensors, devices), len(devices)
    first_round(parts, devices)
    for s in range(n - 1):
        for i in range(n):
            after, c = (i + 1) % n, (i + 1 - s) % n
            with tf.device(devices[after]):
                parts[after][c] = parts[after][c] + parts[i][c]
    return joined(parts, devices)


def meets_everybody(tensors, devices):
    parts, sums = cut(tensors, devices), []
    for c, device in enumerate(devices):
        with tf.device(device):
            sums.append(tf.add_n([mine[c] for mine in parts]))
    return joined([sums] * len(devices), devices)
