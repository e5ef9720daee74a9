# %% [markdown]
# # GPU memory
#
# **Two programs want to compute on the same card. Who gets how much of its memory? And what happens when it is
# full?**
#
# A GPU can only compute on numbers that are in its own memory, and that memory is small: 4 GiB on the card of this
# lesson, while the computer around it may have 64 GiB. Many programs that “do not work on the GPU” have simply run
# out of it.
#
# We use a simulated computer with four cards: the numbers are kept in your laptop's memory, but each program gets as
# much as it would on a real card.

# %%
import dtflab as tf

# %load_ext dtflab
tf.simulate_gpus(4)
# %dtf_smi

# %% [markdown]
# `smi` shows what NVIDIA's program `nvidia-smi` shows of real cards: each card with its memory, how much of that is
# in use, and below them the programs that use it. Now there are none; the 11 MiB of each card are the driver's own.
# (Do you see a line “Other programs on this computer”? Other notebooks of yours are still open. Each notebook
# simulates its own computer, so you can leave them alone.)
#
# ## A program that needs eight bytes
#
# To have several programs, we need processes. This one multiplies two numbers of 4 bytes each on `/gpu:0`, and then
# waits. It is written into a file, to be started as you would in a terminal.

# %%
import tempfile
from pathlib import Path

program = Path(tempfile.mkdtemp()) / "program.py"
program.write_text("""
import sys
import tensorflow as tf  # dtflab, under the name that programs know

config = tf.ConfigProto()
config.gpu_options.per_process_gpu_memory_fraction = float(sys.argv[1])
with tf.device("/gpu:0"):
    product = tf.constant(3.0) * tf.constant(4.0)

with tf.Session(config=config) as sess:
    gpus = [each for each in sess.list_devices() if each.device_type == "GPU"]
    try:
        print("I see", len(gpus), "GPUs, and 3 x 4 =", sess.run(product))
    except tf.errors.ResourceExhaustedError as error:
        sys.exit(error.message)
    print("ready", flush=True)
    sys.stdin.read()  # until the notebook lets go
""")

# %% [markdown]
# The next cell is folded away, since it is about processes, not about GPUs (a click on the three dots shows it).
# `start()` starts the program and shows what it says; `stop(first)` ends one.

# %% jupyter={"source_hidden": true}
import os
import subprocess
import sys
import textwrap


