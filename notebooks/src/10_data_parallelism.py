# %% [markdown]
# # Data parallelism
#
# **Many workers train one model together, each with examples of its own. Should they wait for each other?**
#
# Every worker has a copy of the model, a *replica*, takes a few examples and computes a *gradient*: which way the
# variables should move. If all make each step together, with the mean of their gradients, training is *synchronous*:
# everybody waits for the slowest. If each applies its gradient as soon as it has it, training is *asynchronous*: nobody
# waits, but when a gradient arrives, others may have moved the variables meanwhile.
#
# Everything here runs in *virtual time*: the arithmetic is real, the seconds come from a model of GPUs and their
# network. So sixteen GPUs fit on a laptop, and each race ends the same way every time.

# %%
import dataclasses

import numpy as np

import dtflab as tf

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.WARN)  # sixteen workers log a lot

# %% [markdown]
# ## The hardware and the model
#
# One parameter server and some workers, each a machine with one GPU. Our model is some 40,000 times smaller than a real
# one for photographs. So that a worker still needs some 50 ms for a step, the GPU is a thousand times slower than a
# Tesla K40. No two steps take equally long: now and then a worker is a *straggler*, which takes twice as long as usual.
# That is drawn at random, with a fixed seed.

# %%
card = tf.sim.Processor(
    "a slow K40", "GPU", {"float32": 4.29e9}, memory_bytes=12 << 30,
    memory_bandwidth=288e6, launch_s=5e-3, cores=15,
    source="a K40's figures, divided by a thousand",
)  # fmt: skip
stragglers = {"stragglers": tf.sim.lognormal(0.3), "seed": 1}
hardware = {"gpus": 1, "gpu": card, "network": "100Mb/s"} | stragglers

# %%
digits = tf.datasets.digits()  # 8 × 8 pixels each


def classify(images):
    """One layer, ten outputs. All replicas share its variables."""
    zeros = {"initializer": tf.zeros_initializer()}
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        weights = tf.get_variable("weights", [64, 10], **zeros)
        biases = tf.get_variable("biases", [10], **zeros)
    return weights, biases, tf.nn.xw_plus_b(images, weights, biases)


def mean_loss(labels, logits):
    """The loss on a batch: low if the right digits have high outputs."""
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(each)


# %% jupyter={"source_hidden": true}
def total_loss(weights, biases):
    """The loss on all training images, computed outside virtual time."""
    logits = digits.train.images @ weights + biases
    logits -= logits.max(axis=1, keepdims=True)  # no exponential of a large number
    right = logits[np.arange(len(logits)), digits.train.labels]
    return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - right))


# %% [markdown]
# ## One graph with all replicas
#
# The first way is one large graph: *in-graph replication*. It has a replica on each worker, each with a batch of its
# own, and on the parameter server a few operations that take the mean and apply it. One client runs it, and one step of
# it is one synchronous step.

# %%
WORKERS, BATCH, STEPS = 3, 8, 20


def inputs_of_a_batch(size=BATCH):
    """Placeholders for images and labels."""
    return tf.placeholder(tf.float32, [size, 64]), tf.placeholder(tf.int64, [size])


def on(worker, spec):
    """A device function: variables on the parameter server, the rest on a GPU."""
    return tf.train.replica_device_setter(
        cluster=spec, ps_device="/job:ps/cpu:0", worker_device=f"{worker}/gpu:0"
    )


# %%
def replicas(cluster):
    """An optimizer; for each worker its placeholders, and its gradients."""
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    inputs, gradients = [], []
    for i in range(WORKERS):
        place = on(f"/job:worker/task:{i}", cluster.spec)
        with tf.device(place), tf.name_scope(f"replica{i}"):
            images, labels = inputs_of_a_batch()
            *variables, logits = classify(images)
            loss = mean_loss(labels, logits)
            gradients.append(optimizer.compute_gradients(loss, variables))
            inputs.append((images, labels))
    return optimizer, inputs, gradients


