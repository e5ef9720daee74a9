# %% [markdown]
# # One network on several devices
#
# **A network is too slow for one GPU, or too large for its memory. The machine has several GPUs. Can you cut the
# network into pieces, and give each GPU one?**
#
# You can. This is called *model parallelism*. But a piece needs what other pieces have computed, and sending takes
# time. So everything depends on where you cut: the cut that comes to mind first makes the network slower.
#
# Everything here runs in *virtual time*: the arithmetic is real, the seconds come from a model of the hardware. You
# need no GPU, and the numbers are the same each time.

# %%
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np

import dtflab as tf

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.WARN)

# %% [markdown]
# `run` builds a network on a simulated machine, runs one step of it, and returns what we want to know: the result, the
# milliseconds, the trace, and how many bytes went from GPU to GPU. The machine has Tesla K40 cards, which send to each
# other over PCI Express (`pcie3`, 16 GB/s). The function is folded away: it measures, it is not about networks.

# %% jupyter={"source_hidden": true}
CONFIG = tf.ConfigProto(allow_soft_placement=True)  # some ops have no GPU form
TRACED = tf.RunOptions(trace_level=3, output_partition_graphs=True)


def run(build, gpus, inputs, bus="pcie3", **hardware):
    """One step of `build(x, devices)`, a list of tensors, on a machine with GPUs."""
    machine = {"localhost": 1, "gpus": gpus, "gpu": "K40", "bus": bus} | hardware
    cluster, trace = tf.Cluster(**machine, clock="virtual"), tf.RunMetadata()
    with tf.Graph().as_default() as graph, cluster:
        with tf.device("/cpu:0"):
            x = tf.placeholder(tf.float32, inputs.shape, name="x")
        results = build(x, [f"/gpu:{i}" for i in range(gpus)])
        with tf.Session(cluster.target, config=CONFIG) as sess:
            sess.run(tf.global_variables_initializer())
            values = sess.run(results, {x: inputs}, TRACED, trace)
        whatif = tf.sim.what_if(trace, cluster)
    step, names = whatif.base, [result.op.name for result in results]
    ends = [(m.source_device + m.target_device, m.nbytes) for m in step.messages]
    sent = [nbytes for devices, nbytes in ends if devices.count("GPU") == 2]
    graph = tf.graph_util.extract_sub_graph(graph.as_graph_def(), names)
    of_step = {"ms": 1000 * step.makespan, "sent": sum(sent), "step": step}
    found = {"value": np.concatenate(values), "trace": trace, "graph": graph}
    return SimpleNamespace(**found, **of_step, whatif=whatif)


# %% [markdown]
# ## A fully connected network
#
# Four layers of 1,024 units each, and a batch of 256 inputs. In a *fully connected* layer, each unit needs all units of
# the layer below. First we run the whole network on one GPU, to compare with.

# %%
UNITS, LAYERS, BATCH = 1024, 4, 256
rng = np.random.default_rng(1)
inputs = rng.normal(size=[BATCH, UNITS]).astype(np.float32)
scale, size = UNITS**-0.5, [LAYERS, UNITS, UNITS]
kernels = list(rng.normal(scale=scale, size=size).astype(np.float32))


def dense(x, kernel, name):
    """A layer with these weights."""
    with tf.variable_scope(name):
        return tf.nn.relu(tf.matmul(x, tf.get_variable("kernel", initializer=kernel)))


def whole(x, devices):
    """All layers on the first device; of the last one, the mean of each row."""
    with tf.device(devices[0]):
        for i, kernel in enumerate(kernels):
            x = dense(x, kernel, f"layer{i + 1}")
        return [tf.reduce_mean(x, axis=1, name="mean")]


one = run(whole, 1, inputs)
print(f"one GPU: {one.ms:.2f} ms")

# %% [markdown]
# ## Cut between the layers
#
# The lower layers go on one GPU, the upper ones on another. Only one tensor has to be sent.
#
# **Predict: with half of the layers on each of two GPUs, is a step faster than on one GPU? And with one layer on each
# of four?**


