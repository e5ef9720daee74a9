# %% [markdown]
# # Welcome
#
# **Can one model be trained by several machines at once, and what do they say to each other?**
#
# In the next minute you start a cluster inside this notebook, train a network on real handwritten digits with two workers
# at the same time, and look at where every operation ran, and when. No GPU, no second machine, no network.
#
# Run the cells one by one with <kbd>Shift</kbd>+<kbd>Enter</kbd>, or all of them with *Run → Run All Cells*.

# %%
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## A cluster in one line
#
# One **parameter server** (`ps`) keeps the model. Two **workers** compute. Each is a *task*: it has devices, and it can be
# reached. Here all three live in this notebook; on real machines the program would be the same.

# %%
# cluster = %dtf_cluster --ps 1 --worker 2
cluster

# %% [markdown]
# ## Real input
#
# 1,797 handwritten digits, 8×8 pixels each, from the UCI repository. They came with the package.

# %%
digits = tf.datasets.digits(one_hot=True)
print(f"{digits.train.num_examples} to train on, {digits.test.num_examples} to test with")

# %% [markdown]
# ## A model for both workers
#
# This is ordinary TensorFlow 1 code. One line makes it distributed: `replica_device_setter` puts **variables** on the
# parameter server and everything else on the worker that builds the graph. Each worker builds its own copy of this graph;
# the variables, having the same names on the same server, are shared. That is *between-graph replication*.


# %%
def build(client):
    """The graph of one worker."""
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
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
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))
        with tf.name_scope("accuracy"):
            correct = tf.equal(tf.argmax(logits, 1), tf.argmax(labels, 1))
            accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)
    return images, labels, loss, accuracy, step, train


# %% [markdown]
# Variables have no value until somebody runs their initializer. That is done once, by any client; here by a client of the
# first worker.

# %%
chief = cluster.client("worker", 0)
build(chief)
with tf.Session(chief.target) as sess:
    sess.run(tf.global_variables_initializer())

# %% [markdown]
# ## Two workers train it, without waiting for each other
#
# `cluster.run(work)` calls `work` once per worker, each in a thread of its own with a graph of its own, as if on a machine of
# its own. Both take batches, compute gradients, and apply them to the shared variables as soon as they have them:
# **asynchronous** training.
#
# *Before you run it: each worker makes 600 steps. What will the global step be in the end?*


# %%
def work(client):
    """What each worker does; returns (global step, loss) of every step it made."""
    images, labels, loss, accuracy, step, train = build(client)
    batches = tf.datasets.digits(one_hot=True, seed=client.index).train
    history = []
    with tf.Session(client.target) as sess:
        for _ in range(600):
            x, y = batches.next_batch(50)
            value, number, _ = sess.run([loss, step, train], {images: x, labels: y})
            history.append((number, value))
    return history


histories = cluster.run(work)
for index, history in enumerate(histories):
    print(f"worker {index}: {len(history)} steps of its own, the last one at global step {history[-1][0]}")

# %% [markdown]
# The global step counts the updates of *both* workers: they shared it, as they shared the weights.

# %%
tf.viz.curve(
    range(0, 600, 10),
    {f"worker {i}": [value for _, value in history[::10]] for i, history in enumerate(histories)},
    xlabel="step of the worker",
    ylabel="loss on its batch",
)

# %% [markdown]
# ## Does it read digits?
#
# A new client, with a new session on the *other* worker, finds the trained variables where they were left: on the
# parameter server. Variables outlive sessions.

# %%
tf.reset_default_graph()
other = cluster.client("worker", 1)
images, labels, loss, accuracy, step, train = build(other)
sess = tf.Session(other.target)
test = {images: digits.test.images, labels: digits.test.labels}
print(f"test accuracy {sess.run(accuracy, test):.3f}")

# %% [markdown]
# ## Where did everything run?
#
# Each box is an operation, each colour a device. Follow an arrow that changes colour: there a tensor crosses from one task
# to another.

# %%
# %dtf_placement train

# %% [markdown]
# ## What ran when?
#
# One training step, traced. Each lane is a device, each bar an operation, each arrow a tensor on its way. *Which crossings
# could not be avoided, however fast the worker is?*

# %%
x, y = digits.train.next_batch(50)
feed = {images: x, labels: y}
# %dtf_timeline train --feed feed

# %% [markdown]
# ## And now?
#
# Change something and run again: three workers, a learning rate of 3, 10 hidden units. When you are done, stop the cluster,
# or just close the notebook.

# %%
sess.close()
# %dtf_cluster stop
