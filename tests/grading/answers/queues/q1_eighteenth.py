"""Answers of an eighteenth author to queues/q1: padded batches of similar length."""

import dtflab as tf


def fullest_queue_eighteenth(sentence, bounds, batch_size):
    """Sort sentences by a search in the bounds, and take from the queue that holds most at that moment."""
    queues = [tf.PaddingFIFOQueue(1000, [tf.int32], [[None]]) for _ in range(len(bounds) + 1)]
    steps = [tf.cast(tf.size(sentence) > bound, tf.int32) for bound in bounds]
    put = tf.QueueBase.from_list(sum(steps, tf.constant(0)), queues).enqueue([sentence])
    _, fullest = tf.nn.top_k(tf.stack([queue.size() for queue in queues]), k=1)
    take = tf.QueueBase.from_list(tf.squeeze(fullest), queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*[queue.close() for queue in queues])


def _kind(sentence, bounds):
    """Count the bounds that are less than the length of the sentence."""
    if not bounds:
        return tf.constant(0)
    return tf.reduce_sum(tf.cast(tf.shape(sentence)[0] > tf.constant(bounds), tf.int32))


def first_full_queue_eighteenth(sentence, bounds, batch_size):
    """Take from the first queue that has enough for a batch."""
    queues = [tf.PaddingFIFOQueue(200, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    put = tf.QueueBase.from_list(_kind(sentence, bounds), queues).enqueue(sentence)
    enough = tf.stack([tf.cast(queue.size() >= batch_size, tf.int32) for queue in queues])
    take = tf.QueueBase.from_list(tf.cast(tf.argmax(enough, 0), tf.int32), queues).dequeue_up_to(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


def shared_capacity_eighteenth(sentence, bounds, batch_size):
    """Divide the room for 100 sentences among the queues."""
    kinds = len(bounds) + 1
    room = max(batch_size, -(-100 // kinds))
    queues = [tf.PaddingFIFOQueue(room, [tf.int32], shapes=[[None]]) for _ in range(kinds)]
    put = tf.QueueBase.from_list(_kind(sentence, bounds), queues).enqueue(sentence)
    sizes = tf.stack([queue.size() for queue in queues])
    take = tf.QueueBase.from_list(tf.cast(tf.argmax(sizes, 0), tf.int32), queues).dequeue_up_to(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


def bound_in_the_next_kind_eighteenth(sentence, bounds, batch_size):
    """Count the bounds that a sentence has reached, and use their number as that of the queue."""
    queues = [tf.PaddingFIFOQueue(150, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    index = tf.constant(0)
    for bound in bounds:
        index += tf.cast(tf.size(sentence) >= bound, tf.int32)
    put = tf.QueueBase.from_list(index, queues).enqueue(sentence)
    sizes = tf.stack([queue.size() for queue in queues])
    take = tf.QueueBase.from_list(tf.cast(tf.argmax(sizes, 0), tf.int32), queues).dequeue_up_to(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


RIGHT = [fullest_queue_eighteenth]
WRONG = {
    first_full_queue_eighteenth: "ends_with_the_first_kind",
    shared_capacity_eighteenth: "too_small",
    bound_in_the_next_kind_eighteenth: "bound_off_by_one",
}
