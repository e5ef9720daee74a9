# %% [markdown]
# # Exercise 10: training together, with and without waiting
#
# **Four workers train one model. With the same number of gradients, which are done first: workers that wait for each
# other, or workers that do not? And which model is better?**
#
# The variables are on a parameter server. Each worker computes gradients from its own images. *Asynchronous*: it
# applies each gradient at once. *Synchronous*: all gradients of a step are averaged, and everybody waits for the
# slowest.

# %%
import numpy as np

import dtflab
import dtflab as tf

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.ERROR)  # four workers log a lot

# %% [markdown]
# ## What a worker knows of itself
#
# First look. `cluster.run(f)` calls `f(client)` once for each worker, all at the same time. In virtual time the seconds
# come from a model of the hardware, so they are the same on every computer. Which worker will be done first? Predict,
# then run.


# %%
def look(client):
    tf.sim.sleep(3 - client.index)  # seconds of virtual time
    print(client.device, "chief" if client.is_chief else "", f"{tf.sim.now():.1f} s")


with tf.Cluster(ps=1, worker=3, clock="virtual") as cluster:
    cluster.run(look)
    print("all tasks:", cluster.spec.as_dict())

# %% [markdown]
# ## Your task
#
# Write `train_together(client, build_loss, rate, sync, steps)`, which each worker runs:
#
# - `build_loss()` makes the variables of the model and returns its loss. Build it, and all else, so that variables are
#   on the `ps` and everything else on this worker, `client.device`;
# - train with `tf.train.GradientDescentOptimizer(rate)`, counting in the *global step*, until all workers together have
#   taken `steps` steps. (When the last one is reached, others may be busy with a gradient: a few more are fine without
#   `sync`.)
# - if `sync` is true, a step is the mean of as many gradients as there are workers,
#   `client.cluster_spec.num_tasks("worker")`: `tf.train.SyncReplicasOptimizer`;
# - return the virtual seconds that the session took: `tf.sim.now()` tells the time.
#
# `tf.train.MonitoredTrainingSession` makes the session: the worker with `client.is_chief` initializes, the others wait
# for it. Give it `stop_grace_period_secs=1`: at the end it waits for its threads, 120 seconds by default. (Without it
# the chief's virtual seconds are 120 more, if `sync` is true. That costs no points.)


# %%
def train_together(client, build_loss, rate, sync, steps):
    """Train with the other workers; the virtual seconds that it took."""
    ### BEGIN SOLUTION
    workers = client.cluster_spec.num_tasks("worker")
    hooks = [tf.train.StopAtStepHook(last_step=steps)]
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        loss = build_loss()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        if sync:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        step = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    began = tf.sim.now()
    with tf.train.MonitoredTrainingSession(
        client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as sess:
        while not sess.should_stop():
            sess.run(step)
    return tf.sim.now() - began
    ### END SOLUTION


# %% [markdown]
# ## Do they train one model?
#
# The next cell grades `train_together`. Stuck? `%dtf_grade data/q1 --hint`.

# %%
dtflab.grade("data/q1")

# %% [markdown]
# ## Three ways compared
#
# Four workers, one of them three times slower, 120 gradients in all: 120 steps of one gradient, or 30 of four. The
# third way is *model parallelism*: one worker trains with all images, its layer cut over two devices, 30 steps.
# Predict: which is the fastest, and which has the lowest loss in the end?
#
# Then give the synchronous way a rate four times higher. Its steps are means of four gradients: does it tolerate that?

# %%
digits = tf.datasets.digits().train


def loss_of(images, labels, devices):
    """A layer of ten units, cut over devices; on one device, it is whole."""
    logits = []
    for number, (device, units) in enumerate(zip(devices, np.array_split(np.arange(10), len(devices)))):
        weights = tf.get_variable(f"weights{number}", [64, len(units)], initializer=tf.zeros_initializer())
        with tf.device(device):
            logits.append(tf.matmul(tf.constant(images), weights))
    return tf.losses.sparse_softmax_cross_entropy(tf.constant(labels), tf.concat(logits, axis=1))


def race(workers, sync, steps, rate, devices=1):
    """Train; the slowest worker's virtual milliseconds, and the loss over all images."""
    with tf.Cluster(ps=1, worker=workers, gpus=devices, gpu="K40", clock="virtual") as cluster:
        cluster.slow("worker", workers - 1, factor=3 if workers > 1 else 1)

        def work(client):
            mine = slice(client.index, 1200, workers)
            places = [f"{client.device}/gpu:{i}" for i in range(devices)]
            images, labels = digits.images[mine], digits.labels[mine]
            return train_together(client, lambda: loss_of(images, labels, places), rate, sync, steps)

        seconds = cluster.run(work)[-1]
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            loss = loss_of(digits.images, digits.labels, ["/job:ps/task:0"] * devices)
            with tf.Session(cluster.target) as sess:
                return 1000 * seconds, sess.run(loss)


for name, way in {
    "asynchronous": (4, False, 120, 0.2),
    "synchronous": (4, True, 30, 0.2),
    "synchronous, rate × 4": (4, True, 30, 0.8),
    "one worker, cut in two": (1, False, 30, 0.8, 2),
}.items():
    milliseconds, loss = race(*way)
    print(f"{name:24} {milliseconds:7.1f} ms of virtual time   loss {loss:.3f}")
