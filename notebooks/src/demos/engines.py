# %% [markdown]
# # Demo: four engines
#
# **Your program trains on one laptop. What must change before it trains on processes, on TensorFlow's own servers, on
# the machines of a cluster?**
#
# One argument. An *engine* is what starts the tasks of a cluster, and the program below runs on four of them. It
# reaches the same accuracy everywhere, and you can look at a step of each.
#
# *Ask the room first: on which engine is a step the fastest? On which are the weights the best?*

# %%
import contextlib
import importlib.util
import time

import dtflab as tf

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.WARN)


# %% [markdown]
# ## The engines
#
# | engine | a task is | what it is for |
# | --- | --- | --- |
# | `inprocess` | an object in this notebook | to learn: nothing to start, everything to look at |
# | `process` | a process on this machine | to see what a wire costs, and what happens when a process dies |
# | `tensorflow` | a process that runs TensorFlow's server | to check: is what we learn here true there? |
# | `dask` | a process that a Dask worker holds, on whichever machine that is | to outgrow the laptop |
#
# The last two need a package. Where it is missing, this notebook says how to install it and goes on with the others.

# %%
PACKAGES = {
    "inprocess": "dtflab",
    "process": "dtflab",
    "tensorflow": "tensorflow",
    "dask": "distributed",
}
engines = [engine for engine in PACKAGES if importlib.util.find_spec(PACKAGES[engine])]
for engine in PACKAGES:
    missing = f'is missing: pip install "dtflab[{engine}]"'
    print(f"{engine:10}", "is here" if engine in engines else missing)


# %%
@contextlib.contextmanager
def cluster_of(engine):
    """One parameter server and two workers."""
    with contextlib.ExitStack() as stack:
        options = {}
        if engine == "dask":  # of this machine; for another one, give its client
            from distributed import Client

            options["client"] = stack.enter_context(
                Client(n_workers=2, threads_per_worker=1, dashboard_address=":0")
            )
        yield stack.enter_context(tf.Cluster(ps=1, worker=2, engine=engine, **options))


# %% [markdown]
# ## The program
#
# Each worker has a client that builds its own graph, and learns to recognize handwritten digits from its half of the
# examples. `SyncReplicasOptimizer` makes the two train together: it waits for both gradients and applies their mean.
# Nothing in the program knows an engine.

# %%
UPDATES = 150
data = tf.datasets.digits()


def model(client):
    """The graph of a worker: its inputs, its step, its accuracy, and a hook."""
    place = tf.train.replica_device_setter(
        cluster=client.cluster_spec, worker_device=client.device
    )
    with tf.device(place):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        zeros = {"initializer": tf.zeros_initializer()}
        weights = tf.get_variable("weights", [64, 10], **zeros)
        biases = tf.get_variable("biases", [10], **zeros)
        logits = tf.matmul(images, weights) + biases
        right = tf.equal(tf.argmax(logits, 1), labels)
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = tf.train.MomentumOptimizer(0.3, 0.9)
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, 2, total_num_replicas=2)
        number = tf.train.get_or_create_global_step()
        step = optimizer.minimize(loss, global_step=number)
    hook = optimizer.make_session_run_hook(client.is_chief)
    return images, labels, step, accuracy, hook


# %%
def train(client):
    """Train on a worker; the chief returns the accuracy, and the trace of a step."""
    images, labels, step, accuracy, hook = model(client)
    half, test = slice(client.index, None, 2), data.test
    mine = {images: data.train.images[half], labels: data.train.labels[half]}
    traced = {"options": tf.RunOptions(trace_level=3), "run_metadata": tf.RunMetadata()}
    hooks = [hook, tf.train.StopAtStepHook(last_step=UPDATES)]
    with tf.train.MonitoredTrainingSession(
        client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as session:
        number = 0
        while not session.should_stop():
            number += 1
            look = traced if client.is_chief and number == 20 else {}
            session.run(step, mine, **look)
    if client.is_chief:
        with tf.Session(client.target) as session:  # the variables outlive a session
            feed = {images: test.images, labels: test.labels}
            return session.run(accuracy, feed), traced["run_metadata"]


# %% [markdown]
# ## The same on each engine

# %%
traces = {}
for engine in engines:
    with cluster_of(engine) as cluster:
        began = time.perf_counter()
        accuracy, traces[engine] = cluster.run(train)[0]
        seconds = time.perf_counter() - began
    ms = seconds / UPDATES * 1000
    print(f"{engine:10} accuracy {accuracy:.1%}, {ms:.0f} ms for an update")

# %% [markdown]
# The accuracies agree within a point. They need not be equal to the last digit: a worker may be late with a gradient,
# which is then thrown away, and the next one counts.
#
# The times do not agree, and they say what a task costs. In this notebook a message is a call of a function, but all
# tasks share one Python. Processes pay for each message and compute at the same time.
#
# ## A step of each
#
# The chief's twentieth step. Each band is the device of a task that the step needs, a hatched bar is a wait for a
# tensor, and the lines between the bands are tensors that cross from one task to another.

# %%
for engine, trace in traces.items():
    display(tf.viz.timeline(trace, title=f"Engine {engine}"))

# %% [markdown]
# Look for the same three things in each picture: weights go from `ps` to the worker, gradients come back, and the
# chief then waits for a token, which comes when the *other* worker's gradient has arrived, too. That wait is the
# price of training together, and no engine takes it away.
#
# TensorFlow runs fewer ops for the same step: its servers rewrite a graph before they run it.
#
# ## Where this leads
#
# - A Dask cluster on other machines: `Client("tcp://…")`, or one of Dask's deployers (SSH, Kubernetes, Slurm), as
#   `client=`. A task that is lost is then started again on another worker.
# - Is a step of yours the same on TensorFlow? `%dtf_conformance` compares values, placement and transfers.
# - Break it: `dtflab.chaos(cluster, kill="ps:0@step20")`, and look into `docs/faults.md` for what a program then sees.
