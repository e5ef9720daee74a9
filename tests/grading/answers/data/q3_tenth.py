"""Answers to data/q3, a ring all-reduce, by a tenth author."""

import dtflab as tf


def turns_against_the_clock_ten(tensors, devices):
    """Build the ring from each worker to the one before it, part by part: a part's whole way at once."""
    n = len(tensors)
    pieces = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            size = tensor.shape[0].value // n if tensor.shape[0].value is not None else tf.size(tensor) // n
            pieces.append([tf.slice(tensor, [part * size], [size]) for part in range(n)])
    finished = [[None] * n for _ in range(n)]
    for part in range(n):
        travelling = pieces[part][part]
        for hop in range(1, 2 * n - 1):
            worker = (part - hop) % n
            with tf.device(devices[worker]):
                if hop < n:
                    travelling = travelling + pieces[worker][part]
                else:
                    travelling = tf.identity(travelling)
            if hop >= n - 1:
                finished[worker][part] = travelling
        if n == 1:
            finished[0][0] = travelling
    sums = []
    for worker, device in enumerate(devices):
        with tf.device(device):
            sums.append(tf.concat(finished[worker], axis=0))
    return sums


def whole_vectors_twice_round_ten(tensors, devices):
    """Build a sum that grows along the ring, and then goes round once more for all to have it."""
    total = tensors[0]
    for tensor, device in zip(tensors[1:], devices[1:]):
        with tf.device(device):
            total = total + tensor
    sums = [None] * len(tensors)
    sums[-1] = total
    for i, device in enumerate(devices[:-1]):
        with tf.device(device):
            total = tf.identity(total)
            sums[i] = total
    return sums


def owners_hand_out_their_part_ten(tensors, devices):
    """Build the first round as a ring; then every worker gets each finished part from who has it."""
    n = len(tensors)
    holds = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            holds.append(tf.split(tensor, n))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = holds[after][part] + holds[worker][part]
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.concat([holds[(part - 1) % n][part] for part in range(n)], axis=0))
    return sums


def finished_part_as_on_paper_ten(tensors, devices):
    """Build both rounds; worker w begins the second one with part w - 2, as with three workers on paper."""
    n = len(tensors)
    holds = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            holds.append(tf.split(tensor, n))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = holds[after][part] + holds[worker][part]
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - 2 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = tf.identity(holds[worker][part])
    sums = []
    for device, parts in zip(devices, holds):
        with tf.device(device):
            sums.append(tf.concat(parts, axis=0))
    return sums


RIGHT = [turns_against_the_clock_ten]
WRONG = {
    whole_vectors_twice_round_ten: "sends_whole_tensors",
    owners_hand_out_their_part_ten: "meets_everybody",
    finished_part_as_on_paper_ten: "hands_out_its_own_part",
}
