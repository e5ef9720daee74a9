# %% [markdown]
# # Exercise 01: who can use a pinned variable
#
# **A variable is pinned to `/gpu:0`. Can an op on `/gpu:1` use it? One on the CPU? One on another server?**
#
# And if so: what travels, and how often? Predict, for a variable on GPU:0 of worker 0, that is read by two ops on GPU:1, by
# one on the CPU of worker 1, and by one on GPU:0 itself:
#
# - which of these ops work, and which raise an error?
# - how often is the variable's value sent, in one step?
# - an op *changes* the variable, and is pinned to GPU:1. Where does it run?

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## How to see what is sent
#
# Where an edge of the graph leads to another device, TensorFlow cuts it, and puts a *send* on one side and a *receive* on the
# other. In the trace of a step, the device that gets a value has a line `RecvTensor`. Here for a plain tensor:

# %%
# cluster = %dtf_cluster --ps 1 --worker 2 --gpus 2
tf.reset_default_graph()
with tf.device("/job:worker/task:0/cpu:0"):
    x = tf.random_normal([2])
with tf.device("/job:worker/task:1/gpu:0"):
    y = -x

with tf.Session(cluster.target) as sess:
    for device in sess.trace(y.op).step_stats.dev_stats:
        for node in device.node_stats:
            if node.node_name == "RecvTensor":
                print(device.device, node.timeline_label)

# %% [markdown]
# ## Your task
#
# Write `use_everywhere(home, devices)`, with full names of devices. It builds a graph, and says what a step of it will do.
# It returns a dict:
#
# - `"doubles"`: for each of `devices` a tensor that is computed there: two times a variable, which is on the device `home`
#   and begins as `[1.0, 2.0]`;
# - `"update"`: an op that adds 1 to both numbers of the variable, pinned to the last of `devices`;
# - `"sent_to"`: your prediction, a list: the devices that the variable's value is sent to in a step that computes all
#   doubles, each as often as it is sent there;
# - `"updated_on"`: your prediction: the device where `update` runs.


# %%
def use_everywhere(home, devices):
    """A variable on `home`, ops on `devices` that use it, and what a step of them sends where."""
    ### BEGIN SOLUTION
    with tf.device(home):
        variable = tf.Variable([1.0, 2.0])
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(2.0 * variable)
    with tf.device(devices[-1]):
        update = tf.assign_add(variable, [1.0, 1.0])
    sent_to = sorted(set(devices) - {home})  # once to each device, however many ops read it there
    return {"doubles": doubles, "update": update.op, "sent_to": sent_to, "updated_on": home}
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# Your graph runs, and its trace is compared with your predictions. `%dtf_grade placement/q4 --hint` in a cell of your own
# gives a hint; each time a bigger one.

# %%
dtflab.grade("placement/q4")

# %% [markdown]
# ## See it at work
#
# The case from the top. How many arrows will the picture have? Then put `use_resource=True` into your variable: a *resource*
# variable is read by each op on its own. What is sent now?

# %%
tf.reset_default_graph()
worker0, worker1 = "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"
devices = [f"{worker0}/device:GPU:1", f"{worker0}/device:GPU:1", f"{worker1}/device:CPU:0"]
devices.append(f"{worker0}/device:GPU:0")
found = use_everywhere(f"{worker0}/device:GPU:0", devices)
sess = tf.Session(cluster.target)
sess.run(tf.global_variables_initializer())
doubles = [tensor.op for tensor in found["doubles"]]
# %dtf_timeline doubles --session sess
