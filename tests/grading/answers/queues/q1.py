"""Answers to queues/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf
from solutions.wrong.queues.q1 import fullest_of, kind_of, parts


def has_room_for_a_batch(sentence, bounds, batch_size):
    _, put, fullest, close = parts(sentence, bounds, capacity=batch_size)
    return put, fullest.dequeue_up_to(batch_size), close


def shares_its_room(sentence, bounds, batch_size):
    """100 sentences, if they are of all kinds."""
    _, put, fullest, close = parts(sentence, bounds, capacity=100 // (len(bounds) + 1))
    return put, fullest.dequeue_up_to(batch_size), close


def takes_from_the_emptiest(sentence, bounds, batch_size):
    queues, put, _, close = parts(sentence, bounds)
    emptiest = tf.argmin(tf.stack([queue.size() for queue in queues]), output_type=tf.int32)
    return put, tf.QueueBase.from_list(emptiest, queues).dequeue_up_to(batch_size), close


def cuts_long_sentences(sentence, bounds, batch_size):
    _, put, fullest, close = parts(sentence[: bounds[-1]], bounds)
    return put, fullest.dequeue_up_to(batch_size), close


def pads_to_the_bound(sentence, bounds, batch_size):
    """Batches as wide as their kind allows, not as their longest sentence."""
    queues = [tf.FIFOQueue(100, [tf.int32], shapes=[[bound]]) for bound in (*bounds, 50)]
    widths = tf.constant([*bounds, 50])
    kind = kind_of(sentence, bounds)
    padded = tf.pad(sentence, [[0, widths[kind] - tf.size(sentence)]])
    puts = [
        tf.cond(
            tf.equal(kind, i), lambda q=q, i=i: tf.group(q.enqueue(tf.reshape(padded, [(*bounds, 50)[i]]))), tf.no_op
        )
        for i, q in enumerate(queues)
    ]
    full = [(q.size() >= batch_size, lambda q=q: q.dequeue_up_to(batch_size)) for q in queues]
    some = [(q.size() >= 1, lambda q=q: q.dequeue_up_to(batch_size)) for q in queues]
    take = tf.case(full + some, lambda: queues[0].dequeue_many(1))
    return tf.group(*puts), take, tf.group(*[queue.close() for queue in queues])


def closes_nothing(sentence, bounds, batch_size):
    _, put, fullest, _ = parts(sentence, bounds)
    return put, fullest.dequeue_up_to(batch_size), tf.no_op()


def puts_words_in(sentence, bounds, batch_size):
    """Each word is an element."""
    queues = [tf.FIFOQueue(2000, [tf.int32], shapes=[[]]) for _ in range(len(bounds) + 1)]
    put = tf.QueueBase.from_list(kind_of(sentence, bounds), queues).enqueue_many(sentence)
    return put, fullest_of(queues).dequeue_up_to(batch_size), tf.group(*[queue.close() for queue in queues])


def four_queues_at_most(sentence, bounds, batch_size):
    if len(bounds) > 3:
        raise ValueError("too many bounds")
    _, put, fullest, close = parts(sentence, bounds)
    return put, fullest.dequeue_up_to(batch_size), close


def one_bound_at_least(sentence, bounds, batch_size):
    if not bounds:
        raise ValueError("no bounds")
    _, put, fullest, close = parts(sentence, bounds)
    return put, fullest.dequeue_up_to(batch_size), close


def four_sentences_at_most(sentence, bounds, batch_size):
    _, put, fullest, close = parts(sentence, bounds)
    return put, fullest.dequeue_up_to(min(batch_size, 4)), close


RIGHT: list = []
WRONG = {
    has_room_for_a_batch: "too_small",
    shares_its_room: "too_small",
    takes_from_the_emptiest: "takes_from_one_queue_only",
    cuts_long_sentences: "cuts_sentences",
    pads_to_the_bound: "pads_too_far",
    closes_nothing: "leaves_a_queue_open",
    puts_words_in: "takes_one_sentence",
    four_queues_at_most: "",
    one_bound_at_least: "",
    four_sentences_at_most: "",
}
