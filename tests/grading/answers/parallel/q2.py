"""Answers to parallel/q2 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf


def with_a_window(parts, at_once):
    """The results of those that may still be at work, the oldest first."""
    window, results = [], []
    for part in parts:
        oldest = [window.pop(0)] if len(window) == at_once else []
        with tf.control_dependencies(oldest):
            window.append(part())
        results.append(window[-1])
    return tf.add_n(results)


def by_remainder(parts, at_once):
    last = dict.fromkeys(range(at_once))
    total = tf.constant(0.0)
    for number, part in enumerate(parts):
        before = last[number % at_once]
        with tf.control_dependencies([] if before is None else [before.op]):
            last[number % at_once] = part()
        total = total + last[number % at_once]
    return total


def runs_of_neighbours(parts, at_once):
    """The parts are cut into runs of neighbours of one length: of 5 parts, 4 at once, only 3 begin."""
    length = -(-len(parts) // at_once)
    results = []
    for start in range(0, len(parts), length):
        before = []
        for part in parts[start : start + length]:
            with tf.control_dependencies(before):
                before = [part()]
            results += before
    return tf.add_n(results)


def runs_them_in_python(parts, at_once):
    """By the wrong means: a session of its own runs the parts, and the sum is a constant."""
    with tf.Session() as sess:
        return tf.constant(sum(float(sess.run(part())) for part in parts))


def waits_for_the_last(parts, at_once):
    """From part at_once on, each waits for the one just before it."""
    results = []
    for i, part in enumerate(parts):
        with tf.control_dependencies(results[-1:] if i >= at_once else []):
            results.append(part())
    return tf.add_n(results)


def waits_for_all_before(parts, at_once):
    results = []
    for i, part in enumerate(parts):
        with tf.control_dependencies(results[: max(0, i - at_once + 1)]):
            results.append(part())
    return tf.add_n(results)


def controls_the_sum_only(parts, at_once):
    results = [part() for part in parts]
    with tf.control_dependencies(results):
        return tf.add_n(results)


def forgets_the_first(parts, at_once):
    return with_a_window(parts[1:], at_once)


def mean_by_dividing(parts, at_once):
    """The mean of the parts, by their number."""
    return with_a_window(parts, at_once) / len(parts)


def pairs_only(parts, at_once):
    """Takes 2 for at_once."""
    return with_a_window(parts, 2)


RIGHT = [with_a_window, by_remainder]
WRONG = {
    runs_of_neighbours: "leaves_room",
    runs_them_in_python: "runs_them_before",
    waits_for_the_last: "waits_for_the_one_before",
    waits_for_all_before: "waits_for_groups",
    controls_the_sum_only: "lets_all_begin",
    forgets_the_first: "leaves_parts_out",
    mean_by_dividing: "takes_the_mean",
    pairs_only: "one_too_many leaves_room",
}
