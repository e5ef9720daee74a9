import dtflab as tf


# "until nothing is left": after close, no queue may have batch_size any more, and argmax of nothing but False is 0.
def batches_first_full(sentence, bounds, batch_size):
    queues = [tf.PaddingFIFOQueue(100, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    kind = tf.reduce_sum(tf.to_int32(tf.size(sentence) > tf.constant(bounds, tf.int32)))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    full = tf.to_int32(tf.stack([queue.size() for queue in queues]) >= batch_size)
    take = tf.QueueBase.from_list(tf.to_int32(tf.argmax(full, axis=0)), queues).dequeue_up_to(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


# "There is room for 100 sentences at least": not if all of them are of one kind.
def batches_small_room(sentence, bounds, batch_size):
    kinds = len(bounds) + 1
    room = -(-100 // kinds)
    queues = [tf.PaddingFIFOQueue(room, [tf.int32], shapes=[[None]]) for _ in range(kinds)]
    kind = tf.reduce_sum(tf.to_int32(tf.size(sentence) > tf.constant(bounds, tf.int32)))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    longest = tf.to_int32(tf.argmax(tf.stack([queue.size() for queue in queues]), axis=0))
    take = tf.QueueBase.from_list(longest, queues).dequeue_up_to(batch_size)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


# "until nothing is left: then it raises tf.errors.OutOfRangeError": this one gives batches of no sentences.
def batches_empty_at_end(sentence, bounds, batch_size):
    queues = [tf.PaddingFIFOQueue(100, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    kind = tf.reduce_sum(tf.to_int32(tf.size(sentence) > tf.constant(bounds, tf.int32)))
    put = tf.QueueBase.from_list(kind, queues).enqueue(sentence)
    sizes = tf.stack([queue.size() for queue in queues])
    count = tf.minimum(tf.reduce_max(sizes), batch_size)
    take = tf.QueueBase.from_list(tf.to_int32(tf.argmax(sizes, axis=0)), queues).dequeue_many(count)
    close = tf.group(*[queue.close() for queue in queues])
    return put, take, close


def batches_by_branches(sentence, bounds, batch_size):
    """Branches of the graph choose the queue: put goes from bound to bound, take knocks out the smaller one."""
    queues = [tf.PaddingFIFOQueue(1000, [tf.int32], shapes=[[None]]) for _ in range(len(bounds) + 1)]
    length = tf.size(sentence)

    def put_from(number):
        if number == len(bounds):
            with tf.control_dependencies([queues[number].enqueue(sentence)]):
                return tf.constant(number)
        return tf.cond(length <= bounds[number], lambda: put_last(number), lambda: put_from(number + 1))

    def put_last(number):
        with tf.control_dependencies([queues[number].enqueue(sentence)]):
            return tf.constant(number)

    sizes = [queue.size() for queue in queues]
    most, which = sizes[0], tf.constant(0)
    for number in range(1, len(queues)):
        better = sizes[number] > most
        which = tf.where(better, tf.constant(number), which)
        most = tf.maximum(most, sizes[number])

    def take_from(number):
        if number == len(queues) - 1:
            return queues[number].dequeue_up_to(batch_size)
        return tf.cond(
            tf.equal(which, number),
            lambda: queues[number].dequeue_up_to(batch_size),
            lambda: take_from(number + 1),
        )

    with tf.control_dependencies([queue.close() for queue in queues]):
        close = tf.no_op()
    return put_from(0), take_from(0), close


RIGHT = [batches_by_branches]
WRONG = {
    # After close, when no kind has a whole batch any more, it always takes from the first queue, so the rests of the
    # other kinds are never given out.
    batches_first_full: "ends_with_the_first_kind",
    # The room for 100 sentences is divided among the kinds: if most are of one kind, put waits although there should be
    # room for them.
    batches_small_room: "too_small",
    # When nothing is left it asks for a batch of 0 sentences and gets one, again and again, where OutOfRangeError is
    # expected.
    batches_empty_at_end: "gives_empty_batches",
}
