# %% [markdown]
# # Exercise 03: a peak that control dependencies remove
#
# **A sum has six parts. Each makes large tensors, and gives one small number. There is room on the card for two parts,
# and the step needs room for six. Why, and what can you do?**
#
# An op runs as soon as everything that it *reads* is there. The first ops of all six parts read nothing: they are ready
# at once, and all large tensors are made before the first one is used up.
#
# A *control dependency* lets an op wait for another one without reading it. Which of these are reasons to want one?
# Choose all of them, before you go on.
#
# | | |
# | --- | --- |
# | A | an op needs much memory, and its value is not needed soon |
# | B | ops would send so much at once that all have to wait for the network |
# | C | an op must see a variable after an update, and does not read what the update gives |
# | D | two ops must run on the same device |

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# Write your letters between the quotes, and run the cell. It tells you what to look at in the run below. It gives no
# points, so a wrong guess costs nothing.

# %%
dtflab.predict("parallel/q2", "ABC")

# %% [markdown]
# ## Three runs that show it
#
# First: how much memory will these three parts need at once, if each makes a tensor of 4 MB? Predict, then run.

# %%
# cluster = %dtf_cluster --worker 1 --gpus 1
tf.reset_default_graph()


def part():
    large = tf.fill([1000, 1000], 2.0)
    return tf.reduce_sum(large)


total = tf.add_n([part(), part(), part()])
sess = tf.Session(cluster.target)
# %dtf_memory total --session sess

# %% [markdown]
# Second: a parameter server sends a small tensor and three large ones to a worker, over a slow network, in *virtual
# time* (it computes for real, but the times are those that a model of the hardware gives). When will the small one be
# there, if the large ones wait for it on the server, and if they don't?

# %%
# network = %dtf_cluster --ps 1 --worker 1 --clock virtual --network 1Gb/s --name network
for wait in (False, True):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            small = tf.matmul(tf.ones([400, 400]), tf.ones([400, 400]), name="small")
            with tf.control_dependencies([small] if wait else []):
                large = [tf.fill([1000, 1000], 2.0, name="large") for _ in range(3)]
        with tf.device("/job:worker/task:0"):
            sums = [tf.reduce_sum(tensor).op for tensor in (small, *large)]
        with tf.Session(network.target) as sess:
            trace = sess.trace(sums)
    print("The large ones wait for the small one:" if wait else "Nobody waits:")
    for device in trace.step_stats.dev_stats:
        for node in device.node_stats:
            if node.node_name == "RecvTensor":
                size, name, *_ = node.timeline_label.split()
                print(f"{node.op_end_rel_micros / 1000:8.1f} ms  {size:10} {name}")

# %% [markdown]
# Third: an op that counts, and two ops that read the counter, each in three steps. One of them waits for the update.

# %%
# cluster = %dtf_cluster --worker 1 --gpus 1
tf.reset_default_graph()
with tf.device("/cpu:0"):
    counter = tf.Variable(0.0)
    update = tf.assign_add(counter, 1.0)
with tf.device("/gpu:0"):
    plain = tf.identity(counter)
    with tf.control_dependencies([update]):
        after = tf.identity(counter.read_value())

with tf.Session(cluster.target) as sess:
    sess.run(counter.initializer)
    print("plain", *(sess.run(plain) for _ in range(3)))
    print("after", *(sess.run(after) for _ in range(3)))
    print("update is on", update.device, "and after on", after.device)

# %% [markdown]
# Would you choose other letters now? Go back to your cell, change them, and run it again: it gives the reasons.
#
# Each time you know more than the edges of the graph say: TensorFlow runs every op that is ready, if somebody needs it.
# A control dependency adds what you know.
#
# ## Your task
#
# Write `in_turn(parts, at_once)`. `parts` is a list of functions like `part` above: each makes ops, and returns a small
# tensor. Call each once, and return their sum, a tensor. In a step of it, at most `at_once` parts may have their large
# tensors at the same time; but no part waits for longer than it must: as many as may be at work begin at once, and each
# of the others waits for *one*, never for a whole group. With six parts, two at once, there are two chains of three.
#
# `with tf.control_dependencies([tensor, …]):` lets the ops that are *made inside* wait for these tensors; with an empty
# list they wait for nothing.


# %%
def in_turn(parts, at_once):
    """The sum of what `parts` give, with no more than `at_once` of them at work at the same time."""
    ### BEGIN SOLUTION
    results = []
    for i, part in enumerate(parts):
        wait_for = []
        if i >= at_once:
            wait_for.append(results[i - at_once])  # when this one is done, there is room again
        with tf.control_dependencies(wait_for):
            results.append(part())
    return tf.add_n(results)
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# `%dtf_grade parallel/q2 --hint` in a cell of your own gives a hint, a bigger one each time.

# %%
dtflab.grade("parallel/q2")

# %% [markdown]
# ## See it at work
#
# The three parts again, one at a time. Where is the peak now? Predict it for two at a time, too.

# %%
tf.reset_default_graph()
total = in_turn([part, part, part], at_once=1)
sess = tf.Session(cluster.target)
# %dtf_memory total --session sess
