"""Answers to queues/q2: jobs that take the tokens of two GPUs."""

import dtflab as tf


def higher_number_first_eleven(tokens, i, j, work):
    """A job that takes the token of the higher number first, and of the lower one next."""
    order = sorted((i, j), reverse=True)
    held = []
    for number in order:
        with tf.control_dependencies(held):
            held.append(tokens[number].dequeue())
    with tf.control_dependencies(held):
        result = work()
    with tf.control_dependencies([result]):
        kept = tf.identity(result)
    with tf.control_dependencies([kept]):
        back = [tokens[number].enqueue(token) for number, token in zip(order, held)]
    return tf.tuple([kept], control_inputs=back)[0]


def even_and_odd_eleven(tokens, i, j, work):
    """A job that takes i first if i is even, and j first if it is odd."""
    a, b = (i, j) if i % 2 == 0 else (j, i)
    first = tokens[a].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[b].dequeue()
    with tf.control_dependencies([first, second]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        back = [tokens[a].enqueue(first), tokens[b].enqueue(second)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def given_back_crosswise_eleven(tokens, i, j, work):
    """A job that takes the lower number first, and gives back to i what it took first."""
    low, high = min(i, j), max(i, j)
    first = tokens[low].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[high].dequeue()
    with tf.control_dependencies([first, second]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        back = [tokens[i].enqueue(first), tokens[j].enqueue(second)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def back_when_both_are_there_eleven(tokens, i, j, work):
    """A job that works, and puts back, when it has both tokens."""
    low, high = min(i, j), max(i, j)
    first = tokens[low].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[high].dequeue()
    with tf.control_dependencies([first, second]):
        result = tf.identity(work())
        back = [tokens[low].enqueue(first), tokens[high].enqueue(second)]
    with tf.control_dependencies([*back, result]):
        return tf.identity(result)


RIGHT = [higher_number_first_eleven]
WRONG = {
    even_and_odd_eleven: "orders_some_only",
    given_back_crosswise_eleven: "swaps_the_tokens",
    back_when_both_are_there_eleven: "works_without",
}
