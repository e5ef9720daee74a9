# %% [markdown]
# # Welcome
#
# **Can several machines train one model together? What does each of them do, and what do they say to each other?**
#
# In the next minute you start a cluster inside this notebook, let two workers train a network on handwritten digits
# at the same time, and look at where every operation ran, and when. You need no GPU, no second machine and no
# network.
#
# Run one cell after the other with <kbd>Shift</kbd>+<kbd>Enter</kbd>. Where a text says *Predict*, stop and answer
# before you run the next cell. The reason is folded away below it: look at the picture first, then click *Show why*.

# %%
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## A cluster in one line
#
# A *cluster* is a group of **tasks** that run one program together. Ours has three:
#
# - one **parameter server** (`ps`) keeps the numbers that the model learns, its *variables*;
# - two **workers** compute how to make them better.
#
# On real hardware each task is a process on some machine. Here all three live in this notebook, and their addresses
# are only names; the program is the same.

# %%
# cluster = %dtf_cluster --ps 1 --worker 2
cluster

# %% [markdown]
# ## Something to learn
#
# Handwritten digits, 8×8 pixels each, come with the package. The number below an image is its *label*: the answer
# that the model should learn to give. Another 400 images are kept apart, for a test at the end.

# %%
digits = tf.datasets.digits(one_hot=True)
digits.train

# %% [markdown]
# ## One model, built by each worker
#
# This is ordinary TensorFlow 1 code. It computes nothing yet: it describes a *graph* of operations. Two lines make it
# distributed. `replica_device_setter` puts every **variable** on the parameter server, and everything else on the
# worker that builds the graph.
#
# Each worker will build a graph of its own. The variables in them have the same names on the same server, so the
# workers share them. This is called *between-graph replication*.


# %%
def layer(inputs, shape, seed):
    """One layer of the network: multiply by its weights, add its biases."""
    start = tf.truncated_normal(shape, stddev=0.125, seed=seed)
    weights = tf.Variable(start, name="weights")
    biases = tf.Variable(tf.zeros(shape[1:]), name="biases")
    return tf.matmul(inputs, weights) + biases


def network(images, labels):
    """Two layers; the loss (how wrong they are) and the accuracy on a batch."""
    with tf.name_scope("hidden"):
        hidden = tf.nn.relu(layer(images, [64, 64], seed=1))
    with tf.name_scope("output"):
        logits = layer(hidden, [64, 10], seed=2)
    with tf.name_scope("loss"):
        each = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        loss = tf.reduce_mean(each)
    with tf.name_scope("accuracy"):
        correct = tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1))
        accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
    return loss, accuracy


# %%
from types import SimpleNamespace


def build(client):
    """The graph of one worker."""
    place = tf.train.replica_device_setter(
        cluster=client.cluster_spec, worker_device=client.device
    )
    with tf.device(place):
        with tf.name_scope("input"):
            images = tf.placeholder(tf.float32, [None, 64], name="images")
            labels = tf.placeholder(tf.float32, [None, 10], name="labels")
        loss, accuracy = network(images, labels)
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.02)
        train = optimizer.minimize(loss, global_step=step)
    names = {"images": images, "labels": labels, "loss": loss, "accuracy": accuracy}
    return SimpleNamespace(**names, step=step, train=train)


# %% [markdown]
# Variables have no value until somebody runs their initializer. As they are shared, once is enough: a client of the
# first worker does it.

# %%
with tf.Graph().as_default():
    build(cluster.client("worker", 0))
    with tf.Session(cluster.target) as sess:
        sess.run(tf.global_variables_initializer())

# %% [markdown]
# ## Two workers train it, without waiting for each other
#
# `cluster.run(work)` calls `work` for both workers at the same time, each as if on a machine of its own: with an
# empty graph, which `build` fills. A worker takes a batch of 50 images, computes *gradients* (which way each variable
# should move, and how far), and has the parameter server apply them as soon as it has them, whatever the other worker
# is doing. That is **asynchronous** training.
#
# `watch` draws the losses that the workers report, while they train: some seconds. *Stop* in the picture asks them to
# end early, and the model is then as good as it was at that moment.
#
# **Predict: both workers change the same variables, and neither waits for the other. Will both losses fall, or does
# one worker spoil what the other has learned?**


# %%
STEPS = 4000  # of each worker


