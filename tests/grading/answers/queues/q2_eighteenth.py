"""Answers of an eighteenth author to queues/q2: jobs that take the tokens of two GPUs."""

import contextlib

import dtflab as tf


def stack_of_waits_eighteenth(tokens, i, j, work):
    """Enter a wait per token, in the order of the numbers, so that all that follows is made inside of all of them."""
    held = {}
    with contextlib.ExitStack() as waits:
        for number in sorted((i, j)):
            held[number] = tokens[number].dequeue()
            waits.enter_context(tf.control_dependencies([held[number]]))
        result = work()
        waits.enter_context(tf.control_dependencies([result]))
        back = [tokens[number].enqueue(token) for number, token in held.items()]
        return tf.tuple([result], control_inputs=back)[0]


def even_and_odd_eighteenth(tokens, i, j, work):
    """Break the circle as at the philosophers' table: even jobs take i first, odd ones j."""
    order = (i, j) if i % 2 == 0 else (j, i)
    first = tokens[order[0]].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[order[1]].dequeue()
    with tf.control_dependencies([first, second]):
        result = work()
    with tf.control_dependencies([result]):
        back = [tokens[order[0]].enqueue(first), tokens[order[1]].enqueue(second)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def swapped_back_eighteenth(tokens, i, j, work):
    """Take the token with the smaller number first, and put the two into the queues i and j."""
    first = tokens[min(i, j)].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[max(i, j)].dequeue()
    with tf.control_dependencies([second]):
        result = work()
    with tf.control_dependencies([result]):
        back = tf.group(tokens[i].enqueue(first), tokens[j].enqueue(second))
    with tf.control_dependencies([back]):
        return tf.identity(result)


def nobody_runs_the_enqueues_eighteenth(tokens, i, j, work):
    """Make the ops that put the tokens back wait for the work, and return the work."""
    low, high = sorted([i, j])
    one = tokens[low].dequeue()
    with tf.control_dependencies([one]):
        other = tokens[high].dequeue()
    with tf.control_dependencies([one, other]):
        result = work()
    with tf.control_dependencies([result]):
        tokens[low].enqueue(one)
        tokens[high].enqueue(other)
    return result


RIGHT = [stack_of_waits_eighteenth]
WRONG = {
    even_and_odd_eighteenth: "orders_some_only",
    swapped_back_eighteenth: "swaps_the_tokens",
    nobody_runs_the_enqueues_eighteenth: "keeps_a_token",
}
