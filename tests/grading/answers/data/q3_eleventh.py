"""Answers to data/q3: a sum that travels round a ring."""

import dtflab as tf


def one_parcel_after_the_other_eleven(tensors, devices):
    """Sums by the path of each part: it starts at the worker of its number and goes nearly twice round the ring."""
    n = len(devices)
    pieces = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            pieces.append(tf.split(tensor, n))
    for part in range(n):
        parcel = pieces[part][part]
        for hop in range(1, 2 * n - 1):
            here = (part + hop) % n
            with tf.device(devices[here]):
                parcel = tf.add(pieces[here][part], parcel) if hop < n else tf.identity(parcel)
            pieces[here][part] = parcel
    sums = []
    for mine, device in zip(pieces, devices):
        with tf.device(device):
            sums.append(tf.concat(mine, axis=0))
    return sums


def whole_vectors_travel_eleven(tensors, devices):
    """Sums of whole vectors that go round the ring, first to grow, and then to be handed on."""
    n = len(devices)
    total = tensors[0]
    for worker in range(1, n):
        with tf.device(devices[worker]):
            total = total + tensors[worker]
    sums = [None] * n
    for hop in range(n):
        worker = (n - 1 + hop) % n
        with tf.device(devices[worker]):
            total = tf.identity(total)
        sums[worker] = total
    return sums


def each_adds_its_part_eleven(tensors, devices):
    """Sums of which each worker adds one part, which all others bring it and fetch from it."""
    n = len(devices)
    pieces = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            pieces.append(tf.split(tensor, n))
    ready = []
    for part, device in enumerate(devices):
        with tf.device(device):
            ready.append(tf.add_n([mine[part] for mine in pieces]))
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.concat(ready, axis=0))
    return sums


def mean_of_the_ring_eleven(tensors, devices):
    """Means by two rounds in a ring; each finished part is divided before it is handed on."""
    n = len(devices)
    pieces = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            pieces.append(tf.split(tensor, n))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                pieces[after][part] = pieces[after][part] + pieces[worker][part]
    for worker in range(n):
        with tf.device(devices[worker]):
            pieces[worker][(worker + 1) % n] = pieces[worker][(worker + 1) % n] / n
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                pieces[after][part] = tf.identity(pieces[worker][part])
    sums = []
    for mine, device in zip(pieces, devices):
        with tf.device(device):
            sums.append(tf.concat(mine, axis=0))
    return sums


RIGHT = [one_parcel_after_the_other_eleven]
WRONG = {
    whole_vectors_travel_eleven: "sends_whole_tensors",
    each_adds_its_part_eleven: "meets_everybody",
    mean_of_the_ring_eleven: "takes_the_mean",
}