def work(client):
    """Train on each worker, and report each loss; returns the number of steps."""
    model = build(client)
    batches = tf.datasets.digits(one_hot=True, seed=client.index).train
    with tf.Session(client.target) as sess:
        for step in range(STEPS):
            if client.should_stop():
                return step
            images, labels = batches.next_batch(50)
            feed = {model.images: images, model.labels: labels}
            loss, _ = sess.run([model.loss, model.train], feed)
            client.report(loss)
    return STEPS


steps = cluster.run(work, watch=tf.viz.live("loss", steps=2 * STEPS))

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Both fall. Each gradient is a small step in a direction that is good for all images, so the steps of two workers add
# up. If one curve starts lower than the other, that worker began a moment later, and found in the shared variables
# what the other had already learned.
#
# </details>
#
# ## Can it read?
#
# A new client, with a new session on the *other* worker, finds the trained variables where they were left: on the
# parameter server. Variables outlive sessions. Now it meets the 400 images that no worker has seen.
#
# **Predict: does this session have a trained model, although it never trained? How many of 100 digits will it
# recognize?**

# %%
tf.reset_default_graph()
model = build(cluster.client("worker", 1))
sess = tf.Session(cluster.target_of("worker", 1))
test = {model.images: digits.test.images, model.labels: digits.test.labels}
accuracy, updates = sess.run([model.accuracy, model.step], test)
print(f"test accuracy {accuracy:.3f} after {updates:,} updates")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# It has: the values belong to the parameter server, not to a session, and nearly all digits are right. Both workers
# together made the 8,000 updates (fewer, if you pressed *Stop*). The step counter is a variable, too, and they shared
# it.
#
# </details>
#
# ## Where did everything run?
#
# Each box is a group of operations with the same prefix, or a single one. Its colour says on which device it was
# placed; a group with two colours is spread over two devices. A thick arrow is a tensor that has to travel from one
# task to another.
#
# **Predict: the parameter server holds the weights, the worker computes. Which arrows must cross from one to the
# other?** Then try the picture: click a box to open it, and its title to close it again; point at a box or an arrow
# to see its tensors. The worker needs the weights of the `output` layer in two places. Open `output` and `gradients`
# to find them.

# %%
# %dtf_placement model.train --max-boxes 9

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# The weights and biases of both layers go to the worker, and the gradients come back. `output/MatMul` multiplies by
# the weights of `output` on the way to the loss. The box `gradients/output` multiplies by them once more, on the way
# back: that is how the layer before learns what it should change.
#
# </details>
#
# ## What ran when?
#
# One training step of worker 1, traced (of five the one of median length, in case something else ran meanwhile). Each
# band is a device, each solid bar an operation. A hatched bar is a tensor that a device received, from the moment it
# asked until it had it, and an arrow shows where it came from.
#
# **Predict: what does the worker do until the weights have come? What does the parameter server do meanwhile?**

# %%
x, y = digits.train.next_batch(50)
feed = {model.images: x, model.labels: y}
# %dtf_timeline model.train --feed feed --steps 5

# %% [markdown]
# In the picture: click an empty place in a band, and it says what that device was waiting for. Press <kbd>C</kbd> for
# the *critical path*, the ops and transfers that made the step this long. Press <kbd>W</kbd> and <kbd>S</kbd> to zoom,
# and drag to move along.
#
# <details><summary><b>Show why</b></summary>
#
# First the weights travel to the worker, which has little else to do until then: nearly all it computes needs them.
# Then the parameter server waits, until the first gradient is there. So neither is busy all the time. (That is one
# reason to have several workers: while one computes, the server can serve another.)
#
# </details>

# %% [markdown]
# ## And now?
#
# Change something, predict what will happen, and run the cells again (*Run → Run All Cells*):
#
# - Start the cluster with `--worker 3`. How many updates will there be?
# - Add `--engine process` there: each task becomes an operating system process of its own. What changes in the
#   timeline?
# - Make the learning rate 0.2 instead of 0.02, then 2. Do larger steps get there sooner?
#
# Then write a cluster of your own, in the exercise [exercises/ex00_welcome](../exercises/ex00_welcome.ipynb): its
# workers count together, in one variable.
#
# The cluster runs until you press *Stop all* in its panel, run `%dtf_cluster stop`, or shut down the kernel.
