# %% [markdown]
# # Exercise 08: a search with many programs
#
# **Which width of the hidden layer, and which learning rate? Six nets, trained at the same time by six programs, will
# say.**
#
# Each program trains one net on a cluster. The differences between nets stand on the *command line*: a list of texts
# such as `["--hidden=32", "--rate=0.1", ...]`. So you write one program and start it as often as you like.
#
# Two programs that make a variable of the same name on the same task share it. Here they must not: each puts its
# variables into a *container* of its own, a named part of a task's memory.

# %%
import argparse

import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## A command line
#
# First look. Python's `argparse` reads a command line. What does it do with the last one? Predict, then run.

# %%
parser = argparse.ArgumentParser(prog="train", exit_on_error=False)
parser.add_argument("--rate", type=float, required=True)
print(parser.parse_args(["--rate=0.5"]))
print(parser.parse_args(["--rate", "1e-3"]).rate)
try:
    parser.parse_args(["--rate=fast"])
except argparse.ArgumentError as error:
    print(error)

# %% [markdown]
# ## Your task
#
# Write `train_net(argv)`, where `argv` is a command line with six options:
#
# - `--server`, the address of a task: where to make the session, `tf.Session(...)`;
# - `--device`, where the whole net goes, for example `/job:worker/task:1/cpu:0`;
# - `--container`, for all variables that the program makes: those of the net, and the global step. The net has this
#   name, too: `net(images, hidden, name)` is given;
# - `--hidden` (a whole number), `--rate` (a number) and `--steps`: the width of the hidden layer, the learning rate of
#   `tf.train.GradientDescentOptimizer`, and how many steps to train.
#
# Train on batches of 32 images of `digits.train`; the other images only try the net out. The loss is the mean cross
# entropy of the batch and nothing else, and the optimizer applies its gradient as it is: no penalty on large weights,
# nothing clipped. All variables of the net are trained. Count the steps in the *global step*.
#
# Each step of a call takes a new batch. Two nets may be trained on the same batches or on different ones: the checks
# accept both.
#
# Then **return** the share of the **validation** images for which the net is right, a number from 0 to 1. The variables
# stay on the cluster, for the next exercise. `train_net` may be called several times, each time with a container of its
# own: every call makes its own graph, initializes its own variables, and trains a new net.


# %%
def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def train_net(argv):
    """Train a net as the command line says; its share of right answers on the validation images."""
    digits = tf.datasets.digits()
    ### BEGIN SOLUTION
    parser = argparse.ArgumentParser()
    for name, kind in {
        "server": str,
        "device": str,
        "container": str,
        "hidden": int,
        "rate": float,
        "steps": int,
    }.items():
        parser.add_argument(f"--{name}", type=kind, required=True)
    options = parser.parse_args(argv)
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = tf.train.GradientDescentOptimizer(options.rate)
        step = optimizer.minimize(loss, tf.train.get_or_create_global_step())
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                x, y = digits.train.next_batch(32)
                sess.run(step, {images: x, labels: y})
            return float(sess.run(right, {images: digits.validation.images, labels: digits.validation.labels}))
    ### END SOLUTION


# %% [markdown]
# ## Does it obey?
#
# The next cell calls `train_net` on simulated clusters and looks at the variables that it leaves; at the end it starts
# two processes. Stuck? `%dtf_grade many/q1 --hint`.

# %%
dtflab.grade("many/q1")

# %% [markdown]
# ## The search
#
# Six processes train at the same time, on a cluster of two tasks that listen on this computer. Which three are best?
# Are the widest nets the best ones?

# %%
from dtflab.grading import program_of, run_side_by_side

cluster = tf.Cluster(worker=2, listen=True)
lines = [
    [
        f"--server={cluster.target}", f"--device=/job:worker/task:{i % 2}/cpu:0", f"--container=net{i}",
        f"--hidden={hidden}", f"--rate={rate}", "--steps=60",
    ]
    for i, (hidden, rate) in enumerate([(8, 0.1), (8, 0.5), (32, 0.1), (32, 0.5), (64, 0.1), (64, 0.5)])
]  # fmt: skip
found = run_side_by_side(program_of(train_net), lines, seconds=60)
if failed := [process for process in found if process.status]:
    print(failed[0].errors.splitlines()[-1])
else:
    for process, line in sorted(zip(found, lines), key=lambda pair: -float(pair[0].output)):
        print(f"{float(process.output):.1%} right with", *line[2:5])

# %%
tf.viz.variables(cluster) if cluster.variables() else "none of them has made a variable"
