"""Answers of a fifteenth author to queues/q2: jobs that take tokens."""

import dtflab as tf


def _holding_fifteenth(queues, work):
    """The result of work(), while the tokens of all queues are held, taken in the order of the list."""
    if not queues:
        return tf.identity(work())
    token = queues[0].dequeue()
    with tf.control_dependencies([token]):
        result = _holding_fifteenth(queues[1:], work)
    with tf.control_dependencies([result]):
        back = queues[0].enqueue(token)
    with tf.control_dependencies([back]):
        return tf.identity(result)


def job_nested_fifteenth(tokens, i, j, work):
    """One token around the other, the one with the larger number outside."""
    return _holding_fifteenth([tokens[number] for number in sorted({i, j}, reverse=True)], work)


def job_parity_fifteenth(tokens, i, j, work):
    """Like the philosophers: who has an even first GPU takes that first, who has an odd one takes it last."""
    first, second = (i, j) if i % 2 == 0 else (j, i)
    one = tokens[first].dequeue()
    with tf.control_dependencies([one]):
        other = tokens[second].dequeue()
    with tf.control_dependencies([one, other]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        back = [tokens[first].enqueue(one), tokens[second].enqueue(other)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def job_mixed_up_fifteenth(tokens, i, j, work):
    """The token with the smaller number is taken first, then both go back to i and j."""
    first = tokens[min(i, j)].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[max(i, j)].dequeue()
    with tf.control_dependencies([first, second]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        back = [tokens[i].enqueue(first), tokens[j].enqueue(second)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def job_lines_fifteenth(tokens, i, j, work):
    """In one block: first the work, then the tokens back."""
    low, high = sorted((i, j))
    first = tokens[low].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[high].dequeue()
    with tf.control_dependencies([first, second]):
        result = work()
        low_back = tokens[low].enqueue(first)
        high_back = tokens[high].enqueue(second)
    with tf.control_dependencies([low_back, high_back]):
        return tf.identity(result)


RIGHT = [job_nested_fifteenth]
WRONG = {
    job_parity_fifteenth: "orders_some_only",
    job_mixed_up_fifteenth: "swaps_the_tokens",
    job_lines_fifteenth: "works_without",
}
