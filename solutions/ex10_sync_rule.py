# %% [markdown]
# # Exercise 10: one step from many gradients
#
# **Five workers compute gradients, each at its own pace. When do some of them make a step, and which are too old?**
#
# In synchronous training the workers bring their gradients to a *conditional accumulator*. It collects them, throws
# away what is stale, and gives out their mean as soon as there are enough. `tf.train.SyncReplicasOptimizer` has one for
# each variable. You write its rule, in plain Python.

# %%
import numpy as np

import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## What the library's accumulator does
#
# First look. Two gradients of step 0 make a step. Then one worker is late: it brings a gradient that belongs to step 0,
# too. What will the second mean be? Predict, then run.

# %%
with tf.Graph().as_default(), tf.Session() as sess:
    accumulator_of_tf = tf.ConditionalAccumulator(tf.float32, shape=[])

    def push_to_tf(gradient, local_step):
        sess.run(accumulator_of_tf.apply_grad(tf.constant(gradient), local_step))

    push_to_tf(1.0, 0)
    push_to_tf(3.0, 0)
    print("first mean", sess.run(accumulator_of_tf.take_grad(2)))
    push_to_tf(100.0, 0)
    push_to_tf(5.0, 1)
    push_to_tf(7.0, 1)
    print("second mean", sess.run(accumulator_of_tf.take_grad(2)))

# %% [markdown]
# ## Your task
#
# Write `accumulator()`. It returns two functions:
#
# - `push(gradient, local_step)` brings a gradient, a NumPy array, that was computed from the variables of step
#   `local_step`. The accumulator counts its own steps from 0. A gradient of an earlier step is *stale* and is dropped;
#   one of the same or a later step is kept. The array stays as it is: the worker may still read it.
# - `take(required)` returns `None` if fewer than `required` gradients are kept. (TensorFlow's would wait.) Otherwise it
#   returns the mean of **all** that are kept, forgets them, and counts one step.
#
# `tf.ConditionalAccumulator` is what you write here, so your functions run no session. A function that changes a number
# of the function around it needs `nonlocal`.


# %%
def accumulator():
    """(push, take): collects gradients, drops stale ones, gives their mean."""
    ### BEGIN SOLUTION
    step, kept = 0, []

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(gradient)

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = sum(kept) / len(kept)  # of all that came, also if they are more than required
        kept.clear()
        step += 1
        return mean

    return push, take
    ### END SOLUTION


# %% [markdown]
# ## Does it agree with the library?
#
# The next cell makes the same calls to yours and to `tf.ConditionalAccumulator`. Stuck? `%dtf_grade data/q2 --hint`.

# %%
dtflab.grade("data/q2")

# %% [markdown]
# ## See it at work
#
# Ten workers fit a line to points; a step needs eight gradients, so nobody waits for the two slowest, and what those
# bring late is dropped. How many gradients are lost? Try 10 required, and 5.

# %%
random = np.random.RandomState(0)
x = random.randn(200)
y = 3 * x + 1 + 0.1 * random.randn(200)


def gradient_of(weights):
    rows = random.randint(0, 200, size=8)
    error = weights[0] * x[rows] + weights[1] - y[rows]
    return np.array([np.mean(error * x[rows]), np.mean(error)])


for required in (10, 8, 5):
    push, take = accumulator()
    weights, step, dropped = np.zeros(2), 0, 0
    ends = random.exponential(size=10)  # when each worker will have its gradient, in seconds
    read, copies = np.zeros(10, int), [weights] * 10  # the step that each has read, and what it has read
    while step < 50:
        worker, now = ends.argmin(), ends.min()
        push(gradient_of(copies[worker]), read[worker])
        dropped += read[worker] < step
        ends[worker] = np.inf  # it waits for the next step
        mean = take(required)
        if mean is not None:
            weights, step = weights - 0.3 * mean, step + 1
        for worker in np.flatnonzero(np.isinf(ends) & (read < step)):
            ends[worker], read[worker], copies[worker] = now + random.exponential(), step, weights
    print(
        f"{required:2} required: 50 steps in {now:5.1f} s, {dropped} gradients dropped, the line is {weights.round(2)}"
    )
