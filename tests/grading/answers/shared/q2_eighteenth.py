"""Answers of an eighteenth author to shared/q2: rows of a table that is dealt out in blocks."""

import dtflab as tf


def permuted_back_eighteenth(shards, ids, block_rows):
    """Gather each shard's rows where the shard is, put all below each other, and undo the permutation."""
    ids = tf.convert_to_tensor(ids)
    block = tf.floordiv(ids, block_rows)
    task = tf.floormod(block, len(shards))
    row = tf.floordiv(block, len(shards)) * block_rows + tf.floormod(ids, block_rows)
    places, found = [], []
    for number, shard in enumerate(shards):
        mine = tf.reshape(tf.where(tf.equal(task, number)), [-1])
        rows = tf.gather(row, mine)
        with tf.colocate_with(shard):
            found.append(tf.gather(shard, rows))
        places.append(tf.to_int32(mine))
    return tf.gather(tf.concat(found, 0), tf.invert_permutation(tf.concat(places, 0)))


def length_now_eighteenth(shards, ids, block_rows):
    """Number the places by the length that the tensor's shape has when the graph is made."""
    block = ids // block_rows
    task = tf.cast(block % len(shards), tf.int32)
    row = block // len(shards) * block_rows + ids % block_rows
    places = tf.dynamic_partition(tf.range(ids.shape.as_list()[0]), task, len(shards))
    rows = tf.dynamic_partition(row, task, len(shards))
    found = []
    for shard, mine in zip(shards, rows):
        with tf.device(shard.device):
            found.append(tf.gather(shard, mine))
    return tf.dynamic_stitch(places, found)


def zeros_from_the_others_eighteenth(shards, ids, block_rows):
    """Ask every shard for all ids, set to zero what another shard has, and add up."""
    block = ids // block_rows
    row = block // len(shards) * block_rows + ids % block_rows
    answers = []
    for number, shard in enumerate(shards):
        with tf.colocate_with(shard):
            mine = tf.equal(block % len(shards), number)
            rows = tf.gather(shard, tf.where(mine, row, tf.zeros_like(row)))
            answers.append(tf.where(mine, rows, tf.zeros_like(rows)))
    return tf.add_n(answers)


def block_not_scaled_eighteenth(shards, ids, block_rows):
    """Compute the row in a shard from the number of whole rounds before it."""
    count = len(shards)
    rounds = ids // (count * block_rows)
    task = tf.cast(ids // block_rows % count, tf.int32)
    parts = tf.dynamic_partition(rounds + ids % block_rows, task, count)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, count)
    found = []
    for shard, rows in zip(shards, parts):
        with tf.colocate_with(shard):
            found.append(tf.gather(shard, rows))
    return tf.dynamic_stitch(places, found)


RIGHT = [permuted_back_eighteenth]
WRONG = {
    length_now_eighteenth: "needs_a_static_length",
    zeros_from_the_others_eighteenth: "asks_everyone",
    block_not_scaled_eighteenth: "",
}
