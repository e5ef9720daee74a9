"""Answers to data/q3 by a second author, who had seen the exercise alone."""

import dtflab as tf


def two_rounds(tensors, devices):
    n = len(devices)
    parts = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(list(tf.split(tensor, n)))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = parts[after][part] + parts[worker][part]
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = tf.identity(parts[worker][part])
    sums = []
    for device, mine in zip(devices, parts):
        with tf.device(device):
            sums.append(tf.concat(mine, axis=0))
    return sums


def part_by_part(tensors, devices):
    """Follows each part on its way, once round and once more."""
    n = len(tensors)
    cut = []
    for i in range(n):
        with tf.device(devices[i]):
            cut.append(tf.split(tensors[i], n))
    done = [[None] * n for _ in range(n)]
    for part in range(n):
        travelling = cut[part][part]
        for hop in range(1, n):
            at = (part + hop) % n
            with tf.device(devices[at]):
                travelling = tf.add(travelling, cut[at][part])
        last = (part + n - 1) % n
        done[last][part] = travelling
        for hop in range(1, n):
            at = (last + hop) % n
            with tf.device(devices[at]):
                travelling = tf.identity(travelling)
            done[at][part] = travelling
    out = []
    for i in range(n):
        with tf.device(devices[i]):
            out.append(tf.concat(done[i], axis=0))
    return out


def _backwards(tensors, devices):
    n = len(devices)

    def on(i):
        return tf.device(devices[i % n])

    pieces = {}
    for i in range(n):
        with on(i):
            for p, piece in enumerate(tf.split(tensors[i], n)):
                pieces[i, p] = piece
    for p in range(n):
        for at in range(p - 1, p - n, -1):
            with on(at):
                pieces[at % n, p] = tf.add_n([pieces[at % n, p], pieces[(at + 1) % n, p]])
        first = (p - n + 1) % n
        for at in range(first - 1, first - n, -1):
            with on(at):
                pieces[at % n, p] = tf.identity(pieces[(at + 1) % n, p])
    result = []
    for i in range(n):
        with on(i):
            result.append(tf.concat([pieces[i, p] for p in range(n)], axis=0))
    return result


def the_other_way_round(tensors, devices):
    """Each sends to the one before it."""
    return _backwards(list(tensors), list(devices))


def one_collects(tensors, devices):
    with tf.device(devices[0]):
        total = tf.add_n(tensors)
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.identity(total))
    return sums


def everybody_adds(tensors, devices):
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.add_n(tensors))
    return sums


def whole_tensors_round(tensors, devices):
    n = len(devices)
    sums, moving = list(tensors), list(tensors)
    for _ in range(n - 1):
        moved = []
        for i in range(n):
            with tf.device(devices[i]):
                moved.append(tf.identity(moving[i - 1]))
                sums[i] = sums[i] + moved[i]
        moving = moved
    return sums


def part_i_is_summed_by_i(tensors, devices):
    n = len(devices)
    cut = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            cut.append(tf.split(tensor, n))
    done = []
    for part in range(n):
        with tf.device(devices[part]):
            done.append(tf.add_n([cut[i][part] for i in range(n)]))
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.concat(done, axis=0))
    return sums


def second_round_is_a_broadcast(tensors, devices):
    n = len(devices)
    parts = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(list(tf.split(tensor, n)))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = parts[after][part] + parts[worker][part]
    done = [parts[(part - 1) % n][part] for part in range(n)]
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.concat(done, axis=0))
    return sums


def one_step_too_few(tensors, devices):
    n = len(devices)
    parts = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(list(tf.split(tensor, n)))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = parts[after][part] + parts[worker][part]
    for step in range(n - 2):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = tf.identity(parts[worker][part])
    sums = []
    for device, mine in zip(devices, parts):
        with tf.device(device):
            sums.append(tf.concat(mine, axis=0))
    return sums


def adds_where_it_was(tensors, devices):
    n = len(devices)
    parts = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(list(tf.split(tensor, n)))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[worker]):
                parts[after][part] = parts[after][part] + parts[worker][part]
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = tf.identity(parts[worker][part])
    sums = []
    for device, mine in zip(devices, parts):
        with tf.device(device):
            sums.append(tf.concat(mine, axis=0))
    return sums


def by_the_library(tensors, devices):
    return tf.train.all_reduce(tensors)


RIGHT = [two_rounds, part_by_part, the_other_way_round]
WRONG = {
    # The first device collects all tensors and sends the sum to all: far more than 2(n - 1)/n.
    one_collects: "one_server",
    # Each device fetches all other tensors: right sums, but everybody sends to everybody.
    everybody_adds: "sends_whole_tensors",
    # A ring, but of whole tensors, not cut into parts: n - 1 tensors on each link.
    whole_tensors_round: "sends_whole_tensors",
    # As few bytes as the ring, but each device sends to all others, not to one only.
    part_i_is_summed_by_i: "meets_everybody",
    # The first round is a ring; the finished parts then go straight to all devices.
    second_round_is_a_broadcast: "meets_everybody",
    # Off by one: the second round has n - 2 steps, so one part on each device is not complete.
    one_step_too_few: "second_round_too_short",
    # Adds on the device of the sender, so the receiver's part is sent back against the ring.
    adds_where_it_was: "adds_at_the_sender",
    # Lets tf.train.all_reduce build the rounds, which is not allowed here.
    by_the_library: "leaves_it_to_the_library",
}
