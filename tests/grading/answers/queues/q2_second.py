"""Answers to queues/q2 by a second author, who had seen the exercise alone."""

import dtflab as tf


def _take(tokens, order):
    """Takes the tokens in that order, one after the other."""
    taken = {}
    before = []
    for number in order:
        with tf.control_dependencies(before):
            taken[number] = tokens[number].dequeue()
        before = [taken[number]]
    return taken


def _finish(tokens, taken, result):
    with tf.control_dependencies([result]):
        back = [tokens[number].enqueue(token) for number, token in taken.items()]
    with tf.control_dependencies(back):
        return tf.identity(result)


def lower_number_first(tokens, i, j, work):
    low, high = min(i, j), max(i, j)
    first = tokens[low].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[high].dequeue()
    with tf.control_dependencies([first, second]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        back = [tokens[low].enqueue(first), tokens[high].enqueue(second)]
    with tf.control_dependencies(back):
        return tf.identity(result)


def higher_number_first_in_a_loop(tokens, i, j, work):
    taken = _take(tokens, sorted((i, j), reverse=True))
    with tf.control_dependencies(list(taken.values())):
        result = tf.identity(work())
    return _finish(tokens, taken, result)


def sorted_with_tuple(tokens, i, j, work):
    a, b = sorted([i, j])
    token_a = tokens[a].dequeue()
    with tf.control_dependencies([token_a]):
        token_b = tokens[b].dequeue()
    with tf.control_dependencies([token_b]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        put = tf.group(tokens[b].enqueue(token_b), tokens[a].enqueue(token_a))
    return tf.tuple([result], control_inputs=[put])[0]


def i_then_j(tokens, i, j, work):
    taken = _take(tokens, [i, j])
    with tf.control_dependencies(list(taken.values())):
        result = tf.identity(work())
    return _finish(tokens, taken, result)


def both_at_once(tokens, i, j, work):
    taken = {number: tokens[number].dequeue() for number in sorted((i, j))}
    with tf.control_dependencies(list(taken.values())):
        result = tf.identity(work())
    return _finish(tokens, taken, result)


def takes_all_tokens(tokens, i, j, work):
    taken = _take(tokens, range(len(tokens)))
    with tf.control_dependencies(list(taken.values())):
        result = tf.identity(work())
    return _finish(tokens, taken, result)


def work_made_too_early(tokens, i, j, work):
    result = work()
    taken = _take(tokens, sorted((i, j)))
    with tf.control_dependencies(list(taken.values())):
        result = tf.identity(result)
    return _finish(tokens, taken, result)


def works_with_the_first_token(tokens, i, j, work):
    low, high = sorted((i, j))
    first = tokens[low].dequeue()
    with tf.control_dependencies([first]):
        second = tokens[high].dequeue()
        result = tf.identity(work())
    return _finish(tokens, {low: first, high: second}, result)


def puts_nothing_back(tokens, i, j, work):
    taken = _take(tokens, sorted((i, j)))
    with tf.control_dependencies(list(taken.values())):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        [tokens[number].enqueue(token) for number, token in taken.items()]
    return result


def puts_back_while_working(tokens, i, j, work):
    taken = _take(tokens, sorted((i, j)))
    with tf.control_dependencies(list(taken.values())):
        result = tf.identity(work())
        back = [tokens[number].enqueue(token) for number, token in taken.items()]
    with tf.control_dependencies(back):
        return tf.identity(result)


def both_back_into_one_queue_order(tokens, i, j, work):
    low, high = sorted((i, j))
    taken = _take(tokens, [low, high])
    with tf.control_dependencies(list(taken.values())):
        result = tf.identity(work())
    return _finish(tokens, {low: taken[high], high: taken[low]}, result)


RIGHT = [lower_number_first, higher_number_first_in_a_loop, sorted_with_tuple]
WRONG = {
    # Takes i and then j: jobs in a circle wait for each other forever.
    i_then_j: "takes_as_named",
    # No order between the two dequeues: each of two jobs can get one token, and wait.
    both_at_once: "takes_both_at_once",
    # Takes the tokens of all GPUs: waits for GPUs that it does not need.
    takes_all_tokens: "takes_those_of_others",
    # Work() is called outside control_dependencies: it runs before the job has its tokens.
    work_made_too_early: "works_without",
    # Work waits for the first token only.
    works_with_the_first_token: "works_without",
    # Makes the enqueue ops, but nothing that is run depends on them.
    puts_nothing_back: "keeps_a_token",
    # The tokens go back as soon as both are taken, not after the work.
    puts_back_while_working: "works_without",
    # Puts each token into the queue of the other GPU.
    both_back_into_one_queue_order: "swaps_the_tokens",
}
