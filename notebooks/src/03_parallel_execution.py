# %% [markdown]
# # Parallel execution
#
# **A graph has many operations, and your program never says in which order to run them. Which one is first? Which run
# at the same time? And when is it better to make one wait?**
#
# In lesson 01 you saw *where* ops run. This lesson is about *when*.

# %%
import dtflab as tf

# %load_ext dtflab
tf.simulate_gpus(2)

# %% [markdown]
# ## The counters
#
# The next cell builds a graph of six ops, `A` to `F`, on two GPUs and the CPU. The tables are *constants*, and so is
# the `axis` of a sum: their values are known before the graph runs, so nobody has to wait for them.
#
# **Predict: which ops can start at once? What does each of the others wait for?**


# %%
def six_ops(size):
    """A graph of six ops over tables of `size` × `size` numbers; returns the last."""
    tf.reset_default_graph()
    with tf.device("/gpu:0"):
        table = tf.constant(0.001, shape=[size, size], name="table")
        a = tf.matmul(table, table, name="A")
        b = tf.cumsum(table, name="B")
    with tf.device("/gpu:1"):
        table = tf.constant(0.001, shape=[size, size], name="table")
        c = tf.matmul(table, table, name="C")
        d = tf.matmul(c, table, name="D")
        e = tf.matmul(table, c, name="E")
    with tf.device("/cpu:0"):
        return tf.add_n([a, b, d, e], name="F")


result = six_ops(2)
sess = tf.Session()
# %dtf_placement result

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Before TensorFlow runs a graph, it gives each op a **counter**: how many inputs it still waits for. An op whose
# counter is 0 is **ready**. `A`, `B` and `C` are ready from the start: they are *sources*. Whenever an op has
# finished, the counters of all that wait for it fall, by one for each arrow. That is the whole rule. No op has a
# place in a list, and it does not matter in which order your program made them.
#
# </details>
#
# Let us run the graph by hand, one set of ready ops at a time. `%dtf_step` begins a step. Nothing runs yet; the
# number next to an op is its counter, how many inputs it still waits for. (Between two devices there is one more pair
# of ops: one device *sends* a tensor, the other *receives* it. Receivers ask at once, and then wait.)
#
# **Predict: which counters will have fallen after the first set of ops? And after the second?** Then press ▶ in the
# picture, which runs what is ready, and nothing else. ◀ takes it back, ▶▶ runs the rest; once you have clicked a
# button, the arrow keys do the same. Stop at each set, and look at what has become ready. Then the next cell
# finishes the step, and the one below it, folded away with its output, lists its sets.

# %%
# step = %dtf_step result
step

# %%
# %dtf_step --all

# %% jupyter={"source_hidden": true, "outputs_hidden": true}
sets, ran, fell = [], [], []
for number, record in enumerate(step.records[:-1], start=1):
    sets.append(number)
    ran.append(" ".join(each.name for each in record.ran if each.name in "ABCDEF"))
    counters = [f"{each.name} {each}" for each in record.counters if each.name in "DEF"]
    fell.append(", ".join(counters))
tf.viz.table({"set": sets, "of A to F, it ran": ran, "counters that fell": fell})

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# `C` has finished in the first set, so `D` and `E` both went from 1 to 0. They are ready now, together. `F` waits for
# four tables: two of them have come by the end of the second set, the others by the end of the third.
#
# </details>
#
# (There are sets only because we run the graph by hand. A real executor starts each op as soon as its inputs are
# there.)

# %% [markdown]
# ## The same in real time, with threads
#
# By hand, the ops of a set ran one after the other. In a real run, each device has threads to run them at the same
# time:
#
# - The **inter-op pool** runs whole ops next to each other. An op that is ready goes to the pool of its device.
# - The **intra-op pool** helps inside one op. Some kernels can cut their work into parts: half of the rows of a
#   product, for example, do not depend on the other half.
#
# Here are the same six ops with larger tables, so that they take some time. We ask for 2 threads in each inter-op
# pool and for 3 in each intra-op pool. **Predict: which ops will be cut into three parts?**

# %%
# Figure 12-5
result = six_ops(1200)
config = tf.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=3)
sess = tf.Session(config=config)
for _ in range(2):  # these runs find out which ops take long enough for a thread
    sess.run(result)
