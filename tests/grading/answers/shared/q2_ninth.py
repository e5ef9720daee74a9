import dtflab as tf


# "No more than these rows may leave the parameter servers": every shard sends a row for every id, most are zeros.
def lookup_masked_sum(shards, ids, block_rows):
    block = ids // block_rows
    task = block % len(shards)
    row = block // len(shards) * block_rows + ids % block_rows
    parts = []
    for number, shard in enumerate(shards):
        with tf.device(shard.device):
            mine = tf.equal(task, number)
            found = tf.gather(shard, tf.where(mine, row, tf.zeros_like(row)))
            parts.append(tf.where(mine, found, tf.zeros_like(found)))
    return tf.add_n(parts)


# "How many there are may be known only in a step": the static shape is used for the places.
def lookup_static_places(shards, ids, block_rows):
    count = len(shards)
    block = ids // block_rows
    row = block // count * block_rows + ids % block_rows
    rows = tf.dynamic_partition(row, block % count, count)
    places = tf.dynamic_partition(tf.range(int(ids.shape[0])), block % count, count)
    found = []
    for shard, part in zip(shards, rows):
        with tf.device(shard.device):
            found.append(tf.gather(shard, part))
    return tf.dynamic_stitch(places, found)


# "No more than these rows may leave the parameter servers": rows are put together on the last server, so those of
# the other servers leave twice.
def lookup_stitched_on_server(shards, ids, block_rows):
    count = len(shards)
    block = ids // block_rows
    row = block // count * block_rows + ids % block_rows
    rows = tf.dynamic_partition(row, block % count, count)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), block % count, count)
    found = []
    for shard, part in zip(shards, rows):
        with tf.device(shard.device):
            found.append(tf.gather(shard, part))
            if len(found) == count:
                result = tf.dynamic_stitch(places, found)
    return result


def lookup_by_inverse(shards, ids, block_rows):
    """The rows, shard after shard, and then one gather that puts them into their order."""
    count = len(shards)
    turn = count * block_rows  # that many rows are dealt out until the first server is next again
    owner = tf.floordiv(tf.mod(ids, turn), block_rows)
    local = tf.floordiv(ids, turn) * block_rows + tf.mod(ids, block_rows)
    found, places = [], []
    for number in range(count):
        where = tf.reshape(tf.where(tf.equal(owner, number)), [-1])
        wanted = tf.gather(local, where)
        with tf.device(shards[number].device):
            found.append(tf.gather(shards[number], wanted))
        places.append(where)
    # place k of the answer stands at row order[k] of what came
    order = tf.invert_permutation(tf.to_int32(tf.concat(places, 0)))
    return tf.gather(tf.concat(found, 0), order)


RIGHT = [lookup_by_inverse]
WRONG = {
    # Each server sends a row (of zeros) for every id, also for those that it does not have.
    lookup_masked_sum: "asks_everyone",
    # It needs to know the number of ids when the graph is built.
    lookup_static_places: "needs_a_static_length",
    # The rows are put together on the last parameter server, so those of the others are sent to that server first, and
    # leave it once more.
    lookup_stitched_on_server: "puts_together_on_a_ps",
}
