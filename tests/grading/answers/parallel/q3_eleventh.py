"""An eleventh author's answers to parallel/q3: the ops that are ready together."""

import dtflab as tf


def _sources(op):
    """The ops that the edges into this op come from, each once."""
    return {tensor.op for tensor in op.inputs} | set(op.control_inputs)


def pushed_later_until_nothing_moves_eleven(ops):
    """Sets by the length of the longest way to an op: lengths grow until all edges lead to a later set."""
    when = {op.name: 0 for op in ops}
    moved = True
    while moved:
        moved = False
        for op in reversed(ops):
            for source in _sources(op):
                if when[op.name] <= when[source.name]:
                    when[op.name] = when[source.name] + 1
                    moved = True
    sets = [[] for _ in set(when.values())]
    for name, number in when.items():
        sets[number].append(name)
    return sets


def edges_counted_but_readers_told_once_eleven(ops):
    """Sets by counters of edges, each lowered by 1 for an op that it reads from, however often it does."""
    counters = {op: len(op.inputs) + len(op.control_inputs) for op in ops}
    ready = [op for op in ops if counters[op] == 0]
    sets = []
    while ready:
        sets.append([op.name for op in ready])
        after = []
        for op in ops:
            for source in ready:
                if source in _sources(op):
                    counters[op] -= 1
                    if counters[op] == 0:
                        after.append(op)
        ready = after
    return sets


def in_the_order_of_the_list_eleven(ops):
    """Sets by one walk along the list, where an op comes after those of its sources that are known by then."""
    when = {}
    for op in ops:
        when[op] = 1 + max((when[source] for source in _sources(op) if source in when), default=-1)
    return [[op.name for op in ops if when[op] == number] for number in range(max(when.values(), default=-1) + 1)]


def watched_in_a_session_eleven(ops):
    """Sets that a step through the graph shows."""
    with tf.Session(graph=ops[0].graph) as sess:
        return [[ran.name for ran in record.ran] for record in sess.step_through(ops)]


RIGHT = [pushed_later_until_nothing_moves_eleven]
WRONG = {
    edges_counted_but_readers_told_once_eleven: "loses_ops",
    in_the_order_of_the_list_eleven: "goes_through_the_list_once",
    watched_in_a_session_eleven: "opens_a_session",
}
