"""Wrong answers to data/q3, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def cut(tensors, devices):
    parts = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(tf.split(tensor, len(tensors)))
    return parts


def first_round(parts, devices, times=None, adds=1):
    """`adds`: 1 if it is the receiver that adds, 0 if it is the sender."""
    n = len(devices)
    for s in range(n - 1 if times is None else times):
        for i in range(n):
            after, c = (i + 1) % n, (i - s) % n
            with tf.device(devices[(i + adds) % n]):
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


def second_round(parts, devices, times=None, begin=1):
    n = len(devices)
    for s in range(n - 1 if times is None else times):
        for i in range(n):
            after, c = (i + 1) % n, (i + begin - s) % n
            with tf.device(devices[after]):
                parts[after][c] = tf.identity(parts[i][c])


def ring(tensors, devices, first=None, second=None, at_the_end=joined, adds=1, begin=1):
    """The right way, but for the rounds' lengths, who adds, where the second begins, and how the parts are joined."""
    parts = cut(tensors, devices)
    first_round(parts, devices, first, adds)
    second_round(parts, devices, second, begin)
    return at_the_end(parts, devices)


def second_round_too_short(tensors, devices):
    return ring(tensors, devices, second=len(devices) - 2)


def first_round_too_short(tensors, devices):
    return ring(tensors, devices, first=len(devices) - 2)


def hands_out_its_own_part(tensors, devices):
    return ring(tensors, devices, begin=0)


def takes_the_mean(tensors, devices):
    sums, means = ring(tensors, devices), []
    for total, device in zip(sums, devices):
        with tf.device(device):
            means.append(total / len(devices))
    return means


def results_in_one_place(tensors, devices):
    return ring(tensors, devices, at_the_end=lambda parts, devices: joined(parts, devices[:1] * len(devices)))


def leaves_it_to_the_library(tensors, devices):
    return tf.train.all_reduce(tensors)


def results_elsewhere(tensors, devices):
    return ring(tensors, devices, at_the_end=lambda parts, devices: joined(parts, [*devices[1:], devices[0]]))


def sends_nothing(tensors, devices):
    return tensors


def joins_in_another_order(tensors, devices):
    return ring(tensors, devices, at_the_end=lambda parts, devices: joined([one[::-1] for one in parts], devices))


def adds_at_the_sender(tensors, devices):
    return ring(tensors, devices, adds=0)


def goes_round_once_too_often(tensors, devices):
    n, parts = len(tensors), cut(tensors, devices)
    first_round(parts, devices)
    for s in range(n):
        for i in range(n):
            after, c = (i + 1) % n, (i + 1 - s) % n
            with tf.device(devices[after]):
                parts[after][c] = tf.identity(parts[i][c])
    return joined(parts, devices)


def runs_python(tensors, devices):
    """A sum of what functions keep: it reaches another device without a message."""
    kept, sums = {}, []

    def keep(i):
        return lambda value: kept.update({i: value}) or value[:1]

    given = []
    for i, (tensor, device) in enumerate(zip(tensors, devices)):
        with tf.device(device):
            given.append(tf.py_func(keep(i), [tensor], tf.float32))
    for tensor, device in zip(tensors, devices):
        with tf.device(device), tf.control_dependencies(given):
            sums.append(tf.reshape(tf.py_func(lambda: sum(kept.values()), [], tf.float32), tensor.shape))
    return sums


def bypasses_the_ring(tensors, devices):
    """Each device begins with the sum: it was made before there was a step."""
    total, sums = sum(tf.make_ndarray(tensor.op.get_attr("value")) for tensor in tensors), []
    for device in devices:
        with tf.device(device):
            sums.append(tf.constant(total))
    return sums
