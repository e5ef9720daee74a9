"""Answers to queues/q1 by a second author, who had seen the exercise alone."""

import dtflab as tf


def _queues(count, capacity=200):
    return [tf.PaddingFIFOQueue(capacity, [tf.int32], shapes=[[None]]) for _ in range(count)]


def _kind(sentence, bounds):
    if not bounds:
        return tf.constant(0)
    return tf.reduce_sum(tf.cast(tf.size(sentence) > tf.constant(bounds, tf.int32), tf.int32))


def _put(sentence, bounds, queues):
    return tf.QueueBase.from_list(_kind(sentence, bounds), queues).enqueue(sentence)


def _fullest(queues):
    return tf.cast(tf.argmax(tf.stack([queue.size() for queue in queues])), tf.int32)


def _close(queues):
    return tf.group(*[queue.close() for queue in queues])


def fullest_queue(sentence, bounds, batch_size):
    queues = _queues(len(bounds) + 1)
    take = tf.QueueBase.from_list(_fullest(queues), queues).dequeue_up_to(batch_size)
    return _put(sentence, bounds, queues), take, _close(queues)


def first_with_a_batch_else_fullest(sentence, bounds, batch_size):
    queues = _queues(len(bounds) + 1, 1000)
    kind = tf.constant(len(bounds))
    for number in reversed(range(len(bounds))):
        kind = tf.where(tf.size(sentence) <= bounds[number], tf.constant(number), kind)
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    sizes = tf.stack([queue.size() for queue in queues])
    index = tf.cast(tf.argmax(tf.minimum(sizes, batch_size)), tf.int32)
    take = tf.QueueBase.from_list(index, queues).dequeue_up_to(batch_size)
    return put, take, _close(queues)


def one_list_of_limits(sentence, bounds, batch_size):
    limits = [*bounds, 2**31 - 1]
    queues = [tf.PaddingFIFOQueue(100 + batch_size, [tf.int32], shapes=[[None]]) for _ in limits]
    fits = tf.cast(tf.shape(sentence)[0] <= tf.constant(limits, tf.int32), tf.int32)
    put = tf.QueueBase.from_list(tf.cast(tf.argmax(fits), tf.int32), queues).enqueue([sentence])
    best, most = tf.constant(0), queues[0].size()
    for number, queue in enumerate(queues[1:], 1):
        size = queue.size()
        best, most = tf.where(size > most, tf.constant(number), best), tf.maximum(size, most)
    take = tf.QueueBase.from_list(best, queues).dequeue_up_to(batch_size)
    return put, take, tf.group(*[queue.close() for queue in queues])


def bound_belongs_to_the_next_kind(sentence, bounds, batch_size):
    queues = _queues(len(bounds) + 1)
    kind = tf.add_n([tf.cast(tf.size(sentence) >= bound, tf.int32) for bound in bounds] + [tf.constant(0)])
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    return put, tf.QueueBase.from_list(_fullest(queues), queues).dequeue_up_to(batch_size), _close(queues)


def dequeue_many_to_the_end(sentence, bounds, batch_size):
    queues = _queues(len(bounds) + 1)
    take = tf.QueueBase.from_list(_fullest(queues), queues).dequeue_many(batch_size)
    return _put(sentence, bounds, queues), take, _close(queues)


def one_queue_for_all(sentence, bounds, batch_size):
    queue = tf.PaddingFIFOQueue(200, [tf.int32], shapes=[[None]])
    return queue.enqueue(sentence), queue.dequeue_up_to(batch_size), queue.close()


def takes_from_the_kind_of_the_sentence(sentence, bounds, batch_size):
    queues = _queues(len(bounds) + 1)
    queue = tf.QueueBase.from_list(_kind(sentence, bounds), queues)
    return queue.enqueue(sentence), queue.dequeue_up_to(batch_size), _close(queues)


def first_that_is_not_empty(sentence, bounds, batch_size):
    queues = _queues(len(bounds) + 1)
    some = tf.stack([tf.cast(queue.size() > 0, tf.int32) for queue in queues])
    take = tf.QueueBase.from_list(tf.cast(tf.argmax(some), tf.int32), queues).dequeue_up_to(batch_size)
    return _put(sentence, bounds, queues), take, _close(queues)


def room_for_one_batch(sentence, bounds, batch_size):
    queues = _queues(len(bounds) + 1, batch_size)
    take = tf.QueueBase.from_list(_fullest(queues), queues).dequeue_up_to(batch_size)
    return _put(sentence, bounds, queues), take, _close(queues)


def closes_the_last_queue_only(sentence, bounds, batch_size):
    queues = _queues(len(bounds) + 1)
    take = tf.QueueBase.from_list(_fullest(queues), queues).dequeue_up_to(batch_size)
    return _put(sentence, bounds, queues), take, queues[-1].close()


def all_rows_forty_wide(sentence, bounds, batch_size):
    queues = [tf.FIFOQueue(200, [tf.int32], shapes=[[40]]) for _ in range(len(bounds) + 1)]
    padded = tf.reshape(tf.pad(sentence, [[0, 40 - tf.size(sentence)]]), [40])
    put = tf.QueueBase.from_list(_kind(sentence, bounds), queues).enqueue(padded)
    return put, tf.QueueBase.from_list(_fullest(queues), queues).dequeue_up_to(batch_size), _close(queues)


RIGHT = [fullest_queue, first_with_a_batch_else_fullest, one_list_of_limits]
WRONG = {
    # Off by one: a sentence as long as a bound goes into the next kind.
    bound_belongs_to_the_next_kind: "bound_off_by_one",
    # Dequeue_many gives no smaller batches after close: the rest is lost.
    dequeue_many_to_the_end: "loses_the_rest",
    # Believes that padding alone does it: ignores the bounds, so batches mix kinds.
    one_queue_for_all: "one_queue",
    # Take looks at the fed sentence to choose its queue, not at what the queues hold.
    takes_from_the_kind_of_the_sentence: "takes_by_the_sentence",
    # Takes from the first queue that holds anything, and so waits though another has a batch.
    first_that_is_not_empty: "takes_from_one_queue_only",
    # Capacity is batch_size: put waits long before 100 sentences.
    room_for_one_batch: "too_small",
    # Closes one queue only: take waits forever for the rest of the others.
    closes_the_last_queue_only: "leaves_a_queue_open",
    # Pads every sentence to 40 words itself: batches are not as wide as their longest sentence.
    all_rows_forty_wide: "pads_too_far",
}
