"""Answers of a twentieth author to shared/q2: look up rows of a table dealt out in blocks."""

import dtflab as tf


def _where_it_is(ids, count, block_rows):
    """The shard of each id, and its row in that shard."""
    block = ids // block_rows
    return block % count, block // count * block_rows + ids % block_rows


def undo_the_permutation_twentieth(shards, ids, block_rows):
    """Gather next to each shard, put all one after the other, and undo the order with the inverse permutation."""
    which, row = _where_it_is(ids, len(shards), block_rows)
    places, parts = [], []
    for number, shard in enumerate(shards):
        mine = tf.reshape(tf.where(tf.equal(which, number)), [-1])
        wanted = tf.gather(row, mine)
        with tf.colocate_with(shard):
            parts.append(tf.gather(shard, wanted))
        places.append(mine)
    back = tf.invert_permutation(tf.cast(tf.concat(places, 0), tf.int32))
    return tf.gather(tf.concat(parts, 0), back)


def task_by_list_position_twentieth(shards, ids, block_rows):
    """Gather from shard i on the ps task i."""
    which, row = _where_it_is(ids, len(shards), block_rows)
    which = tf.cast(which, tf.int32)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), which, len(shards))
    rows = tf.dynamic_partition(row, which, len(shards))
    found = []
    for task, shard in enumerate(shards):
        with tf.device(f"/job:ps/task:{task}"):
            found.append(tf.gather(shard, rows[task]))
    return tf.dynamic_stitch(places, found)


def every_shard_answers_all_twentieth(shards, ids, block_rows):
    """Let each shard send a row for each id, and keep the one of the right shard."""
    which, row = _where_it_is(ids, len(shards), block_rows)
    answers = []
    for number, shard in enumerate(shards):
        asked = tf.where(tf.equal(which, number), row, tf.zeros_like(row))
        with tf.colocate_with(shard):
            answers.append(tf.gather(shard, asked))
    result = answers[0]
    for number, answer in enumerate(answers[1:], 1):
        result = tf.where(tf.equal(which, number), answer, result)
    return result


def each_row_once_twentieth(shards, ids, block_rows):
    """Ask for each different id once, so that no row is sent twice."""
    ids, _ = tf.unique(ids)
    which, row = _where_it_is(ids, len(shards), block_rows)
    which = tf.cast(which, tf.int32)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), which, len(shards))
    rows = tf.dynamic_partition(row, which, len(shards))
    found = []
    for shard, wanted in zip(shards, rows):
        with tf.colocate_with(shard):
            found.append(tf.gather(shard, wanted))
    return tf.dynamic_stitch(places, found)


RIGHT = [undo_the_permutation_twentieth]
WRONG = {
    task_by_list_position_twentieth: "sends_whole_shards",
    every_shard_answers_all_twentieth: "asks_everyone",
    each_row_once_twentieth: "gives_each_row_once",
}
