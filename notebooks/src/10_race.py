# %% [markdown]
# # The race
#
# **Fifty workers train one model together. Should they wait for each other?**
#
# If each applies its gradients as soon as it has them (*asynchronous*), nobody ever waits, but a gradient may be out of date
# when it arrives. If all make each step together (*synchronous*), gradients are fresh, but everybody waits for the slowest.
# A third way is to give 50 workers the same work and to wait for the first 45 only: five are *spare*.
#
# The three race here, on simulated hardware in *virtual time*: the arithmetic is real, the seconds come from a model of 50
# GPUs and their network. So the race fits on a laptop, where it takes half a minute (the whole notebook: a minute, more if
# the machine is busy), and its outcome is the same each time.
#
# *Before you go on: who makes the most steps per minute? Who reaches a loss of 0.2 first? Who ends lowest?*

# %%
import dataclasses

import numpy as np

import dtflab as tf

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.WARN)  # 50 workers have much to say

# %% [markdown]
# ## The program
#
# This is what each worker runs: an ordinary TensorFlow 1 program, one layer on handwritten digits. Three lines are about
# how the workers train together:
#
# - `SyncReplicasOptimizer` makes them step together, and take the mean of the first `aggregate` gradients;
# - `StalenessOptimizer` lets each gradient know how *stale* it is: how many steps were applied to the variables between the
#   moment when the worker read them and the moment when its gradient arrived;
# - the learning rate. We will come to that.


# %%
@dataclasses.dataclass
class Way:
    """One way to train together."""

    rate: float  # learning rate
    aggregate: int = 0  # gradients that make a step; 0: each by itself, asynchronously
    batch: int = 8  # examples per gradient
    cures: dict = dataclasses.field(default_factory=dict)  # options of StalenessOptimizer


digits = tf.datasets.digits()
SECONDS = 2.0  # of virtual time


def loss_of(weights, biases):
    """The loss over all training images, computed beside the race: it takes no virtual time."""
    logits = digits.train.images @ weights + biases
    logits -= logits.max(axis=1, keepdims=True)  # no exponential of a large number
    right = logits[np.arange(len(logits)), digits.train.labels]
    return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - right))