# %%
def in_graph_sync(cluster):
    """A step applies the mean of all gradients: what one client runs repeatedly."""
    optimizer, inputs, gradients = replicas(cluster)
    with tf.device("/job:ps/task:0/cpu:0"):
        with tf.name_scope("mean"):
            means = []
            for pairs in zip(*gradients):  # of one variable, from each replica
                total = tf.add_n([gradient for gradient, _ in pairs])
                means.append((total / WORKERS, pairs[0][1]))
        with tf.name_scope("update"):
            train = optimizer.apply_gradients(means)
    return [(inputs, train)]


def in_graph_async(cluster):
    """An update for each replica: what each of several threads runs repeatedly."""
    optimizer, inputs, gradients = replicas(cluster)
    with tf.device("/job:ps/task:0/cpu:0"):
        updates = [optimizer.apply_gradients(pairs) for pairs in gradients]
    return [([own], update) for own, update in zip(inputs, updates)]


# %% [markdown]
# The next two cells are folded away: they build one of these graphs, have its threads make 20 steps each, and return
# the graph of a step and what came out. So are cells that only make a table of results.


# %% jupyter={"source_hidden": true}
def steps_of(sess, threads, number):
    """Make the steps of one thread, with batches of its own."""
    inputs, train = threads.get(number, ([], None))
    batches = tf.datasets.digits(seed=number).train
    for _ in range(STEPS if train else 0):
        feeds = {}
        for images, labels in inputs:
            feeds[images], feeds[labels] = batches.next_batch(BATCH)
        sess.run(train, feeds)


# %% jupyter={"source_hidden": true}
def train_in_graph(build):
    """20 steps of each thread. Returns the graph of one step and a line of text."""
    cluster = tf.Cluster(ps=1, worker=WORKERS, clock="virtual", **hardware)
    with cluster, tf.Graph().as_default() as graph, tf.Session(cluster.target) as sess:
        threads = dict(enumerate(build(cluster)))
        sess.run(tf.global_variables_initializer())
        began = cluster.now()
        cluster.run(lambda client: steps_of(sess, threads, client.index))
        seconds = cluster.now() - began
        loss = total_loss(*sess.run(tf.global_variables()))
    nodes = tf.graph_util.extract_sub_graph(graph.as_graph_def(), [threads[0][1].name])
    updates = f"{STEPS * len(threads):3} updates in {seconds:.2f} s"
    return nodes, f"{updates}, loss {loss:.3f}"


# %%
one_step, result = train_in_graph(in_graph_sync)
print("in-graph, synchronous: ", result)

# %%
# Figure 12-17
tf.viz.placement(one_step, max_boxes=9, title="Data parallelism")

# %% [markdown]
# The variables go from the parameter server to all replicas, the gradients come back, their mean updates the variables,
# and the next step begins. In the picture: point at `mean`, and see what comes to it; click `replica0` to open it.
#
# To make it asynchronous, leave out the mean: give each replica an update of its own, and run each from a thread of its
# own.
#
# **Predict: how many updates will there be now, if each thread makes 20 steps? And in what time?**

# %%
print("in-graph, asynchronous:", train_in_graph(in_graph_async)[1])

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Three times as many updates in the same time. No replica waits for another.
#
# </details>
#
# ## One step, moment by moment
#
# Why do they wait for each other? In virtual time a step can be run again on a fresh copy of the cluster, and every
# moment of it written down: that is `%dtf_replay`. Here is one synchronous step, made ready in the usual way:

# %%
cluster = tf.Cluster(ps=1, worker=WORKERS, clock="virtual", **hardware)
tf.reset_default_graph()
((inputs, train),) = in_graph_sync(cluster)
sess = tf.Session(cluster.target)
sess.run(tf.global_variables_initializer())
batches, feeds = tf.datasets.digits(seed=1).train, {}
for images, labels in inputs:
    feeds[images], feeds[labels] = batches.next_batch(BATCH)

# %%
# replayed = %dtf_replay train --feed feeds
replayed

# %% [markdown]
# In the picture: press ▶, or the right arrow key, to go from moment to moment; under the slider stands what runs, what
# waits, and which message is on its way. Drag the mark along time to go faster.
#
# The replay can take another turn. **Predict: from 10 ms on, the link of worker 2 is a hundred times slower. Which
# bars of the step will move?**

