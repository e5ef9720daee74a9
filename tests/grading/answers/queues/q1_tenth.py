"""Answers to queues/q1, padded batches of sentences of similar length, by a tenth author."""

import dtflab as tf


def fullest_up_to_a_batch_ten(sentence, bounds, batch_size):
    """Ask for the queue that can give most for a batch, both before and after the end."""
    queues = [tf.PaddingFIFOQueue(1000, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    kind = tf.constant(0)
    for bound in bounds:
        kind += tf.to_int32(tf.greater(tf.size(sentence), bound))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    ready = tf.stack([tf.minimum(queue.size(), batch_size) for queue in queues])
    take = tf.QueueBase.from_list(tf.to_int32(tf.argmax(ready, axis=0)), queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*(queue.close() for queue in queues))


def first_with_a_whole_batch_ten(sentence, bounds, batch_size):
    """Take from the first queue that has a whole batch."""
    queues = [tf.PaddingFIFOQueue(1000, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    kind = tf.reduce_sum(tf.to_int32(tf.size(sentence) > tf.constant(bounds, tf.int32)))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    enough = tf.stack([tf.to_int32(queue.size() >= batch_size) for queue in queues])
    take = tf.QueueBase.from_list(tf.to_int32(tf.argmax(enough, axis=0)), queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*(queue.close() for queue in queues))


def shares_the_room_ten(sentence, bounds, batch_size):
    """Divide a room of 100 sentences among the queues."""
    n = len(bounds) + 1
    room = max(batch_size, -(-100 // n))
    queues = [tf.PaddingFIFOQueue(room, [tf.int32], shapes=[[None]]) for _ in range(n)]
    kind = tf.reduce_sum(tf.to_int32(tf.size(sentence) > tf.constant(bounds, tf.int32)))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    ready = tf.stack([tf.minimum(queue.size(), batch_size) for queue in queues])
    take = tf.QueueBase.from_list(tf.to_int32(tf.argmax(ready, axis=0)), queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*(queue.close() for queue in queues))


def as_wide_as_the_kind_ten(sentence, bounds, batch_size):
    """Fill each batch up to the longest length of its kind."""
    queues = [tf.PaddingFIFOQueue(1000, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    kind = tf.reduce_sum(tf.to_int32(tf.size(sentence) > tf.constant(bounds, tf.int32)))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    ready = tf.stack([tf.minimum(queue.size(), batch_size) for queue in queues])
    index = tf.to_int32(tf.argmax(ready, axis=0))
    batch = tf.QueueBase.from_list(index, queues).dequeue_up_to(batch_size)
    width = tf.gather(tf.constant([*list(bounds), 0], tf.int32), index)
    take = tf.pad(batch, [[0, 0], [0, tf.maximum(width - tf.shape(batch)[1], 0)]])
    return put, take, tf.group(*(queue.close() for queue in queues))


RIGHT = [fullest_up_to_a_batch_ten]
WRONG = {
    first_with_a_whole_batch_ten: "ends_with_the_first_kind",
    shares_the_room_ten: "too_small",
    as_wide_as_the_kind_ten: "pads_too_far",
}
