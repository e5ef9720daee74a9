"""Wrong answers to shared/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def homes(shards, ids, block_rows):
    """The task that holds each id, and its row there."""
    block = ids // block_rows
    return block % len(shards), block // len(shards) * block_rows + ids % block_rows


def gathered(shards, rows):
    found = []
    for shard, mine in zip(shards, rows):
        with tf.device(shard.device):
            found.append(tf.gather(shard, mine))
    return found


def looked_up(shards, ids, block_rows, row=None):
    task, right = homes(shards, ids, block_rows)
    row = right if row is None else row
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    return tf.dynamic_stitch(places, gathered(shards, tf.dynamic_partition(row, task, len(shards))))


def forgets_the_places(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    return tf.concat(gathered(shards, tf.dynamic_partition(row, task, len(shards))), 0)


def one_shard_after_the_other(shards, ids, block_rows):
    return looked_up(shards, ids, shards[0].shape[0].value)


def ignores_the_blocks(shards, ids, block_rows):
    return looked_up(shards, ids, 1)


def asks_everyone(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    found = gathered(shards, [row] * len(shards))
    return tf.add_n([rows * tf.cast(tf.equal(task, i), tf.float32)[:, None] for i, rows in enumerate(found)])


def sends_whole_shards(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    whole = tf.concat([tf.identity(shard) for shard in shards], 0)
    return tf.gather(whole, task * shards[0].shape[0].value + row)


def forgets_the_blocks_before(shards, ids, block_rows):
    return looked_up(shards, ids, block_rows, row=ids % block_rows)


def takes_ids_for_rows_of_a_shard(shards, ids, block_rows):
    return looked_up(shards, ids, block_rows, row=ids)


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


def gathers_on_the_worker(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    found = [tf.gather(shard, mine) for shard, mine in zip(shards, tf.dynamic_partition(row, task, len(shards)))]
    return tf.dynamic_stitch(places, found)


MORE = {
    "counts_all_blocks_before": "takes_ids_for_rows_of_a_shard",
    "for_two_shards": "",
    "joins_the_shards": "one_shard_after_the_other",
    "each_row_once_sorted": "",
    "swaps_task_and_row": "",
    "reads_what_they_began_with": "",
    "reads_ids_while_it_builds": "",
    "gathers_on_the_worker": "sends_whole_shards",
}
