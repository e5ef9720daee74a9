"""Answers of a fifteenth author to shared/q2: rows of a table dealt out in blocks."""

import dtflab as tf


def _places_fifteenth(shards, ids, block_rows):
    """The task of each row, and its row in that shard."""
    block = ids // block_rows
    return block % len(shards), block // len(shards) * block_rows + ids % block_rows


def lookup_sorted_fifteenth(shards, ids, block_rows):
    """Sort the ids by task, cut them where the task changes, and undo the sorting at the end."""
    task, row = _places_fifteenth(shards, ids, block_rows)
    order = tf.argsort(task, stable=True)
    counts = tf.stack([tf.reduce_sum(tf.cast(tf.equal(task, number), tf.int32)) for number in range(len(shards))])
    found = []
    for shard, rows in zip(shards, tf.split(tf.gather(row, order), counts, num=len(shards))):
        with tf.colocate_with(shard):
            found.append(tf.gather(shard, rows))
    return tf.gather(tf.concat(found, 0), tf.invert_permutation(order))


def lookup_order_fifteenth(shards, ids, block_rows):
    """Put the rows that were found together, and into the order of the places."""
    task, row = _places_fifteenth(shards, ids, block_rows)
    task = tf.cast(task, tf.int32)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    found = []
    for shard, rows in zip(shards, tf.dynamic_partition(row, task, len(shards))):
        with tf.device(shard.device):
            found.append(tf.gather(shard, rows))
    return tf.gather(tf.concat(found, 0), tf.concat(places, 0))


def lookup_masked_fifteenth(shards, ids, block_rows):
    """Each server gives a row for each id, the worker picks those that are right."""
    task, row = _places_fifteenth(shards, ids, block_rows)
    result = None
    for number, shard in enumerate(shards):
        mine = tf.equal(task, number)
        with tf.device(shard.device):
            rows = tf.gather(shard, tf.where(mine, row, tf.zeros_like(row)))
        result = rows if result is None else tf.where(mine, rows, result)
    return result


def lookup_once_fifteenth(shards, ids, block_rows):
    """A row that is asked for twice is fetched once."""
    ids, _ = tf.unique(ids)
    task, row = _places_fifteenth(shards, ids, block_rows)
    task = tf.cast(task, tf.int32)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    found = []
    for shard, rows in zip(shards, tf.dynamic_partition(row, task, len(shards))):
        with tf.colocate_with(shard):
            found.append(tf.gather(shard, rows))
    return tf.dynamic_stitch(places, found)


RIGHT = [lookup_sorted_fifteenth]
WRONG = {
    lookup_order_fifteenth: "",
    lookup_masked_fifteenth: "asks_everyone",
    lookup_once_fifteenth: "gives_each_row_once",
}
