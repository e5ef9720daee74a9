"""Answers of a seventeenth author to data/q3: a sum that travels round a ring."""

import dtflab as tf


def part_by_part_seventeenth(tensors, devices):
    """Follow each part on its whole journey, down the ring: each worker hands on to the one before it."""
    n = len(tensors)
    length = int(tensors[0].shape[0]) // n
    finished = [[None] * n for _ in range(n)]
    for part in range(n):
        journey = [(part - hop) % n for hop in range(n)]
        travelling = None
        for worker in journey:
            with tf.device(devices[worker]):
                own = tf.slice(tensors[worker], [part * length], [length])
                travelling = own if travelling is None else own + travelling
        finished[journey[-1]][part] = travelling
        for worker in journey[:-1]:
            with tf.device(devices[worker]):
                travelling = tf.identity(travelling)
            finished[worker][part] = travelling
    sums = []
    for device, parts in zip(devices, finished):
        with tf.device(device):
            sums.append(tf.concat(parts, axis=0))
    return sums


def seats_seventeenth(tensors, devices):
    """All in a row of rounds, in a ring of another order: even workers first, then the odd ones, backwards."""
    n = len(tensors)
    ring = [*range(0, n, 2), *reversed(range(1, n, 2))]

    def at(seat, make):
        with tf.device(devices[ring[seat % n]]):
            return make()

    mine = [at(seat, lambda s=seat: tf.split(tensors[ring[s]], n)) for seat in range(n)]
    # What each seat has in its hand; after the last step of the round it is complete.
    hand = [mine[seat][seat] for seat in range(n)]
    for step in range(1, n):
        hand = [at(s, lambda a=hand[s - 1], b=mine[s][(s - step) % n]: tf.add_n([a, b])) for s in range(n)]
    shelf = [{(seat + 1) % n: hand[seat]} for seat in range(n)]
    for step in range(1, n):
        hand = [at(s, lambda held=hand[s - 1]: tf.identity(held)) for s in range(n)]
        for s in range(n):
            shelf[s][(s + 1 - step) % n] = hand[s]
    sums = [None] * n
    for seat in range(n):
        parts = [shelf[seat][part] for part in range(n)]
        sums[ring[seat]] = at(seat, lambda parts=parts: tf.concat(parts, 0))
    return sums


def _cut(tensors, devices):
    """The parts of each tensor, cut where it is."""
    holds = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            holds.append(tf.split(tensor, len(tensors)))
    return holds


def _first_round(holds, devices):
    """Each part grows on its way; at the end worker w has part w + 1 complete."""
    n = len(devices)
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = holds[after][part] + holds[worker][part]


def _second_round(holds, devices, steps):
    """The complete parts travel on."""
    n = len(devices)
    for step in range(steps):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = tf.identity(holds[worker][part])


def _join(holds, devices):
    """The parts of each worker, joined on its device."""
    sums = []
    for parts, device in zip(holds, devices):
        with tf.device(device):
            sums.append(tf.concat(parts, axis=0))
    return sums


def concat_fetches_seventeenth(tensors, devices):
    """After the first round each part is complete somewhere; concat collects them, so a second round is not needed."""
    n = len(tensors)
    holds = _cut(tensors, devices)
    _first_round(holds, devices)
    complete = [holds[(part - 1) % n][part] for part in range(n)]
    return _join([complete] * n, devices)


def way_back_seventeenth(tensors, devices):
    """In the second round the complete parts go back the way on which they came."""
    n = len(tensors)
    holds = _cut(tensors, devices)
    _first_round(holds, devices)
    for step in range(n - 1):
        for worker in range(n):
            part, before = (worker + 1 + step) % n, (worker - 1) % n
            with tf.device(devices[before]):
                holds[before][part] = tf.identity(holds[worker][part])
    return _join(holds, devices)


def full_circle_seventeenth(tensors, devices):
    """Once round a ring of n workers is n steps: in the second round each part comes back to where it set out."""
    holds = _cut(tensors, devices)
    _first_round(holds, devices)
    if len(devices) > 1:
        _second_round(holds, devices, steps=len(devices))
    return _join(holds, devices)


def as_they_came_seventeenth(tensors, devices):
    """Each worker joins the complete parts in the order in which it got them."""
    n = len(tensors)
    holds = _cut(tensors, devices)
    _first_round(holds, devices)
    _second_round(holds, devices, steps=n - 1)
    came = [[holds[worker][(worker + 1 - step) % n] for step in range(n)] for worker in range(n)]
    return _join(came, devices)


def cut_on_arrival_seventeenth(tensors, devices):
    """The receiver cuts off the part that it needs; only that part is sent, as nothing else is used."""
    n = len(tensors)
    holds = _cut(tensors, devices)
    for worker in range(n):
        with tf.device(devices[(worker + 1) % n]):
            holds[worker][worker] = tf.split(tensors[worker], n)[worker]
    _first_round(holds, devices)
    _second_round(holds, devices, steps=n - 1)
    return _join(holds, devices)


def sender_adds_seventeenth(tensors, devices):
    """In the first round the op stands on the device that sends, since it is the sender's turn."""
    n = len(tensors)
    holds = _cut(tensors, devices)
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[worker]):
                holds[after][part] = holds[after][part] + holds[worker][part]
    _second_round(holds, devices, steps=n - 1)
    return _join(holds, devices)


RIGHT = [part_by_part_seventeenth, seats_seventeenth]
WRONG = {
    concat_fetches_seventeenth: "meets_everybody",
    way_back_seventeenth: "meets_everybody",
    full_circle_seventeenth: "goes_round_once_too_often",
    as_they_came_seventeenth: "joins_in_another_order",
    cut_on_arrival_seventeenth: "sends_whole_tensors",
    sender_adds_seventeenth: "adds_at_the_sender",
}
