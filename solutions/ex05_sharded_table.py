# %% [markdown]
# # Exercise 05: look up rows of a sharded table
#
# **A table of a billion rows fits on no single machine. It is cut over the parameter servers. How does a worker get the
# ten rows that it needs, and nothing else?**
#
# `tf.nn.embedding_lookup` does this for two ways of cutting a table. Here you write it yourself, for a third way that
# combines both.

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## How the table is cut
#
# The table is dealt out in *blocks* of `block_rows` rows: block 0 to the first parameter server, block 1 to the second,
# and so on; after the last one it begins again with the first. Each server keeps its rows in one variable, its *shard*,
# one block after the other.
#
# | | |
# | --- | --- |
# | the block of row `id` | `block = id // block_rows` |
# | the shard that has it | `block % number of shards` |
# | its row in that shard | `block // number of shards * block_rows + id % block_rows` |
#
# Three ops help you. First look: what does each one do? Predict, then run.

# %%
tf.reset_default_graph()
ids = tf.constant([7, 4, 9, 2])
places_of_even, places_of_odd = tf.dynamic_partition(tf.range(4), ids % 2, 2)
even, odd = tf.dynamic_partition(ids, ids % 2, 2)
together = tf.dynamic_stitch([places_of_even, places_of_odd], [even * 10, odd])
with tf.Session() as sess:
    print("even:", sess.run(even), "from the places", sess.run(places_of_even))
    print("odd:", sess.run(odd), "from the places", sess.run(places_of_odd))
    print("together again, the even ones times ten:", sess.run(together))

# %% [markdown]
# ## Your task
#
# Write `lookup(shards, ids, block_rows)`. `shards` is a list of variables, one per `ps` task, the tasks in any order:
# `shards[0]` has block 0, wherever it is. `ids` is a tensor: a list of row numbers, some perhaps twice. How many there
# are may be known only in a step. It returns a tensor: the rows of `ids`, in their order. No more than these rows may
# leave the parameter servers; one that is asked for twice may be sent twice.


# %%
def lookup(shards, ids, block_rows):
    """The rows `ids` of a table that is dealt out over `shards` in blocks of `block_rows` rows."""
    ### BEGIN SOLUTION
    tasks = len(shards)
    block = ids // block_rows
    task = block % tasks
    row = block // tasks * block_rows + ids % block_rows
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, tasks)
    rows = tf.dynamic_partition(row, task, tasks)
    found = []
    for shard, mine in zip(shards, rows):
        with tf.device(shard.device):  # where the shard is: only what is gathered travels
            found.append(tf.gather(shard, mine))
    return tf.dynamic_stitch(places, found)
    ### END SOLUTION


# %% [markdown]
# ## How good is it?
#
# `%dtf_grade shared/q2 --hint` in a cell of your own gives a hint, a bigger one each time.

# %%
dtflab.grade("shared/q2")

# %% [markdown]
# ## See it at work
#
# What does each parameter server send for three rows of 256 bytes? Predict, then run. Then put
# `tf.gather(tf.concat(shards, 0), ids)` in place of `lookup`: that is right for this table, with one block per task.
# What is sent now?

# %%
tf.reset_default_graph()
# cluster = %dtf_cluster --ps 2 --worker 1
shards = []
for task in range(2):
    with tf.device(f"/job:ps/task:{task}"):
        shards.append(tf.Variable(tf.random_normal([1000, 64]), name=f"shard{task}"))
with tf.device("/job:worker/task:0"):
    found = lookup(shards, tf.constant([3, 1500, 4]), block_rows=1000)

sess = tf.Session(cluster.target)
sess.run(tf.global_variables_initializer())
before = len(cluster.calls())
sess.run(found)
for call in cluster.calls()[before:]:
    if call.method == "RecvTensor":  # who needs a tensor asks who has it
        print(f"{call.target} sends {call.nbytes:,} bytes to {call.source}")
