# %% [markdown]
# # Exercise 06: padded batches of similar length
#
# **Sentences of 2 words and of 40 words arrive mixed. How do you make batches of them without padding most of each
# batch with zeros?**
#
# A batch is a table: all its rows have one length, so shorter sentences are filled up with zeros (*padding*). Next to a
# sentence of 40 words, one of 2 words costs as much as 40 words. So sentences of similar length should share a batch.
#
# A `PaddingFIFOQueue` fills up what it gives out together. It gives out what came first, whatever its length.

# %%
import dtflab
import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## What one queue does
#
# First look. The queue below holds four sentences and gives batches of two. How many zeros will you see? Predict, then
# run.

# %%
with tf.Graph().as_default(), tf.Session() as sess:
    queue = tf.PaddingFIFOQueue(10, [tf.int32], shapes=[[None]])
    for sentence in ([7, 7], [1, 2, 3, 4, 5, 6, 7, 8], [9], [1, 2, 3, 4, 5, 6]):
        sess.run(queue.enqueue(tf.constant(sentence)))
    batch = queue.dequeue_many(2)
    print(sess.run(batch), sess.run(batch), sep="\n")

# %% [markdown]
# ## Your task
#
# Write `batches_by_length(sentence, bounds, batch_size)`. `sentence` is a tensor of word numbers (`int32`, shape
# `[None]`; no word has the number 0), `bounds` is a list such as `[4, 8]`: sentences of up to 4 words belong together,
# those of 5 to 8 words, and those of 9 and more. With an empty list all sentences are of one kind. Return three things
# that a session can run:
#
# - `put` puts `sentence` into a queue. There is room for 100 sentences at least.
# - `take` gives a batch, shape `[batch_size, words]`, of sentences **of one kind**, as wide as its longest one. It is
#   run when some kind has enough sentences for a batch; which kind that is, you learn only then.
# - `close` is run after the last `put`. From then on `take` also gives smaller batches, until nothing is left: then it
#   raises `tf.errors.OutOfRangeError`.
#
# The queue to use is known only when the graph runs. `tf.QueueBase.from_list(index, queues)` is the queue of that
# number.


# %%
def batches_by_length(sentence, bounds, batch_size):
    """(put, take, close) for padded batches of sentences of similar length."""
    ### BEGIN SOLUTION
    queues = [tf.PaddingFIFOQueue(100, [tf.int32], shapes=[[None]]) for _ in [0, *bounds]]
    kind = tf.reduce_sum(tf.cast(tf.size(sentence) > bounds, tf.int32))  # how many bounds it is longer than
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    fullest = tf.argmax(tf.stack([queue.size() for queue in queues]), output_type=tf.int32)
    take = tf.QueueBase.from_list(fullest, queues).dequeue_up_to(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close
    ### END SOLUTION


# %% [markdown]
# ## Does it work?
#
# The next cell grades `batches_by_length`, as often as you like. Stuck? `%dtf_grade queues/q1 --hint` in a cell of your
# own gives a hint, a bigger one each time.

# %%
dtflab.grade("queues/q1")

# %% [markdown]
# ## See it at work
#
# How much of the batches is padding, and how much was it with one queue? Try other bounds. What is the drawback of one
# kind for each length?

# %%
import numpy as np

random = np.random.RandomState(1)
sentences = [random.randint(1, 1000, size=min(40, 1 + random.geometric(0.12))) for _ in range(200)]
for bounds in ([], [4, 8], [4, 8, 16]):
    with tf.Graph().as_default(), tf.Session() as sess:
        sentence = tf.placeholder(tf.int32, [None])
        put, take, close = batches_by_length(sentence, bounds, batch_size=8)
        batches = []
        for number, words in enumerate(sentences):
            sess.run(put, {sentence: words})
            if number >= 60:  # some are waiting: every kind that is common has a batch
                sess.run(close) if number == len(sentences) - 1 else None
                batches += [sess.run(take)] if number % 8 == 0 else []
        zeros = np.mean([np.mean(batch == 0) for batch in batches])
        print(f"bounds {bounds!s:12} {len(batches)} batches, {zeros:.0%} of them padding")
