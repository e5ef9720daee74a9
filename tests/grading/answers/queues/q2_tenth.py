"""Answers to queues/q2, jobs that do not block each other, by a tenth author."""

import dtflab as tf


def climbs_a_chain_of_waits_ten(tokens, i, j, work):
    """Take tokens in the order of their numbers in a loop, each after the one before; give back what was taken."""
    taken = {}
    for number in sorted({i, j}):
        with tf.control_dependencies(list(taken.values())):
            taken[number] = tokens[number].dequeue()
    with tf.control_dependencies(list(taken.values())):
        value = tf.identity(work())
    with tf.control_dependencies([value]):
        returned = [tokens[number].enqueue(token) for number, token in taken.items()]
    return tf.tuple([value], control_inputs=returned)[0]


def left_and_right_in_turn_ten(tokens, i, j, work):
    """Take i first if it is even, and j first if not, as philosophers at a round table do."""
    one, two = (i, j) if i % 2 == 0 else (j, i)
    first = tokens[one].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[two].dequeue()
    with tf.control_dependencies([first, second]):
        value = tf.identity(work())
    with tf.control_dependencies([value]):
        back = [tokens[one].enqueue(first), tokens[two].enqueue(second)]
    with tf.control_dependencies(back):
        return tf.identity(value)


def crossed_on_the_way_back_ten(tokens, i, j, work):
    """Take the lower and then the higher one, and put the first back into i and the second into j."""
    low = tokens[min(i, j)].dequeue()
    with tf.control_dependencies([low]):
        high = tokens[max(i, j)].dequeue()
    with tf.control_dependencies([low, high]):
        value = tf.identity(work())
    with tf.control_dependencies([value]):
        back = [tokens[i].enqueue(low), tokens[j].enqueue(high)]
    with tf.control_dependencies(back):
        return tf.identity(value)


def back_beside_the_work_ten(tokens, i, j, work):
    """Make the work and the putting back in one block, after both tokens."""
    low = tokens[min(i, j)].dequeue()
    with tf.control_dependencies([low]):
        high = tokens[max(i, j)].dequeue()
    with tf.control_dependencies([low, high]):
        value = work()
        back = [tokens[min(i, j)].enqueue(low), tokens[max(i, j)].enqueue(high)]
    with tf.control_dependencies(back):
        return tf.identity(value)


RIGHT = [climbs_a_chain_of_waits_ten]
WRONG = {
    left_and_right_in_turn_ten: "orders_some_only",
    crossed_on_the_way_back_ten: "swaps_the_tokens",
    back_beside_the_work_ten: "works_without",
}
