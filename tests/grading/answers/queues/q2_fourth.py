"""Answers to queues/q2 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import contextlib

import dtflab as tf


# "each into its own queue": the tokens are taken in sorted order, but put back as if the first were that of i. When
# i > j, each queue gets the other's token.
def job_swaps_tokens(tokens, i, j, work):
    low, high = sorted([i, j])
    one = tokens[low].dequeue()
    with tf.control_dependencies([one]):
        two = tokens[high].dequeue()
    with tf.control_dependencies([one, two]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        puts = [tokens[i].enqueue(one), tokens[j].enqueue(two)]
    with tf.control_dependencies(puts):
        return tf.identity(result)


# "Jobs with any pairs of GPUs run at the same time. They must never wait for each other forever": even jobs begin
# with i and odd ones with j, which helps in a circle, but not the jobs (0, 2) and (2, 0).
def job_even_and_odd(tokens, i, j, work):
    first, second = (i, j) if i % 2 == 0 else (j, i)
    one = tokens[first].dequeue()
    with tf.control_dependencies([one]):
        two = tokens[second].dequeue()
    with tf.control_dependencies([one, two]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        puts = [tokens[first].enqueue(one), tokens[second].enqueue(two)]
    with tf.control_dependencies(puts):
        return tf.identity(result)


# "puts both tokens back" when the tensor is run: no op is made in the last `with`, so what is returned does not
# depend on the puts, and they never run.
def job_returns_too_early(tokens, i, j, work):
    low, high = sorted([i, j])
    one = tokens[low].dequeue()
    with tf.control_dependencies([one]):
        two = tokens[high].dequeue()
    with tf.control_dependencies([one, two]):
        result = work()
    with tf.control_dependencies([result]):
        puts = [tokens[low].enqueue(one), tokens[high].enqueue(two)]
    with tf.control_dependencies(puts):
        return result


# Right: a stack of contexts, for any number of GPUs, from the highest number to the lowest.
def job_with_exit_stack(tokens, i, j, work):
    held = {}
    with contextlib.ExitStack() as stack:
        for number in sorted({i, j}, reverse=True):
            held[number] = tokens[number].dequeue()
            stack.enter_context(tf.control_dependencies([held[number]]))
        value = tf.identity(work())
        stack.enter_context(tf.control_dependencies([value]))
        given_back = tf.group(*(tokens[number].enqueue(token) for number, token in held.items()))
        stack.enter_context(tf.control_dependencies([given_back]))
        return tf.identity(value)


RIGHT = [job_with_exit_stack]
WRONG = {
    # If i > j, the tokens go back into the wrong queues: they were taken in sorted order, but are put back in
    # the order i, j.
    job_swaps_tokens: "swaps_the_tokens",
    # The order of taking depends on whether i is even, not on one order of all GPUs: jobs such as (0, 2) and
    # (2, 0) wait for each other forever.
    job_even_and_odd: "orders_some_only",
    # The returned tensor does not depend on the ops that put the tokens back, so these never run.
    job_returns_too_early: "keeps_a_token",
}
