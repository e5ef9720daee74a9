# %% [markdown]
# # Exercise 03: a peak that control dependencies remove
#
# **A sum has six parts. Each makes large tensors, and gives one small number. There is room on the card for two parts, and
# the step needs room for six. Why, and what can you do?**
#
# An op runs as soon as all that it *reads* is there. The first ops of all six parts read nothing: they are ready at once,
# and all large tensors are made before the first one is used up.
#
# A *control dependency* lets an op wait for another one without reading it. Which of these are reasons to want one?
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
# ## A run that tells
#
# (A, B and C are. A device has nothing to do with it.) How much memory will these three parts need at once, if each makes
# a tensor of 4 MB? Predict, then run.

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
# ## Your task
#
# Write `in_turn(parts, at_once)`. `parts` is a list of functions as `part` above: each makes ops, and returns a small tensor.
# Call each once, and return their sum, a tensor. In a step of it, at most `at_once` parts may have their large tensors at the
# same time; but no part waits for longer than it must: each waits for *one* other at most, never for a whole group. With six
# parts, two at once, there are two chains of three.
#
# `with tf.control_dependencies([tensor, …]):` lets the ops that are *made inside* wait for these tensors; with an empty list
# they wait for nothing.


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
# `%dtf_grade parallel/q2 --hint` in a cell of your own gives a hint; each time a bigger one.

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
