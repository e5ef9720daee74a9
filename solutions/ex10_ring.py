# %% [markdown]
# # Exercise 10: a sum that travels round a ring
#
# **Eight workers each have a gradient of 100 MB, and all need the sum. If one of them collects everything, its network
# card carries 1,400 MB. Can each of them carry less than 200 MB, however many there are?**
#
# They can. The workers stand in a *ring*; each sends to the next only. Gradients are cut into as many parts as there
# are workers. In a first round, each part travels round and grows: everybody adds its own. In a second round, the
# finished parts travel on until everybody has them all. This is called *ring all-reduce*.

# %%
import numpy as np

import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## Three workers, on paper
#
# First look: what each worker holds of each part, as sets of the workers whose numbers are in it. In the first step of
# the first round worker 0 sends part 0, worker 1 part 1, worker 2 part 2, each to the next one. What will be sent in
# the second step? And which worker has a complete part then? Predict, then run.

# %%
n = 3
holds = [[{worker} for part in range(n)] for worker in range(n)]
for step in range(n - 1):
    for worker in range(n):
        part, after = (worker - step) % n, (worker + 1) % n
        holds[after][part] = holds[after][part] | holds[worker][part]
        print(
            f"step {step}: worker {worker} sends part {part} to worker {after}, which has {holds[after][part]} of it now"
        )

# %% [markdown]
# ## Your task
#
# Write `ring_all_reduce(tensors, devices)`. `tensors[i]` is a vector on `devices[i]`; all have the same length, which
# is divisible by their number n. Return a list of n tensors: the sum of all, on each device. In one step of the graph
#
# - no device sends or receives more than 2(n − 1)/n of a tensor;
# - each device sends to one other device only.
#
# `tf.train.all_reduce` builds such graphs for you. Here it is not allowed: write the rounds yourself, of ops. (Nor is
# `tf.py_func`: a function of Python can hand on numbers whose bytes nobody counts.)
#
# `tf.split(tensor, n)` cuts a tensor into a list of n parts, `tf.concat(parts, axis=0)` joins them. An op computes, and
# keeps its result, where `with tf.device(…)` says; what it needs from elsewhere is sent there.


# %%
def ring_all_reduce(tensors, devices):
    """The sum of the tensors on each device, by two rounds in a ring."""
    ### BEGIN SOLUTION
    n, parts, sums = len(devices), [], []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            parts.append(tf.split(tensor, n))
    for step in range(n - 1):  # parts grow on their way
        for i in range(n):
            after, c = (i + 1) % n, (i - step) % n
            with tf.device(devices[after]):
                parts[after][c] = parts[after][c] + parts[i][c]
    for step in range(n - 1):  # finished parts go on
        for i in range(n):
            after, c = (i + 1) % n, (i + 1 - step) % n
            with tf.device(devices[after]):
                parts[after][c] = tf.identity(parts[i][c])
    for mine, device in zip(parts, devices):
        with tf.device(device):
            sums.append(tf.concat(mine, axis=0))
    return sums
    ### END SOLUTION


# %% [markdown]
# ## Count the bytes
#
# The next cell runs it on a simulated cluster and counts what each task sends. Stuck? `%dtf_grade data/q3 --hint`.

# %%
dtflab.grade("data/q3")

# %% [markdown]
# ## See it at work
#
# The time of a ring, and of one worker that collects everything, for more and more workers on a network of 10 Gb/s.
# When does the ring not pay?


# %%
def one_collects(tensors, devices):
    with tf.device(devices[0]):
        total = tf.add_n(tensors)
    sums = []
    for device in devices:
        with tf.device(device):
            sums.append(tf.identity(total))
    return sums


def milliseconds(way, workers, numbers):
    """Virtual milliseconds for the sum of vectors of that many numbers."""
    devices = [f"/job:worker/task:{i}/cpu:0" for i in range(workers)]
    with tf.Graph().as_default(), tf.Cluster(worker=workers, network="10Gb/s", clock="virtual") as cluster:
        tensors = []
        for device in devices:
            with tf.device(device):
                tensors.append(tf.constant(np.ones(numbers, np.float32)))
        with tf.Session(cluster.target) as sess:
            step = [tensor.op for tensor in way(tensors, devices)]
            began = cluster.now()
            sess.run(step)
            return 1000 * (cluster.now() - began)


for numbers in (960_000, 960):
    for workers in (2, 4, 8):
        times = [milliseconds(way, workers, numbers) for way in (one_collects, ring_all_reduce)]
        print(f"{numbers:7,} numbers, {workers} workers: one collects {times[0]:6.2f} ms, ring {times[1]:6.2f} ms")
