"""Answers to shared/q2: look up rows of a table that is dealt out in blocks."""

import dtflab as tf


def pick_by_mask_and_turn_back_eleven(shards, ids, block_rows):
    """Rows task by task, put into order by the inverse of the permutation of their places."""
    block = tf.floordiv(ids, block_rows)
    task_of = tf.floormod(block, len(shards))
    row_of = tf.floordiv(block, len(shards)) * block_rows + tf.floormod(ids, block_rows)
    places, found = [], []
    for task, shard in enumerate(shards):
        mine = tf.reshape(tf.where(tf.equal(task_of, task)), [-1])
        places.append(mine)
        rows = tf.gather(row_of, mine)
        with tf.device(shard.device):
            found.append(tf.gather(shard, rows))
    order = tf.concat(places, axis=0)
    back = tf.nn.top_k(-tf.cast(order, tf.int32), k=tf.size(order)).indices
    return tf.gather(tf.concat(found, axis=0), back)


def one_block_per_task_eleven(shards, ids, block_rows):
    """Rows of a table whose tasks have one block each."""
    tasks = tf.minimum(ids // block_rows, len(shards) - 1)
    rows = (ids - tasks * block_rows) % shards[0].shape[0].value
    places = tf.dynamic_partition(tf.range(tf.size(ids)), tasks, len(shards))
    found = []
    for shard, wanted in zip(shards, tf.dynamic_partition(rows, tasks, len(shards))):
        with tf.device(shard.device):
            found.append(tf.gather(shard, wanted))
    return tf.dynamic_stitch(places, found)


def every_task_answers_all_eleven(shards, ids, block_rows):
    """One row per id from each task, for the worker to choose from."""
    block = ids // block_rows
    rows = block // len(shards) * block_rows + ids % block_rows
    chosen = None
    for task, shard in enumerate(shards):
        with tf.device(shard.device):
            candidate = tf.gather(shard, tf.minimum(rows, shard.shape[0].value - 1))
        mine = tf.equal(block % len(shards), task)
        chosen = candidate if chosen is None else tf.where(mine, candidate, chosen)
    return chosen


def each_row_once_eleven(shards, ids, block_rows):
    """Rows of the different ids, each once."""
    ids = tf.unique(ids)[0]
    block = ids // block_rows
    tasks = block % len(shards)
    rows = block // len(shards) * block_rows + ids % block_rows
    places = tf.dynamic_partition(tf.range(tf.size(ids)), tasks, len(shards))
    found = []
    for shard, wanted in zip(shards, tf.dynamic_partition(rows, tasks, len(shards))):
        with tf.device(shard.device):
            found.append(tf.gather(shard, wanted))
    return tf.dynamic_stitch(places, found)


RIGHT = [pick_by_mask_and_turn_back_eleven]
WRONG = {
    one_block_per_task_eleven: "",
    every_task_answers_all_eleven: "asks_everyone",
    each_row_once_eleven: "gives_each_row_once",
}
