# %% [markdown]
# # Devices and placement
#
# **A computer has a CPU and two GPUs. Who decides which of them runs which operation, and how do you get your way?**
#
# A *device* is something that can run operations:
#
# - the **CPU**, with all its cores together: `/cpu:0`;
# - each **GPU**: a card with thousands of small arithmetic units and a memory of its own: `/gpu:0`, `/gpu:1`, …
#
# Your laptop probably has no GPU. So the next cell *simulates* two of them. They compute with NumPy, on your CPU, so
# they are not fast. But they have the memory of a real card, and they keep the rules that TensorFlow has for real
# ones.

# %%
import dtflab as tf

# %load_ext dtflab
tf.simulate_gpus(2)

for device in tf.Session().list_devices():
    print(device.name, device.device_type)

# %% [markdown]
# The names are long because later there will be many computers. The end is what counts now: `CPU:0`, `GPU:0`,
# `GPU:1`.
#
# ## One graph on three devices
#
# A TensorFlow program first describes a *graph* of operations, *ops* for short. Nothing is computed yet.
# `with tf.device(…)` says where the ops that are made inside it will run.

# %%
# Figure 12-1
tf.reset_default_graph()
with tf.device("/cpu:0"):
    table = tf.random_uniform([1200, 1200], seed=1, name="table")
with tf.device("/gpu:0"):
    left = tf.matmul(table, table, name="left")
with tf.device("/gpu:1"):
    right = tf.matmul(table, table, transpose_b=True, name="right")
with tf.device("/cpu:0"):
    both = tf.add(left, right, name="both")

sess = tf.Session()
# %dtf_placement both

# %% [markdown]
# Each box is an op; its letter, colour and hatch name its device. A thick arrow is a *tensor*, an array of numbers,
# that has to travel: a device can only use what is in its own memory. So `table` is copied to both GPUs, and two
# products come back.
#
# In the picture: point at `table`, and the ways of its tensor light up; point at an arrow, and it says how large the
# tensor is.
#
# **Predict: which two boxes could run at the same time? Look at the arrows: what does each box wait for?** Then run
# the graph:

# %%
# %dtf_timeline both

# %% [markdown]
# Time goes from left to right; each band is a device. (A band has rows for its threads; lesson 03 is about them.) In
# the picture: click a bar, and a card says on which device it ran and which line of the program made it. Click an
# empty place, and it says what the device waited for.
#
# <details><summary><b>Show why</b></summary>
#
# `left` and `right` do not wait for each other, so both GPUs compute at once. How long the bars are depends on your
# laptop, because the simulated cards share its cores.
#
# </details>
#
# This is what the whole course is about: *what runs where, what can run at once, and what must travel.*
#
# ## To pin is to ask; to place is to decide
#
# Two words that are easy to mix up:
#
# - **You pin** an op when you make it inside `with tf.device(…)`. It is a request. Many ops have none.
# - **The placer places** every op, pinned or not, before the graph runs for the first time. It is the decision.
#
# In the next cell `a` and `b` are pinned to the CPU, `c` is not pinned. **Predict: where will `c` run? And what does
# `c.device` say before anything has run?**

# %%
tf.reset_default_graph()
with tf.device("/cpu:0"):
    a = tf.Variable(3.0, name="a")
    b = tf.constant(4.0, name="b")
c = tf.multiply(a, b, name="c")

print(f"pinned: a to {a.device!r}, b to {b.device!r}, c to {c.device!r}")

sess = tf.Session()
sess.run(a.initializer)
print("a × b =", sess.run(c))
# %dtf_placement

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# `c` ran on `GPU:0`, although its inputs are on the CPU and had to travel there. `c.device` stays empty: it holds
# your request, and you made none.
#
# The variable `a` is four ops: its initial value, the variable itself, the op that assigns, and the op that reads.
# They all were made inside the block, so all are pinned.
#
# </details>
#
# ## Why is it there?
#
# The placer gives a reason for each op. Click a box in the picture, open *Data as a table* under it, or ask:

# %%
reasons = sess.placement_reasons()
tf.viz.table({"op": [*reasons], "why it is there": [*reasons.values()]})

# %% [markdown]
# This placer is called the *simple placer*, and simple it is. Its rules:
#
# 1. An op that an earlier run has placed **stays** where it is.
# 2. An op that is **pinned** goes where you asked.
# 3. Some ops stand **next to** another: to assign a variable you have to be where it is; and a constant is put where
#    its value is needed, if that is one device.
# 4. Anything else goes to the **default device**: the first GPU, or the CPU if there is no GPU.
#
# It does not look at sizes, at speeds, or at what travels. **Predict: how many ops will it put on `GPU:1` if you
# never say `/gpu:1`?** The next cell makes 20 products, pins none, and counts.

# %%
from collections import Counter