# %%
def by_layers(x, devices):
    """The layers in equal parts on the devices."""
    for i, kernel in enumerate(kernels):
        with tf.device(devices[i * len(devices) // LAYERS]):
            x = dense(x, kernel, f"layer{i + 1}")
    with tf.device(devices[-1]):
        return [tf.reduce_mean(x, axis=1, name="mean")]


halves, quarters = run(by_layers, 2, inputs), run(by_layers, 4, inputs)
times = [f"{each.ms:.2f} ms" for each in (one, halves, quarters)]
tf.viz.table({"GPUs": [1, 2, 4], "time of a step": times})

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Both are slower: the GPUs do the same work, and send each other tensors, too.
#
# </details>
#
# **Predict: how many of the four GPUs work at the same time?** The timeline of the step shows it. Each band is a
# device, each solid bar an operation.

# %%
tf.viz.timeline(quarters.trace, title="A layer on each GPU")

# %% [markdown]
# In the picture: click an empty place in the band of `GPU:3`, and it says what that GPU was waiting for. Press
# <kbd>C</kbd>, and the longest chain of ops lights up: it runs through all layers.
#
# <details><summary><b>Show why</b></summary>
#
# A layer can't begin before the one below has ended, so only one GPU works at a time. The cut has only added transfers:
# the curved arrows.
#
# </details>
#
# This is the network that was cut. The colour of a box is the device; a thick line crosses from one device to another.

# %%
# Figure 12-14
tf.viz.placement(halves.graph, max_boxes=8, title="Cut between the layers")

# %% [markdown]
# ## Cut through the layers
#
# Now the other way: each GPU has half of the units of *every* layer. Then both halves of a layer can be computed at the
# same time. But each half needs the whole layer below, so both must send their half to the other, at every layer.
#
# **Predict: is that faster than one GPU?**


# %%
def by_units(x, devices):
    """A part of every layer's units on each device."""
    slices = [x]
    for i, kernel in enumerate(kernels):
        below, slices = slices, []
        for k, columns in enumerate(np.split(kernel, len(devices), axis=1)):
            with tf.device(devices[k]), tf.variable_scope(f"layer{i + 1}_slice{k + 1}"):
                slices.append(dense(tf.concat(below, axis=1), columns, "units"))
    with tf.device(devices[0]):
        return [tf.reduce_mean(tf.concat(slices, axis=1), axis=1, name="mean")]


# %%
sliced = run(by_units, 2, inputs)
computed = 4 * inputs.size * LAYERS  # bytes: 4 for each number


# %% jupyter={"source_hidden": true}
def compared(ways, computed):
    """A table of runs: how long a step takes, and what goes from GPU to GPU."""
    times = [f"{it.ms:.2f} ms" for it in ways.values()]
    sent = [f"{it.sent / 1e6:.1f} MB" for it in ways.values()]
    shares = [f"{it.sent / computed:.0%}" for it in ways.values()]
    crossed = {"from GPU to GPU": sent, "share of all results": shares}
    return tf.viz.table({"cut": [*ways], "a step takes": times} | crossed)


# %%
ways = {"not at all": one, "between the layers": halves, "through the layers": sliced}
compared(ways, computed)

# %%
# Figure 12-14
tf.viz.placement(sliced.graph, max_boxes=14, title="Cut through the layers")

# %% [markdown]
# In the picture: click a box to open it, and point at a line between the two colours to see how large its tensor is.
#
# <details><summary><b>Show why</b></summary>
#
# Two GPUs are faster now, though not twice as fast: after each layer, each needs what the other has computed.
#
# </details>
#
# Look how much time goes into sending:

# %%
tf.viz.timeline(sliced.trace, title="Half of each layer on each GPU")

# %% [markdown]
# **Predict: where does the gain end? Take GPUs that send to each other faster (NVLink, 150 GB/s), or that are in two
# different machines, with a network of 10 Gb/s (that is 1.25 GB/s) or 100 Gb/s between them.** (`apart` is folded away:
# it measures a step on two machines, as `run` does on one.)


# %% jupyter={"source_hidden": true}
def apart(build, network):
    """Milliseconds of a step on two GPUs in two machines."""
    hardware = {"gpus": 1, "gpu": "K40", "network": network, "clock": "virtual"}
    with tf.Graph().as_default(), tf.Cluster(worker=2, **hardware) as cluster:
        with tf.device("/job:worker/task:0/cpu:0"):
            x = tf.placeholder(tf.float32, inputs.shape)
        results = build(x, ["/job:worker/task:0/gpu:0", "/job:worker/task:1/gpu:0"])
        with tf.Session(cluster.target) as sess:
            sess.run(tf.global_variables_initializer())
            began = cluster.now()
            sess.run(results, {x: inputs})
            return 1000 * (cluster.now() - began)


# %%
times = {"one GPU": one.ms}
for bus in ("nvlink2", "pcie3", "pcie2"):
    times[f"one machine, {bus}"] = run(by_units, 2, inputs, bus=bus).ms
for network in ("100Gb/s", "10Gb/s", "1Gb/s"):
    times[f"two machines, {network}"] = apart(by_units, network)
of_all = [f"{ms:.2f} ms" for ms in times.values()]
tf.viz.table({"where": [*times], "a step takes": of_all})

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Inside one machine, the cut pays. Between two machines it does not, even over a fast network: sending takes longer
# than the cut saves. So devices that exchange many bytes belong in the same machine. And cutting a fully connected
# network pays only over a fast bus.
#
# </details>
#
# ## A network with local connections
#
# A *convolutional* layer looks at an image through small windows, here of 3 × 3 points. For a point of its result it
# needs a few neighbours only. So if one GPU has the upper half of each image, and another one the lower half, they only
# have to exchange the rows at the border.
#
# **Predict: most of what the layers of the fully connected network computed had to cross to the other GPU. What share
# will it be now?**

# %%
ROWS, DEPTHS = 64, (3, 32, 32, 32, 32)
# images × rows × columns × colours
photos = rng.normal(size=[16, ROWS, ROWS, 3]).astype(np.float32)
sizes = [[3, 3, below, depth] for below, depth in pairwise(DEPTHS)]
filters = [rng.normal(scale=0.1, size=size).astype(np.float32) for size in sizes]


def conv(x, weights, name):
    """A convolutional layer with these weights."""
    with tf.variable_scope(name):
        weights = tf.get_variable("filters", initializer=weights)
        return tf.nn.relu(tf.nn.conv2d(x, weights, [1, 1, 1, 1], padding="SAME"))


def whole_images(x, devices):
    """All layers on the first device; of the last one, the sums over columns."""
    with tf.device(devices[0]):
        for i, weights in enumerate(filters):
            x = conv(x, weights, f"layer{i + 1}")
        return [tf.reduce_sum(x, axis=1, name="sum")]


# %%
def by_rows(x, devices):
    """Cut all images: the upper half on one device, the lower half on the other."""
    upper, lower = devices
    with tf.device(upper):
        top, bottom = tf.split(x, 2, axis=1, name="cut")
    with tf.device(upper), tf.name_scope("top0"):
        top_edge = top[:, -1:]
    with tf.device(lower), tf.name_scope("bottom0"):
        bottom_edge = bottom[:, :1]
    for i, weights in enumerate(filters):
        seen_by_top, seen_by_bottom = [top, bottom_edge], [top_edge, bottom]
        with tf.device(upper), tf.variable_scope(f"top{i + 1}"):
            top = conv(tf.concat(seen_by_top, axis=1), weights, "layer")[:, :-1]
            top_edge = top[:, -1:]
        with tf.device(lower), tf.variable_scope(f"bottom{i + 1}"):
            bottom = conv(tf.concat(seen_by_bottom, axis=1), weights, "layer")[:, 1:]
            bottom_edge = bottom[:, :1]
    return [add_up(top, bottom, devices)]


# %%
def add_up(top, bottom, devices):
    """The sum over each column of each map."""
    with tf.device(devices[1]), tf.name_scope("sum_of_bottom"):
        bottom = tf.reduce_sum(bottom, axis=1)
    with tf.device(devices[0]), tf.name_scope("sum"):
        return tf.add(tf.reduce_sum(top, axis=1), bottom)


one_cnn, two_cnn = run(whole_images, 1, photos), run(by_rows, 2, photos)
computed = 4 * photos[..., 0].size * sum(DEPTHS[1:])
compared({"not at all": one_cnn, "through the images": two_cnn}, computed)

# %%
# Figure 12-15
tf.viz.placement(two_cnn.graph, max_boxes=14, title="Cut through the images")

# %%
tf.viz.timeline(two_cnn.trace, title="Half of each image on each GPU")

# %% [markdown]
# In the picture: hold <kbd>Shift</kbd> and drag over the whole step, and it says for how long each device was busy.
#
# <details><summary><b>Show why</b></summary>
#
# 4%. The lower half of the images crosses once, then a row per layer and direction. Both GPUs compute nearly all of the
# time. Still, they are not twice as fast: cutting off borders (`strided_slice`) and putting them on (`concat`) is extra
# work that a single GPU does not have.
#
# </details>
#
# (`tf.model_parallel.conv2d(x, 32, 3, devices, by="rows")` cuts a layer for you, over any number of devices and with
# any window size. It puts the pieces together after each layer, so it sends more than we did.)
#
# ### Now break it
#
# Each border is cut off on the device that *has* it. **Predict: what if the device that *needs* it does that?** The
# graph is the same, but eight small operations run elsewhere.


# %%
def carelessly(x, devices):
    """The layers of `by_rows`, but the borders are cut off where they are needed."""
    upper, lower = devices
    with tf.device(upper):
        top, bottom = tf.split(x, 2, axis=1)
    for i, weights in enumerate(filters):
        above, below = top, bottom
        with tf.device(upper):
            seen = tf.concat([above, below[:, :1]], axis=1)
            top = conv(seen, weights, f"upper{i + 1}")[:, :-1]
        with tf.device(lower):
            seen = tf.concat([above[:, -1:], below], axis=1)
            bottom = conv(seen, weights, f"lower{i + 1}")[:, 1:]
    return [add_up(top, bottom, devices)]


careless = run(carelessly, 2, photos)
ways = {"not at all": one_cnn, "with care": two_cnn, "carelessly": careless}
compared(ways, computed)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# The answer is the same, but now whole halves cross, to be cut down to one row on arrival, and two GPUs are slower than
# one. If a network that you cut is not as fast as you hoped, first look at what is sent. A timeline shows it.
#
# </details>
#
# ## A recurrent network
#
# A *recurrent* network reads a sequence word by word. A layer is a *cell*: from a word, or from the output of the layer
# below, and from its own state after the previous word, it computes its new state. Our network has four layers and
# reads eight words.
#
# **Predict: with one layer on each of four GPUs, when can the fourth one begin? How many are busy in the middle?**

# %%
WORDS, SIZE = 8, 1024
sentences = rng.normal(size=[64, WORDS, SIZE]).astype(np.float32)


def cell(word, state, layer):
    """The new state of a layer."""
    start = tf.random_uniform_initializer(-0.03, 0.03, seed=layer)
    kernel = tf.get_variable(f"layer{layer}", [2 * SIZE, SIZE], initializer=start)
    return tf.tanh(tf.matmul(tf.concat([word, state], axis=1), kernel))


# %%
def recurrent(x, devices):
    """Four layers in equal parts on the devices; the last output of the last one."""
    where = [devices[layer * len(devices) // 4] for layer in range(4)]
    with tf.device(where[0]):
        words = tf.unstack(x, axis=1, name="words")
    states = []
    for device in where:
        with tf.device(device):
            states.append(tf.zeros([len(sentences), SIZE], name="start"))
    for at, word in enumerate(words):
        with tf.variable_scope("cells", reuse=at > 0, auxiliary_name_scope=False):
            for i, device in enumerate(where):
                with tf.device(device), tf.name_scope(f"word{at + 1}_{i + 1}"):
                    word = states[i] = cell(word, states[i], i + 1)
    return [word]


one_rnn, four_rnn = run(recurrent, 1, sentences), run(recurrent, 4, sentences)
print(f"one GPU {one_rnn.ms:.2f} ms   four {four_rnn.ms:.2f} ms")

# %%
# Figure 12-16
tf.viz.placement(four_rnn.graph, max_boxes=50, title="A recurrent layer on each GPU")

# %% [markdown]
# In the picture: `word3_2` is the cell of the third word in the second layer. Point at it, and see from which two cells
# it needs something.
#
# <details><summary><b>Show why</b></summary>
#
# Cells that are drawn side by side need nothing from each other, so they can be computed at the same time. The fourth
# layer can begin when the first word has passed the three layers below. From then on, all four GPUs are busy, until the
# first layer has read the last word.
#
# </details>
#
# And so they are:

# %%
both = {"all layers on one GPU": one_rnn.step, "a layer on each of four": four_rnn.step}
tf.viz.what_if(both, links=0, title="Four layers, eight words")

# %% [markdown]
# The words run through the layers like a wave. At first only GPU 0 works. While it reads the second word, GPU 1 works
# on the first. From the fourth word on, all four are busy. At the end, one after the other has nothing left to read.
#
# This is the cut *between* layers that slowed down the fully connected network. Here it helps, because there are eight
# words on their way, and each GPU can work on a different one.
#
# ## A pipeline
#
# So let us keep several parts on their way in the fully connected network, too. Cut the batch into parts, called
# *micro-batches*. While GPU 1 has the first part, GPU 0 works on the second. Each layer is then a *stage* of a
# *pipeline*. `tf.model_parallel.pipeline(stages, x, devices, micro_batches)` builds the graph for it.
#
# At the beginning the later stages have nothing to do yet, at the end the earlier ones have nothing left. The share of
# time that GPUs lose in this way is called the *bubble*.
#
# **Predict: four stages, four micro-batches. How large is the bubble? And how large with sixteen micro-batches?**


# %%
def pipeline(micro_batches):
    """A function that builds the network for a batch cut into that many parts."""

    def build(x, devices):
        stages = [partial(dense, kernel=kernel, name="layer") for kernel in kernels]
        where = [devices[i * len(devices) // LAYERS] for i in range(LAYERS)]
        with tf.device(where[0]):
            return tf.model_parallel.pipeline(stages, x, where, micro_batches)

    return build


large = np.tile(inputs, [4, 1])  # 1,024 inputs
alone = run(pipeline(1), 1, large)
counts = [1, 2, 4, 8, 16, 32, 64]
flows = {count: run(pipeline(count), LAYERS, large) for count in counts}
steps = {f"micro-batches: {count}": flows[count].step for count in (1, 4, 16)}
tf.viz.what_if(steps, links=0, title="A pipeline of four stages")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# If K stages took equally long, and sending took no time, we could calculate it: M micro-batches are through after M +
# K − 1 turns, and each GPU has nothing to do in K − 1 of them. So the bubble is (K − 1) / (M + K − 1): 3/7 with four
# micro-batches, 3/19 with sixteen.
#
# </details>
#
# The next cell, folded away, puts the formula's bubble next to measured ones: with transfers that take no time, and
# with real ones. (The picture's “idle” is more than the bubble: it counts the whole step, including the time when the
# inputs come from the CPU. The bubble begins when the first GPU begins.)

# %% jupyter={"source_hidden": true}
gpus = [f"/gpu:{i}" for i in range(LAYERS)]
free = tf.sim.Bus("free", 1e30, 0.0, "made up: sends in no time", peer_bandwidth=1e30)
counted = [(LAYERS - 1) / (count + LAYERS - 1) for count in counts]
measured = [flow.whatif.run(bus=free).bubble(gpus) for flow in flows.values()]
with_transfers = [flow.step.bubble(gpus) for flow in flows.values()]
bubbles = {
    "by the formula": counted,
    "measured, free": measured,
    "measured, PCIe": with_transfers,
}
columns = {head: [f"{each:.0%}" for each in shares] for head, shares in bubbles.items()}
times = [f"{flow.ms:.2f} ms" for flow in flows.values()]
tf.viz.table({"micro-batches": counts} | columns | {"time of a step": times})

# %%
times = [flow.ms for flow in flows.values()]
both = {"four GPUs": times, "one GPU": [alone.ms] * len(counts)}
tf.viz.curve(counts, both, "micro-batches", "time of a step (ms)")

# %% [markdown]
# More parts make a smaller bubble, but each part also costs something: a GPU has to begin a multiplication, and a
# message has to be sent. Beyond some number of parts there is nothing more to gain, and with still more it gets worse.
#
# Training runs through the pipeline twice: forward, and then the gradients *backward*, from the last stage to the
# first.
#
# **Predict: what will the timeline of a training step look like? Where is the bubble?**


# %%
def training(x, devices):
    """A training step with four micro-batches; gradients are where the layers are."""
    parts = pipeline(4)(x, devices)
    with tf.device(devices[-1]):
        loss = tf.add_n([tf.reduce_mean(tf.square(part)) for part in parts])
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    step = optimizer.minimize(loss, colocate_gradients_with_ops=True)
    with tf.control_dependencies([step]):
        return [tf.zeros([1])]


trained = run(training, LAYERS, large)
print(f"{trained.ms:.2f} ms, bubble {trained.step.bubble(gpus):.0%}")
title = "A training step in a pipeline"
tf.viz.timeline(trained.trace, color_by="phase", graph=trained.graph, title=title)

# %% [markdown]
# In the picture: click an empty place in the band of `GPU:0`, and it says what that GPU is waiting for. Press
# <kbd>C</kbd> to see the chain of ops that makes the step this long.
#
# <details><summary><b>Show why</b></summary>
#
# Two waves: forward (F) through the GPUs, and backward (B) again. The first GPU waits longest: from its last forward
# part until the first gradient comes back. Backward takes about twice as long as forward: most layers need two
# multiplications, one for their weights and one for the layer below.
#
# </details>
#
# ## When you have to cut
#
# So far one GPU was enough, and we only wanted to be faster. Sometimes one is not enough: this network has 14 layers
# with 4 MiB of weights each, 56 MiB together. The GPUs of this machine have 96 MiB, about half of which is in use
# before a program begins.
#
# **Predict: which of the two runs ends with an error?**


# %%
def deep(x, devices):
    """14 layers in equal parts on the devices."""
    ones = tf.ones_initializer()
    for i in range(14):
        with tf.device(devices[i * len(devices) // 14]):
            x = tf.layers.dense(x, UNITS, use_bias=False, kernel_initializer=ones)
    return [x]


for count in (1, 2):
    try:
        ms = run(deep, count, inputs, gpu_memory="96MiB").ms
        print(f"GPUs: {count}   a step takes {ms:.2f} ms")
    except tf.errors.ResourceExhaustedError as error:
        print(f"GPUs: {count}   out of memory")
        display(error)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# One GPU has less than 56 MiB left for all layers; each of two has to hold only 28. Now even a slow cut is better than
# none.
#
# </details>
#
# ## Exercise
#
# [exercises/ex09_split](../exercises/ex09_split.ipynb): cut two layers over two GPUs, so that a step ends within a
# given time.
#
# And try this here:
#
# - Make the batch smaller or the layers wider (`BATCH`, `UNITS`). When does the cut through the layers gain more?
# - Cut through the layers with four GPUs: `run(by_units, 4, inputs)`. Is it twice as good as with two?
# - Give the pipeline slower stages: with 2,048 units in the second layer, `kernels[1]` and `kernels[2]` are twice as
#   large. Which GPU waits least then, once it has begun?
#
# ## What you can do now
#
# - Cut a network between its layers, through its layers, or through its images, and say what has to be sent.
# - Read from a timeline whether devices compute, send or wait.
# - Fill the waiting time with a pipeline, and say how large its bubble will be.