def start(fraction=0.0, **environment):
    """Start the program; print what it says until it is ready or has failed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dtflab", "run", str(program), str(fraction)],
        env={**os.environ, "DTFLAB_GPUS": "4", **environment},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    for line in iter(process.stdout.readline, "ready\n"):
        if not line:
            break
        print(textwrap.fill(f"process {process.pid}: {line}", 95))
    return process


def stop(*processes):
    """Let programs go on to their end."""
    for process in processes:
        process.communicate(timeout=60)


# %% [markdown]
# With `--live` the picture of the cards goes on while other cells run. Keep it in sight: right-click it, *Create New
# View for Cell Output*.

# %%
# %dtf_smi --live

# %% [markdown]
# **Predict: how many MiB will this program take? Of which cards?**

# %%
first = start()
tf.viz.cards(tf.smi())

# %% [markdown]
# In the picture, the pale area is what a program **holds**: no other program can have it. Full colour is what its
# tensors **use**; here that is too little to be seen. The picture that is live shows the same, and will change with
# each program that starts or ends.
#
# <details><summary><b>Show why</b></summary>
#
# It took nearly everything, of all four cards, for eight bytes on one of them!
#
# That is how TensorFlow works. Asking the driver for memory takes long, and a training step asks thousands of times.
# So TensorFlow asks once, at its first tensor, for everything there is, on all cards that it sees. Then it hands the
# memory out to its tensors itself. The part of a program that does this is its *allocator*.
#
# </details>
#
# Now a colleague starts a program on the same computer. **Predict: what will happen?**

# %%
second = start()

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Read the first line: `failed to allocate 3.66G … CUDA_ERROR_OUT_OF_MEMORY`. It is the line that people paste into
# search engines. It does not mean that eight bytes were too much. It means that another program holds the card.
# dtflab also says which one.
#
# </details>
#
# The memory comes back only when a program **ends**, in whatever way.

# %%
stop(first, second)
tf.viz.cards(tf.smi())

# %% [markdown]
# There are three ways to share cards in peace.
#
# ## 1. Each program has cards of its own
#
# `CUDA_VISIBLE_DEVICES` is an environment variable: a setting that a process gets from its parent. It says which
# cards the process sees, and in which order; all others do not exist for it. In a terminal you would write
# `CUDA_VISIBLE_DEVICES=0,1 python program.py`.
#
# **Predict: each program computes on what it calls `/gpu:0`. For the second one, which card is that?**

# %%
# Figure 12-3
first = start(CUDA_VISIBLE_DEVICES="0,1")
second = start(CUDA_VISIBLE_DEVICES="3,2")
tf.viz.cards(tf.smi())

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Each sees two GPUs, and calls them `/gpu:0` and `/gpu:1`. The list `3,2` is in that order, so the second program's
# `/gpu:0` is card 3: *Data as a table* shows on which cards there are tensors. (With an empty list,
# `CUDA_VISIBLE_DEVICES=""`, a program sees no card at all, and leaves them to others.)
#
# </details>

# %%
stop(first, second)

# %% [markdown]
# ## 2. Each program takes a part of each card
#
# `per_process_gpu_memory_fraction = 0.4` makes a program take 40% of each card, and no more. Two such programs fit:

# %%
# Figure 12-4
before = tf.smi()  # the picture further below begins here
first = start(0.4)
second = start(0.4)
tf.viz.cards(tf.smi())

# %% [markdown]
# Four GPUs for each program, and 1,677 MiB of each card. They share the arithmetic, too: while one computes, the
# other waits, or both get slower. But neither stops the other.
#
# ### Now break it
#
# **Predict: a third program with 0.4 comes. What will it say? And what will happen to the other two?**

# %%
third = start(0.4)
tf.viz.card_history(tf.smi(), since=before)

# %% [markdown]
# This is the memory of one card, GPU 0: events from left to right, memory upwards. Each program is a band. The dashed
# frame is what the third one wanted.
#
# <details><summary><b>Show why</b></summary>
#
# The frame sticks out above the line, which is all that the card has: 3 × 0.4 is more than 1. So the third program
# fails at its first tensor, and holds nothing. The others noticed nothing; first come, first served.
#
# </details>
#
# *Which fraction would still fit? The picture says how much is free; try it with `start(…)` in a cell of your own,
# and end it with `stop(…)`.*

# %%
stop(first, second, third)

# %% [markdown]
# ## 3. Each program takes what it needs, when it needs it
#
# With `allow_growth` a program begins small and takes more when its tensors need more. That looks like the best way.
# Let us measure it, in this notebook: six runs with tensors of 1, 64, 256, 128, 16 and 1 MiB. **Predict the two
# curves: what the program holds after each run, and what its tensors used.**

# %%
SIZES = [1, 64, 256, 128, 16, 1]


def largest_of(mebibytes):
    """An op that needs that many MiB: 2¹⁸ numbers of 4 bytes are 1 MiB."""
    return tf.reduce_max(tf.fill([mebibytes, 2**18], 1.0))


tf.simulate_gpus(1)
tf.reset_default_graph()
mebibytes = tf.placeholder(tf.int32, [], name="mebibytes")
with tf.device("/gpu:0"):
    largest = largest_of(mebibytes)

config = tf.ConfigProto()
config.gpu_options.allow_growth = True
sess = tf.Session(config=config)

# %%
held = []
for size in SIZES:
    sess.run(largest, {mebibytes: size})
    (us,) = tf.smi().hosts[0].processes
    held.append(us.held / 2**20)

curves = {"held by the program": held, "needed by the run": SIZES}
tf.viz.curve(range(1, 7), curves, xlabel="run", ylabel="MiB")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# It grows, but **it never shrinks**: what a program has taken, it keeps until it ends. (The first run already holds
# some 40 MiB, for 1 MiB of numbers: CUDA itself needs memory for every program that uses a card.)
#
# </details>
#
# What about two programs that grow side by side? Ann and Bob share a card of 1 GiB. They take turns, and need this
# many MiB:
#
# | run | 1 | 2 | 3 | 4 | 5 | 6 |
# | --- | --- | --- | --- | --- | --- | --- |
# | who | Ann | Bob | Ann | Bob | Ann | Bob |
# | needs | 100 | 50 | 300 | 100 | 20 | 300 |
#
# In the end they need 320 MiB together, of 1,024. **Predict: will all six runs succeed?** (Here the two are *tasks*
# of a cluster inside this notebook; each holds memory as a program of its own does. Lesson 04 is about clusters.)

# %%
tf.simulate_gpus(1, memory="1GiB")
tf.reset_default_graph()
mebibytes = tf.placeholder(tf.int32, [], name="mebibytes")
largest = {}
for who in ("ann", "bob"):
    with tf.device(f"/job:{who}/gpu:0"):
        largest[who] = largest_of(mebibytes)

# %%
RUNS = {"ann": [100, 300, 20], "bob": [50, 100, 300]}  # MiB; ann, bob, ann, …
people = {"ann": ["localhost:2222"], "bob": ["localhost:2223"]}

with tf.Cluster(people, config=config) as cluster:
    for turn in range(3):
        for who in RUNS:
            with tf.Session(cluster.target_of(who, 0)) as sess:
                try:
                    sess.run(largest[who], {mebibytes: RUNS[who][turn]})
                except tf.errors.ResourceExhaustedError as error:
                    print(f"{who} needs {RUNS[who][turn]} MiB")
                    display(error)
    state = tf.smi()  # before the cluster ends, and with it the two programs

tf.viz.cards(state)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Bob's program asked for a large piece, then for smaller and smaller ones, and failed. Ann holds 680 MiB, of which
# her tensors used 20 in her last run: the part in full colour. She took the rest for one large run long ago. (That
# one needed 300 MiB, and she had 128. So her program asked for 512 more: each piece that it asks for is twice as
# large as the one before, or more.)
#
# </details>
#
# The same over time:

# %%
tf.viz.card_history(state)

# %% [markdown]
# With `allow_growth`, programs run well for hours, and then one fails in the middle of its work, because of what
# *another* one needed in the morning. A fixed fraction fails at the start, where it does not hurt. That is why it is
# often the better choice.
#
# ## Inside one program: a memory map
#
# Which tensors need the memory? We trace a training step of a net with five layers. **Predict: when during the step
# is the most memory in use: at the beginning, in the middle, or at the end?**

# %%
tf.simulate_gpus(1)
tf.reset_default_graph()
rows = tf.placeholder(tf.int32, [], name="rows")
with tf.device("/gpu:0"):
    layer = tf.random_uniform(tf.stack([rows, 256]), seed=1, name="batch")
    for i in range(1, 6):
        weights = tf.Variable(
            tf.random_normal([256, 256], stddev=0.06, seed=i), name=f"weights{i}"
        )
        layer = tf.tanh(tf.matmul(layer, weights), name=f"layer{i}")
    loss = tf.reduce_mean(tf.square(layer), name="loss")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

sess = tf.Session()
sess.run(tf.global_variables_initializer())
# %dtf_memory train --feed {rows: 4096}

# %% [markdown]
# From left to right is time, upwards is memory. Each layer of the picture is one tensor, from the moment it is made
# to the moment it is freed. Together they are a mountain.
#
# <details><summary><b>Show why</b></summary>
#
# In the middle. On the way up, each layer of the net leaves its output on the card, because the *gradients* will need
# it. At the top the loss is known. On the way down the gradients use these outputs, the last one first, and free
# them. (The hatched base is the variables: they stay.)
#
# </details>
#
# So training needs more memory with every layer, and with every row of the batch. The list next to the picture says
# which tensors make the peak; it is where to look when memory is short. (“layer1 over MatMul”: no other op needs the
# product, so `tanh` writes its result over it, and takes no memory of its own.)
#
# ## Now break it: out of memory
#
# The same net on a card of only 128 MiB; the batch is doubled until it does not fit. **Predict: with 4,096 rows the
# peak was some 33 MiB. How many rows will be too many?**

# %%
tf.simulate_gpus(1, memory="128MiB")
sess = tf.Session()  # the same graph, on the small card
sess.run(tf.global_variables_initializer())

try:
    for size in (2048, 4096, 8192, 16384, 32768):
        sess.run(train, {rows: size})
        print(f"{size:6,} rows fit")
except tf.errors.ResourceExhaustedError as error:
    print(f"{size:6,} rows are too many")
    full = error
    display(error)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Twice the rows need nearly twice the memory, since only the variables stay as they are. So 8,192 rows still fit in
# what the card leaves to tensors, and 16,384 do not.
#
# </details>
#
# What to look for, in any such message:
#
# 1. The **shape and type** that could not be made. Is it as large as you thought?
# 2. **Which op** wanted it: the last line.
# 3. How much is **free**, and of how much. That is less than the card has: some is left to the system, and a memory
#    fraction reduces it further.
# 4. **What holds the rest**: tensors with their ops, and the lines of your program that made them. (A tensor may have
#    more than it needs: a free piece is only cut if it is at least twice as large.)
# 5. What to do about it.
#
# The error also knows how it came to that. **Go back with ◀: at which allocation did the room become too small?** Below
# the memory stands what was asked for, drawn to the same scale as the largest piece that was free.

# %%
tf.viz.memory(full)

# %% [markdown]
# TensorFlow also writes a report of its allocator to its log, some fifty lines for experts. Its end is for everybody:

# %%
for line in full.report.splitlines()[-11:]:
    print(textwrap.fill(line, 50))

# %% [markdown]
# `Limit` is all that this program may have, `InUse` what its tensors have, `MaxInUse` the most so far. The last two
# lines are a map of the memory, from its first byte to its last: `*` is in use, `x` is given away but not needed, `_`
# is free.
#
# What helps, in this order: a smaller batch; fewer tensors at the same time (lesson 03 does it with one line);
# float16 in place of float32; a part of the net on another card (lesson 09); a larger card.
#
# ## Exercises
#
# - [exercises/ex02_beside_each_other](../exercises/ex02_beside_each_other.ipynb): a program that ran an hour ago ends
#   with `CUDA_ERROR_OUT_OF_MEMORY`. Why, and what are the settings with which several programs share the cards of a
#   computer?
# - [exercises/ex02_batch](../exercises/ex02_batch.ipynb): find the largest batch that fits, with few steps.
#
# ## What you can do now
#
# - Say which program holds how much of which card, and why it is more than the tensors need: `%dtf_smi`,
#   `tf.viz.cards(tf.smi())`; and how that happened: `tf.viz.card_history(tf.smi())`.
# - Let programs share a computer: by `CUDA_VISIBLE_DEVICES`, by a fraction, by `allow_growth`; and say what each way
#   costs.
# - Read an out-of-memory error, and find the tensors that make the peak: `%dtf_memory`.
