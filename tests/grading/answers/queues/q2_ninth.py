import contextlib

import dtflab as tf


# "Jobs with any pairs of GPUs ... must never wait for each other forever": even/odd breaks up a circle of
# neighbours, but not the pairs (0, 2) and (2, 0).
def job_even_odd(tokens, i, j, work):
    first, second = (i, j) if i % 2 == 0 else (j, i)
    a = tokens[first].dequeue()
    with tf.control_dependencies([a]):
        b = tokens[second].dequeue()
    with tf.control_dependencies([a, b]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        back = [tokens[first].enqueue(a), tokens[second].enqueue(b)]
    with tf.control_dependencies(back):
        return tf.identity(result)


# "puts both tokens back, each into its own queue": swapped when i > j.
def job_swapped_back(tokens, i, j, work):
    lower = tokens[min(i, j)].dequeue()
    with tf.control_dependencies([lower]):
        upper = tokens[max(i, j)].dequeue()
    with tf.control_dependencies([lower, upper]):
        result = tf.identity(work())
    with tf.control_dependencies([result]):
        back = [tokens[i].enqueue(lower), tokens[j].enqueue(upper)]
    with tf.control_dependencies(back):
        return tf.identity(result)


# "works ...; after that, puts both tokens back": here they go back as soon as both were taken.
def job_back_too_early(tokens, i, j, work):
    first, second = sorted([i, j])
    a = tokens[first].dequeue()
    with tf.control_dependencies([a]):
        b = tokens[second].dequeue()
    with tf.control_dependencies([a, b]):
        result = tf.identity(work())
        back = tf.group(tokens[first].enqueue(a), tokens[second].enqueue(b))
    with tf.control_dependencies([result, back]):
        return tf.identity(result)


class Held:
    """The tokens that a job has, in the order in which it took them."""

    def __init__(self):
        self.taken = []

    @contextlib.contextmanager
    def token_of(self, queue):
        token = queue.dequeue()
        with tf.control_dependencies([token]):
            self.taken.append((queue, token))
            yield


def job_context_manager(tokens, i, j, work):
    """Each token is a context; the later GPU is asked for inside the earlier one's."""
    held = Held()
    with contextlib.ExitStack() as stack:
        for number in range(len(tokens)):
            if number in (i, j):
                stack.enter_context(held.token_of(tokens[number]))
        value = tf.identity(work())
    step = value
    for queue, token in reversed(held.taken):  # one after the other
        with tf.control_dependencies([step]):
            put = queue.enqueue(token)
        step = put
    with tf.control_dependencies([step]):
        return tf.identity(value)


RIGHT = [job_context_manager]
WRONG = {
    # Even and odd jobs take their tokens in different orders; that helps neighbours in a circle, but for other pairs,
    # such as (0, 2) and (2, 0), there is no common order and they block each other.
    job_even_odd: "orders_some_only",
    # If i is larger than j, each token is put into the queue of the other GPU.
    job_swapped_back: "swaps_the_tokens",
    # The tokens are put back as soon as the job has both, not after the work.
    job_back_too_early: "works_without",
}
