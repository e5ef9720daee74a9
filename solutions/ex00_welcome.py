# %% [markdown]
# # Exercise 00: count together
#
# **Three workers add 1 to the same counter, 100 times each, all at the same time. Will it reach 300?**
#
# In lesson 00, two workers trained one model: its variables were on the parameter server (`ps`), and both workers
# changed them. Here the model is as small as it can be: one number. Predict before you go on: where does the counter
# have to be, who gives it its first value, and how often?

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## One worker, two steps
#
# First look: a cluster of one ps and one worker. `with tf.device("/job:ps/task:0"):` puts the ops made inside on the
# first (and only) ps task. `tf.assign` is an op: each time a session runs it, it gives the variable a new value, here
# the old one plus 1. What will be printed?

# %%
with tf.Cluster(ps=1, worker=1) as cluster, tf.Graph().as_default():
    with tf.device("/job:ps/task:0"):
        counter = tf.Variable(0, name="counter")
    add = tf.assign(counter, counter + 1)
    with tf.Session(cluster.target) as sess:
        sess.run(counter.initializer)
        sess.run(add)
        sess.run(add)
        print(counter.device, sess.run(counter))

# %% [markdown]
# ## Three workers, a hundred steps
#
# Now three workers have such an op each, and one client runs all three at once, 100 times. `clock="virtual"` lets the
# cluster compute as before, but on simulated hardware with a simulated clock, so that everybody sees the same run.
# Predict before you run it: will it be 300, more, or fewer? And why?


# %%
def count(make_add):
    """The counter's value after each of three workers has run its op 100 times."""
    with tf.Cluster(ps=1, worker=3, clock="virtual") as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
        adds = []
        for worker in range(3):
            with tf.device(f"/job:worker/task:{worker}"):
                adds.append(make_add(counter))
        with tf.Session(cluster.target) as sess:
            sess.run(counter.initializer)
            for _ in range(100):
                sess.run(adds)
            return sess.run(counter)


print(count(lambda counter: tf.assign(counter, counter + 1)))

# %% [markdown]
# It is 100: two of three additions are lost. `tf.assign(counter, counter + 1)` is three ops. One reads the counter on
# the ps and sends it to the worker, one adds 1 there, one writes the sum on the ps. All three workers read the same old
# value, say 41, and all three write 42. This is called a *lost update*. Here the workers are in step, so two of three
# updates are lost each time. On real machines it varies: with TensorFlow and gRPC 119 to 127 of 300 were left. If each
# worker has a client of its own, many runs lose nothing at all, and that makes this bug hard to find.
#
# The cure is one op that does all of it on the ps. `tf.assign_add` reads, adds and writes. What will this print?

# %%
print(count(lambda counter: tf.assign_add(counter, 1, use_locking=True)))

# %% [markdown]
# `use_locking=True` makes two such ops wait for each other, so that they don't run between each other's reading and
# writing. (TensorFlow does not do that by itself for this kind of variable; dtflab always does. With the option, your
# program is right on both; the checks also accept it without.)
#
# ## Your task
#
# Write `count_together(workers, steps)`:
#
# - it starts a cluster with one ps task and `workers` worker tasks, and stops it at the end
#   (`with tf.Cluster(…) as cluster:`);
# - one counter is on the ps task, and begins with 0. One client runs its initializer, before any worker adds. Which one
#   is up to you: the program that calls `cluster.run`, before the call, or a worker for which the others wait (and
#   which may be ahead of them then);
# - each worker adds 1 to it, in `steps` runs of a session, all workers at the same time, with an op that can't lose an
#   addition. `cluster.run(work)` calls `work(client)` for each of them, as in lesson 00: each call begins with an empty
#   graph, and builds the counter in it. `client.index` is the number of the worker;
# - a client opens its session with its own server: `tf.Session(client.target)`;
# - it returns the value of the counter when all workers have ended.


# %%
def count_together(workers, steps):
    """The value of a counter on the ps after each of the workers has added 1 `steps` times."""

    ### BEGIN SOLUTION
    def make_counter():
        with tf.device("/job:ps/task:0"):
            return tf.Variable(0, name="counter")

    def work(client):
        add = tf.assign_add(make_counter(), 1, use_locking=True)
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
        counter = make_counter()
        with tf.Session(cluster.target) as sess:
            sess.run(counter.initializer)  # once, before all begin
            cluster.run(work)
            return sess.run(counter)
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# The checks look on while your program runs: which client asked which task, where the counter was, and which op changed
# it. `%dtf_grade welcome/q1 --hint` in a cell of your own gives a hint, a bigger one each time.

# %%
dtflab.grade("welcome/q1")

# %% [markdown]
# ## See it at work
#
# `tf.watch()` sees what the checks see. Which clients use the counter, and which server does each ask? Predict, then
# run. Then leave out the `with tf.device(…)` of your counter, and run it again: which client finds a counter without a
# value now, and why? Last, write `tf.assign(counter, counter + 1)` in your function, outside of the block of
# `tf.device`, and run it five times: these workers are not in step. Is it always 300?

# %%
with tf.watch() as seen:
    print(count_together(workers=3, steps=100))
tf.viz.clients(seen)
