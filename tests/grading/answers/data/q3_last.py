"""Answers to data/q3 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def two_rounds_2(tensors, devices):
    n = len(devices)
    holds = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            holds.append(tf.split(tensor, n))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = tf.add(holds[after][part], holds[worker][part])
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = tf.identity(holds[worker][part])
    sums = []
    for parts, device in zip(holds, devices):
        with tf.device(device):
            sums.append(tf.concat(parts, axis=0))
    return sums


def second_round_in_python_only(tensors, devices):
    n = len(devices)
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
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            holds[after][part] = holds[worker][part]
    sums = []
    for parts, device in zip(holds, devices):
        with tf.device(device):
            sums.append(tf.concat(parts, axis=0))
    return sums


def second_round_begins_at_own_part(tensors, devices):
    n = len(devices)
    holds = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            holds.append(tf.split(tensor, n))
    for adds in (True, False):
        for step in range(n - 1):
            for worker in range(n):
                part, after = (worker - step) % n, (worker + 1) % n
                with tf.device(devices[after]):
                    if adds:
                        holds[after][part] = holds[after][part] + holds[worker][part]
                    else:
                        holds[after][part] = tf.identity(holds[worker][part])
    sums = []
    for parts, device in zip(holds, devices):
        with tf.device(device):
            sums.append(tf.concat(parts, axis=0))
    return sums


def whole_vectors_travel(tensors, devices):
    n = len(devices)
    travelling = list(tensors)
    sums = list(tensors)
    for _ in range(n - 1):
        arrived = []
        for worker in range(n):
            with tf.device(devices[worker]):
                arrived.append(tf.identity(travelling[(worker - 1) % n]))
        travelling = arrived
        for worker in range(n):
            with tf.device(devices[worker]):
                sums[worker] = sums[worker] + travelling[worker]
    return sums


RIGHT = [two_rounds_2]
WRONG = {
    # Copies finished parts between Python lists without an op on the next device, so the worker that finished a part
    # sends it to all others.
    second_round_in_python_only: "meets_everybody",
    # Begins the second round with part number `worker` again, though the finished part is the next one: unfinished
    # parts overwrite sums.
    second_round_begins_at_own_part: "hands_out_its_own_part",
    # Sends whole vectors round the ring in place of parts, n - 1 of them per worker.
    whole_vectors_travel: "sends_whole_tensors",
}