def work(client, way):
    """What each worker does; pairs (virtual seconds, loss)."""
    workers = client.cluster_spec.num_tasks("worker")
    place = tf.train.replica_device_setter(
        cluster=client.cluster_spec, ps_device="/job:ps/cpu:0", worker_device=f"{client.device}/gpu:0"
    )
    hooks = []
    with tf.device(place):
        images = tf.placeholder(tf.float32, [way.batch, 64])
        labels = tf.placeholder(tf.int64, [way.batch])
        weights = tf.get_variable("weights", [64, 10], initializer=tf.zeros_initializer())
        biases = tf.get_variable("biases", [10], initializer=tf.zeros_initializer())
        pulled = [tf.identity(weights.value()), tf.identity(biases.value())]
        logits = tf.nn.xw_plus_b(images, weights, biases)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.MomentumOptimizer(way.rate, momentum=0.9)
        if way.aggregate:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, way.aggregate, workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        optimizer = tf.train.StalenessOptimizer(optimizer, client.index, num_workers=workers, **way.cures)
        train = optimizer.minimize(loss, global_step=step)
        hooks.append(optimizer.make_session_run_hook())

    batches = tf.datasets.digits(seed=client.index).train
    points = []
    with tf.train.MonitoredTrainingSession(
        client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as sess:
        end = tf.sim.now() + SECONDS
        follows = way.aggregate and not client.is_chief  # goes on until the chief ends
        while not sess.should_stop() and (follows or tf.sim.now() < end):
            began = tf.sim.now()
            x, y = batches.next_batch(way.batch)
            values, _ = sess.run([pulled, train], {images: x, labels: y})
            points.append((began, loss_of(*values) if client.is_chief else 0.0))
    return points


# %% [markdown]
# ## The hardware
#
# One parameter server and 50 workers, each a machine of its own with one GPU. Our model is some 40,000 times smaller than
# Inception, so we give it a GPU that is a thousand times slower than a K40, and a network of 100 Mb/s. A step then takes
# about a tenth of a second, and sending the weights to all 50 workers a tenth of that.
#
# No two steps of a worker take the same time: each is drawn from a lognormal distribution. On a shared cluster, that is how
# it is: now and then somebody is a *straggler*, who takes twice as long as usual. The draws come from a seed.

# %%
card = tf.sim.Processor(
    "a slow K40", "GPU", {"float32": 4.29e9}, memory_bytes=12 << 30, memory_bandwidth=288e6,
    launch_s=5e-3, cores=15, source="a K40's figures, divided by a thousand",
)  # fmt: skip
hardware = {"gpus": 1, "gpu": card, "network": "100Mb/s", "stragglers": tf.sim.lognormal(0.3), "seed": 1}

# %% [markdown]
# ## Ready, steady, go
#
# Each way has the learning rate that served it best among those that we tried. That matters: with 50 gradients on their way,
# asynchronous training diverges at a rate that is fine for the others.

# %%
WORKERS = 50
ways = {
    "async": Way(rate=0.01),
    "sync": Way(rate=2.0, aggregate=WORKERS),
    "sync + 5 spares": Way(rate=2.0, aggregate=WORKERS - 5),
}
runs = tf.sim.race(work, ways, workers=WORKERS, **hardware)
runs

# %%
times = np.linspace(0, SECONDS, 41)


def below(most, runs):
    """Losses over time, with gaps where they are higher than `most`."""
    losses = {name: run.loss_at(times) for name, run in runs.items()}
    return {name: np.where(loss < most, loss, np.nan) for name, loss in losses.items()}


tf.viz.curve(times, below(2.5, runs), "virtual time (s)", "loss on all training images")

# %% [markdown]
# (A gap in a line: the loss was above 2.5, worse than guessing.)

# %%
for name, run in runs.items():
    print(f"{name:16} {run.steps_per_minute:8,.0f} steps/minute   0.2 after {run.reaches(0.2):4.2f} s   "
          f"ends at {run.losses[-1]:.3f}")  # fmt: skip

# %% [markdown]
# Asynchronous training makes by far the most steps, and is the last. Waiting for all is better; waiting for the first 45 of
# 50 is best: it reaches a loss of 0.2 first and ends lowest. That is what Chen and others found with Inception on 50 to 200
# GPUs in 2016 («Revisiting Distributed Synchronous SGD»). The next cell holds the outcome to it: it fails once you change
# what the order depends on. What that is, we shall see at the end.

# %%
free, full, spare = (runs[name] for name in ("async", "sync", "sync + 5 spares"))
assert free.steps > 10 * spare.steps > 10 * full.steps, "async does not make by far the most steps"
assert spare.reaches(0.2) < min(full.reaches(0.2), free.reaches(0.2)), "spares are not the first"
assert spare.losses[-1] < min(full.losses[-1], free.losses[-1]), "spares do not end lowest"

# %% [markdown]
# ## Why is the busiest one the slowest?
#
# *How stale is a gradient of the asynchronous run? While a worker computes one, each of the other 49 finishes one.*

# %%
tf.viz.staleness(runs["async"].staleness, title="Staleness of async")

# %% [markdown]
# Most gradients are some 49 steps old: they say which way was down before 49 others moved the weights. Steps must be small
# then, or the model is thrown about. On a parabola, this can be computed: with a delay of τ steps, gradient descent
# diverges above a learning rate of 2 sin(π / (2(2τ + 1))), divided by the curvature.

# %%
delay = tf.sim.formulas.mean_staleness(WORKERS)
for steps in (0, delay):
    print(f"{steps:2} steps old: diverges above {tf.sim.formulas.divergence_learning_rate(steps):.3f}")

# %% [markdown]
# And each of those steps rests on eight images only, not on 50 times eight.
#
# With spare workers, what is stale is dropped: hatched on the left, crosses on the right. It was computed and sent for
# nothing; that is their price.

# %%
tf.viz.staleness(runs["sync + 5 spares"].staleness, title="Staleness with spares")

# %% [markdown]
# ## And why are spares faster than all?
#
# A synchronous step lasts as long as the slowest of 50 steps. Among 50 there is nearly always a straggler; the 45th of them
# is far less bad.
#
# *The picture below shows what the parameter server sends to the workers. Which line is which?*

# %%
width = 0.02  # seconds
first, last = SECONDS / 2, 0.9 * SECONDS
pulls = {name: runs[name].pulled(width, first, last) for name in ("async", "sync")}
starts = pulls["async"][0]
kilobytes = {name: counts / 1000 for name, (_, counts) in pulls.items()}
tf.viz.curve(starts, kilobytes, "virtual time (s)", f"kB pulled per {1000 * width:.0f} ms")

# %%
peak = {name: counts.max() / counts.mean() for name, (_, counts) in pulls.items()}
assert peak["sync"] > 2 * peak["async"]
print(f"highest load of the link over the mean: async {peak['async']:.1f}, sync {peak['sync']:.1f}")

# %% [markdown]
# Synchronous workers all pull at the same moment, when a step has ended, and then leave the network idle. Asynchronous ones
# spread over time by themselves. Where the network is what everybody waits for, that is their advantage.
#
# ## Now break it, and mend it
#
# Sixteen workers, asynchronously, at a learning rate that one worker alone would stand with ease. It is too much for stale
# gradients. What helps? Each of these is an option of the program above:
#
# | cure | what it does | what it costs |
# | --- | --- | --- |
# | lower rate | a quarter of the rate | slow, where gradients are fresh |
# | drop | gradients older than 4 steps are thrown away | their work |
# | scale | a gradient that is s steps old is divided by s | small steps |
# | bounded | nobody begins a step before all have made the one before | waiting |
# | warm-up | worker 0 makes the first 10 steps alone | the others wait that long |
# | larger batch | 32 images per gradient instead of 8 | more arithmetic |
# | spares | synchronous, the first 14 of 16, at a higher rate | waiting, and the work of two |
#
# *Which would you bet on? One of them makes it worse.*

# %%
RATE = 0.12
sixteen = {
    "nothing": Way(RATE),
    "lower rate": Way(RATE / 4),
    "drop": Way(RATE, cures={"drop_above": 4}),
    "scale": Way(RATE, cures={"scale": True}),
    "bounded": Way(RATE, cures={"max_ahead": 0}),
    "warm-up": Way(RATE, cures={"warm_up_steps": 10}),
    "larger batch": Way(RATE, batch=32),
    "spares": Way(2.0, aggregate=14),
}
cured = tf.sim.race(work, sixteen, workers=16, **hardware)

# %%
best = {name: cured[name] for name in ("nothing", "lower rate", "drop", "scale", "spares")}
tf.viz.curve(times, below(4, best), "virtual time (s)", "loss")

# %% [markdown]
# And the other three, beside nothing; mind the axis:

# %%
others = {name: cured[name] for name in ("nothing", "bounded", "warm-up", "larger batch")}
tf.viz.curve(times, below(20, others), "virtual time (s)", "loss")

# %%
second_half = np.linspace(SECONDS / 2, SECONDS, 101)
late = {name: float(run.loss_at(second_half).mean()) for name, run in cured.items()}
for name, run in cured.items():
    log = run.staleness
    print(f"{name:13} mean loss in the second half {late[name]:5.2f}   {run.steps:4} steps   "
          f"staleness {log.mean():4.1f}   {log.dropped:3} dropped")  # fmt: skip
assert late["spares"] < late["scale"] < late["lower rate"] < late["nothing"]
assert late["drop"] < late["nothing"] < late["warm-up"]

# %% [markdown]
# What treats the cause wins: fresh gradients stand a high rate. Next come smaller steps, best where they are small for what
# is stale only. Dropping and bounding help as far as they make gradients fresher; a larger batch makes them surer, but not
# fresher. Warm-up is for a model's first, wildest steps. Here it only puts the trouble off: when the others come, they meet
# a model in full swing.
#
# ## What it depends on
#
# The order of the three is no law. It is the same with the seeds 1 to 5, and after six seconds, where all are closer (0.14,
# 0.07, 0.06). But we tried other things, too, with 50 workers and two seconds:
#
# - **Momentum.** Staleness acts like momentum of its own, and the two add up. Without any (`momentum=0.0`) the order turns
#   round: async, at a rate of 0.1, ends at 0.15, both others, at 3, above 0.3: fresh gradients now make too few steps.
#   Chen and others trained with a momentum of 0.9, as we do.
# - **Stragglers.** If steps hardly vary, `tf.sim.lognormal(0.05)`, spares gain nothing: both ways end at 0.10. With a heavy
#   tail, `tf.sim.pareto(2.0)`, waiting for all makes 5 steps in the time in which waiting for 45 makes 14.
# - **Learning rates.** At 0.02 async is wilder, at 0.005 tamer and slower. A rate must be found for each way.
# - **The network.** At 10 Mb/s pulling takes longer than computing: everybody is slow, spares gain less (they end at 0.20,
#   those who wait for all at 0.22), and async, with less than half of its steps, ends above 0.3.
# - **The number of workers.** With fewer, gradients are less stale and stragglers rarer.
#
# *Try `momentum=0.5`. Which way would you take then? And with 50 workers, what number of spares beats 5?*