# %%
replayed.fork(0.01, network="worker:2=0.01x")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Until its gradients are ready, at 40 ms, both runs are the same: worker 2 has its variables already. Then they are
# long on their way, and so the mean and the update are late. The other two workers have finished, and everybody waits
# for one link.
#
# </details>
#
# Other changes need no code. **What if a worker dies in the middle of the step? Does the mean of the other two
# gradients still make an update?** In the first of the two pictures go to about 20 ms, press *Fork here*, and kill
# `worker:1`.
#
# <details><summary><b>Show why</b></summary>
#
# No. The mean belongs to one graph, and one step runs all of it: when a task is lost, the step ends at that moment,
# with `UnavailableError`, and no variable has changed. In the second way, which follows, each worker has a step of its
# own, so the others can go on.
#
# </details>
#
# ## A graph for each worker
#
# The second way is *between-graph replication*: each worker has a client, which builds a graph with one replica, as if
# it were alone in the world. The variables are shared, because they have the same names on the same parameter server.
# This is what programs for many machines look like. Here is ours. Three lines are about how workers train together:
#
# - `SyncReplicasOptimizer` makes them step together: it takes the mean of the first `aggregate` gradients. One worker,
#   the *chief*, applies it, and tells the others to go on;
# - `StalenessOptimizer` (dtflab's own) records how *stale* each gradient is: how many updates were made between the
#   moment when the worker read the variables and the moment when its gradient arrived;
# - the learning rate. We will come to that.


# %%
@dataclasses.dataclass
class Way:
    """One way to train together."""

    rate: float  # learning rate
    aggregate: int = 0  # gradients that make an update; 0: each one by itself
    batch: int = BATCH  # examples per gradient
    momentum: float = 0.9
    seconds: float = 1.2  # of virtual time
    cures: dict = dataclasses.field(default_factory=dict)  # for StalenessOptimizer


