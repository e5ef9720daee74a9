"""Answers to shared/q2 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import dtflab as tf


def _places(shards, ids, block_rows):
    block = ids // block_rows
    return block % len(shards), block // len(shards) * block_rows + ids % block_rows


# "No more than these rows may leave the parameter servers": each server sends a row for every id, also for those
# that it does not have (its row 0); they are thrown away only at the worker.
def lookup_rows_from_all(shards, ids, block_rows):
    task, row = _places(shards, ids, block_rows)
    result = None
    for number, shard in enumerate(shards):
        mine = tf.equal(task, number)
        asked = tf.where(mine, row, tf.zeros_like(row))
        with tf.colocate_with(shard):
            rows = tf.gather(shard, asked)
        result = rows if result is None else tf.where(mine, rows, result)
    return result


# "`ids` is a tensor": its length is taken from the static shape while the graph is built; if the length is known
# only when the graph runs (a placeholder), this fails.
def lookup_static_length(shards, ids, block_rows):
    task, row = _places(shards, ids, block_rows)
    count = len(shards)
    places = tf.dynamic_partition(tf.range(int(ids.shape[0])), task, count)
    asked = tf.dynamic_partition(row, task, count)
    found = []
    for shard, part in zip(shards, asked):
        with tf.colocate_with(shard):
            found.append(tf.gather(shard, part))
    return tf.dynamic_stitch(places, found)


# "No more than these rows may leave the parameter servers": the stitch is inside the `with` of the last shard, so
# the others' rows go to that server first, and leave it a second time.
def lookup_stitch_on_server(shards, ids, block_rows):
    task, row = _places(shards, ids, block_rows)
    count = len(shards)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, count)
    asked = tf.dynamic_partition(row, task, count)
    found = []
    for number, shard in enumerate(shards):
        with tf.device(shard.device):
            found.append(tf.gather(shard, asked[number]))
            if number == count - 1:
                result = tf.dynamic_stitch(places, found)
    return result


# Right: ids are sorted by server, each server gets its slice of them, and the rows are put back with the inverse
# permutation; no partition, no stitch.
def lookup_by_sorting(shards, ids, block_rows):
    task, row = _places(shards, ids, block_rows)
    places = [tf.reshape(tf.where(tf.equal(task, number)), [-1]) for number in range(len(shards))]

    def rows_of(shard, mine):
        asked = tf.gather(row, mine)
        with tf.device(shard.device):
            return tf.gather(shard, asked)

    rows = tf.concat([rows_of(shard, mine) for shard, mine in zip(shards, places)], 0)
    order = tf.cast(tf.concat(places, 0), tf.int32)
    return tf.gather(rows, tf.invert_permutation(order))


RIGHT = [lookup_by_sorting]
WRONG = {
    # Every server sends one row for each id, also for the ids of the others, so more rows leave the servers
    # than are asked for.
    lookup_rows_from_all: "asks_everyone",
    # The number of ids is read from the static shape, so it fails for a tensor whose length is known only
    # when the graph runs.
    lookup_static_length: "needs_a_static_length",
    # The rows are put together on the last parameter server, so the others' rows are sent there first, and
    # leave a server twice.
    lookup_stitch_on_server: "puts_together_on_a_ps",
}
