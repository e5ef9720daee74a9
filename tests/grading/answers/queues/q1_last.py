"""Answers to queues/q1 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def fullest_queue_2(sentence, bounds, batch_size):
    queues = [
        tf.PaddingFIFOQueue(max(1000, 2 * batch_size), [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)
    ]
    kind = tf.reduce_sum(tf.to_int32(tf.greater(tf.size(sentence), tf.constant(list(bounds), tf.int32))))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    fullest = tf.to_int32(tf.argmax(tf.stack([queue.size() for queue in queues]), axis=0))
    take = tf.QueueBase.from_list(fullest, queues).dequeue_up_to(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


def bound_belongs_to_the_next(sentence, bounds, batch_size):
    queues = [tf.PaddingFIFOQueue(1000, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    kind = tf.reduce_sum(tf.to_int32(tf.greater_equal(tf.size(sentence), tf.constant(list(bounds), tf.int32))))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    fullest = tf.to_int32(tf.argmax(tf.stack([queue.size() for queue in queues]), axis=0))
    take = tf.QueueBase.from_list(fullest, queues).dequeue_up_to(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


def dequeues_many(sentence, bounds, batch_size):
    queues = [tf.PaddingFIFOQueue(1000, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    kind = tf.reduce_sum(tf.to_int32(tf.size(sentence) > tf.constant(list(bounds), tf.int32)))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    fullest = tf.to_int32(tf.argmax(tf.stack([queue.size() for queue in queues]), axis=0))
    take = tf.QueueBase.from_list(fullest, queues).dequeue_many(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


def first_that_is_not_empty_2(sentence, bounds, batch_size):
    queues = [tf.PaddingFIFOQueue(1000, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    kind = tf.reduce_sum(tf.to_int32(tf.size(sentence) > tf.constant(list(bounds), tf.int32)))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    filled = tf.to_int32(tf.stack([queue.size() for queue in queues]) > 0)
    take = tf.QueueBase.from_list(tf.to_int32(tf.argmax(filled, axis=0)), queues).dequeue_up_to(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


RIGHT = [fullest_queue_2]
WRONG = {
    # Off by one: a sentence as long as a bound goes to the next kind.
    bound_belongs_to_the_next: "bound_off_by_one",
    # Uses dequeue_many, so after close the last smaller batches are never given: OutOfRangeError while sentences are
    # left.
    dequeues_many: "loses_the_rest",
    # Takes from the first queue that holds anything, and so waits although another kind has enough for a batch.
    first_that_is_not_empty_2: "takes_from_one_queue_only",
}
