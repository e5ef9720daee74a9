# %% [markdown]
# # Exercise 01: which devices can use a pinned variable
#
# **A variable is pinned to `/gpu:0`. Can an op on `/gpu:1` use it? One on the CPU? One on another server?**
#
# And if so: what travels, and how often? A variable is on GPU:0 of worker 0. It is read by two ops on GPU:1 of that
# worker, by one op on the CPU of another server, worker 1, and by one on GPU:0 itself. Another op *changes* it. Which
# of these sentences are right? Choose all of them, with a reason, before you go on.
#
# | | |
# | --- | --- |
# | A | The two ops on GPU:1 can use the variable. |
# | B | The op on the other server can use it, too. |
# | C | In a step, the value is sent three times: once to each op that is on another device. |
# | D | The op on GPU:0 gets a copy, too. |
# | E | An op that changes the variable, and is pinned to GPU:1, runs on GPU:0. |
# | F | An op that changes the variable, and is pinned to GPU:1, raises an error. |

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# Write your letters between the quotes, and run the cell. It tells you what to look at in the run below. It gives no
# points, so a wrong guess costs nothing.

# %%
dtflab.predict("placement/q4", "ABE")

# %% [markdown]
# ## A run that shows it
#
# Where an edge of the graph leads to another device, TensorFlow cuts it, and puts a *send* on one side and a *receive*
# on the other. The *trace* of a step says what ran on each device; where a value arrives, there is a `RecvTensor` with
# its size, its name, and its way. Two steps: the ops `a`, `b`, `c` and `d` read the variable; then `update` changes it.

# %%
# cluster = %dtf_cluster --ps 1 --worker 2 --gpus 2
tf.reset_default_graph()
home, neighbour = "/job:worker/task:0/gpu:0", "/job:worker/task:0/gpu:1"
with tf.device(home):
    weights = tf.Variable([1.0, 2.0], name="weights")
readers = []
for name, device in [("a", neighbour), ("b", neighbour), ("c", "/job:worker/task:1/cpu:0"), ("d", home)]:
    with tf.device(device):
        readers.append(tf.negative(weights, name=name))
with tf.device(neighbour):
    update = tf.assign_add(weights, [1.0, 1.0], name="update")


def show(sess, *ops):
    """Print what a step of `ops` runs on each device: `ops` themselves, and what is received."""
    for device in sess.trace(ops).step_stats.dev_stats:
        for node in device.node_stats:
            if node.node_name == "RecvTensor":
                way = node.timeline_label.replace("/job:worker/replica:0", "")
                print(device.device[21:], " RecvTensor", way)
            elif node.node_name in [op.name for op in ops]:
                print(device.device[21:], " runs", node.node_name)


sess = tf.Session(cluster.target)
sess.run(weights.initializer)
print("values:", *sess.run(readers))
print("\nThe step that reads:")
show(sess, *(tensor.op for tensor in readers))
print("\nThe step that changes:")
show(sess, update.op)

# %% [markdown]
# Would you choose other letters now? Go back to your cell, change them, and run it again: it gives the reasons.
#
# So reading and changing differ: a value that is *read* may be sent anywhere, as often as there are devices that need
# it; the variable itself never moves.
#
# ## Your task
#
# Write `use_everywhere(home, devices)`, with full names of devices. It builds a graph, and says what a step of it will
# do. It returns a dict:
#
# - `"doubles"`: for each of `devices` a tensor that is computed there: two times a variable, which is on the device
#   `home` and begins as `[1.0, 2.0]`;
# - `"update"`: an op that adds 1 to both numbers of the variable. It and the numbers that it adds are pinned to the
#   last of `devices`;
# - `"sent_to"`: your prediction, a list: the devices that the variable's value is sent to in a step that computes all
#   doubles, each as often as it is sent there;
# - `"updated_on"`: your prediction: the device where `update` runs.
#
# A prediction comes before the run: your function opens no session.


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
# Your graph runs, and its trace is compared with your predictions. `%dtf_grade placement/q4 --hint` in a cell of your
# own gives a hint, a bigger one each time.

# %%
dtflab.grade("placement/q4")

# %% [markdown]
# ## See it at work
#
# The case from the top. How many arrows will the picture have? Then put `use_resource=True` into your variable: a
# *resource* variable is read by each op on its own. What is sent now?

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
