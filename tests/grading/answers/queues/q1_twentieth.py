"""Answers of a twentieth author to queues/q1: padded batches of sentences of similar length."""

import dtflab as tf


def _kinds(bounds):
    """One padding queue per kind, each with room for 100 sentences."""
    return [tf.PaddingFIFOQueue(100, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]


def _close_all(queues):
    """One op that closes all queues."""
    return tf.group(*[queue.close() for queue in queues])


def _put(sentence, bounds, queues):
    """The op that puts the sentence into the queue of its kind: its number is that of the bounds it exceeds."""
    kind = sum((tf.cast(tf.size(sentence) > bound, tf.int32) for bound in bounds), tf.constant(0))
    return tf.QueueBase.from_list(kind, queues).enqueue(sentence)


def case_and_top_k_twentieth(sentence, bounds, batch_size):
    """Put by a `tf.case` over the bounds, take up to a batch from the queue that `tf.nn.top_k` finds fullest."""
    queues = _kinds(bounds)
    words = tf.size(sentence)

    def into(queue):
        def branch():
            with tf.control_dependencies([queue.enqueue(sentence)]):
                return tf.identity(words)

        return branch

    if bounds:
        pairs = [(words <= bound, into(queue)) for bound, queue in zip(bounds, queues)]
        put = tf.case(pairs, default=into(queues[-1]), exclusive=False)
    else:
        put = queues[0].enqueue(sentence)
    sizes = tf.stack([queue.size() for queue in queues])
    fullest = tf.nn.top_k(sizes, k=1).indices[0]
    take = tf.QueueBase.from_list(fullest, queues).dequeue_up_to(batch_size)
    return put, take, _close_all(queues)


def bound_belongs_above_twentieth(sentence, bounds, batch_size):
    """Count the bounds that the length reaches, and take from the fullest queue."""
    queues = _kinds(bounds)
    reached = [tf.cast(tf.size(sentence) >= bound, tf.int32) for bound in bounds]
    kind = tf.add_n(reached) if reached else tf.constant(0)
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    fullest = tf.argmax(tf.stack([queue.size() for queue in queues]), 0)
    take = tf.QueueBase.from_list(tf.cast(fullest, tf.int32), queues).dequeue_up_to(batch_size)
    return put, take, _close_all(queues)


def only_whole_batches_twentieth(sentence, bounds, batch_size):
    """Take `batch_size` sentences, never fewer, from the fullest queue."""
    queues = _kinds(bounds)
    fullest = tf.argmax(tf.stack([queue.size() for queue in queues]), 0)
    take = tf.QueueBase.from_list(tf.cast(fullest, tf.int32), queues).dequeue_many(batch_size)
    return _put(sentence, bounds, queues), take, _close_all(queues)


def first_that_is_not_empty_twentieth(sentence, bounds, batch_size):
    """Take from the first queue that holds anything at all."""
    queues = _kinds(bounds)
    filled = tf.stack([tf.cast(queue.size() > 0, tf.int32) for queue in queues])
    take = tf.QueueBase.from_list(tf.cast(tf.argmax(filled, 0), tf.int32), queues).dequeue_up_to(batch_size)
    return _put(sentence, bounds, queues), take, _close_all(queues)


RIGHT = [case_and_top_k_twentieth]
WRONG = {
    bound_belongs_above_twentieth: "bound_off_by_one",
    only_whole_batches_twentieth: "loses_the_rest",
    first_that_is_not_empty_twentieth: "takes_from_one_queue_only",
}
