# %% [markdown]
# # Demo: the race
#
# **Several workers train one model. Should they wait for each other?**
#
# Three ways race in *virtual time*: the training is real, the seconds are those of simulated machines. Run all cells,
# then move a slider (also with the arrow keys). Each race takes some seconds; equal sliders give equal races, so a way
# that a slider leaves as it was does not run again.
#
# On a projector: end the first code cell with `%dtf_style --projector`, then *View → Appearance → Presentation Mode*,
# and hide the list of files (Ctrl+B).

# %%
import numpy as np

import dtflab as tf
from dtflab.notebook import Slider, explore

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.WARN)

# %% [markdown]
# The program that each worker runs: one layer on handwritten digits, eight images per step. `aggregate` gradients make
# a step together; 0 means that nobody waits. (Lesson 10 goes through it line by line.)

# %%
digits = tf.datasets.digits()
SECONDS = 1.5  # of virtual time
TIMES = np.linspace(0, SECONDS, 61)


def loss_of(weights):
    """The loss over all training images; it takes no virtual time."""
    logits = digits.train.images @ weights
    right = logits[np.arange(len(logits)), digits.train.labels]
    most = logits.max(axis=1)
    return float(
        np.mean(most + np.log(np.exp(logits - most[:, None]).sum(axis=1)) - right)
    )


# %%
def model(client, rate, aggregate):
    """The graph of a worker: its inputs, its weights, its step, and hooks."""
    workers, hooks = client.cluster_spec.num_tasks("worker"), []
    place = tf.train.replica_device_setter(
        cluster=client.cluster_spec,
        ps_device="/job:ps/cpu:0", worker_device=f"{client.device}/gpu:0",
    )  # fmt: skip
    with tf.device(place):
        inputs = tf.placeholder(tf.float32, [8, 64]), tf.placeholder(tf.int64, [8])
        zeros = tf.zeros_initializer()
        weights = tf.get_variable("weights", [64, 10], initializer=zeros)
        pulled, logits = tf.identity(weights.value()), tf.matmul(inputs[0], weights)
        loss = tf.losses.sparse_softmax_cross_entropy(inputs[1], logits)
        optimizer = tf.train.MomentumOptimizer(rate, momentum=0.9)
        if aggregate:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, aggregate, workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        optimizer = tf.train.StalenessOptimizer(
            optimizer, client.index, num_workers=workers
        )
        step = tf.train.get_or_create_global_step()
        train = optimizer.minimize(loss, global_step=step)
        hooks.append(optimizer.make_session_run_hook())
    return inputs, pulled, train, hooks


# %%
def work(client, way):
    """Train, and report each loss; pairs (virtual seconds, loss)."""
    name, live, rate, aggregate = way
    (images, labels), pulled, train, hooks = model(client, rate, aggregate)
    batches, points = tf.datasets.digits(seed=client.index).train, []
    with tf.train.MonitoredTrainingSession(
        client.target, client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as sess:
        start = tf.sim.now()
        follows = aggregate and not client.is_chief  # goes on until the chief ends
        while not (sess.should_stop() or live.should_stop()):
            if not follows and tf.sim.now() >= start + SECONDS:
                break
            began, (x, y) = tf.sim.now(), batches.next_batch(8)
            value, _ = sess.run([pulled, train], {images: x, labels: y})
            points.append((began, loss_of(value) if client.is_chief else 0.0))
            if client.is_chief:
                live(min(points[-1][1], 2.5), name, step=began - start)
    return points


# %% [markdown]
# The machines: a K40 that is a thousand times slower than it was, since our model is that much smaller than a real one.

# %%
card = tf.sim.Processor(
    "a slow K40", "GPU", {"float32": 4.29e9}, memory_bytes=12 << 30,
    memory_bandwidth=288e6, launch_s=5e-3, cores=15,
    source="a K40's figures, divided by a thousand",
)  # fmt: skip


# %%
runs = {}  # so far: equal machines and ways make equal runs


def run_of(name, way, live, workers, stragglers, network):
    """How a way does: the run that there is, drawn at once, or a new one."""
    key = (work, model, loss_of, card, SECONDS, workers, way, stragglers, network)
    if key in runs:
        for seconds, loss in zip(runs[key].seconds, runs[key].losses):
            live(min(loss, 2.5), name, step=seconds)
        return runs[key]
    late = tf.sim.lognormal(stragglers) if stragglers else None
    machines = {"gpus": 1, "gpu": card, "network": network, "stragglers": late}
    entry = {name: (name, live, *way)}
    run = tf.sim.race(work, entry, workers=workers, **machines)[name]
    if not live.should_stop():  # else it ended early
        runs[key] = run
    return run


# %%
def race(workers, spares, stragglers, network):
    """Yields a picture that grows, at last one of all three ways."""
    spares = min(spares, workers - 1)  # at least one gradient makes a step
    first = workers - spares
    ways = {  # the mean of more gradients allows a larger rate
        "async": (0.15 / workers, 0),
        "sync": (min(workers / 5, 1), workers),
        f"sync, {spares} to spare": (min(first / 5, 1), first),
    }
    title, time, lines = f"{workers} workers", "virtual time (s)", {}
    with tf.viz.live("loss", over=time, title=title, show=False) as live:
        for number, (name, way) in enumerate(ways.items(), start=1):
            live.remark(f"{name} races until {SECONDS} s ({number} of {len(ways)})")
            yield live
            run = run_of(name, way, live, workers, stragglers, network)
            lines[f"{name} ({run.steps} steps)"] = np.minimum(run.loss_at(TIMES), 2.5)
            if live.should_stop():
                break
    yield tf.viz.curve(TIMES, lines, time, f"loss, {title}", height=2.8)


# %% [markdown]
# ## Move a slider
#
# The code of the sliders is folded away: a click on the three dots shows it.
#
# *Ask the room first: which line will be lowest at the end? What makes waiting expensive? When do spare workers pay?*

# %% jupyter={"source_hidden": true}
explore(
    race,
    workers=Slider(
        [2, 4, 8, 16], 8, "More of them: async is staler, sync waits longer."
    ),
    stragglers=Slider(
        [0, 0.3, 1.0], 1.0, "How much steps vary. At 0 nobody is late."
    ),
    network=Slider(
        ["1Mb/s", "10Mb/s", "100Mb/s"], "100Mb/s", "Does everybody wait for the wire?"
    ),
    spares=Slider(
        [0, 1, 2, 3], 2, "Sync throws that many last gradients away.", "to spare"
    ),
)  # fmt: skip

# %% [markdown]
# <details><summary><b>What to say</b> (for the teacher)</summary>
#
# - **Async** makes by far the most steps, but each rests on old weights. The more workers, the smaller its rate must
#   be: here it is 0.15 divided by their number.
# - **Sync** makes few, good steps. Each lasts as long as its slowest worker.
# - **The network** matters when it is very slow: at 1 Mb/s async makes about half of its steps, sync two or three
#   quarters, and all end with a larger loss.
# - **Spares** cut off the stragglers. As the sliders begin, with 8 workers and `stragglers` at 1.0, sync with two to
#   spare makes more steps than plain sync, and ends with a loss that is a third lower. With `stragglers` at 0 spares
#   gain nothing: they only throw gradients away.
#
# </details>
