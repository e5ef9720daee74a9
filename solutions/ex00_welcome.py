# %% [markdown]
# # Exercise 00: count together
#
# **Three workers add 1 to the same counter, 100 times each, all at the same time. Will it be at 300?**
#
# In lesson 00, two workers trained one model: its variables were on the parameter server (`ps`), and both workers changed
# them. Here the model is as small as it can be: one number. Predict before you go on: where does the counter have to be, who
# gives it its first value, and how often?

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## One worker, two steps
#
# First look: a cluster of one ps and one worker. `with tf.device("/job:ps/task:0"):` puts what is made inside on the first
# (and only) ps task. `tf.assign_add` is an op: each time a session runs it, it adds to the variable. What will be printed?

# %%
with tf.Cluster(ps=1, worker=1) as cluster, tf.Graph().as_default():
    with tf.device("/job:ps/task:0"):
        counter = tf.Variable(0, name="counter")
    add = tf.assign_add(counter, 1, use_locking=True)
    with tf.Session(cluster.target) as sess:
        sess.run(counter.initializer)
        sess.run(add)
        sess.run(add)
        print(counter.device, sess.run(counter))

# %% [markdown]
# An addition reads the old value, and writes the new one. Where two do that at the same moment, both may read the same old
# value, and one addition is lost. `use_locking=True` lets them wait for each other. (TensorFlow does not do so by itself for
# this kind of variable; dtflab always does. With the option, your program is right on both.)
#
# ## Your task
#
# Write `count_together(workers, steps)`:
#
# - it starts a cluster with one ps task and so many workers, and stops it at the end (`with tf.Cluster(…) as cluster:`);
# - one counter is on the ps task, and begins with 0;
# - each worker adds 1 to it, `steps` times, all workers at the same time. `cluster.run(work)` calls `work(client)` for each of
#   them, as in lesson 00: each call begins with an empty graph, and builds the counter in it;
# - a client opens its session with its own server: `tf.Session(client.target)`;
# - it returns the value of the counter when all have ended.


# %%
def count_together(workers, steps):
    """The value of a counter on the ps, to which so many workers have added 1, so many times each."""

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
# The checks look on while your program runs: who asked which task, and where the counter was. `%dtf_grade welcome/q1 --hint`
# in a cell of your own gives a hint; each time a bigger one.

# %%
dtflab.grade("welcome/q1")

# %% [markdown]
# ## See it at work
#
# `tf.watch()` sees what the checks see. Who uses the counter, and who asks which server? Predict, then run. Then leave out
# the `with tf.device(…)` of your counter, and run it again: who meets a counter without a value now, and why?

# %%
with tf.watch() as seen:
    print(count_together(workers=3, steps=100))
tf.viz.clients(seen)
