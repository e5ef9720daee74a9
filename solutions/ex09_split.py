# %% [markdown]
# # Exercise 09: two layers on two GPUs
#
# **A net has a hidden layer that is too large for one GPU. Can two GPUs hold half of it each, and be faster as well?**
#
# The lesson cut a net between its layers, which was slower, and through each layer, which was faster, though not by
# much: after each layer the GPUs had to send each other their halves. With two layers you can do better: one exchange
# is enough.

# %%
import numpy as np

import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## What one hidden unit needs
#
# The net is `relu(x · first) · second`. First look: take hidden unit number 7 alone, and all the others. Which column
# of `first` and which row of `second` belong to it? What must be done with the two results? Predict, then run.

# %%
numbers = np.random.RandomState(1)
x, first, second = numbers.randn(4, 3), numbers.randn(3, 16), numbers.randn(16, 2)
all_units = np.maximum(x @ first, 0) @ second
unit_7 = np.maximum(x @ first[:, 7:8], 0) @ second[7:8]
others = np.delete(np.arange(16), 7)
print(np.allclose(all_units, unit_7 + np.maximum(x @ first[:, others], 0) @ second[others]))

# %% [markdown]
# ## Your task
#
# Write `split_net(x, first, second, devices)`. It builds `relu(x · first) · second` over two GPUs and returns the
# output, a tensor.
#
# - `x` is a tensor on the CPU, `[batch, inputs]`; `first` and `second` are NumPy arrays, `[inputs, hidden]` and
#   `[hidden, outputs]`; `hidden` is an even number, much larger than `inputs` and `outputs`. `devices` is
#   `["/gpu:0", "/gpu:1"]`.
# - The GPUs do the multiplying, each with weights of its own, and neither holds more than 60% of them.
# - The budget: a step takes at most 75% of the time that one GPU needs for it alone. (Python inside the graph,
#   `tf.py_func`, takes no virtual time, so it is not allowed.)
#
# NumPy arrays can be given to `tf.matmul` as they are: they become constants on the device of the `with tf.device(…)`.


# %%
def split_net(x, first, second, devices):
    """relu(x · first) · second, half of the weights on each of two devices."""
    ### BEGIN SOLUTION
    outputs = []
    for gpu, columns, rows in zip(devices, np.split(first, 2, axis=1), np.split(second, 2, axis=0)):
        with tf.device(gpu):
            hidden = tf.nn.relu(tf.matmul(x, columns))  # these hidden units never leave the GPU
            outputs.append(tf.matmul(hidden, rows))
    with tf.device(devices[0]):
        return tf.add_n(outputs)
    ### END SOLUTION


# %% [markdown]
# ## Is it inside the budget?
#
# The next cell runs `split_net` on a simulated machine, in virtual time: the seconds are the same on every computer.
# Stuck? `%dtf_grade split/q1 --hint`.

# %%
dtflab.grade("split/q1")

# %% [markdown]
# ## See it at work
#
# The timeline of a step on two K40 cards. Where do they work at the same time, and what is sent? Then make the hidden
# layer narrower: from which width on is one GPU faster?

# %%
hidden = 16384
inputs, first, second = numbers.randn(256, 256), numbers.randn(256, hidden), numbers.randn(hidden, 64)
with tf.Graph().as_default(), tf.Cluster(worker=1, gpus=2, gpu="K40", clock="virtual") as cluster:
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, inputs.shape)
    output = split_net(x, np.float32(first), np.float32(second), ["/gpu:0", "/gpu:1"])
    with tf.Session(cluster.target) as sess:
        trace = tf.RunMetadata()
        sess.run(output, {x: inputs}, options=tf.RunOptions(trace_level=3), run_metadata=trace)
tf.viz.timeline(trace, title="Half of the hidden units on each GPU")
