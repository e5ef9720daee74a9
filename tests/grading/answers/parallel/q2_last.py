"""Answers to parallel/q2 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def each_waits_for_one(parts, at_once):
    values = []
    for number, part in enumerate(parts):
        before = [values[number - at_once]] if number >= at_once else []
        with tf.control_dependencies(before):
            values.append(part())
    return tf.add_n(values) if values else tf.constant(0.0)


def group_after_group(parts, at_once):
    values, before = [], []
    for start in range(0, len(parts), at_once):
        with tf.control_dependencies(before):
            group = [part() for part in parts[start : start + at_once]]
        values += group
        before = group
    return tf.add_n(values)


def results_wait(parts, at_once):
    values = [part() for part in parts]
    in_order = []
    for number, value in enumerate(values):
        before = [in_order[number - at_once]] if number >= at_once else []
        with tf.control_dependencies(before):
            in_order.append(tf.identity(value))
    return tf.add_n(in_order)


def chains_of_equal_length(parts, at_once):
    length = max(1, len(parts) // at_once)
    values = []
    for number, part in enumerate(parts):
        before = [] if number % length == 0 else [values[-1]]  # a new chain begins
        with tf.control_dependencies(before):
            values.append(part())
    return tf.add_n(values)


RIGHT = [each_waits_for_one]
WRONG = {
    # Lets each part wait for the whole group before it, not for one part.
    group_after_group: "waits_for_groups",
    # Makes all parts first and puts only identities of their results under control_dependencies: no part waits.
    results_wait: "makes_them_before",
    # Rounds the chains' length down, so 7 parts, 2 at once, make three chains: three parts at once.
    chains_of_equal_length: "one_too_many",
}