# %dtf_timeline result

# %% [markdown]
# In the picture: click `D`, and a card says which line of the program made it. Press <kbd>C</kbd> to see which ops
# made the step this long. Hold <kbd>Shift</kbd> and drag over a part of it, for the sums of that part.
#
# <details><summary><b>Show why</b></summary>
#
# - `A` and `B` are both on `GPU:0` and run at the same time, in two threads of its pool. `C` runs next to them, on
#   `GPU:1`. (On a real card, `A` and `B` would both be handed over at once, too; but then the card works through them
#   one by one, each with all its small arithmetic units. An exercise below shows this.)
# - `A` is a product of two tables. Its kernel cuts the work in three: `A 1/3`, `A 2/3`, `A 3/3`, each on a thread of
#   its own. `C`, `D` and `E` are products, too. `B` is a running sum, where each row needs the one before: it stays
#   in one piece.
# - When `C` ends, `D` and `E` are ready, both at once, and run at the same time. No sooner, and it does not matter
#   what `A` does.
# - `F` waits for all of them. Until then the CPU is idle.
#
# </details>
#
# Cheap ops run on the thread that called `sess.run`; the picture calls it *client*. To hand them to another thread
# would only add work. (The row *memcpy*, short for *memory copy*, is the part of a card that copies tensors to other
# devices and from them.)
#
# ## How many threads?
#
# Four products that do not depend on each other, on the CPU. First with one inter-op thread, then with four.
# `use_per_session_threads` gives the session pools of its own; otherwise all sessions of a program share the pools
# that the first one made, with *its* numbers. **Predict the two pictures. Will four threads make it four times as
# fast?**


# %%
def four_products(inter_op_threads):
    """The timeline of four independent products, with that many inter-op threads."""
    tf.reset_default_graph()
    with tf.device("/cpu:0"):
        table = tf.constant(0.001, shape=[800, 800], name="table")
        products = [tf.matmul(table, table, name=f"product{i}") for i in range(1, 5)]
    config = tf.ConfigProto(
        inter_op_parallelism_threads=inter_op_threads,
        intra_op_parallelism_threads=1,
        use_per_session_threads=True,
    )
    with tf.Session(config=config) as sess:
        sess.run(products)
        return tf.viz.timeline(
            sess.trace(products), title=f"Inter-op threads: {inter_op_threads}"
        )


four_products(1)

# %%
four_products(4)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# With one thread the products stand in a line. With four they run side by side, but look at the length of the bars:
# each takes longer, because the threads share the *cores* of your CPU. Four threads on two cores are at most twice as
# fast, and less when other programs use the cores, too.
#
# Are they even slower on your computer? Then there are fewer free cores than threads. They take turns on a core, each
# pushes the tables of the others out of the core's fast memory, and each step waits for the last of them.
#
# </details>
#
# How many cores do you have?

# %%
import os

print(f"this computer has {os.cpu_count()} cores")

# %% [markdown]
# So the default is one thread per core, for both kinds of pools. It is a good first choice; on machines with many
# cores, tuning it can pay.
#
# ## Order without data: control dependencies
#
# So far, an op waited for its inputs only. Sometimes an op should wait for another one although it needs no number
# from it. That is what a **control dependency** is for:
#
# ```python
# with tf.control_dependencies([a, b]):   # whatever is made in here
#     x = …                               # waits for a and b
# ```
#
# **Predict: in which order will these ops run? Without the block, which of them could run together?**

# %%
tf.reset_default_graph()
with tf.device("/cpu:0"):
    start = tf.placeholder(tf.float32, [], name="start")
    a = tf.negative(start, name="a")
    b = tf.square(a, name="b")
    with tf.control_dependencies([a, b]):
        x = tf.exp(start, name="x")
        y = tf.tanh(start, name="y")
    z = tf.add(x, y, name="z")

sess = tf.Session()
# %dtf_placement b z

# %%
sets = [
    " ".join(name for name in names if not name.startswith("_"))
    for names in tf.explain([b, z], [start], sess).sets
]
sets = list(filter(None, sets))
tf.viz.table({"set": [*range(1, len(sets) + 1)], "ready together": sets})

