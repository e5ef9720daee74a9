"""Answers to shared/q2 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf
from solutions.wrong.shared.q2 import gathered, homes, looked_up


def counts_all_blocks_before(shards, ids, block_rows):
    """The same mistake, written out."""
    return looked_up(shards, ids, block_rows, row=ids // block_rows * block_rows + ids % block_rows)


def for_two_shards(shards, ids, block_rows):
    return looked_up(shards[:2], ids, block_rows)


def joins_the_shards(shards, ids, block_rows):
    """Right for one block per task, and the whole table travels."""
    return tf.gather(tf.concat(shards, 0), ids)


def each_row_once_sorted(shards, ids, block_rows):
    """As many rows as there are different ids."""
    return looked_up(shards, tf.unique(ids)[0], block_rows)


def swaps_task_and_row(shards, ids, block_rows):
    task = ids // block_rows // len(shards) % len(shards)
    row = ids // block_rows % len(shards) * block_rows + ids % block_rows
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    return tf.dynamic_stitch(places, gathered(shards, tf.dynamic_partition(row, task, len(shards))))


def reads_what_they_began_with(shards, ids, block_rows):
    """The initial values of the variables: not the table that is there."""
    task, row = homes(shards, ids, block_rows)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    first = [
        tf.gather(shard.initial_value, mine)
        for shard, mine in zip(shards, tf.dynamic_partition(row, task, len(shards)))
    ]
    return tf.dynamic_stitch(places, first)


def reads_ids_while_it_builds(shards, ids, block_rows):
    """One graph for one list of ids: a placeholder has none yet."""
    return looked_up(shards, tf.constant(tf.get_static_value(ids)), block_rows)


def deals_out_ids(shards, ids, block_rows):
    """Right for blocks of one row: the task is that of the row, not of its block."""
    count = len(shards)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), ids % count, count)
    number = (ids // (block_rows * count)) * block_rows + ids % block_rows
    return tf.dynamic_stitch(places, gathered(shards, tf.dynamic_partition(number, ids % count, count)))


def gathers_on_the_worker(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    found = [tf.gather(shard, mine) for shard, mine in zip(shards, tf.dynamic_partition(row, task, len(shards)))]
    return tf.dynamic_stitch(places, found)


def trusts_the_order_of_tasks(shards, ids, block_rows):
    """Shard i is on task i, it says."""
    task, row = homes(shards, ids, block_rows)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    found = []
    for i, mine in enumerate(tf.dynamic_partition(row, task, len(shards))):
        with tf.device(f"/job:ps/task:{i}"):
            found.append(tf.gather(shards[i], mine))
    return tf.dynamic_stitch(places, found)


RIGHT: list = []
WRONG = {
    counts_all_blocks_before: "takes_ids_for_rows_of_a_shard",
    for_two_shards: "knows_two_tasks",
    joins_the_shards: "one_shard_after_the_other",
    each_row_once_sorted: "gives_each_row_once",
    swaps_task_and_row: "",
    reads_what_they_began_with: "",
    reads_ids_while_it_builds: "",
    deals_out_ids: "finds_the_task_by_the_row",
    gathers_on_the_worker: "sends_whole_shards",
    trusts_the_order_of_tasks: "sends_whole_shards",
}
