"""Answers to data/q3: a sum that travels round a ring."""

import dtflab as tf


def part_by_part_twelve(tensors, devices):
    """Follow each part on its way, twice round the ring: first it grows, then it is handed on."""
    n = len(tensors)
    own = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            own.append(tf.split(tensor, n))
    finished = [[None] * n for _ in range(n)]
    for part in range(n):
        travelling = own[part][part]
        for hop in range(1, n):
            worker = (part + hop) % n
            with tf.device(devices[worker]):
                travelling = tf.add(travelling, own[worker][part])
        last = (part + n - 1) % n
        finished[last][part] = travelling
        for hop in range(1, n):
            worker = (last + hop) % n
            with tf.device(devices[worker]):
                travelling = tf.identity(travelling)
            finished[worker][part] = travelling
    sums = []
    for worker in range(n):
        with tf.device(devices[worker]):
            sums.append(tf.concat(finished[worker], axis=0))
    return sums


def straight_to_all_twelve(tensors, devices):
    """Let each part grow round the ring, then join the finished parts on each device."""
    n = len(tensors)
    own = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            own.append(tf.split(tensor, n))
    finished = []
    for part in range(n):
        travelling = own[part][part]
        for hop in range(1, n):
            worker = (part + hop) % n
            with tf.device(devices[worker]):
                travelling = travelling + own[worker][part]
        finished.append(travelling)
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.concat(finished, axis=0))
    return sums


def whole_tensors_twelve(tensors, devices):
    """Hand each tensor on round the ring, and add it wherever it comes by."""
    n = len(tensors)
    sums, travelling = list(tensors), list(tensors)
    for _ in range(n - 1):
        arrived = []
        for worker in range(n):
            with tf.device(devices[worker]):
                arrived.append(tf.identity(travelling[worker - 1]))
                sums[worker] = sums[worker] + arrived[worker]
        travelling = arrived
    return sums


def cut_on_arrival_twelve(tensors, devices):
    """Two rounds in a ring; each worker cuts out the part that it needs in each step."""
    n = len(tensors)

    def cut(tensor, part):
        return tf.split(tensor, n)[part]

    holds = [[None] * n for _ in range(n)]
    for worker in range(n):
        with tf.device(devices[worker]):
            for part in range(n):
                if part != worker:
                    holds[worker][part] = cut(tensors[worker], part)
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                coming = cut(tensors[worker], part) if step == 0 else holds[worker][part]
                holds[after][part] = coming + holds[after][part]
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = tf.identity(holds[worker][part])
    sums = []
    for worker in range(n):
        with tf.device(devices[worker]):
            sums.append(tf.identity(tensors[worker]) if n == 1 else tf.concat(holds[worker], axis=0))
    return sums


RIGHT = [part_by_part_twelve]
WRONG = {
    straight_to_all_twelve: "meets_everybody",
    whole_tensors_twelve: "sends_whole_tensors",
    cut_on_arrival_twelve: "sends_whole_tensors",
}
