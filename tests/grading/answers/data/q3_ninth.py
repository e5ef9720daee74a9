import dtflab as tf


# "each device sends to one other device only": in the second round no op keeps a part on the way, so all fetch the
# finished parts straight from where they were finished.
def ring_without_copies(tensors, devices):
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
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            holds[after][part] = holds[worker][part]
    sums = []
    for worker, device in enumerate(devices):
        with tf.device(device):
            sums.append(tf.concat(holds[worker], axis=0))
    return sums


# "no device sends or receives more than 2(n - 1)/n of a tensor": the second round has n steps, not n - 1.
def ring_one_step_too_far(tensors, devices):
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
    for step in range(n):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = tf.identity(holds[worker][part])
    sums = []
    for worker, device in enumerate(devices):
        with tf.device(device):
            sums.append(tf.concat(holds[worker], axis=0))
    return sums


# "each device sends to one other device only": the sums are computed by the sender, which must fetch the part of the
# next worker for it.
def ring_sender_adds(tensors, devices):
    n = len(tensors)
    holds = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            holds.append(tf.split(tensor, n))
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker - step) % n, (worker + 1) % n
            with tf.device(devices[worker]):
                holds[after][part] = holds[worker][part] + holds[after][part]
    for step in range(n - 1):
        for worker in range(n):
            part, after = (worker + 1 - step) % n, (worker + 1) % n
            with tf.device(devices[after]):
                holds[after][part] = tf.identity(holds[worker][part])
    sums = []
    for worker, device in enumerate(devices):
        with tf.device(device):
            sums.append(tf.concat(holds[worker], axis=0))
    return sums


def ring_part_by_part(tensors, devices):
    """Follow one part on its whole way, twice round the ring, then the next part."""
    n = len(devices)
    cut = []
    for i in range(n):
        with tf.device(devices[i]):
            cut.append(tf.split(tensors[i], n, axis=0))
    finished = [[] for _ in range(n)]  # finished[i]: the parts on device i
    for part in range(n):
        way = [(part + 1 + k) % n for k in range(n)]  # it starts after its owner and ends there
        travelling = cut[way[0]][part]
        for stop in way[1:]:
            with tf.device(devices[stop]):
                travelling = tf.add_n([travelling, cut[stop][part]])
        finished[way[-1]].append(travelling)
        for stop in way[:-1]:
            with tf.device(devices[stop]):
                travelling = tf.identity(travelling)
            finished[stop].append(travelling)
    result = []
    for i in range(n):
        with tf.device(devices[i]):
            result.append(tf.concat(finished[i], axis=0))
    return result


RIGHT = [ring_part_by_part]
WRONG = {
    # In the second round nothing is computed on the devices in between, so every device sends its finished part
    # straight to all the others.
    ring_without_copies: "meets_everybody",
    # The second round has one step too many: each part travels on to the worker that finished it, and each sends 2n - 1
    # parts.
    ring_one_step_too_far: "goes_round_once_too_often",
    # The sender computes each sum, so the next worker has to send its part back to it first.
    ring_sender_adds: "adds_at_the_sender",
}
