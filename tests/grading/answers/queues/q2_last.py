"""Answers to queues/q2 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def lower_number_first_2(tokens, i, j, work):
    taken = {}
    for number in sorted({i, j}):
        with tf.control_dependencies(list(taken.values())):
            taken[number] = tokens[number].dequeue()
    with tf.control_dependencies(list(taken.values())):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        back = [tokens[number].enqueue(token) for number, token in taken.items()]
    with tf.control_dependencies(back):
        return tf.identity(result)


def in_the_order_given(tokens, i, j, work):
    one = tokens[i].dequeue()
    with tf.control_dependencies([one]):
        two = tokens[j].dequeue()
    with tf.control_dependencies([one, two]):
        result = work()
    with tf.control_dependencies([result]):
        back = [tokens[i].enqueue(one), tokens[j].enqueue(two)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def work_made_before(tokens, i, j, work):
    i, j = min(i, j), max(i, j)
    result = work()
    one = tokens[i].dequeue()
    with tf.control_dependencies([one]):
        two = tokens[j].dequeue()
    with tf.control_dependencies([one, two]):
        result = tf.identity(result)
    with tf.control_dependencies([result]):
        back = [tokens[i].enqueue(one), tokens[j].enqueue(two)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def tokens_swapped(tokens, i, j, work):
    first = tokens[min(i, j)].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[max(i, j)].dequeue()
    with tf.control_dependencies([first, second]):
        result = work()
    with tf.control_dependencies([result]):
        back = tf.group(tokens[i].enqueue(first), tokens[j].enqueue(second))
    with tf.control_dependencies([back]):
        return tf.identity(result)


RIGHT = [lower_number_first_2]
WRONG = {
    # Takes the tokens in the order i, j for every job: jobs in a circle hold one each and wait forever.
    in_the_order_given: "takes_as_named",
    # Makes the work's op outside of the control dependencies, so that it runs before the job has the tokens; only the
    # copy of its result waits.
    work_made_before: "works_without",
    # Takes the lower number first, but puts the tokens back as if i had been first: for i > j each goes into the
    # other's queue.
    tokens_swapped: "swaps_the_tokens",
}
