"""Answers to shared/q2 by a second author, who had seen the exercise alone."""

import dtflab as tf


def _where_is(shards, ids, block_rows):
    count = len(shards)
    block = ids // block_rows
    return tf.cast(block % count, tf.int32), block // count * block_rows + ids % block_rows


def _look(shards, task, rows):
    places = tf.dynamic_partition(tf.range(tf.size(task)), task, len(shards))
    parts = tf.dynamic_partition(rows, task, len(shards))
    found = []
    for shard, part in zip(shards, parts):
        with tf.colocate_with(shard):
            found.append(tf.gather(shard, part))
    return places, found


def partition_gather_stitch(shards, ids, block_rows):
    places, found = _look(shards, *_where_is(shards, ids, block_rows))
    return tf.dynamic_stitch(places, found)


def each_row_once(shards, ids, block_rows):
    rows, index = tf.unique(ids)
    places, found = _look(shards, *_where_is(shards, rows, block_rows))
    return tf.gather(tf.dynamic_stitch(places, found), index)


def places_by_where(shards, ids, block_rows):
    task, rows = _where_is(shards, ids, block_rows)
    places, found = [], []
    for number, shard in enumerate(shards):
        here = tf.cast(tf.reshape(tf.where(tf.equal(task, number)), [-1]), tf.int32)
        wanted = tf.gather(rows, here)
        with tf.device(shard.device):
            found.append(tf.gather(shard, wanted))
        places.append(here)
    return tf.dynamic_stitch(places, found)


def gather_of_concat(shards, ids, block_rows):
    task, rows = _where_is(shards, ids, block_rows)
    lengths = [shard.shape.as_list()[0] for shard in shards]
    starts = tf.constant([sum(lengths[:k]) for k in range(len(shards))])
    return tf.gather(tf.concat(shards, 0), tf.gather(starts, task) + tf.cast(rows, tf.int32))


def row_by_row_mod(shards, ids, block_rows):
    return tf.nn.embedding_lookup(shards, ids, partition_strategy="mod")


def one_block_per_task(shards, ids, block_rows):
    places, found = _look(shards, tf.cast(ids // block_rows, tf.int32), ids % block_rows)
    return tf.dynamic_stitch(places, found)


def forgets_the_order(shards, ids, block_rows):
    _, found = _look(shards, *_where_is(shards, ids, block_rows))
    return tf.concat(found, 0)


def row_within_block_only(shards, ids, block_rows):
    task, _ = _where_is(shards, ids, block_rows)
    places, found = _look(shards, task, ids % block_rows)
    return tf.dynamic_stitch(places, found)


def every_shard_for_every_id(shards, ids, block_rows):
    task, rows = _where_is(shards, ids, block_rows)
    result = 0
    for number, shard in enumerate(shards):
        with tf.colocate_with(shard):
            got = tf.gather(shard, tf.minimum(rows, shard.shape.as_list()[0] - 1))
        mine = tf.cast(tf.equal(task, number), got.dtype)
        result += got * tf.reshape(mine, [-1] + [1] * (len(shard.shape.as_list()) - 1))
    return result


def two_shards_only(shards, ids, block_rows):
    block = ids // block_rows
    places, found = _look(shards[:2], tf.cast(block % 2, tf.int32), block // 2 * block_rows + ids % block_rows)
    return tf.dynamic_stitch(places, found)


def each_id_once_in_the_result(shards, ids, block_rows):
    rows, _ = tf.unique(ids)
    places, found = _look(shards, *_where_is(shards, rows, block_rows))
    return tf.dynamic_stitch(places, found)


RIGHT = [partition_gather_stitch, each_row_once, places_by_where]
WRONG = {
    # Right rows, but the whole table leaves the parameter servers.
    gather_of_concat: "sends_whole_shards",
    # Believes that embedding_lookup's mod is this way of dealing: rows one by one, not blocks.
    row_by_row_mod: "ignores_the_blocks",
    # Forgets that after the last server it begins again with the first.
    one_block_per_task: "ends_after_the_last_task",
    # Joins the parts by concat: the rows are not in the order of ids.
    forgets_the_order: "forgets_the_places",
    # Takes the row inside the block for the row in the shard.
    row_within_block_only: "forgets_the_blocks_before",
    # Asks every shard for every id and masks what is wrong: each server sends rows nobody needs.
    every_shard_for_every_id: "asks_everyone",
    # Hard-codes two parameter servers, as in the example.
    two_shards_only: "knows_two_tasks",
    # Drops ids that come twice from the result.
    each_id_once_in_the_result: "gives_each_row_once",
}
