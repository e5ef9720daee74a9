"""Answers of a fifteenth author to parallel/q2: parts in turn."""

import collections
import functools

import dtflab as tf


def in_turn_places_fifteenth(parts, at_once):
    """There are `at_once` places; a part takes the one that was taken longest ago, and waits for who had it."""
    graph = tf.get_default_graph()
    places = collections.deque([] for _ in range(at_once))
    results = []
    for part in parts:
        with graph.control_dependencies(places.popleft()):
            results.append(part())
        places.append([results[-1].op])
    return functools.reduce(tf.add, results)


def in_turn_slices_fifteenth(parts, at_once):
    """The list is cut into slices of equal length, and each slice is a chain."""
    length = -(-len(parts) // at_once)
    results = []
    for begin in range(0, len(parts), length):
        before = []
        for part in parts[begin : begin + length]:
            with tf.control_dependencies(before):
                result = part()
            results.append(result)
            before = [result]
    return tf.add_n(results)


def in_turn_running_sum_fifteenth(parts, at_once):
    """A part waits for one tensor: the sum so far, up to the part whose place it takes."""
    sums = []
    for number, part in enumerate(parts):
        with tf.control_dependencies([sums[number - at_once]] if number >= at_once else []):
            result = part()
        sums.append(sums[-1] + result if sums else tf.identity(result))
    return sums[-1]


def in_turn_gates_fifteenth(parts, at_once):
    """Each part has a gate, which waits for the gate of the part whose place it takes."""
    gates, results = [], []
    for number, part in enumerate(parts):
        with tf.control_dependencies([gates[number - at_once]] if number >= at_once else []):
            gate = tf.no_op(name="gate")
        with tf.control_dependencies([gate]):
            results.append(part())
        gates.append(gate)
    return tf.add_n(results)


RIGHT = [in_turn_places_fifteenth]
WRONG = {
    in_turn_slices_fifteenth: "leaves_room",
    in_turn_running_sum_fifteenth: "waits_for_groups",
    in_turn_gates_fifteenth: "waits_for_a_beginning",
}
