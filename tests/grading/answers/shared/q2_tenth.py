"""Answers to shared/q2, the lookup of rows of a sharded table, by a tenth author."""

import dtflab as tf


def once_each_and_sorted_back_ten(shards, ids, block_rows):
    """Gather each row once, server by server; turn the order around with invert_permutation."""
    n = len(shards)
    distinct, where_in_distinct = tf.unique(tf.reshape(ids, [-1]))
    distinct = tf.to_int64(distinct)
    owner = tf.floordiv(distinct, block_rows) % n
    row = tf.floordiv(distinct, block_rows * n) * block_rows + distinct % block_rows
    order, found = [], []
    for number, shard in enumerate(shards):
        mine = tf.reshape(tf.where(tf.equal(owner, number)), [-1])
        rows = tf.gather(row, mine)
        with tf.colocate_with(shard.op, ignore_existing=True):
            found.append(tf.gather(shard, rows))
        order.append(tf.to_int32(mine))
    back = tf.invert_permutation(tf.concat(order, axis=0))
    return tf.gather(tf.concat(found, axis=0), tf.gather(back, where_in_distinct))


def every_server_answers_every_id_ten(shards, ids, block_rows):
    """Let each server gather a row for each id, and choose the owner's row on the worker."""
    n = len(shards)
    block = ids // block_rows
    owner = block % n
    row = block // n * block_rows + ids % block_rows
    result = None
    for number, shard in enumerate(shards):
        with tf.device(shard.device):
            mine = tf.equal(owner, number)
            rows = tf.gather(shard, tf.where(mine, row, tf.zeros_like(row)))
        result = rows if result is None else tf.where(mine, rows, result)
    return result


def a_single_block_per_server_ten(shards, ids, block_rows):
    """Gather on the owner of each block, at the row's place inside of its block."""
    n = len(shards)
    owner = tf.to_int32(ids // block_rows % n)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), owner, n)
    rows = tf.dynamic_partition(ids % block_rows, owner, n)
    found = []
    for shard, mine in zip(shards, rows):
        with tf.device(shard.device):
            found.append(tf.gather(shard, mine))
    return tf.dynamic_stitch(places, found)


def rows_as_the_servers_give_them_ten(shards, ids, block_rows):
    """Gather on the owners, and join what they give."""
    n = len(shards)
    block = ids // block_rows
    owner = tf.to_int32(block % n)
    rows = tf.dynamic_partition(block // n * block_rows + ids % block_rows, owner, n)
    found = []
    for shard, mine in zip(shards, rows):
        with tf.device(shard.device):
            found.append(tf.gather(shard, mine))
    return tf.concat(found, axis=0)


RIGHT = [once_each_and_sorted_back_ten]
WRONG = {
    every_server_answers_every_id_ten: "",
    a_single_block_per_server_ten: "forgets_the_blocks_before",
    rows_as_the_servers_give_them_ten: "forgets_the_places",
}
