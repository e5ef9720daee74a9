# %% [markdown]
# # Exercise 01: from a pin to a device
#
# **What is the difference between *pinning* an op to a device, and *placing* it on one?**
#
# `with tf.device("/job:worker/gpu:1")` *pins* the ops that are made in it. The part of the session that *places* ops is
# called the *placer*. Which of these sentences are right? Choose all of them, with a reason, before you go on.
#
# | | |
# | --- | --- |
# | A | The program asks with a pin. The placer decides, when a session gets the graph. |
# | B | An op without a pin is not placed: in each step it runs on a device that has nothing to do. |
# | C | A pin may leave things open. A placement is always one device, with its full name. |
# | D | The placer may decide against a pin, if another device is faster. |
# | E | Ops with the same pin are placed on the same device. |

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# Write your letters between the quotes, and run the cell. It tells you what to look at in the run below. It gives no
# points, so a wrong guess costs nothing.

# %%
dtflab.predict("placement/q2", "AC")

# %% [markdown]
# ## A run that shows it
#
# A session on the first worker of a small cluster; each worker has two GPUs. Where will each op be? One of them
# surprises many people.

# %%
# cluster = %dtf_cluster --ps 1 --worker 2 --gpus 2
tf.reset_default_graph()
numbers, words = tf.placeholder(tf.float32, []), tf.placeholder(tf.string, [])
for pin in ("", "/cpu:0", "/job:ps", "/job:worker/task:1", "/task:1/gpu:1"):
    with tf.device(pin):
        tf.square(numbers)
tf.string_join([words, words])  # without a pin; there is no kernel for it on GPUs

sess = tf.Session(cluster.target)
pins = {op.name: op.device for op in tf.get_default_graph().get_operations()}
for node in sess.placed_nodes():
    if node.op != "Placeholder":
        print(f"{node.name:12} pinned to {pins[node.name]!r:32} placed on {node.device}")

# %% [markdown]
# Would you choose other letters now? Go back to your cell, change them, and run it again: it gives the reasons.
#
# A pin may be empty, like that of the first op; then every device will do. An op always ends up on exactly one of them,
# and the rules that find it are short. In this exercise you write the placer, for a single op.
#
# ## The placer's rules
#
# 1. What the pin says is kept, field by field: job, task, device type, device index.
# 2. The device has a *kernel* of the op: code that can run it there. All ops here have one for CPUs, some also for
#    GPUs.
# 3. Of the devices that are left, GPUs come before CPUs; then those of the *master's* task (the server that the session
#    is connected to) before others; then the first one by its name, letter by letter.
# 4. If none is left, the session raises an error.
#
# (A whole graph needs more: some ops must or would like to share a device. That is the next exercise.)
#
# ## Your task
#
# Write `place(pin, gpu_kernel, devices, master)`. It returns the full name of the device for one op, or `None` where
# TensorFlow raises an error.
#
# - `pin` is a string such as `"/job:worker/gpu:1"`, or `""`;
# - `gpu_kernel` is True if the op has a kernel for GPUs;
# - `devices` are the full names of the cluster's devices, in any order: `"/job:worker/replica:0/task:1/device:GPU:0"`,
#   …
# - `master` is a task: `"/job:worker/replica:0/task:1"`.
#
# `tf.DeviceSpec.from_string(text)` takes both kinds of names apart: it has `.job`, `.task`, `.device_type` and
# `.device_index`, each None if it isn't said. Your function opens no session: that would be the library's own placer.


# %%
def place(pin, gpu_kernel, devices, master):
    """The full name of the device where an op is placed; None if its pin can't be kept."""

    ### BEGIN SOLUTION
    def fields(name):
        spec = tf.DeviceSpec.from_string(name)
        return spec.job, spec.task, spec.device_type, spec.device_index

    def allowed(device):
        kept = all(wish in (None, field) for wish, field in zip(fields(pin), fields(device)))
        return kept and (gpu_kernel or "CPU" in device)

    def preference(device):
        elsewhere = fields(device)[:2] != fields(master)[:2]  # not as texts: task:10 begins like task:1
        return "CPU" in device, elsewhere, device

    return min(filter(allowed, devices), key=preference, default=None)
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# Your answers are compared with those of real sessions. `%dtf_grade placement/q2 --hint` in a cell of your own gives a
# hint, a bigger one each time.

# %%
dtflab.grade("placement/q2")

# %% [markdown]
# ## See it at work
#
# The same graph from a session on the second worker, and from one on the parameter server, which has no GPU. What
# changes? Predict with `place`, then look at the picture: each op says why it is where it is.

# %%
devices = [device.name for device in sess.list_devices()]
for master in ("/job:worker/replica:0/task:1", "/job:ps/replica:0/task:0"):
    for pin in ("", "/cpu:0"):
        print(f"{master} places {pin!r:8} on {place(pin, True, devices, master)}")

# %%
on_the_ps = tf.Session(cluster.target_of("ps"))
# %dtf_placement --session on_the_ps
