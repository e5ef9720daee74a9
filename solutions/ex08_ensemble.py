# %% [markdown]
# # Exercise 08: the three best nets as one
#
# **Six nets were trained, each by a program of its own. Do the three best know more together than the best one alone?**
#
# Nets that were trained on different images, or have different widths, make different mistakes. If one is wrong, the
# two others may outvote it. Such a group is an *ensemble*. Here it is one graph: each net computes on the device where
# it was trained, all at the same time, and only their answers travel.

# %%
from collections import namedtuple

import numpy as np

import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## What a graph finds on the cluster
#
# First look. One program makes a variable in a container on task 1, and ends. Another one uses a variable of the same
# name, three times; it initializes nothing. Which of the three has a value? Predict, then run.

# %%
cluster = tf.Cluster(worker=2)
with tf.Graph().as_default(), tf.container("net0"), tf.device("/job:worker/task:1"):
    variable = tf.get_variable("seven", initializer=7.0)
    with tf.Session(cluster.target) as sess:
        sess.run(variable.initializer)

for container, device in [("net0", "/job:worker/task:1"), ("net0", "/job:worker/task:0"), ("", "/job:worker/task:1")]:
    with tf.Graph().as_default(), tf.container(container), tf.device(device), tf.Session(cluster.target) as sess:
        try:
            print(repr(container), device, sess.run(tf.get_variable("seven", [])))
        except tf.errors.FailedPreconditionError as error:
            print(repr(container), device, error.message.splitlines()[0])
cluster.stop()

# %% [markdown]
# ## Your task
#
# Write `ensemble(results, images)`. `results` is a list of what a search has found, in no particular order: each has
# `.container`, `.device`, `.hidden` (its width) and `.accuracy` (its share of right answers on the validation images;
# in the checks no two have the same). `images` is a tensor, `[batch, 64]`. Return a tensor of **classes**, `[batch]`:
#
# - only the **three** nets with the highest accuracy are asked;
# - each computes on its own device, with the variables that are in its container there;
# - each net gives *probabilities* for the ten classes (`tf.nn.softmax` of its logits), and the class with the highest
#   mean of them wins.
#
# `net(images, hidden, name)` is that of the search; a net's name is that of its container.


# %%
def net(images, hidden, name):
    """Logits of a net with one hidden layer. Its variables are called name/hidden/kernel, name/hidden/bias, …"""
    with tf.variable_scope(name):
        layer = tf.layers.dense(images, hidden, tf.nn.relu, name="hidden")
        return tf.layers.dense(layer, 10, name="logits")


def ensemble(results, images):
    """The classes that the three best nets find together."""
    ### BEGIN SOLUTION
    best = sorted(results, key=lambda one: one.accuracy)[-3:]
    opinions = []
    for one in best:
        with tf.container(one.container), tf.device(one.device):
            opinions.append(tf.nn.softmax(net(images, one.hidden, one.container)))
    return tf.argmax(tf.add_n(opinions), axis=1)  # the highest sum has the highest mean
    ### END SOLUTION


# %% [markdown]
# ## Do they agree?
#
# The next cell leaves nets on simulated clusters, and runs `ensemble` there. Stuck? `%dtf_grade many/q2 --hint`.

# %%
dtflab.grade("many/q2")

# %% [markdown]
# ## Is it better than its members?
#
# Six nets, each trained on a sixth of the training images. Then try all six, or the best one alone: what do you gain
# with each net? (The accuracies chose the three, so for them the validation images are not an honest test any more; the
# test images are.)

# %%
Result = namedtuple("Result", "container device hidden accuracy")
digits = tf.datasets.digits()


def trained(cluster, number, hidden=24):
    """Train a net on a part of the images; its Result."""
    container, device = f"net{number}", f"/job:worker/task:{number}/cpu:0"
    with tf.Graph().as_default(), tf.container(container), tf.device(device), tf.Session(cluster.target) as sess:
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, hidden, container)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
        right = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, axis=1), labels)))
        sess.run(tf.global_variables_initializer())
        mine = {images: digits.train.images[number::6], labels: digits.train.labels[number::6]}
        for _ in range(80):
            sess.run(step, mine)
        tried = [
            sess.run(right, {images: part.images, labels: part.labels}) for part in (digits.validation, digits.test)
        ]
        print(f"{container}: {tried[0]:.1%} of the validation images, {tried[1]:.1%} of the test images")
        return Result(container, device, hidden, tried[0])


with tf.Cluster(worker=6) as cluster:
    results = [trained(cluster, number) for number in range(6)]
    with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        images = tf.placeholder(tf.float32, [None, 64])
        classes = sess.run(ensemble(results, images), {images: digits.test.images})
        print(f"the three best together: {np.mean(classes == digits.test.labels):.1%} of the test images")