# %%
def replica(client, way):
    """The graph of a worker: its inputs, what it pulls, its step, and hooks for it."""
    workers, hooks = client.cluster_spec.num_tasks("worker"), []
    with tf.device(on(client.device, client.cluster_spec)):
        inputs = images, labels = inputs_of_a_batch(way.batch)
        weights, biases, logits = classify(images)
        pulled = [tf.identity(weights.value()), tf.identity(biases.value())]
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.MomentumOptimizer(way.rate, momentum=way.momentum)
        if way.aggregate:
            sync = tf.train.SyncReplicasOptimizer
            optimizer = sync(optimizer, way.aggregate, workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        options = {"num_workers": workers} | way.cures
        optimizer = tf.train.StalenessOptimizer(optimizer, client.index, **options)
        train = optimizer.minimize(mean_loss(labels, logits), global_step=step)
        hooks.append(optimizer.make_session_run_hook())
    return inputs, pulled, train, hooks


# %%
def work(client, way):
    """Train on each worker; returns pairs (virtual seconds, loss)."""
    (images, labels), pulled, train, hooks = replica(client, way)
    batches, points = tf.datasets.digits(seed=client.index).train, []
    with tf.train.MonitoredTrainingSession(
        client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as sess:
        end = tf.sim.now() + way.seconds
        follows = way.aggregate and not client.is_chief  # goes on until the chief ends
        while not sess.should_stop() and (follows or tf.sim.now() < end):
            began = tf.sim.now()
            x, y = batches.next_batch(way.batch)
            values, _ = sess.run([pulled, train], {images: x, labels: y})
            points.append((began, total_loss(*values) if client.is_chief else 0.0))
            client.report(min(points[-1][1], 6.0), step=began)
    return points


# %% [markdown]
# So there are four combinations. Here are the other two, for three workers and 1.2 seconds each. (Their losses can't be
# compared with those above: this is a different optimizer, with *momentum*, which keeps moving in the direction of
# earlier steps.)

# %%
few = {"asynchronous": Way(rate=0.1), "synchronous": Way(rate=0.1, aggregate=WORKERS)}
runs = tf.sim.race(work, few, workers=WORKERS, **hardware)
results = {
    "updates": [run.steps for run in runs.values()],
    "loss at the end": [f"{run.losses[-1]:.3f}" for run in runs.values()],
    "mean staleness": [f"{run.staleness.mean():.1f}" for run in runs.values()],
}
tf.viz.table({"between-graph": [*runs]} | results)

# %% [markdown]
# (Why 0.1 and not 0 for the synchronous ones? Before the first update nobody waits, so each worker makes two gradients
# from the same variables. The second one comes too late and is thrown away. This is what TensorFlow does, too.)
#
# | | one graph, one client (in-graph) | a graph and a client each (between-graph) |
# | --- | --- | --- |
# | **synchronous** | a mean in the graph | `SyncReplicasOptimizer` |
# | **asynchronous** | an update and a thread for each replica | nothing to do: each trains as if alone |
#
# ## A race
#
# Now sixteen workers. Three ways to train: asynchronously; synchronously; and synchronously with *spare* replicas:
# sixteen compute, but each update takes the first 14 gradients and throws the last two away.
#
# **Predict: which way makes the most updates per minute? Which reaches a loss of 0.25 first?**
#
# (This takes some seconds: sixteen workers really compute.)

# %%
MANY = 16
ways = {
    "async": Way(rate=0.01),
    "sync": Way(rate=2.0, aggregate=MANY),
    "sync + 2 spares": Way(rate=2.0, aggregate=MANY - 2),
}
live = tf.viz.live("loss", over="virtual time (s)", title="The race")
runs = tf.sim.race(work, ways, workers=MANY, watch=live, **hardware)


# %% jupyter={"source_hidden": true}
def when(seconds):
    """A moment in words."""
    return f"after {seconds:.2f} s" if seconds < np.inf else "never"


results = {
    "updates per minute": [f"{run.steps_per_minute:,.0f}" for run in runs.values()],
    "loss 0.25": [when(run.reaches(0.25)) for run in runs.values()],
}
free, full, spare = runs.values()
tf.viz.table({"way": [*runs]} | results)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Asynchronous training makes by far the most updates, and comes last. Waiting for all is better; waiting for the first
# 14 of 16 is best. That is what Chen and others found in 2016 (“Revisiting Distributed Synchronous SGD”), with 50 to
# 200 GPUs. Each way has the learning rate that served it best among those that we tried.
#
# </details>
#
# ## Why are spares faster?
#
# A synchronous update waits for the slowest worker. Among 16 there is nearly always a straggler; the 14th of them is
# far less late. What the last two computed was wasted (the crosses in the picture): that is the price.

# %%
tf.viz.staleness(spare.staleness, title="Staleness with spares")

# %% [markdown]
# The next two pictures show what the parameter server sends to the workers in two of these runs, the asynchronous and
# the synchronous one.
#
# **Predict: which one is the synchronous run, A or B?**

# %%
pulls = [runs[name].pulled(0.02, 0.6, 1.1) for name in sorted(ways)[:2]]
kilobytes = {name: counts / 1000 for name, (_, counts) in zip("AB", pulls)}
for name, counts in kilobytes.items():
    display(
        tf.viz.curve(
            pulls[0][0],
            {name: counts},
            "virtual time (s)",
            "kB pulled in 20 ms",
            height=2.4,
        )
    )

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# B. Synchronous workers all pull the variables at the same moment, when an update has been made, and then leave the
# network idle. Asynchronous ones spread over time by themselves. Where everybody waits for the network, that is an
# advantage of asynchronous training.
#
# </details>
#
# ## Why is the busiest way the slowest?
#
# **Predict: while a worker computes a gradient, each of the 15 others finishes one. How stale is a gradient, then?**

# %%
tf.viz.staleness(free.staleness, title="Staleness of asynchronous training")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Most gradients are some 15 updates old when they arrive. They say which way was down *before* 15 others moved the
# variables.
#
# </details>
#
# To see what stale gradients do, take the simplest model there is: one variable x, and the loss x²/2, a valley with
# its bottom at 0. The gradient is x itself. Eight workers walk down together.


# %%
def walk(client, rate, steps):
    """Rows (number of the update, x that it was computed from, x when it arrived)."""
    with tf.device(on(client.device, client.cluster_spec)):
        x = tf.get_variable("x", [], initializer=tf.ones_initializer())
        count = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(rate)
        ((gradient, _),) = pairs = optimizer.compute_gradients(tf.square(x) / 2, [x])
        train = optimizer.apply_gradients(pairs, count)
    with tf.device("/job:ps/task:0/cpu:0"), tf.control_dependencies([train]):
        after = [tf.identity(count.value()), tf.identity(x.value())]
    rows = []
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief) as sess:
        for _ in range(steps):
            seen, (number, x_after) = sess.run([gradient, after])
            rows.append((number, seen, x_after + rate * seen))
    return rows


# %%
def together(workers, rate, updates=96):
    """All updates of `workers` that walk together, in their order."""
    with tf.Cluster(ps=1, worker=workers, clock="virtual", **hardware) as cluster:
        rows = cluster.run(lambda client: walk(client, rate, updates // workers))
    return np.array(sorted(row for of_one in rows for row in of_one))


# %%
# Figure 12-18
number, seen, here = together(workers=8, rate=0.15).T
wrong = seen * here < 0
title = f"{wrong.sum()} of {len(number)} gradients point the wrong way"
both = {"x when the gradient arrives": here, "x that it was computed from": seen}
tf.viz.curve(number, both, "update", "x", title=title)

# %% [markdown]
# The bottom of the valley is at 0. Where the two lines are on different sides of it, the gradient says “go down to the
# left” while x has already passed the bottom, and down is to the right. So the model overshoots, comes back, and
# overshoots again.
#
# ## Now break it: a learning rate that is too high only for stale gradients
#
# **Predict: at a rate of 0.4, what becomes of one worker alone, and what of eight together?**

# %%
alone, eight = together(workers=1, rate=0.4), together(workers=8, rate=0.4)
both = {"one worker": alone[:, 2], "eight workers": eight[:, 2]}
tf.viz.curve(np.arange(len(eight)), both, "update", "x when the gradient arrives")

# %% jupyter={"source_hidden": true}
delays = [0, tf.sim.formulas.mean_staleness(8)]
limits = [tf.sim.formulas.divergence_learning_rate(delay) for delay in delays]
results = {
    "x after 96 updates": [f"{alone[-1, 2]:.4f}", f"{eight[-1, 2]:.0f}"],
    "gradients are old": [f"{delay:g} updates" for delay in delays],
    "x diverges above a rate of": [f"{limit:.2f}" for limit in limits],
}
tf.viz.table({"workers": ["one", "eight"]} | results)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Alone, each update takes x nearer to 0. Together, each worker adds its push before it knows of the pushes of the
# others, and they throw x out of the valley. (On a parabola the limit can be computed: with gradients τ updates old it
# is 2 sin(π / (4τ + 2)), divided by the curvature.)
#
# </details>
#
# ## What helps
#
# Back to the digits: eight workers, asynchronously, at a rate at which one worker alone goes down steadily. Each cure
# is an option of the program above.
#
# | cure | what it does | what it costs |
# | --- | --- | --- |
# | lower rate | a quarter of the rate | slow, where gradients are fresh |
# | drop | gradients older than 4 updates are thrown away | their work |
# | scale | a gradient that is s updates old is divided by s | small steps |
# | warm-up | worker 0 makes the first 10 updates alone | the others wait that long |
# | larger batch | 32 images per gradient instead of 8 | more arithmetic |
#
# **Predict: which two would you bet on?** (Again some seconds.)

# %%
RATE = 0.06
cures = {
    "nothing": Way(RATE, seconds=1.0),
    "lower rate": Way(RATE / 4, seconds=1.0),
    "drop": Way(RATE, seconds=1.0, cures={"drop_above": 4}),
    "scale": Way(RATE, seconds=1.0, cures={"scale": True}),
    "warm-up": Way(RATE, seconds=1.0, cures={"warm_up_steps": 10}),
    "larger batch": Way(RATE, seconds=1.0, batch=32),
}
with tf.viz.live("loss, 6 at most", over="virtual time (s)", title="Cures") as live:
    cured = tf.sim.race(
        work, {"one worker": cures["nothing"]}, workers=1, watch=live, **hardware
    )
    cured |= tf.sim.race(work, cures, workers=8, watch=live, **hardware)

# %% jupyter={"source_hidden": true}
second_half = np.linspace(0.5, 1.0, 101)
late = {name: float(run.loss_at(second_half).mean()) for name, run in cured.items()}
stale = {name: run.staleness for name, run in cured.items()}
used = [each.staleness[each.used].mean() for each in stale.values()]
results = {
    "mean loss in the second half": [f"{loss:.2f}" for loss in late.values()],
    "updates": [run.steps for run in cured.values()],
    "staleness": [f"{each.mean():.1f}" for each in stale.values()],
    "of those used": [f"{mean:.1f}" for mean in used],
    "dropped": [each.dropped for each in stale.values()],
}
tf.viz.table({"cure": [*cured]} | results)

# %% [markdown]
# (A line at 6: the loss was higher. Guessing at random would give ln 10 = 2.3. The first staleness is the mean of
# all gradients, also of those that were dropped: so it can be above 4 with “drop”.)
#
# <details><summary><b>Show why</b></summary>
#
# Each of them helps. Smaller steps help most: for all gradients (lower rate), or only for those that are stale (scale).
# Dropping wastes a third of the work. A larger batch makes a gradient less noisy, but not fresher. And warm-up is over
# when the others come. Spare replicas treat the cause: their gradients are fresh, so they tolerate a rate of 2.
#
# </details>
#
# ## What it depends on
#
# It is not a law that synchronous training with spares wins. We change one thing at a time, now with eight workers, of
# which one may be spare: how much their steps vary, and the momentum.
#
# **Predict: what is a spare good for if all steps take nearly the same time? And if now and then one takes very long?**


# %%
def vary(stragglers):
    """The hardware, with steps that vary in this way."""
    return hardware | {"stragglers": stragglers}


all_8 = Way(rate=1.0, aggregate=8, seconds=0.8)
spare_1 = dataclasses.replace(all_8, aggregate=7)
even, heavy = tf.sim.lognormal(0.05), tf.sim.pareto(2.0)
others = {
    "steps hardly vary, all": (all_8, vary(even)),
    "steps hardly vary, a spare": (spare_1, vary(even)),
    "heavy tail, all": (all_8, vary(heavy)),
    "heavy tail, a spare": (spare_1, vary(heavy)),
    "no momentum, all": (Way(1.5, aggregate=8, momentum=0.0, seconds=0.8), hardware),
    "no momentum, async": (Way(0.2, momentum=0.0, seconds=0.8), hardware),
}
found = {}
with tf.viz.live("loss, 6 at most", over="virtual time (s)", title="Changes") as live:
    for name, (way, changed) in others.items():
        found |= tf.sim.race(work, {name: way}, workers=8, watch=live, **changed)

# %% jupyter={"source_hidden": true}
results = {
    "updates per minute": [f"{run.steps_per_minute:,.0f}" for run in found.values()],
    "loss at the end": [f"{run.losses[-1]:.2f}" for run in found.values()],
}
tf.viz.table({"what is different": [*found]} | results)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# - **Stragglers.** If steps hardly vary, a spare gains little: a tenth more updates, each from fewer gradients. With a
#   *heavy tail*, where a few steps take very long, it makes three times as many updates as waiting for all.
# - **Momentum.** Staleness acts like a momentum of its own, and the two add up. Without any, asynchronous training is
#   no longer the last: it is ahead of the workers that wait for all.
#
# </details>
#
# So measure, with your model and your machines. `notebooks/demos/race.ipynb` has this race with sliders.
#
# ## Exercise
#
# - [exercises/ex10_training](../exercises/ex10_training.ipynb): train with four workers, with and without waiting, and
#   compare both with one worker whose network is cut in two.
# - [exercises/ex10_sync_rule](../exercises/ex10_sync_rule.ipynb): write the rule by which gradients of many workers
#   become one step.
# - [exercises/ex10_ring](../exercises/ex10_ring.ipynb): add up the gradients of all workers in a ring, without a
#   parameter server.
#
# And try this here:
#
# - With 16 workers, which number of spares is best?
# - In the race, give asynchronous training a rate of 0.02, and of 0.002. Which of the two is wilder, which is slower?
#
# ## What you can do now
#
# - Write data parallelism in its four combinations: one graph or one per worker, synchronous or not.
# - Say how stale gradients will be, what that does to training, and name five things that help.
# - Decide for a cluster whether to wait for all, for most, or for nobody.
