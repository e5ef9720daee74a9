"""Answers to parallel/q2 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import functools

import dtflab as tf


def in_turn_only_the_result_waits(parts, at_once):
    # Breaks: "at most `at_once` parts may have their large tensors at the same time". The part's ops are made outside
    # of the `with`; only a copy of the small result waits.
    results = []
    for i, part in enumerate(parts):
        result = part()
        if i >= at_once:
            with tf.control_dependencies([results[i - at_once]]):
                result = tf.identity(result)
        results.append(result)
    return tf.add_n(results)


def in_turn_waits_for_sums(parts, at_once):
    # Breaks: "each waits for *one* other at most, never for a whole group". sums[i] is there only when all parts up
    # to i are done.
    sums = []
    for i, part in enumerate(parts):
        with tf.control_dependencies([sums[i - at_once]] if i >= at_once else []):
            result = part()
        sums.append(tf.add(sums[-1], result) if sums else result)
    return sums[-1]


def in_turn_blocks_rounded_down(parts, at_once):
    # Breaks: "at most `at_once` parts may have their large tensors at the same time". The list is cut into chains of
    # len(parts) // at_once; if that has a remainder, there is one chain (or more) too many.
    length = max(1, len(parts) // at_once)
    results = []
    for i, part in enumerate(parts):
        waits_for = [] if i % length == 0 else [results[-1]]
        with tf.control_dependencies(waits_for):
            results.append(part())
    return tf.add_n(results)


def in_turn_chain_by_chain(parts, at_once):
    """One chain after the other: a chain takes every at_once-th part, and each link is made after the one before."""

    def link(done, part):
        with tf.control_dependencies(done[-1:]):
            return [*done, part()]

    chains = (functools.reduce(link, parts[start::at_once], []) for start in range(at_once))
    return functools.reduce(tf.add, (result for chain in chains for result in chain))


RIGHT = [in_turn_chain_by_chain]
WRONG = {
    # The part is called outside of the control dependency, so its large tensor is made at once, and only a
    # copy of the small result waits.
    in_turn_only_the_result_waits: "makes_them_before",
    # A part waits for a running sum, which needs all earlier parts, instead of one part: a slow part then
    # holds up the other chain, too.
    in_turn_waits_for_sums: "waits_for_groups",
    # The length of a chain is rounded down, so with a remainder (seven parts, two at once) there are more
    # chains than allowed, and too many parts at the same time.
    in_turn_blocks_rounded_down: "one_too_many",
}
