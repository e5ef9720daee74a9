"""Wrong answers to queues/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def stages(tokens, first, second, work, back=lambda a, b, one, two: [a.enqueue(one), b.enqueue(two)]):
    """One token after the other, the work, and then what `back` makes of both queues and what was taken from them."""
    one = tokens[first].dequeue()
    with tf.control_dependencies([one]):
        two = tokens[second].dequeue()
    with tf.control_dependencies([two]):
        result = work()
    with tf.control_dependencies([result]):
        put = back(tokens[first], tokens[second], one, two)
    with tf.control_dependencies(put):
        return tf.identity(result)


def gives_back(tokens, i, j, work, back):
    """The right order of the tokens, but for what is put into which queues."""
    return stages(tokens, min(i, j), max(i, j), work, back)


def takes_as_named(tokens, i, j, work):
    return stages(tokens, i, j, work)


def takes_both_at_once(tokens, i, j, work):
    one, two = tokens[i].dequeue(), tokens[j].dequeue()
    with tf.control_dependencies([one, two]):
        result = work()
    with tf.control_dependencies([result]):
        back = [tokens[i].enqueue(one), tokens[j].enqueue(two)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def keeps_a_token(tokens, i, j, work):
    return gives_back(tokens, i, j, work, lambda a, b, one, two: [a.enqueue(one)])


def works_without(tokens, i, j, work):
    result = work()
    with tf.control_dependencies([result]):
        return stages(tokens, min(i, j), max(i, j), lambda: tf.identity(result))


def swaps_the_tokens(tokens, i, j, work):
    return gives_back(tokens, i, j, work, lambda a, b, one, two: [a.enqueue(two), b.enqueue(one)])


def makes_other_tokens(tokens, i, j, work):
    return gives_back(tokens, i, j, work, lambda a, b, one, two: [a.enqueue(-1), b.enqueue(-1)])


def gives_both_to_one(tokens, i, j, work):
    return gives_back(tokens, i, j, work, lambda a, b, one, two: [a.enqueue(one), a.enqueue(two)])


def takes_one_twice(tokens, i, j, work):
    return stages(tokens, i, i, work)


def takes_those_of_others(tokens, i, j, work):
    """All tokens, one after the other."""
    taken = []
    for queue in tokens:
        with tf.control_dependencies(taken[-1:]):
            taken.append(queue.dequeue())
    with tf.control_dependencies(taken[-1:]):
        result = work()
    with tf.control_dependencies([result]):
        back = [queue.enqueue(token) for queue, token in zip(tokens, taken)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def orders_some_only(tokens, i, j, work):
    """Small numbers before large ones, and none before another small one."""
    return stages(tokens, *sorted((i, j), key=lambda number: number > 1), work)


def waits_for_other_jobs(tokens, i, j, work):
    with tf.control_dependencies(tf.get_collection("jobs")[-1:]):
        done = stages(tokens, min(i, j), max(i, j), work)
    tf.add_to_collection("jobs", done)
    return done


def works_twice(tokens, i, j, work):
    def both():
        with tf.control_dependencies([work()]):
            return work()

    return stages(tokens, min(i, j), max(i, j), both)
