"""Answers of an eighteenth author to data/q3: ring all-reduce of ops."""

import dtflab as tf


def _cut(tensors, devices):
    """Parts of each tensor, cut where it is."""
    parts = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(list(tf.split(tensor, len(devices))))
    return parts


def _joined(parts, devices):
    """The parts of each device, joined there."""
    sums = []
    for own, device in zip(parts, devices):
        with tf.device(device):
            sums.append(tf.concat(own, axis=0))
    return sums


def journey_of_each_part_eighteenth(tensors, devices):
    """Follow one part after the other on its whole way: a lap on which it grows, then a lap on which it is copied."""
    n = len(devices)
    parts = _cut(tensors, devices)
    for part in range(n):
        traveller = parts[part][part]
        for hop in range(1, 2 * n - 1):
            here = (part + hop) % n
            with tf.device(devices[here]):
                traveller = traveller + parts[here][part] if hop < n else tf.identity(traveller)
            if hop >= n - 1:
                parts[here][part] = traveller
    return _joined(parts, devices)


def handed_on_in_python_eighteenth(tensors, devices):
    """Let the parts grow round the ring, then hand the finished ones on from list to list."""
    n = len(devices)
    parts = _cut(tensors, devices)
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = parts[after][part] + parts[worker][part]
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = parts[worker][part]
    return _joined(parts, devices)


def one_hop_more_eighteenth(tensors, devices):
    """Let the parts grow round the ring, then pass each finished one once round the whole ring."""
    n = len(devices)
    parts = _cut(tensors, devices)
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = parts[after][part] + parts[worker][part]
    for step in range(n):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = tf.identity(parts[worker][part])
    return _joined(parts, devices)


def second_round_like_the_first_eighteenth(tensors, devices):
    """Use the same numbers of parts in both rounds: worker i begins each with part i."""
    n = len(devices)
    parts = _cut(tensors, devices)
    for grow in (True, False):
        for step in range(n - 1):
            for worker in range(n):
                part, after = (worker - step) % n, (worker + 1) % n
                with tf.device(devices[after]):
                    if grow:
                        parts[after][part] = parts[after][part] + parts[worker][part]
                    else:
                        parts[after][part] = tf.identity(parts[worker][part])
    return _joined(parts, devices)


RIGHT = [journey_of_each_part_eighteenth]
WRONG = {
    handed_on_in_python_eighteenth: "meets_everybody",
    one_hop_more_eighteenth: "goes_round_once_too_often",
    second_round_like_the_first_eighteenth: "hands_out_its_own_part",
}
