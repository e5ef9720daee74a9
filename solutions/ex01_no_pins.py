# %% [markdown]
# # Exercise 01: no pin, and not on the GPU
#
# **TensorFlow finds two GPUs, and your program has not a single `tf.device`. Are all ops placed on the first GPU?**
#
# Which of these sentences are right? Choose all of them, with a reason, before you go on.
#
# | | |
# | --- | --- |
# | A | Yes, all of them: the first GPU is the default device. |
# | B | Ops are dealt to both GPUs in turn. |
# | C | Ops without a GPU kernel are placed on the CPU. |
# | D | An op without a GPU kernel raises an error, unless `allow_soft_placement` is True. |
# | E | Some ops that do have a GPU kernel are placed on the CPU anyway. |

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# Write your letters between the quotes, and run the cell. It tells you what to look at in the run below. It gives no
# points, so a wrong guess costs nothing.

# %%
dtflab.predict("placement/q3", "CE")

# %% [markdown]
# ## A run that shows it
#
# A *kernel* is the code that runs an op on one type of device. The table shows for each op whether there is one for
# GPUs, and where it was placed. Predict the last column first.

# %%
from dtflab.extend import device_types

# cluster = %dtf_cluster --worker 1 --gpus 2
tf.reset_default_graph()
tf.square(2.0, name="number")
tf.add(1, 2, name="integer")
tf.as_string(3.0, name="text")
counter = tf.Variable(0, name="counter")
tf.square(tf.cast(counter, tf.float32), name="square_of_counter")

sess = tf.Session(cluster.target)
for node in sess.placed_nodes():
    op = tf.get_default_graph().get_operation_by_name(node.name)
    kernels = " and ".join(device_types(op.type, op.attrs))
    print(f"{node.name:22} {op.type:10} kernels for {kernels:12} placed on {node.device[-5:]}")

# %% [markdown]
# Would you choose other letters now? Go back to your cell, change them, and run it again: it gives the reasons.
#
# Three things decide here, in this order. An op that changes or reads the memory of another op has to be next to it. Of
# the devices that are left, only those with a kernel count. And of these, the first GPU comes before the CPU.
#
# ## Your task
#
# Prove it with a graph of your own. Write `without_pins(gpu, cpu, dragged)`, which makes ops in the default graph,
# without any `tf.device`, and returns them in a dict with three lists:
#
# - `"gpu"`: that many ops that are placed on the first GPU;
# - `"cpu"`: that many ops that are placed on the CPU, because GPUs have no kernel for them;
# - `"dragged"`: that many ops that do have a GPU kernel, and are placed on the CPU anyway, because they have to be next
#   to another op. `with tf.colocate_with(op):` asks for that.
#
# The op of a tensor is `tensor.op` (a list may have the tensor instead), that of a variable `variable.op`. The graph
# may have other ops as well.


# %%
def without_pins(gpu, cpu, dragged):
    """Ops without pins, by where they are placed: lists of `gpu`, `cpu` and `dragged` of them."""
    ### BEGIN SOLUTION
    ops = {"gpu": [], "cpu": [], "dragged": []}
    for _ in range(gpu):
        ops["gpu"].append(tf.square(2.0).op)
    for _ in range(cpu):
        ops["cpu"].append(tf.as_string(3.0).op)
    counter = tf.Variable(0)  # int32: no GPU can hold it
    with tf.colocate_with(counter.op):
        for _ in range(dragged):
            ops["dragged"].append(tf.square(4.0).op)
    return ops
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# A session places your graph, and its kernels are looked up. `%dtf_grade placement/q3 --hint` in a cell of your own
# gives a hint, a bigger one each time.

# %%
dtflab.grade("placement/q3")

# %% [markdown]
# ## See it at work
#
# Each op says why it is where it is.

# %%
tf.reset_default_graph()
without_pins(2, 2, 2)
sess = tf.Session(cluster.target)
for name, reason in sess.placement_reasons().items():
    print(f"{name:24} {reason}")
# %dtf_placement --session sess
