"""Answers to queues/q1 by a second author, one right and three wrong."""

import dtflab as tf


def batches_by_length_fourteenth(sentence, bounds, batch_size):
    """Steps through the kinds with nested tf.conds: the first with a full batch, else the first with anything left."""
    queues = [tf.PaddingFIFOQueue(1000, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]

    kind = tf.constant(0)
    for bound in bounds:
        kind += tf.cast(tf.greater(tf.shape(sentence)[0], bound), tf.int32)
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)

    sizes = [queue.size() for queue in queues]
    which = tf.constant(0)  # nothing is left anywhere: the first queue says so
    for number in reversed(range(len(queues))):
        which = tf.cond(sizes[number] > 0, lambda n=number: tf.constant(n), lambda other=which: tf.identity(other))
    for number in reversed(range(len(queues))):
        which = tf.cond(
            sizes[number] >= batch_size, lambda n=number: tf.constant(n), lambda other=which: tf.identity(other)
        )
    take = tf.QueueBase.from_list(which, queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*[queue.close() for queue in queues])


def shared_room_fourteenth(sentence, bounds, batch_size):
    """Divides the room for 100 sentences between the kinds."""
    kinds = len(bounds) + 1
    room = max(batch_size, -(-100 // kinds))
    queues = [tf.PaddingFIFOQueue(room, [tf.int32], shapes=[[None]]) for _ in range(kinds)]
    index = tf.reduce_sum(tf.cast(tf.size(sentence) > tf.constant(bounds, tf.int32), tf.int32))
    put = tf.QueueBase.from_list(index, queues).enqueue(sentence)
    fullest = tf.argmax(tf.stack([queue.size() for queue in queues]), output_type=tf.int32)
    take = tf.QueueBase.from_list(fullest, queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*[queue.close() for queue in queues])


def first_full_kind_fourteenth(sentence, bounds, batch_size):
    """Takes from the first kind that has enough sentences for a batch."""
    queues = [tf.PaddingFIFOQueue(100, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    index = tf.reduce_sum(tf.cast(tf.size(sentence) > tf.constant(bounds, tf.int32), tf.int32))
    put = tf.QueueBase.from_list(index, queues).enqueue(sentence)
    enough = tf.stack([queue.size() for queue in queues]) >= batch_size
    first = tf.argmax(tf.cast(enough, tf.int32), output_type=tf.int32)
    take = tf.QueueBase.from_list(first, queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*[queue.close() for queue in queues])


def empty_batches_fourteenth(sentence, bounds, batch_size):
    """Takes as many sentences as the fullest kind has, up to batch_size."""
    queues = [tf.PaddingFIFOQueue(100, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    index = tf.reduce_sum(tf.cast(tf.size(sentence) > tf.constant(bounds, tf.int32), tf.int32))
    put = tf.QueueBase.from_list(index, queues).enqueue(sentence)
    sizes = tf.stack([queue.size() for queue in queues])
    fullest = tf.argmax(sizes, output_type=tf.int32)
    number = tf.minimum(tf.reduce_max(sizes), batch_size)
    take = tf.QueueBase.from_list(fullest, queues).dequeue_many(number)
    return put, take, tf.group(*[queue.close() for queue in queues])


RIGHT = [batches_by_length_fourteenth]
WRONG = {
    shared_room_fourteenth: "too_small",
    first_full_kind_fourteenth: "ends_with_the_first_kind",
    empty_batches_fourteenth: "gives_empty_batches",
}