tf.reset_default_graph()
number = tf.constant(1.0, name="number")
for _ in range(20):
    number = tf.multiply(number, 1.1)

sess = tf.Session()
sess.run(number)
counts = Counter(node.device.rpartition("/device:")[2] for node in sess.placed_nodes())
print(f"GPU:0 has {counts['GPU:0']} ops, GPU:1 has {counts['GPU:1']}")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# None; all 20 products with their 21 constants are on the first card. The second is idle until somebody pins ops to
# it: placing well is mostly up to you. (There are cleverer placers, and you can write one: `tf.Session(placer=…)`,
# `docs/placers.md`.)
#
# </details>
#
# ## The log
#
# Outside a notebook you read the placement from a log. With `log_device_placement`, the session prints where each op
# went, once, when the placer has placed it:

# %%
tf.reset_default_graph()
with tf.device("/cpu:0"):
    a = tf.Variable(3.0, name="a")
    b = tf.constant(4.0, name="b")
c = tf.multiply(a, b, name="c")

sess = tf.Session(config=tf.ConfigProto(log_device_placement=True))
sess.run(a.initializer)

# %%
print("a × b =", sess.run(c))

# %% [markdown]
# The first two lines say which card each name stands for. The first run printed the log, also of ops that it did not
# run, such as `c`: the placer places the whole graph. The second run printed nothing: everything had been placed
# already (rule 1).
#
# ## Partial names, and blocks inside blocks
#
# The full name of a device has four parts: `/job:worker/replica:0/task:1/device:GPU:0`. `/gpu:0` is short for the
# last one. A pin may leave out any part; the placer is then free to choose it. (Jobs and tasks are the subject of
# lesson 04; here they only serve as parts of a name. The replica is 0 in all programs.)
#
# Blocks can stand inside each other. **Predict the five pins that the next cell shows.**

# %%
tf.reset_default_graph()
with tf.device("/job:worker/task:1"):
    outer = tf.no_op(name="outer")
    with tf.device("/gpu:0"):
        filled = tf.no_op(name="filled")
        with tf.device("/task:2/cpu:0"):
            overridden = tf.no_op(name="overridden")
        with tf.device(None):
            forgotten = tf.no_op(name="forgotten")
    with tf.device("/job:ps"):
        other_job = tf.no_op(name="other_job")

ops = [outer, filled, overridden, forgotten, other_job]
tf.viz.table(
    {"op": [op.name for op in ops], "its pin": [repr(op.device) for op in ops]}
)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Two rules explain all five:
#
# - **The inner block wins** where both say something: `overridden` is on task 2 and on a CPU.
# - **The outer block fills in** what the inner one leaves open: `filled` is in job `worker`, `other_job` still has
#   task 1.
#
# `tf.device(None)` is the exception: it forgets everything outside it.
#
# </details>
#
# ## A function that decides
#
# A block may also hold a *function*. TensorFlow calls it for every op that is made inside, and pins the op to the
# device that it returns. This one deals variables to the two GPUs in turn, like cards, and sends everything else to
# the CPU. (The op of a variable has the type `VariableV2`; in old programs you may read `Variable`.)
#
# **Predict: the function sends everything that is not a variable to the CPU. Which ops will be there?**

# %%
from itertools import cycle


def deal_variables(gpus):
    """A device function: variables to each GPU in turn, all other ops to the CPU."""
    turns = cycle(range(gpus))

    def device_of(op):
        return f"/gpu:{next(turns)}" if op.type == "VariableV2" else "/cpu:0"

    return device_of


tf.reset_default_graph()
with tf.device(deal_variables(2)):
    weights = [tf.Variable(tf.ones([4]), name=f"weights{i}") for i in range(4)]
    total = tf.add_n(weights, name="total")

sess = tf.Session()
# %dtf_placement total

# %% [markdown]
# In the picture: click the `read` of a variable.
#
# <details><summary><b>Show why</b></summary>
#
# Only `total` followed the function. So why is `weights0/read` on `GPU:0`? Because a variable is read where it is:
# the library asks for that itself, whatever the block around it says.
#
# </details>
#
# ## Kernels: what a device is able to do
#
# An op is only a name with inputs and outputs. To run on a device, it needs a program for that kind of device: a
# **kernel**. Nearly every op has a kernel for the CPU. Many have one for GPUs, but not all, and not for every type of
# number. dtflab has the list that TensorFlow has.
#
# The next cell builds one step of a small image network, and shows which kernels its ops have.

# %%
# Figure 12-2
tf.reset_default_graph()
images = tf.placeholder(tf.float32, [None, 8, 8, 1], name="images")
with tf.device("/gpu:0"):
    filters = tf.Variable(tf.random_normal([3, 3, 1, 4], seed=1), name="filters")
    maps = tf.nn.relu(
        tf.nn.conv2d(images, filters, strides=[1, 1, 1, 1], padding="SAME")
    )
    pooled = tf.nn.max_pool(
        maps, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"
    )
