"""Answers to data/q3 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import dtflab as tf


def _first_round(tensors, devices):
    """parts[worker][part] after the first round: worker i has the complete part i + 1."""
    n = len(tensors)
    parts = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(tf.split(tensor, n))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = parts[after][part] + parts[worker][part]
    return parts


def ring_all_reduce_owner_tells_all(tensors, devices):
    # Breaks: "each device sends to one other device only". The second round is not a ring: each owner of a complete
    # part sends it to everybody.
    n = len(tensors)
    parts = _first_round(tensors, devices)
    complete = [parts[(part - 1) % n][part] for part in range(n)]
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.concat(complete, axis=0))
    return sums


def ring_all_reduce_once_too_often(tensors, devices):
    # Breaks: "no device sends or receives more than 2(n − 1)/n of a tensor". The second round has n steps: each
    # complete part comes back to the worker that had it first.
    n = len(tensors)
    parts = _first_round(tensors, devices)
    for step in range(n):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = tf.identity(parts[worker][part])
    sums = []
    for worker, device in enumerate(devices):
        with tf.device(device):
            sums.append(tf.concat(parts[worker], axis=0))
    return sums


def ring_all_reduce_whole_tensors(tensors, devices):
    # Breaks: "no device sends or receives more than 2(n − 1)/n of a tensor". The sum goes round the ring twice as a
    # whole, so most devices send two tensors.
    n = len(tensors)
    total = tensors[0]
    for worker in range(1, n):
        with tf.device(devices[worker]):
            total = tf.add(total, tensors[worker])
    sums = [None] * n
    sums[n - 1] = total
    for worker in range(n - 1):
        with tf.device(devices[worker]):
            total = tf.identity(total)
        sums[worker] = total
    return sums


def ring_all_reduce_part_by_part(tensors, devices):
    """Follows each part on its way: twice round the ring but for two hops, first it grows, then it is copied."""
    n = len(tensors)

    def at(worker, make):
        with tf.device(devices[worker % n]):
            return make()

    cut = [at(i, lambda i=i: tf.split(tensors[i], n)) for i in range(n)]
    whole = [[None] * n for _ in range(n)]
    for part in range(n):
        travels = cut[part][part]
        for place in range(part + 1, part + n):
            travels = at(place, lambda p=place, i=part, t=travels: tf.add(cut[p % n][i], t))
        whole[(part + n - 1) % n][part] = travels
        for place in range(part + n, part + 2 * n - 1):
            travels = at(place, lambda t=travels: tf.identity(t))
            whole[place % n][part] = travels
    return [at(i, lambda i=i: tf.concat(whole[i], axis=0)) for i in range(n)]


RIGHT = [ring_all_reduce_part_by_part]
WRONG = {
    # In the second round each worker sends its complete part to all others at once instead of passing it on
    # round the ring: a device sends to more than one other device.
    ring_all_reduce_owner_tells_all: "meets_everybody",
    # The second round has one step too many: each complete part travels back to the worker that it came from,
    # so each device sends 2n - 1 parts instead of 2n - 2.
    ring_all_reduce_once_too_often: "goes_round_once_too_often",
    # Nothing is cut into parts: the whole sum travels round twice, and devices send two whole tensors, which
    # is more than 2(n - 1)/n.
    ring_all_reduce_whole_tensors: "sends_whole_tensors",
}
