# %% [markdown]
# # Exercise 04: from machines to tasks
#
# **You get three machines with two GPUs each. Which servers do you start on them, and what may each of them see?**
#
# A *cluster* is a list of *jobs*, a job is a list of *tasks*, and a task is one server, at one address. Several tasks
# can share a machine. But then they also share its ports and its GPUs, and a TensorFlow process takes the memory of
# every GPU that it sees.

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## What a server sees
#
# `CUDA_VISIBLE_DEVICES`, in the environment of a process, says which GPUs it sees. `tf.Cluster` takes such a string for
# each task. First look: how many GPUs has each task here, and which one is the GPU:0 of each? Predict, then run.

# %%
machine = "machine-a.example.com"
addresses = {"ps": [f"{machine}:2221"], "worker": [f"{machine}:2222", f"{machine}:2223"]}
with tf.Cluster(addresses, gpus=2, visible_devices={"ps": [""], "worker": ["1", "0,1"]}) as cluster:
    for task in cluster.tasks:
        print(task.name, task.address)
        for device in task.devices():
            print("   ", device.name.rpartition("/device:")[2], device.physical_device_desc)

# %% [markdown]
# ## Your task
#
# Write `plan(machines, gpus, ps_tasks)`. `machines` is a list of names, each machine has `gpus` GPUs. It returns two
# things:
#
# - a dict of addresses: `{"ps": [...], "worker": [...]}`. There is one `worker` for each GPU, on its machine, and there
#   are `ps_tasks` tasks of the job `ps`, spread over the machines (none has two more than another). An address is
#   `machine:port`, with any port that no other task on that machine has;
# - a dict of the same form, with a string in place of each address, the `CUDA_VISIBLE_DEVICES` of that process: each
#   worker sees one GPU, which no other task sees; a `ps` sees none.


# %%
def plan(machines, gpus, ps_tasks):
    """The addresses of all tasks by job, and what each sees of the GPUs."""
    ### BEGIN SOLUTION
    ps = [f"{machines[task % len(machines)]}:{3000 + task}" for task in range(ps_tasks)]
    workers, visible = [], []
    for machine in machines:
        for gpu in range(gpus):
            workers.append(f"{machine}:{2222 + gpu}")
            visible.append(str(gpu))  # each machine counts its own
    return {"ps": ps, "worker": workers}, {"ps": [""] * ps_tasks, "worker": visible}
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# The checks start your cluster, with simulated machines, and ask each server for its devices. `%dtf_grade clusters/q1
# --hint` in a cell of your own gives a hint, a bigger one each time.

# %%
dtflab.grade("clusters/q1")

# %% [markdown]
# ## See it at work
#
# Every worker computes on its GPU:0. Which GPUs are in use then, and which process has each? Predict, run, and then
# leave `visible_devices` out: which task gets the memory now?

# %%
addresses, visible = plan(["machine-b.example.com", "machine-c.example.com"], 2, 2)
with tf.Cluster(addresses, gpus=2, visible_devices=visible) as cluster, tf.Graph().as_default():
    for task in range(4):
        with tf.device(f"/job:worker/task:{task}/gpu:0"):
            tf.Variable(tf.zeros([1000, 1000]))
    with tf.Session(cluster.target) as sess:
        sess.run(tf.global_variables_initializer())
        print(tf.smi())
