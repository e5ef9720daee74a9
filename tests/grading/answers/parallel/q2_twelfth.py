"""Answers to parallel/q2: parts that take turns."""

import dtflab as tf


def chain_by_chain_twelve(parts, at_once):
    """Build one chain after the other; each has every at_once-th part."""
    given = {}
    for first in range(min(at_once, len(parts))):
        before = []
        for number in range(first, len(parts), at_once):
            with tf.control_dependencies(before):
                given[number] = parts[number]()
            before = [given[number]]
    return tf.add_n([given[number] for number in range(len(parts))])


def even_chunks_twelve(parts, at_once):
    """Cut the list into chunks of neighbours, and make a chain of each chunk."""
    length = -(-len(parts) // at_once)
    given = []
    for number, part in enumerate(parts):
        with tf.control_dependencies(given[-1:] if number % length else []):
            given.append(part())
    return tf.add_n(given)


def late_identity_twelve(parts, at_once):
    """Let what a part gives wait for what the part at_once places before it gives."""
    given = []
    for number, part in enumerate(parts):
        result = part()
        with tf.control_dependencies([given[number - at_once]] if number >= at_once else []):
            given.append(tf.identity(result))
    return tf.add_n(given)


def all_before_twelve(parts, at_once):
    """Let a part wait for those that are at least at_once places before it."""
    given = []
    for number, part in enumerate(parts):
        with tf.control_dependencies(given[: max(0, number - at_once + 1)]):
            given.append(part())
    return tf.add_n(given)


RIGHT = [chain_by_chain_twelve]
WRONG = {
    even_chunks_twelve: "leaves_room",
    late_identity_twelve: "makes_them_before",
    all_before_twelve: "waits_for_groups",
}
