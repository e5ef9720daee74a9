# %% [markdown]
# # Demo: what if?
#
# **You train on one GPU, and it takes too long. More workers? A better network? Newer GPUs?**
#
# One training step of a small convolutional net is planned once, and then simulated again for every place of the
# sliders, in some milliseconds. *Run → Run All Cells*, then move them, by mouse or with the arrow keys.
#
# On a projector: end the first code cell with `%dtf_style --projector`, then *View → Appearance → Presentation Mode*,
# and hide the list of files (Ctrl+B).

# %%
import dtflab as tf
from dtflab.notebook import Slider, explore

# %load_ext dtflab

# %% [markdown]
# ## The step
#
# Two parameter servers hold the variables, one worker with one K40 makes a step with 128 images. It is only planned,
# not run: the times come from the operations, the GPU's figures and the network's.

# %%
tf.reset_default_graph()  # run again, the cell builds the same net, not a second one
hardware = {"gpus": 1, "gpu": "K40", "network": "10Gb/s", "clock": "virtual"}
cluster = tf.Cluster(ps=2, worker=1, **hardware)
place = tf.train.replica_device_setter(
    cluster=cluster.spec,
    ps_device="/job:ps/cpu:0", worker_device="/job:worker/task:0/gpu:0",
)  # fmt: skip
with tf.device(place):
    images = tf.placeholder(tf.float32, [128, 32, 32, 3])
    labels = tf.placeholder(tf.int32, [128])
    layer = tf.layers.conv2d(images, 64, 3, padding="same", activation=tf.nn.relu)
    layer = tf.layers.conv2d(layer, 64, 3, padding="same", activation=tf.nn.relu)
    layer = tf.layers.max_pooling2d(layer, 2, 2)
    layer = tf.layers.conv2d(layer, 128, 3, padding="same", activation=tf.nn.relu)
    layer = tf.layers.flatten(tf.layers.max_pooling2d(layer, 2, 2))
    layer = tf.layers.dense(layer, 1024, tf.nn.relu)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.layers.dense(layer, 10))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

step = tf.sim.what_if([loss, train], cluster)
megabytes = 4e-6 * sum(each.shape.num_elements() for each in tf.trainable_variables())
print(f"{megabytes:.1f} MB go to each worker in each step, and as much comes back")


# %%
def what_if(network, workers, gpu):
    """The base and the changed step: their two busiest devices and busiest link."""
    changed = step.run(network=network, workers=workers, gpu=gpu)
    steps = {"the base": step.base, "what if": changed}
    return tf.viz.what_if(steps, devices=2, links=1, title="")


# %%
networks = ("1Gb/s", "10Gb/s", "100Gb/s")


def whole_picture():
    """All places of two sliders: examples per second against the number of workers."""
    counts = [1, 2, 4, 8, 16, 32]
    sweeps = {each: step.sweep(workers=counts, network=each) for each in networks}
    return tf.viz.sweep(sweeps, "throughput")


# %% [markdown]
# ## Move a slider
#
# The code of the sliders is folded away: a click on the three dots shows it.
#
# *Ask the room first: how many times faster are 16 workers? And on 100 Gb/s?*

# %% jupyter={"source_hidden": true}
explore(
    what_if,
    network=Slider(
        ["1Gb/s", "10Gb/s", "25Gb/s", "40Gb/s", "100Gb/s"], "10Gb/s",
        "Who waits: the GPU or the wire?",
    ),
    workers=Slider(
        [1, 2, 4, 8, 16, 32], 4, "Each makes a step. Do the servers keep up?"
    ),
    gpu=Slider(
        ["K40", "P100", "V100", "A100", "H100"], "K40",
        "A faster GPU waits more: look at “idle”.",
    ),
)  # fmt: skip

# %% [markdown]
# <details><summary><b>What to say</b> (for the teacher)</summary>
#
# - With one worker on 10 Gb/s, the GPU computes a third of the time. The rest is the wire, and the server that adds the
#   gradients to the variables.
# - 32 workers are some 3 times as fast as one: the variables cross the servers' wire 32 times a step.
# - The second server has nothing to do: one matrix is 99% of all bytes, and it lies on the first. Lesson 05 cuts such a
#   matrix over both.
# - A faster GPU alone hardly helps: an H100 instead of the K40, 14%. A network of 100 Gb/s makes the step 2.4 times as
#   fast.
# - Then write `whole_picture()` into a new cell and run it: all places of two sliders at once. A line that goes flat is
#   a network that is full: one more worker waits for it, too. Only the line of 100 Gb/s goes on rising.
#
# </details>
