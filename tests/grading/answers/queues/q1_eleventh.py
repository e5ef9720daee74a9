"""Answers to queues/q1: padded batches of sentences of similar length."""

import dtflab as tf


def narrowest_full_kind_eleven(sentence, bounds, batch_size):
    """A queue per kind; a batch of the shortest kind that has enough, else of the longest that has any."""
    queues = [tf.PaddingFIFOQueue(400, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    words = tf.size(sentence)
    kind = tf.constant(0)
    for bound in bounds:
        kind += tf.cast(words > bound, tf.int32)
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    sizes = tf.stack([queue.size() for queue in queues])
    has_enough = tf.cast(sizes >= batch_size, tf.int32) * tf.constant([1000 - i for i in range(len(queues))])
    has_any = tf.cast(sizes > 0, tf.int32) * tf.constant([1 + i for i in range(len(queues))])
    index = tf.cast(tf.argmax(tf.where(tf.reduce_any(sizes >= batch_size), has_enough, has_any), axis=0), tf.int32)
    take = tf.QueueBase.from_list(index, queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*[queue.close() for queue in queues])


def room_for_all_kinds_eleven(sentence, bounds, batch_size):
    """Queues that have room for 100 sentences together."""
    kinds = len(bounds) + 1
    queues = [tf.PaddingFIFOQueue(-(-100 // kinds), [tf.int32], shapes=[[None]]) for _ in range(kinds)]
    kind = sum([tf.cast(tf.size(sentence) > bound, tf.int32) for bound in bounds], tf.constant(0))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    fullest = tf.cast(tf.argmax(tf.stack([queue.size() for queue in queues]), axis=0), tf.int32)
    take = tf.QueueBase.from_list(fullest, queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*[queue.close() for queue in queues])


def as_wide_as_the_bound_eleven(sentence, bounds, batch_size):
    """Sentences filled up to the bound of their kind before they are put."""
    queues = [tf.PaddingFIFOQueue(200, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    words = tf.size(sentence)
    kind = sum([tf.cast(words > bound, tf.int32) for bound in bounds], tf.constant(0))
    width = tf.maximum(words, tf.gather(tf.constant([*bounds, 0]), kind))
    filled = tf.concat([sentence, tf.zeros(tf.expand_dims(width - words, 0), tf.int32)], axis=0)
    put = tf.QueueBase.from_list(kind, queues).enqueue(tf.reshape(filled, [-1]))
    fullest = tf.cast(tf.argmax(tf.stack([queue.size() for queue in queues]), axis=0), tf.int32)
    take = tf.QueueBase.from_list(fullest, queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*[queue.close() for queue in queues])


def whole_batches_only_eleven(sentence, bounds, batch_size):
    """Batches of `batch_size` sentences to the end."""
    queues = [tf.PaddingFIFOQueue(200, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    kind = sum([tf.cast(tf.size(sentence) > bound, tf.int32) for bound in bounds], tf.constant(0))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    fullest = tf.cast(tf.argmax(tf.stack([queue.size() for queue in queues]), axis=0), tf.int32)
    take = tf.QueueBase.from_list(fullest, queues).dequeue_many(batch_size)
    return put, take, tf.group(*[queue.close() for queue in queues])


RIGHT = [narrowest_full_kind_eleven]
WRONG = {
    room_for_all_kinds_eleven: "too_small",
    as_wide_as_the_bound_eleven: "pads_too_far",
    whole_batches_only_eleven: "loses_the_rest",
}
