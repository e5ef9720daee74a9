"""Answers to queues/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import dtflab as tf


def _kinds(bounds, capacity):
    return [
        tf.PaddingFIFOQueue(capacity, [tf.int32], shapes=[[None]], name=f"kind{number}")
        for number in range(len(bounds) + 1)
    ]


def _kind_of(sentence, bounds):
    return tf.reduce_sum(tf.cast(tf.size(sentence) > tf.constant(bounds, tf.int32, [len(bounds)]), tf.int32))


def _close_all(queues):
    return tf.group(*[queue.close() for queue in queues])


# "There is room for 100 sentences at least": the 100 places are divided among the kinds, so put waits forever when
# most sentences are of one kind.
def batches_room_divided(sentence, bounds, batch_size):
    queues = _kinds(bounds, max(batch_size, 100 // (len(bounds) + 1)))
    put = tf.QueueBase.from_list(_kind_of(sentence, bounds), queues).enqueue(sentence)
    fullest = tf.argmax(tf.stack([queue.size() for queue in queues]), output_type=tf.int32)
    take = tf.QueueBase.from_list(fullest, queues).dequeue_up_to(batch_size)
    return put, take, _close_all(queues)


# "until nothing is left: then it raises `tf.errors.OutOfRangeError`": asked for as many as there are, an empty
# queue gives a batch of 0 sentences, again and again.
def batches_never_out_of_range(sentence, bounds, batch_size):
    queues = _kinds(bounds, 200)
    put = tf.QueueBase.from_list(_kind_of(sentence, bounds), queues).enqueue(sentence)
    sizes = tf.stack([queue.size() for queue in queues])
    queue = tf.QueueBase.from_list(tf.argmax(sizes, output_type=tf.int32), queues)
    take = queue.dequeue_many(tf.minimum(batch_size, tf.reduce_max(sizes)))
    return put, take, _close_all(queues)


# Right: every queue gets no sentence or one (enqueue_many of a part of a table of one row), so none is chosen to put;
# taking is a chain of conditions.
def batches_none_or_one(sentence, bounds, batch_size):
    lows, highs = [-1, *bounds], [*bounds, None]
    words = tf.size(sentence)
    queues, puts = [], []
    for low, high in zip(lows, highs):
        queue = tf.PaddingFIFOQueue(1000, [tf.int32], shapes=[[None]])
        mine = words > low if high is None else tf.logical_and(words > low, words <= high)
        rows = tf.tile(tf.expand_dims(sentence, 0), [tf.cast(mine, tf.int32), 1])
        puts.append(queue.enqueue_many([rows]))
        queues.append(queue)
    sizes = [queue.size() for queue in queues]
    most = tf.reduce_max(tf.stack(sizes))

    def take_from(number):
        if number == len(queues) - 1:
            return queues[number].dequeue_up_to(batch_size)
        return tf.cond(
            tf.equal(sizes[number], most),
            lambda: queues[number].dequeue_up_to(batch_size),
            lambda: take_from(number + 1),
        )

    with tf.control_dependencies([queue.close() for queue in queues]):
        close = tf.no_op()
    return tf.group(*puts), take_from(0), close


RIGHT = [batches_none_or_one]
WRONG = {
    # The room for 100 sentences is divided among the kinds: put waits forever when many sentences are of one
    # kind.
    batches_room_divided: "too_small",
    # At the end take gives batches of 0 sentences forever instead of raising OutOfRangeError.
    batches_never_out_of_range: "gives_empty_batches",
}
