# %% [markdown]
# # Exercise 02: programs next to each other
#
# **You start your TensorFlow program, and it ends with `CUDA_ERROR_OUT_OF_MEMORY`. An hour ago it ran. What is probably
# going on, and what can you do about it?**
#
# Which of these is the most probable reason? Choose one, before you go on.
#
# | | |
# | --- | --- |
# | A | the model has grown |
# | B | another program on the machine has taken the memory of the card |
# | C | TensorFlow has not freed the memory of your last run, which has ended |
# | D | the machine's main memory (RAM) is full |

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# Write your letter between the quotes, and run the cell. It tells you what to look at in the run below. It gives no
# points, so a wrong guess costs nothing.

# %%
dtflab.predict("memory/q1", "B")

# %% [markdown]
# ## A run that shows it
#
# Two programs on one machine with two cards; each needs 4 MB, of 4 GB. Both are `tf.Cluster`s of one task, on the same
# machine, so that one notebook can hold them. Then the first one ends, and the second one tries again.


# %%
def start(number, visible=None, config=None, machine="machine-a", memory=4 << 30):
    """A program that is a server with one task, on a machine with two cards of that many bytes."""
    address = {"program": [f"{machine}.example.com:{2222 + number}"]}
    seen = {"program": [visible]}
    return tf.Cluster(address, gpus=2, gpu_memory=memory, visible_devices=seen, config=config, name=f"program {number}")


def use(program):
    """Keep 4 MB on the first card that the program sees."""
    with tf.Graph().as_default(), tf.device("/gpu:0"):
        model = tf.Variable(tf.zeros([1000, 1000]))
        with tf.Session(program.target) as sess:
            sess.run(model.initializer)


first, second = start(1), start(2)
use(first)
try:
    use(second)
except tf.errors.ResourceExhaustedError as error:
    print(error.message)
first.stop()
use(second)
print("The first program has ended, and the second one has its 4 MB.")
second.stop()

# %% [markdown]
# Would you choose another letter now? Go back to your cell, change it, and run it again: it gives the reasons.
#
# How much a program *needs* does not matter here. What matters is how much it takes, of which cards, and for how long.
# For the first two there are settings.
#
# ## Your task
#
# Write `settings(programs, cards, need, memory)`: with which settings can that many copies of a program run at the same
# time? The machine has that many cards of `memory` bytes: small ones, of 128 to 256 MiB. A program needs `need` bytes
# for tensors, nearly all of them for one variable, on its `/gpu:0`: the first card that it sees. It may take more, if
# there is room for that.
#
# Return a list with a pair for each program:
#
# - what is in `CUDA_VISIBLE_DEVICES` when it starts, a string such as `"1"` (None: it is not set, and all cards are
#   seen);
# - its `tf.ConfigProto()`, perhaps with `config.gpu_options.per_process_gpu_memory_fraction` (the part of each whole
#   card that it takes for tensors, from 0 to 1) or `config.gpu_options.allow_growth` (True: it takes memory only when
#   it needs it).
#
# Return None if no settings help, because the programs that have to share a card are too large for it. Note that
# besides its tensors, each program takes 38 MiB of a card, for its *context*, and 11 MiB of a card are in use before
# any program starts.
#
# On which cards, and how much? With its first tensor a program takes its part and a context of *each card that it
# sees*, even of those that it never uses. One with `allow_growth` takes a context only of the cards that it uses, and
# there it grows in steps: 2 MiB, 4, 8 and so on, or less where the card has less left.


# %%
def settings(programs, cards, need, memory):
    """CUDA_VISIBLE_DEVICES and a ConfigProto for each of `programs` copies of a program; None if none can help."""
    ### BEGIN SOLUTION
    mib = 1 << 20
    per_card = -(-programs // cards)  # programs on the fullest card
    if 11 * mib + per_card * (38 * mib + need) > memory:
        return None
    found = []
    for program in range(programs):
        config = tf.ConfigProto()
        config.gpu_options.per_process_gpu_memory_fraction = need / memory
        found.append((str(program % cards), config))
    return found
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# The checks start the programs on a simulated machine, one after the other. `%dtf_grade memory/q1 --hint` in a cell of
# your own gives a hint, a bigger one each time.

# %%
dtflab.grade("memory/q1")

# %% [markdown]
# ## See it at work
#
# Four programs on two cards of 256 MiB; each has room for 50 MiB and keeps 4 MB. How much does each hold? Predict, then
# run. Then try `allow_growth` in place of the fraction.

# %%
programs = []
memory = 256 << 20
for number, (visible, config) in enumerate(settings(programs=4, cards=2, need=50 << 20, memory=memory), start=1):
    programs.append(start(number, visible, config, machine="machine-b", memory=memory))
    use(programs[-1])
print(tf.smi())
for program in programs:
    program.stop()
