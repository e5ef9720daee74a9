# %% [markdown]
# # Welcome
#
# **Can several machines train one model together? What does each of them do, and what do they say to each other?**
#
# In the next minute you start a cluster inside this notebook, let two workers train a network on handwritten digits at
# the same time, and look at where every operation ran, and when. You need no GPU, no second machine and no network.
#
# Run one cell after the other with <kbd>Shift</kbd>+<kbd>Enter</kbd>, or all at once with *Run → Run All Cells*.

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
# On real hardware each task is a process on some machine. Here all three live in this notebook, and their addresses are
# only names; the program is the same.

# %%
# cluster = %dtf_cluster --ps 1 --worker 2
cluster

# %% [markdown]
# ## Something to learn
#
# Handwritten digits, 8×8 pixels each, come with the package. The number below an image is its *label*: the answer that
# the model should learn to give. Another 400 images are kept apart, for a test at the end.

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
from types import SimpleNamespace


def build(client):
    """The graph of one worker."""
    place = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
    with tf.device(place):
        with tf.name_scope("input"):
            images = tf.placeholder(tf.float32, [None, 64], name="images")
            labels = tf.placeholder(tf.float32, [None, 10], name="labels")
        with tf.name_scope("hidden"):
            weights = tf.Variable(tf.truncated_normal([64, 64], stddev=0.125, seed=1), name="weights")
            biases = tf.Variable(tf.zeros([64]), name="biases")
            hidden = tf.nn.relu(tf.matmul(images, weights) + biases)
        with tf.name_scope("output"):
            weights = tf.Variable(tf.truncated_normal([64, 10], stddev=0.125, seed=2), name="weights")
            biases = tf.Variable(tf.zeros([10]), name="biases")
            logits = tf.matmul(hidden, weights) + biases
        with tf.name_scope("loss"):
            each = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
            loss = tf.reduce_mean(each)
        with tf.name_scope("accuracy"):
            correct = tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1))
            accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)
    return SimpleNamespace(images=images, labels=labels, loss=loss, accuracy=accuracy, step=step, train=train)


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
# `cluster.run(work)` calls `work` for both workers at the same time, each as if on a machine of its own: with an empty
# graph, which `build` fills. A worker takes a batch of 50 images, computes *gradients* (which way each variable should
# move, and how far), and has the parameter server apply them as soon as it has them, whatever the other worker is
# doing. That is **asynchronous** training.
#
# `watch` shows the losses that the workers report while they train. *Stop* asks them to end early.
#
# *Before you run it: each worker makes 600 steps. How many updates will the variables have seen?*


# %%
def work(client):
    """Train on each worker, and report each loss; returns the number of steps."""
    model = build(client)
    batches = tf.datasets.digits(one_hot=True, seed=client.index).train
    with tf.Session(client.target) as sess:
        for step in range(600):
            if client.should_stop():
                return step
            images, labels = batches.next_batch(50)
            loss, _ = sess.run([model.loss, model.train], {model.images: images, model.labels: labels})
            client.report(loss)
    return 600


steps = cluster.run(work, watch=tf.viz.live("loss", steps=1200))

# %% [markdown]
# Both losses fall. If one curve starts lower than the other, that worker began a moment later, and found in the shared
# variables what the other had already learned.
#
# ## Can it read?
#
# A new client, with a new session on the *other* worker, finds the trained variables where they were left: on the
# parameter server. Variables outlive sessions. Now it meets the 400 images that no worker has seen.

# %%
tf.reset_default_graph()
model = build(cluster.client("worker", 1))
sess = tf.Session(cluster.target_of("worker", 1))
test = {model.images: digits.test.images, model.labels: digits.test.labels}
accuracy, updates = sess.run([model.accuracy, model.step], test)
print(f"test accuracy {accuracy:.3f} after {updates} updates")

# %% [markdown]
# Both workers together made these updates: the step counter is a variable, too, and they shared it.
#
# ## Where did everything run?
#
# Each box is a group of operations with the same prefix, or a single one. Its colour says on which device it was
# placed; a group with two colours is spread over two devices. A thick arrow is a tensor that has to travel from one
# task to another. Click a box to open it, and its title to close it again; point at a box or an arrow to see its
# tensors.
#
# *The worker needs the weights of the `output` layer in two places. Open `output` and `gradients`: which, and why?*

# %%
# %dtf_placement model.train --max-boxes 9

# %% [markdown]
# `output/MatMul` multiplies by them on the way to the loss. The box `gradients/output` multiplies by them once more, on
# the way back: that is how the layer before learns what it should change.
#
# ## What ran when?
#
# One training step of worker 1, traced. Each band is a device, each solid bar an operation. A hatched bar is a tensor
# that a device received, from the moment it asked until it had it, and an arrow shows where it came from.
#
# *What does the worker do until the weights have come? What does the parameter server do meanwhile?*

# %%
x, y = digits.train.next_batch(50)
feed = {model.images: x, model.labels: y}
for _ in range(2):
    sess.run(model.train, feed)  # the first run also prepares the graph: that is not what we want to see
# %dtf_timeline model.train --feed feed

# %% [markdown]
# First the weights travel to the worker, which has little else to do until then: nearly all it computes needs them.
# Then the parameter server waits, until the first gradient is there. So neither is busy all the time. (That is one
# reason to have several workers: while one computes, the server can serve another.)

# %% [markdown]
# ## And now?
#
# Change something, guess what will happen, and run all cells again:
#
# - Start the cluster with `--worker 3`. How many updates will there be?
# - Add `--engine process` there: each task becomes an operating system process of its own. What changes in the
#   timeline?
# - Make the learning rate 3 instead of 0.3. Do larger steps get there sooner?
#
# Then write a cluster of your own, in the exercise [exercises/ex00_welcome](../exercises/ex00_welcome.ipynb): its
# workers count together, in one variable.
#
# The cluster runs until you press *Stop* in its panel, run `%dtf_cluster stop`, or shut down the kernel.
