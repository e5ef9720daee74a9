"""Wrong answers to queues/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def padding_queues(number, capacity=100):
    return [tf.PaddingFIFOQueue(capacity, [tf.int32], shapes=[[None]]) for _ in range(number)]


def kind_of(sentence, bounds):
    return tf.reduce_sum(tf.cast(tf.size(sentence) > bounds, tf.int32))


def fullest_of(queues):
    sizes = tf.stack([queue.size() for queue in queues])
    return tf.QueueBase.from_list(tf.argmax(sizes, output_type=tf.int32), queues)


def parts(sentence, bounds, capacity=100):
    """The right way: the queues, what puts, the queue to take from, what closes."""
    queues = padding_queues(len(bounds) + 1, capacity)
    put = tf.QueueBase.from_list(kind_of(sentence, bounds), queues).enqueue(sentence)
    return queues, put, fullest_of(queues), tf.group(*[queue.close() for queue in queues])


def one_queue(sentence, bounds, batch_size):
    (queue,) = padding_queues(1)
    return queue.enqueue(sentence), queue.dequeue_up_to(batch_size), queue.close()


def bound_off_by_one(sentence, bounds, batch_size):
    queues = padding_queues(len(bounds) + 1)
    kind = tf.reduce_sum(tf.cast(tf.size(sentence) >= bounds, tf.int32))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    return put, fullest_of(queues).dequeue_up_to(batch_size), tf.group(*[queue.close() for queue in queues])


def takes_from_one_queue_only(sentence, bounds, batch_size):
    queues, put, _, close = parts(sentence, bounds)
    return put, queues[0].dequeue_up_to(batch_size), close


def leaves_a_queue_open(sentence, bounds, batch_size):
    queues, put, fullest, _ = parts(sentence, bounds)
    return put, fullest.dequeue_up_to(batch_size), queues[-1].close()


def loses_the_rest(sentence, bounds, batch_size):
    _, put, fullest, close = parts(sentence, bounds)
    return put, fullest.dequeue_many(batch_size), close


def too_small(sentence, bounds, batch_size):
    _, put, fullest, close = parts(sentence, bounds, capacity=batch_size - 1)
    return put, fullest.dequeue_up_to(batch_size), close


def takes_by_the_sentence(sentence, bounds, batch_size):
    queues, put, _, close = parts(sentence, bounds)
    return put, tf.QueueBase.from_list(kind_of(sentence, bounds), queues).dequeue_up_to(batch_size), close


def forgets_the_longest(sentence, bounds, batch_size):
    queues = padding_queues(len(bounds))
    put = tf.QueueBase.from_list(kind_of(sentence, bounds), queues).enqueue(sentence)
    return put, fullest_of(queues).dequeue_up_to(batch_size), tf.group(*[queue.close() for queue in queues])


def gives_no_shapes(sentence, bounds, batch_size):
    queue = tf.FIFOQueue(100, [tf.int32])
    return queue.enqueue(sentence), queue.dequeue_up_to(batch_size), queue.close()


def takes_one_sentence(sentence, bounds, batch_size):
    _, put, fullest, close = parts(sentence, bounds)
    return put, fullest.dequeue(), close


def asks_for_too_many(sentence, bounds, batch_size):
    _, put, fullest, close = parts(sentence, bounds)
    return put, fullest.dequeue_up_to(batch_size + 1), close


def pads_too_far(sentence, bounds, batch_size):
    queues = [tf.FIFOQueue(100, [tf.int32], shapes=[[50]]) for _ in range(len(bounds) + 1)]
    padded = tf.reshape(tf.pad(sentence, [[0, 50 - tf.size(sentence)]]), [50])
    put = tf.QueueBase.from_list(kind_of(sentence, bounds), queues).enqueue(padded)
    return put, fullest_of(queues).dequeue_up_to(batch_size), tf.group(*[queue.close() for queue in queues])


def cuts_sentences(sentence, bounds, batch_size):
    _, put, fullest, close = parts(sentence[: bounds[-1]], bounds)
    return put, fullest.dequeue_up_to(batch_size), close


def gives_empty_batches(sentence, bounds, batch_size):
    queues, put, _, close = parts(sentence, bounds)
    sizes = tf.stack([queue.size() for queue in queues])
    fullest = tf.QueueBase.from_list(tf.argmax(sizes, output_type=tf.int32), queues)
    return put, fullest.dequeue_many(tf.minimum(batch_size, tf.reduce_max(sizes))), close


def ends_with_the_first_kind(sentence, bounds, batch_size):
    queues, put, _, close = parts(sentence, bounds)
    full = tf.stack([queue.size() >= batch_size for queue in queues])
    number = tf.argmax(tf.cast(full, tf.int32), output_type=tf.int32)  # 0 if none is full
    return put, tf.QueueBase.from_list(number, queues).dequeue_up_to(batch_size), close
