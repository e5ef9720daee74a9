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


def looked_up(shards, ids, block_rows, row=None, task=None):
    home, number = homes(shards, ids, block_rows)
    task, row = home if task is None else task, number if row is None else row
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    return tf.dynamic_stitch(places, gathered(shards, tf.dynamic_partition(row, task, len(shards))))


def forgets_the_places(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    return tf.concat(gathered(shards, tf.dynamic_partition(row, task, len(shards))), 0)


def one_shard_after_the_other(shards, ids, block_rows):
    return looked_up(shards, ids, shards[0].shape[0].value)


def ignores_the_blocks(shards, ids, block_rows):
    return looked_up(shards, ids, 1)


def finds_the_task_by_the_row(shards, ids, block_rows):
    return looked_up(shards, ids, block_rows, task=ids % len(shards))


def counts_single_rows_in_the_shard(shards, ids, block_rows):
    return looked_up(shards, ids, block_rows, row=ids // len(shards))


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


def gives_each_row_once(shards, ids, block_rows):
    return looked_up(shards, tf.unique(ids)[0], block_rows)


def ends_after_the_last_task(shards, ids, block_rows):
    task, row = ids // block_rows, ids % block_rows
    places = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    return tf.dynamic_stitch(places, gathered(shards, tf.dynamic_partition(row, task, len(shards))))


def knows_two_tasks(shards, ids, block_rows):
    return looked_up(shards[:2], ids, block_rows)


def puts_together_on_a_ps(shards, ids, block_rows):
    with tf.device(shards[-1].device):
        return looked_up(shards, ids, block_rows)


def needs_a_static_length(shards, ids, block_rows):
    task, row = homes(shards, ids, block_rows)
    places = tf.dynamic_partition(tf.range(ids.shape[0].value), task, len(shards))
    return tf.dynamic_stitch(places, gathered(shards, tf.dynamic_partition(row, task, len(shards))))
