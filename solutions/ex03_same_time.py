# %% [markdown]
# # Exercise 03: two ops at the same time
#
# **Two ops are placed on the same device. Can they run in parallel?**
#
# Which of these pairs can? Neither op needs the other, and all of them are large. Choose all pairs that can, with a
# reason, before you go on.
#
# | | |
# | --- | --- |
# | A | two ops on two GPUs |
# | B | an op on a GPU, and one on the CPU of the same machine |
# | C | two ops on the same CPU |
# | D | two ops on the same GPU |

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# Write your letters between the quotes, and run the cell. It tells you what to look at in the run below. It gives no
# points, so a wrong guess costs nothing.

# %%
dtflab.predict("parallel/q1", "ABC")

# %% [markdown]
# ## A run that shows it
#
# This cluster runs in *virtual time*: it computes for real, but the times are those that a model of the hardware gives.
# All products are equally large. Which bars will overlap?

# %%
# cluster = %dtf_cluster --worker 1 --gpus 2 --clock virtual
tf.reset_default_graph()
products = []
for name, device in [("p", "/gpu:0"), ("q", "/gpu:0"), ("r", "/gpu:1"), ("s", "/cpu:0"), ("t", "/cpu:0")]:
    with tf.device("/job:worker/task:0" + device):
        products.append(tf.matmul(tf.ones([400, 400]), tf.ones([400, 400]), name=name).op)

sess = tf.Session(cluster.target)
# %dtf_timeline products --session sess

# %% [markdown]
# Would you choose other letters now? Go back to your cell, change them, and run it again: it gives the reasons.
#
# (In lesson 03, two ops on a GPU did overlap: a simulated card in *real* time computes with threads of your CPU. In
# virtual time it works as a real card does; this exercise asks for that.)
#
# ## Your task
#
# Write `may_overlap(first, second)` for two ops: True if they can run at the same time in a step, else False.
#
# - `op.inputs` are the tensors that an op reads; `tensor.op` is the op that makes one. `op.control_inputs` are ops that
#   it waits for without reading anything;
# - `op.device` is the full name of the device: `/job:worker/replica:0/task:0/device:GPU:1`;
# - all that you need can be read from the graph: your function opens no session.


# %%
def may_overlap(first, second):
    """Whether two ops can run at the same time."""

    ### BEGIN SOLUTION
    def waits_for(op, other):
        sources = [tensor.op for tensor in op.inputs] + list(op.control_inputs)
        return other in sources or any(waits_for(source, other) for source in sources)

    if waits_for(first, second) or waits_for(second, first):
        return False
    return first.device != second.device or "CPU" in first.device
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# Your answer for two ops is compared with a run of them, in virtual time. `%dtf_grade parallel/q1 --hint` in a cell of
# your own gives a hint, a bigger one each time.

# %%
dtflab.grade("parallel/q1")

# %% [markdown]
# ## See it at work
#
# Which pairs of the picture above overlap? Compare. Then let the second product wait for the first one, with
# `tf.control_dependencies`: which bar moves?

# %%
for i, first in enumerate(products):
    for second in products[i + 1 :]:
        print(first.name, second.name, may_overlap(first, second))
