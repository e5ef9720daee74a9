import itertools

import dtflab as tf


# Breaks: "lets the ops that are *made inside* wait": the part's ops are made outside, only a copy of its result waits.
# All large tensors are made at once.
def turn_result_waits(parts, at_once):
    results = []
    for number, part in enumerate(parts):
        result = part()
        if number >= at_once:
            with tf.control_dependencies([results[number - at_once]]):
                result = tf.identity(result)
        results.append(result)
    return tf.add_n(results)


# Breaks: "as many as may be at work begin at once": the chains are made from blocks of equal length, so with
# four parts, three at once, there are two chains of two.
def turn_in_blocks(parts, at_once):
    length = -(-len(parts) // at_once)
    results = []
    for number, part in enumerate(parts):
        with tf.control_dependencies([results[-1]] if number % length else []):
            results.append(part())
    return tf.add_n(results)


# Breaks: "each of the others waits for *one*, never for a whole group": the running sum that a part waits for needs
# all parts before it.
def turn_running_sum(parts, at_once):
    sums = []
    for part in parts:
        waits_for = sums[len(sums) - at_once] if len(sums) >= at_once else None
        with tf.control_dependencies([] if waits_for is None else [waits_for]):
            value = part()
        sums.append(value if not sums else tf.add(sums[-1], value))
    return sums[-1]


# Right: a recursion that makes each chain to its end before the next one.
def _chain(parts, after=()):
    if not parts:
        return []
    with tf.control_dependencies(list(after)):
        first = parts[0]()
    return [first, *_chain(parts[1:], [first.op])]


def turn_chain_by_chain(parts, at_once):
    chains = [_chain(list(itertools.islice(parts, lane, None, at_once))) for lane in range(at_once)]
    total, *others = itertools.chain.from_iterable(chains)
    for other in others:
        total = total + other
    return total


RIGHT = [turn_chain_by_chain]
WRONG = {
    # Only a copy of the result waits; the part's large tensors are made at once.
    turn_result_waits: "makes_them_before",
    # With four parts, three at once, there are only two chains: too few parts begin at once.
    turn_in_blocks: "leaves_room",
    # A part waits for a running sum, and with it for all parts in there, not for one.
    turn_running_sum: "waits_for_groups",
}
