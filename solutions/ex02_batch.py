# %% [markdown]
# # Exercise 02: the largest batch that fits
#
# **A larger batch uses a GPU better, until its memory is full and the step fails. What is the largest
# batch that fits, and how do you find it with few steps?**

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## A step that is too large
#
# A small model on a card of 256 MiB. Of these, 11 MiB are always in use, and the program's context takes 38: 207 MiB
# are left. An example has 20,000 numbers of 4 bytes, and their squares are put in the same place. So 207 MiB / 80,000
# bytes, 2,713 examples, should fit. Do 2,000? Predict, run, and read what the message says about chunks.

# %%
# cluster = %dtf_cluster --worker 1 --gpus 1 --gpu-memory 256MiB
tf.reset_default_graph()
batch = tf.placeholder(tf.int32, [], name="batch")
examples = tf.fill([batch, 20000], 1.0, name="examples")
loss = tf.reduce_sum(tf.square(examples, name="squares"), name="loss")
sess = tf.Session(cluster.target)


def step(n):
    """A step with n examples."""
    return sess.run(loss, {batch: n})


print(step(100))
try:
    step(2000)
except tf.errors.ResourceExhaustedError as error:
    print(error.message)

# %% [markdown]
# The allocator hands out *chunks*. It cuts one only if the rest is worth it: if the chunk is twice as large as what is
# wanted (or 128 MiB would be left). Here the examples got all 207 MiB, and four bytes for the loss were missing. So a
# division alone can't find what fits: you have to try.
#
# ## Your task
#
# Write `largest_batch(step, most)`. `step(n)` runs a step with `n` examples, and raises
# `tf.errors.ResourceExhaustedError` if they don't fit. Return the largest number of examples that fits, from 0 to
# `most`; fewer examples fit, too.
#
# - A step is expensive: for `most` = 1,000, run 22 steps at most, however many examples fit.
# - A step may also fail for other reasons. Let such errors through.
# - The next call may be about another model or card: of what fits there, this call says nothing.


# %%
def largest_batch(step, most):
    """The largest n up to `most` for which step(n) finds enough memory; 0 if there is none."""
    ### BEGIN SOLUTION
    fits, too_many = 0, most + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        try:
            step(middle)
            fits = middle
        except tf.errors.ResourceExhaustedError:
            too_many = middle
    return fits
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# `%dtf_grade memory/q2 --hint` in a cell of your own gives a hint, a bigger one each time.

# %%
dtflab.grade("memory/q2")

# %% [markdown]
# ## See it at work
#
# What holds the memory at the peak, and how much is free? Predict, then run. And how many examples fit on a card of 512
# MiB, of which a program takes 238?

# %%
n = largest_batch(step, 5000)
print(n, "examples fit")
# %dtf_memory loss --session sess --feed {batch: n}
