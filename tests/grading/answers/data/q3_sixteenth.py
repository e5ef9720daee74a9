"""Answers of a sixteenth author to data/q3: sums that travel round a ring."""

import dtflab as tf


def part_by_part_sixteenth(tensors, devices):
    """I follow each part on its way: once round while it grows, and once more until all have it."""
    n = len(devices)
    rows = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            rows.append(tf.unstack(tf.reshape(tensor, [n, -1]), num=n))
    finished = [[None] * n for _ in range(n)]
    for part in range(n):
        travels = rows[part][part]
        for stop in range(part + 1, part + n):
            with tf.device(devices[stop % n]):
                travels = tf.add(travels, rows[stop % n][part])
        finished[(part - 1) % n][part] = travels
        for stop in range(part, part + n - 1):
            with tf.device(devices[stop % n]):
                travels = tf.identity(travels)
            finished[stop % n][part] = travels
    sums = []
    for parts, device in zip(finished, devices):
        with tf.device(device):
            sums.append(tf.reshape(tf.stack(parts), [-1]))
    return sums


def leftwards_sixteenth(tensors, devices):
    """The ring turns the other way: each device takes from the next one, in lock step."""
    n = len(devices)
    if n == 1:
        return list(tensors)

    def everywhere(make):
        made = []
        for me, device in enumerate(devices):
            with tf.device(device):
                made.append(make(me))
        return made

    parts = everywhere(lambda me: tf.split(tensors[me], n))
    moving = [parts[me][me] for me in range(n)]
    for step in range(1, n):
        moving = everywhere(lambda me, old=moving, s=step: old[(me + 1) % n] + parts[me][(me + s) % n])
    have = [{(me - 1) % n: moving[me]} for me in range(n)]
    for step in range(n - 1):
        moving = everywhere(lambda me, old=moving: tf.identity(old[(me + 1) % n]))
        for me in range(n):
            have[me][(me + step) % n] = moving[me]
    return everywhere(lambda me: tf.concat([have[me][part] for part in range(n)], axis=0))


def _cut(tensors, devices):
    """The parts of each tensor, on its device."""
    parts = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(tf.split(tensor, len(devices)))
    return parts


def _grow(parts, devices, steps):
    """The first round, in place: each part goes to the next device, which adds its own."""
    n = len(devices)
    for step in range(steps):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = parts[after][part] + parts[worker][part]


def _hand_on(parts, devices):
    """The second round, in place: each finished part goes to the next device."""
    n = len(devices)
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = tf.identity(parts[worker][part])


def _join(parts, devices):
    """The parts of each device, joined there."""
    sums = []
    for own, device in zip(parts, devices):
        with tf.device(device):
            sums.append(tf.concat(own, axis=0))
    return sums


def handed_on_by_python_sixteenth(tensors, devices):
    """In the second round nothing is computed, so it is enough to write the part into the list of the next worker."""
    n = len(devices)
    parts = _cut(tensors, devices)
    _grow(parts, devices, n - 1)
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            parts[after][part] = parts[worker][part]
    return _join(parts, devices)


def whole_vectors_sixteenth(tensors, devices):
    """The ring is what saves bytes: the sum grows on its way round, and goes round once more."""
    n = len(devices)
    sums, total = [None] * n, tensors[0]
    for worker in range(1, n):
        with tf.device(devices[worker]):
            total = total + tensors[worker]
    sums[n - 1] = total
    for worker in range(n - 1):
        with tf.device(devices[worker]):
            sums[worker] = total = tf.identity(total)
    return sums


def way_back_sixteenth(tensors, devices):
    """In the second round the finished parts go back on the way on which they came."""
    n = len(devices)
    parts = _cut(tensors, devices)
    _grow(parts, devices, n - 1)
    for step in range(n - 1):
        for worker in range(n):
            part, before = (worker + 1 + step) % n, (worker - 1) % n
            with tf.device(devices[before]):
                parts[before][part] = tf.identity(parts[worker][part])
    return _join(parts, devices)


def cut_anywhere_sixteenth(tensors, devices):
    """A part lies where its tensor lies, so cutting needs no device."""
    n = len(devices)
    parts = [tf.split(tensor, n) for tensor in tensors]
    _grow(parts, devices, n - 1)
    _hand_on(parts, devices)
    return _join(parts, devices)


def sender_adds_sixteenth(tensors, devices):
    """A part is sent by its worker, so the op that gives it to the next one is an op of the sender."""
    n = len(devices)
    parts = _cut(tensors, devices)
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[worker]):
                parts[after][part] = parts[after][part] + parts[worker][part]
    _hand_on(parts, devices)
    return _join(parts, devices)


def full_round_sixteenth(tensors, devices):
    """A round of n workers has n steps: the part is complete when it is back where it began."""
    n = len(devices)
    parts = _cut(tensors, devices)
    _grow(parts, devices, n)
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                parts[after][part] = tf.identity(parts[worker][part])
    return _join(parts, devices)


def in_order_of_arrival_sixteenth(tensors, devices):
    """Each worker appends the finished parts as they come in, and joins them at the end."""
    n = len(devices)
    parts = _cut(tensors, devices)
    _grow(parts, devices, n - 1)
    arrived = [[parts[worker][(worker + 1) % n]] for worker in range(n)]
    for step in range(n - 1):
        for worker in range(n):
            after = (worker + 1) % n
            with tf.device(devices[after]):
                arrived[after].append(tf.identity(arrived[worker][step]))
    return _join(arrived, devices)


def straight_to_owner_sixteenth(tensors, devices):
    """Each worker collects one part from all, which are the same bytes; the ring is for the second round."""
    n = len(devices)
    cut = _cut(tensors, devices)
    parts = [[None] * n for _ in range(n)]
    for worker in range(n):
        part = (worker + 1) % n
        with tf.device(devices[worker]):
            parts[worker][part] = tf.add_n([own[part] for own in cut])
    _hand_on(parts, devices)
    return _join(parts, devices)


RIGHT = [part_by_part_sixteenth, leftwards_sixteenth]
WRONG = {
    handed_on_by_python_sixteenth: "meets_everybody",
    whole_vectors_sixteenth: "sends_whole_tensors",
    way_back_sixteenth: "meets_everybody",
    cut_anywhere_sixteenth: "sends_whole_tensors",
    sender_adds_sixteenth: "adds_at_the_sender",
    full_round_sixteenth: "adds_again",
    in_order_of_arrival_sixteenth: "joins_in_another_order",
    straight_to_owner_sixteenth: "meets_everybody",
}
