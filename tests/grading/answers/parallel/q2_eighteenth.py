"""Answers of an eighteenth author to parallel/q2: parts of a sum, only a few of them at work."""

from collections import deque

import dtflab as tf


def window_eighteenth(parts, at_once):
    """Keep the results of the last `at_once` parts in a window; a new part waits for the one that falls out."""
    window = deque(maxlen=at_once)
    total = []
    for part in parts:
        oldest = [window[0].op] if len(window) == at_once else []
        with tf.get_default_graph().control_dependencies(oldest):
            window.append(part())
        total.append(window[-1])
    return tf.add_n(total)


def blocks_as_chains_eighteenth(parts, at_once):
    """Cut the list into blocks of len(parts) // at_once parts; inside a block each waits for the one before."""
    length = max(1, len(parts) // at_once)
    results = []
    for number, part in enumerate(parts):
        before = [] if number % length == 0 else [results[-1]]
        with tf.control_dependencies(before):
            results.append(part())
    return tf.add_n(results)


def running_sum_eighteenth(parts, at_once):
    """Add the parts up one by one, and let each wait for the sum as it was `at_once` parts before."""
    sums = []
    for number, part in enumerate(parts):
        with tf.control_dependencies(sums[number - at_once : number - at_once + 1] if number >= at_once else []):
            value = part()
        sums.append(sums[-1] + value if sums else tf.identity(value))
    return sums[-1]


def results_wait_eighteenth(parts, at_once):
    """Make all parts, and pass each result on only when the one `at_once` places before has been passed on."""
    passed = []
    for number, value in enumerate([part() for part in parts]):
        with tf.control_dependencies([passed[number - at_once]] if number >= at_once else []):
            passed.append(tf.identity(value))
    return tf.add_n(passed)


RIGHT = [window_eighteenth]
WRONG = {
    blocks_as_chains_eighteenth: "one_too_many",
    running_sum_eighteenth: "waits_for_groups",
    results_wait_eighteenth: "makes_them_before",
}
