# %% [markdown]
# # Exercise 01: balance variables over parameter servers
#
# **A model has one embedding of 12.8 MB and many small variables. On which of three parameter servers should each go?**
#
# `tf.train.replica_device_setter` deals variables like cards: one to each `ps` task in turn. It does not look at their
# sizes, so one task may hold, send and receive nearly everything, while the others wait.
#
# You can do better in about ten lines. A *device function* chooses a device for each new op:
#
# ```python
# with tf.device(device_of):      # device_of(op) is called for each op that is made in here,
#     build_the_model()           # and returns a device such as "/job:ps/task:0"
# ```

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## What a device function sees
#
# First look. Which types of ops hold a variable? What tells you its size? Predict, then run.


# %%
def look(op):
    attribute = tf.TensorShape(op.get_attr("shape")) if "shape" in op.node_def.attr else "none"
    print(f"{op.type:20} shape of its output: {op.outputs[0].shape!s:12} attribute 'shape': {attribute}")
    return ""


with tf.Graph().as_default(), tf.device(look):
    tf.get_variable("reference", [1000, 64])
    tf.get_variable("resource", [1000], tf.float64, tf.zeros_initializer(), use_resource=True)

# %% [markdown]
# ## Your task
#
# Write `balance_by_bytes(ps_tasks, worker)`. It returns a device function:
#
# - each **variable** goes to the `ps` task that holds the **fewest bytes** so far (to any of them if several do);
# - every other op goes to `worker`, for example `"/job:worker/task:0"`.
#
# Variables come in the order in which they are made, and stay where they are put. Their shapes are known. (If another
# op already has a device, `op.device`, the library has set it, to read a variable where it is. You may keep it or not.)
#
# A function that remembers something between its calls is easiest as a *closure*: a function inside a function.


# %%
def balance_by_bytes(ps_tasks, worker):
    """A device function that spreads variables over `ps_tasks` parameter servers by their bytes."""
    ### BEGIN SOLUTION
    held = [0] * ps_tasks  # bytes on each task; it lives as long as the function below

    def device_of(op):
        if op.type not in ("Variable", "VariableV2", "VarHandleOp"):
            return worker
        elements = tf.TensorShape(op.get_attr("shape")).num_elements()  # not the output's: that may be a handle
        task = held.index(min(held))
        held[task] += elements * op.get_attr("dtype").size
        return f"/job:ps/task:{task}"

    return device_of
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# The next cell grades `balance_by_bytes`, as often as you like. Stuck? `%dtf_grade placement/q1 --hint` in a cell of
# your own gives a hint, a bigger one each time.

# %%
dtflab.grade("placement/q1")

# %% [markdown]
# ## See it at work
#
# On a cluster with three parameter servers. Where is the embedding, and what shares a task with it? Then put
# `tf.train.replica_device_setter(3, worker_device="/job:worker/task:0")` in its place: what changes?

# %%
tf.reset_default_graph()
with tf.device(balance_by_bytes(3, "/job:worker/task:0")):
    words = tf.placeholder(tf.int32, [None], name="words")
    embedding = tf.get_variable("embedding", [50000, 64])
    layer = tf.gather(embedding, words)
    for number, (inputs, outputs) in enumerate([(64, 100), (100, 50), (50, 10)], start=1):
        weights = tf.get_variable(f"weights{number}", [inputs, outputs])
        biases = tf.get_variable(f"biases{number}", [outputs], initializer=tf.zeros_initializer())
        layer = tf.nn.relu(tf.matmul(layer, weights) + biases, name=f"layer{number}")

# cluster = %dtf_cluster --ps 3 --worker 1
sess = tf.Session(cluster.target)
# %dtf_placement layer --session sess