# %% [markdown]
# The dashed arrows mean *order only*: no number travels on them, but the counters count them like the others. (Names
# that begin with `_` are left out: helpers that bring in what is fed, and hand out what is fetched.)
#
# <details><summary><b>Show why</b></summary>
#
# `x` and `y` only need `start`; yet they wait until `b` has finished. `z` waits for all of them, because it waits for
# `x` and `y`. Without the block, `a`, `x` and `y` could run together.
#
# </details>
#
# Try it: make the block `if True:`, and run the two cells again. (With the block, `b` waits for `a` anyway, so `[b]`
# would do in place of `[a, b]`.)
#
# ## Why wait? A memory peak
#
# “All sources first” is good for speed, and can be bad for memory. Look at this graph: six branches, and each makes a
# table of 16 MiB, sums it up row by row, and keeps only one number. **Predict: how much memory does the card need at
# the peak? 16 MiB, 32 MiB, or six times as much?**

# %%
BRANCHES = 6


def branches(one_after_the_other):
    """One number from each of six tables, made all at once or one after the other."""
    tf.reset_default_graph()
    means = []
    with tf.device("/gpu:0"):
        for i in range(1, BRANCHES + 1):
            before = means[-1:] if one_after_the_other else []
            with tf.control_dependencies(before):
                table = tf.random_uniform([4096, 1024], seed=i, name=f"table{i}")
            means.append(
                tf.reduce_mean(tf.cumsum(table, name=f"sums{i}"), name=f"mean{i}")
            )
        return tf.add_n(means, name="total")


total = branches(one_after_the_other=False)
sess = tf.Session()
# %dtf_memory total

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# 112 MiB. The tables are sources, so all six are made before the first one is used up: 96 MiB. The running sums of
# the first are the other 16 MiB. (A computer with many cores may make several sums at once: then it is even more.)
#
# </details>
#
# Now add one line: a branch makes its table when the branch before has its mean. (In the function above it is the
# line with `tf.control_dependencies`.) **Predict the picture.**

# %%
total = branches(one_after_the_other=True)
sess = tf.Session()
# %dtf_memory total

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# The same numbers, the same work, and less than a third of the memory: 32 MiB, one table and its running sums. Each
# table is freed before the next one is made.
#
# </details>
#
# What does it cost? The branches can't run at the same time any more. On a device that was busy all the time that
# costs nothing; on one with idle threads it costs time. This is a choice that TensorFlow can't make for you: it does
# not know whether memory or time is short.
#
# ## Now break it
#
# Take a card with only 128 MiB. The system and CUDA need some of it, so 79 MiB are left for tensors (lesson 02).
# **Predict: which of the two graphs will run?**

# %%
tf.simulate_gpus(1, memory="128MiB")
for one_after_the_other in (False, True):
    total = branches(one_after_the_other)
    with tf.Session() as sess:
        try:
            print(f"one after the other: {one_after_the_other}: {sess.run(total):.1f}")
        except tf.errors.ResourceExhaustedError as error:
            print(f"one after the other: {one_after_the_other}: it does not fit")
            display(error)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# The six tables alone are 96 MiB and did not fit; 32 MiB did. One line made the difference between a program that
# fails and one that runs.
#
# </details>
#
# The same line helps when ops share something other than memory, for example a network link on which all of them want
# to send at once. Lesson 11 is about links.
#
# ## Exercises
#
# - [exercises/ex03_ready_set](../exercises/ex03_ready_set.ipynb): write the rule of the counters yourself. Your sets
#   of ready ops are compared with those of the real executor.
# - [exercises/ex03_same_time](../exercises/ex03_same_time.ipynb): can two ops of the same device run at the same
#   time? On a CPU, and on a card as it really is?
# - [exercises/ex03_peak](../exercises/ex03_peak.ipynb): a sum of six parts on a card that has room for two.
#
# ## What you can do now
#
# - Say which ops of a graph can run at the same time, from the counters alone; and check it with `%dtf_step`.
# - Read a timeline with threads: ops side by side (inter-op), parts of an op (intra-op), and which op waits for
#   which.
# - Make an op wait with `tf.control_dependencies`, to save memory; and show what it saves with `%dtf_memory`.
