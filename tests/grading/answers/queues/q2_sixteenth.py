"""Answers of a sixteenth author to queues/q2: jobs that take tokens."""

import dtflab as tf


def from_the_top_sixteenth(tokens, i, j, work):
    """Everybody climbs down: the higher GPU first, then the lower one."""
    held = {}
    for gpu in sorted({i, j}, reverse=True):
        with tf.control_dependencies(list(held.values())):
            held[gpu] = tokens[gpu].dequeue()
    with tf.control_dependencies(list(held.values())):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        puts = [tokens[gpu].enqueue(token) for gpu, token in held.items()]
    with tf.control_dependencies(puts):
        return tf.identity(result)


def inside_out_sixteenth(tokens, i, j, work):
    """A job that holds a GPU is a job around a job: wrap the work in one GPU, and that in the other."""

    def holding(gpu, inner):
        def outer():
            token = tokens[gpu].dequeue()
            with tf.control_dependencies([token]):
                result = inner()
            with tf.control_dependencies([result]):
                put = tokens[gpu].enqueue(token)
            with tf.control_dependencies([put]):
                return tf.identity(result)

        return outer

    return holding(min(i, j), holding(max(i, j), work))()


def alternate_sixteenth(tokens, i, j, work):
    """Every second job begins with its other GPU, so they can't all wait in a circle."""
    first, second = (i, j) if i % 2 == 0 else (j, i)
    one = tokens[first].dequeue()
    with tf.control_dependencies([one]):
        other = tokens[second].dequeue()
    with tf.control_dependencies([one, other]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        puts = [tokens[first].enqueue(one), tokens[second].enqueue(other)]
    with tf.control_dependencies(puts):
        return tf.identity(result)


def both_at_once_sixteenth(tokens, i, j, work):
    """A deadlock comes from taking one after the other, so I take both at the same time."""
    one, other = tokens[i].dequeue(), tokens[j].dequeue()
    with tf.control_dependencies([one, other]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        puts = [tokens[i].enqueue(one), tokens[j].enqueue(other)]
    with tf.control_dependencies(puts):
        return tf.identity(result)


def and_all_between_sixteenth(tokens, i, j, work):
    """Tokens have to be taken in order without a gap, so I take those between my GPUs as well."""
    low, high = min(i, j), max(i, j)
    held = []
    for gpu in range(low, high + 1):
        with tf.control_dependencies(held[-1:]):
            held.append(tokens[gpu].dequeue())
    with tf.control_dependencies(held):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        puts = [tokens[low + number].enqueue(token) for number, token in enumerate(held)]
    with tf.control_dependencies(puts):
        return tf.identity(result)


def guard_sixteenth(tokens, i, j, work):
    """The first token guards the table: who has it may take the two that it needs."""
    guard = tokens[0].dequeue()
    held = {0: guard}
    with tf.control_dependencies([guard]):
        for gpu in (i, j):
            if gpu not in held:
                held[gpu] = tokens[gpu].dequeue()
    with tf.control_dependencies(list(held.values())):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        puts = [tokens[gpu].enqueue(token) for gpu, token in held.items()]
    with tf.control_dependencies(puts):
        return tf.identity(result)


def work_made_outside_sixteenth(tokens, i, j, work):
    """The work waits for the tokens, as I use its tensor inside of control_dependencies."""
    low, high = sorted([i, j])
    one = tokens[low].dequeue()
    with tf.control_dependencies([one]):
        other = tokens[high].dequeue()
    result = work()
    with tf.control_dependencies([one, other]):
        result = tf.identity(result)
    with tf.control_dependencies([result]):
        puts = [tokens[low].enqueue(one), tokens[high].enqueue(other)]
    with tf.control_dependencies(puts):
        return tf.identity(result)


def back_in_same_block_sixteenth(tokens, i, j, work):
    """Ops in one block run in the order of their lines: the work first, and then the enqueues."""
    low, high = sorted([i, j])
    one = tokens[low].dequeue()
    with tf.control_dependencies([one]):
        other = tokens[high].dequeue()
    with tf.control_dependencies([one, other]):
        result = tf.identity(work())
        puts = [tokens[low].enqueue(one), tokens[high].enqueue(other)]
    with tf.control_dependencies(puts):
        return tf.identity(result)


def crossed_sixteenth(tokens, i, j, work):
    """I take the lower one first, and hand back the first to GPU i and the second to GPU j: all tokens are alike."""
    one = tokens[min(i, j)].dequeue()
    with tf.control_dependencies([one]):
        other = tokens[max(i, j)].dequeue()
    with tf.control_dependencies([one, other]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        puts = [tokens[i].enqueue(one), tokens[j].enqueue(other)]
    with tf.control_dependencies(puts):
        return tf.identity(result)


def new_token_sixteenth(tokens, i, j, work):
    """The token of a GPU is its number, so I put the number back, and needn't keep what I took."""
    low, high = sorted([i, j])
    with tf.control_dependencies([tokens[low].dequeue()]):
        last = tokens[high].dequeue()
    with tf.control_dependencies([last]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        puts = [tokens[low].enqueue(low), tokens[high].enqueue(high)]
    with tf.control_dependencies(puts):
        return tf.identity(result)


def nobody_runs_the_puts_sixteenth(tokens, i, j, work):
    """The enqueues are in the graph, after the result, so they run when the result is there."""
    low, high = sorted([i, j])
    one = tokens[low].dequeue()
    with tf.control_dependencies([one]):
        other = tokens[high].dequeue()
    with tf.control_dependencies([one, other]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        tokens[low].enqueue(one)
        tokens[high].enqueue(other)
    return result


RIGHT = [from_the_top_sixteenth, inside_out_sixteenth]
WRONG = {
    alternate_sixteenth: "orders_some_only",
    both_at_once_sixteenth: "takes_both_at_once",
    and_all_between_sixteenth: "takes_those_of_others",
    guard_sixteenth: "takes_those_of_others",
    work_made_outside_sixteenth: "works_without",
    back_in_same_block_sixteenth: "works_without",
    crossed_sixteenth: "swaps_the_tokens",
    new_token_sixteenth: "makes_other_tokens",
    nobody_runs_the_puts_sixteenth: "keeps_a_token",
}
