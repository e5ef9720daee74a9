"""An eleventh author's answers to parallel/q2: parts that wait for one another."""

import dtflab as tf


def chains_of_neighbours_eleven(parts, at_once):
    """The sum of chains: each is a stretch of the list, made from its first part to its last."""
    results, begin = [], 0
    for chain in range(at_once):
        end = begin + (len(parts) - begin) // (at_once - chain)
        before = []
        for part in parts[begin:end]:
            with tf.control_dependencies(before):
                before = [part()]
            results += before
        begin = end
    return tf.add_n(results)


def group_after_group_eleven(parts, at_once):
    """The sum of groups, each of which begins when all of the one before have ended."""
    results, group = [], []
    for begin in range(0, len(parts), at_once):
        with tf.control_dependencies(group):
            group = [part() for part in parts[begin : begin + at_once]]
        results += group
    return tf.add_n(results)


def results_that_wait_eleven(parts, at_once):
    """The sum of results, each of which is handed on after the one `at_once` places before."""
    results = []
    for number, part in enumerate(parts):
        result = part()
        with tf.control_dependencies(results[number - at_once : number - at_once + 1] if number >= at_once else []):
            results.append(tf.identity(result))
    return tf.add_n(results)


def chains_of_that_length_eleven(parts, at_once):
    """The sum of chains that have `at_once` parts each."""
    results = []
    for number, part in enumerate(parts):
        with tf.control_dependencies(results[-1:] if number % at_once else []):
            results.append(part())
    return tf.add_n(results)


RIGHT = [chains_of_neighbours_eleven]
WRONG = {
    group_after_group_eleven: "waits_for_groups",
    results_that_wait_eleven: "makes_them_before",
    chains_of_that_length_eleven: "always_one lets_all_begin",
}
