"""Ways to find the sets of ops that are ready together: one right, three wrong."""

from graphlib import TopologicalSorter

import dtflab as tf


def sorter_hands_out_ten(ops):
    """The sets as Python's own topological sorter hands them out."""
    sorter = TopologicalSorter()
    for op in ops:
        sorter.add(op, *(tensor.op for tensor in op.inputs), *op.control_inputs)
    sorter.prepare()
    sets = []
    while sorter.is_active():
        ready = sorter.get_ready()
        sets.append([op.name for op in ready])
        sorter.done(*ready)
    return sets


def sets_in_counter_edges_in_decrement_ten(ops):
    """Counters that begin with the number of different sources, and fall once for each edge."""
    sources = {op.name: [tensor.op.name for tensor in op.inputs] + [o.name for o in op.control_inputs] for op in ops}
    counters = {name: len(set(names)) for name, names in sources.items()}
    sets, ready = [], [name for name, counter in counters.items() if counter == 0]
    seen = set(ready)
    while ready:
        sets.append(ready)
        after = []
        for done in ready:
            for name, names in sources.items():
                counters[name] -= names.count(done)
        for name, counter in counters.items():
            if counter <= 0 and name not in seen:
                after.append(name)
                seen.add(name)
        ready = after
    return sets


def levels_in_one_pass_ten(ops):
    """Each op's level from those of its sources, in one pass through the list as it is given."""
    level = {}
    for op in ops:
        sources = [tensor.op.name for tensor in op.inputs] + [other.name for other in op.control_inputs]
        level[op.name] = max((level.get(name, -1) for name in sources), default=-1) + 1
    sets = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for name, number in level.items():
        sets[number].append(name)
    return sets


def asks_a_session_ten(ops):
    """The sets of a session that is stopped each time that all ready ops have run."""
    if not ops:
        return []
    with tf.Session(graph=ops[0].graph) as sess:
        return [[node.name for node in record.ran] for record in sess.step_through(ops)]


RIGHT = [sorter_hands_out_ten]
WRONG = {
    sets_in_counter_edges_in_decrement_ten: "counts_sources_once",
    levels_in_one_pass_ten: "goes_through_the_list_once",
    asks_a_session_ten: "opens_a_session",
}