with tf.device("/gpu:1"):
    weights = tf.Variable(tf.random_normal([64, 10], seed=2), name="weights")
    logits = tf.matmul(tf.reshape(pooled, [-1, 64]), weights)
steps = tf.Variable(0, name="steps")  # no pin from here on
answer = tf.as_string(tf.argmax(logits, 1))

sess = tf.Session()
tf.viz.kernels([answer, steps], sess)

# %% [markdown]
# Read a row: a kind of op, and the devices that could run it. `steps` and `answer` have no pin, and no GPU has a
# kernel for them; so the placer chose the CPU. (So rule 4 in full: the first GPU, *if the op has a GPU kernel*, else
# the CPU.)
#
# Read a column from top to bottom: a device, its kernels, the *library* that these kernels call, and the hardware at
# the bottom.
#
# Here every library is NumPy, because the GPUs are simulated. With a real card and `pip install dtflab[gpu]`, the
# library is CuPy, which uses **CUDA**: NVIDIA's platform (driver, compiler and libraries) for computing on its cards.
# TensorFlow's own kernels call CUDA, too, and for networks **cuDNN**, a second library of NVIDIA, with convolutions
# and pooling.
#
# ## Now break it
#
# Look at the row `VariableV2 int32`: no GPU has a kernel for a variable of type `int32`, the usual type of whole
# numbers. **Predict: what happens if you pin one to a GPU all the same? And when: on the line that makes it, or when
# it runs?**

# %%
tf.reset_default_graph()
with tf.device("/gpu:0"):
    i = tf.Variable(3, name="i")
print(f"made; pinned to {i.device}")

sess = tf.Session()
try:
    sess.run(i.initializer)
except tf.errors.InvalidArgumentError as error:
    display(error)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Making it was fine: that is only a description. The *placer* refused, before anything ran. Its message has three
# parts:
#
# 1. **What**: op `i`, the pin, and that no kernel fits.
# 2. **The group**: the variable, its assign and its read must be on one device, so one device must have kernels for
#    all three.
# 3. **The kernels** of the op that made it fail: on GPUs for many types, but not for `int32`. (`3` is a whole number,
#    so the variable became `int32`.)
#
# </details>
#
# The message also says what to do: three cures. `3.0` in place of `3` is often the best one (the second is to pin `i`
# to the CPU):

# %%
tf.reset_default_graph()
with tf.device("/gpu:0"):
    i = tf.Variable(3.0, name="i")

sess = tf.Session()
sess.run(i.initializer)
print(f"i = {sess.run(i)}, on {sess.placed_nodes(i)[0].device}")

# %% [markdown]
# ## Soft placement
#
# Another cure: tell the session that your pins are wishes. With `allow_soft_placement`, an op that can't be where you
# want it goes to a device that can run it. **Predict: where will each of these two be?**

# %%
tf.reset_default_graph()
with tf.device("/gpu:0"):
    i = tf.Variable(3, name="i")
with tf.device("/gpu:7"):
    far = tf.constant(1.0, name="far")

sess = tf.Session(config=tf.ConfigProto(allow_soft_placement=True))
sess.run([i.initializer, far])
placed = [node.device.rpartition("device:")[2] for node in sess.placed_nodes([i, far])]
reasons = sess.placement_reasons()
why = [reasons[name] for name in ("i", "far")]
tf.viz.table({"op": ["i", "far"], "placed on": placed, "why": why})

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# `i` has no GPU kernel, so it is on the CPU. `far` has one, but there is no eighth card, so it goes to the best
# device that there is: the first GPU.
#
# </details>
#
# Programs that should run on any computer use soft placement. It has a price: a typing error in a device name is no
# longer an error, and the program is only slow. So look at the picture or at the log from time to time.
#
# ## Exercises
#
# - [exercises/ex01_pins](../exercises/ex01_pins.ipynb): you are the placer, for one op.
# - [exercises/ex01_no_pins](../exercises/ex01_no_pins.ipynb): a program without any pin. Is everything on the first
#   GPU?
# - [exercises/ex01_reach](../exercises/ex01_reach.ipynb): which devices can use a variable that is pinned to a GPU,
#   and what travels for it?
# - [exercises/ex01_placement](../exercises/ex01_placement.ipynb): a device function that is better than dealing
#   variables like cards: it looks at their sizes.
#
# ## What you can do now
#
# - Pin ops with `tf.device`: by name, by a part of a name, by a function; and say what blocks inside blocks mean.
# - Find out where each op was placed, and why: `%dtf_placement`, `sess.placement_reasons()`, `log_device_placement`.
# - Tell what a kernel is, read the error when one is missing, and choose between three cures.
