"""Ways to let parts of a sum wait for each other: one right, three wrong."""

import numpy as np

import dtflab as tf


def rows_of_neighbours_ten(parts, at_once):
    """Chains of parts that are next to each other in the list, as many as may be at work."""
    results = []
    for row in np.array_split(np.arange(len(parts)), min(at_once, len(parts))):
        before = []
        for number in row:
            with tf.control_dependencies(before):
                before = [parts[number]()]
            results += before
    return tf.reduce_sum(tf.stack(results), axis=0)


def rows_of_equal_length_ten(parts, at_once):
    """Chains of equal length, by a division that is rounded up."""
    length = -(-len(parts) // at_once)
    results = []
    for begin in range(0, len(parts), length):
        before = []
        for part in parts[begin : begin + length]:
            with tf.control_dependencies(before):
                result = part()
            before = [result]
            results.append(result)
    return tf.add_n(results)


def waits_for_the_sum_so_far_ten(parts, at_once):
    """Each part waits for the sum of those before it, but for the last few."""
    sums = []
    for number, part in enumerate(parts):
        with tf.control_dependencies([sums[number - at_once]] if number >= at_once else []):
            result = part()
        sums.append(sums[-1] + result if sums else result)
    return sums[-1]


def one_call_for_the_shape_ten(parts, at_once):
    """A sum that begins with zeros, whose shape an extra call tells."""
    total = tf.zeros_like(parts[0]())
    ends = [None] * at_once
    for number, part in enumerate(parts):
        chain = number % at_once
        with tf.control_dependencies([] if ends[chain] is None else [ends[chain]]):
            ends[chain] = part()
        total = total + ends[chain]
    return total


RIGHT = [rows_of_neighbours_ten]
WRONG = {
    rows_of_equal_length_ten: "leaves_room",
    waits_for_the_sum_so_far_ten: "waits_for_groups",
    one_call_for_the_shape_ten: "calls_twice",
}
