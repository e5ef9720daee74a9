"""Answers to shared/q2: rows of a table dealt out in blocks."""

import dtflab as tf


def places_turned_round_twelve(shards, ids, block_rows):
    """Find each shard's places with tf.where, gather there, and put the rows in order by the inverse permutation."""
    ids = tf.cast(ids, tf.int64)
    block = ids // block_rows
    task = block % len(shards)
    local = block // len(shards) * block_rows + ids % block_rows
    places, rows = [], []
    for number, shard in enumerate(shards):
        mine = tf.reshape(tf.where(tf.equal(task, number)), [-1])
        wanted = tf.gather(local, mine)
        places.append(tf.cast(mine, tf.int32))
        with tf.device(shard.device):
            rows.append(tf.gather(shard, wanted))
    return tf.gather(tf.concat(rows, 0), tf.invert_permutation(tf.concat(places, 0)))


def choose_at_home_twelve(shards, ids, block_rows):
    """Gather a row per id from each shard, and choose the right ones on the worker."""
    block = ids // block_rows
    task = block % len(shards)
    local = block // len(shards) * block_rows + ids % block_rows
    found = None
    for number, shard in enumerate(shards):
        mine = tf.equal(task, number)
        wanted = tf.where(mine, local, tf.zeros_like(local))
        with tf.device(shard.device):
            rows = tf.gather(shard, wanted)
        found = rows if found is None else tf.where(mine, rows, found)
    return found


def length_when_built_twelve(shards, ids, block_rows):
    """Partition the ids and their places, gather on each shard's task, and stitch the rows together."""
    block = ids // block_rows
    task = tf.cast(block % len(shards), tf.int32)
    local = block // len(shards) * block_rows + ids % block_rows
    places = tf.dynamic_partition(tf.range(int(ids.shape[0])), task, len(shards))
    rows = []
    for shard, wanted in zip(shards, tf.dynamic_partition(local, task, len(shards))):
        with tf.device(shard.device):
            rows.append(tf.gather(shard, wanted))
    return tf.dynamic_stitch(places, rows)


def each_row_once_twelve(shards, ids, block_rows):
    """Drop repeated ids, partition the others, gather on each shard's task, and stitch the rows together."""
    ids, _ = tf.unique(ids)
    block = ids // block_rows
    task = tf.cast(block % len(shards), tf.int32)
    local = block // len(shards) * block_rows + ids % block_rows
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    rows = []
    for shard, wanted in zip(shards, tf.dynamic_partition(local, task, len(shards))):
        with tf.device(shard.device):
            rows.append(tf.gather(shard, wanted))
    return tf.dynamic_stitch(places, rows)


RIGHT = [places_turned_round_twelve]
WRONG = {
    choose_at_home_twelve: "asks_everyone",
    length_when_built_twelve: "needs_a_static_length",
    each_row_once_twelve: "gives_each_row_once",
}
