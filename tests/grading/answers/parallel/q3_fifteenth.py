"""Answers of a fifteenth author to parallel/q3: which ops are ready together."""

import graphlib

import dtflab as tf  # noqa: F401


def ready_graphlib_fifteenth(ops):
    """The standard library's sorter, which learns each edge from the op that it leaves."""
    sorter = graphlib.TopologicalSorter({op.name: () for op in ops})
    for op in ops:
        for tensor in op.outputs:
            for consumer in tensor.consumers():
                sorter.add(consumer.name, op.name)
        sorter.add(op.name, *(other.name for other in op.control_inputs))
    sorter.prepare()
    sets = []
    while sorter.is_active():
        sets.append(list(sorter.get_ready()))
        sorter.done(*sets[-1])
    return sets


def ready_late_fifteenth(ops):
    """The sets from the last one: what nobody waits for, then what only these wait for, and so on; turned round."""
    left = {op.name: op for op in ops}
    sets = []
    while left:
        needed = set()
        for op in left.values():
            needed.update(tensor.op.name for tensor in op.inputs)
            needed.update(other.name for other in op.control_inputs)
        last = [name for name in left if name not in needed]
        sets.append(last)
        for name in last:
            del left[name]
    return sets[::-1]


def ready_one_edge_fifteenth(ops):
    """A counter per op; an op that is done lowers the counter of each op that waits for it by 1."""
    counter = {op.name: len(op.inputs) + len(op.control_inputs) for op in ops}
    waiting = {op.name: set() for op in ops}
    for op in ops:
        for source in [tensor.op for tensor in op.inputs] + list(op.control_inputs):
            waiting[source.name].add(op.name)
    sets = []
    ready = [name for name, edges in counter.items() if edges == 0]
    while ready:
        sets.append(ready)
        following = []
        for name in ready:
            for other in waiting[name]:
                counter[other] -= 1
                if counter[other] == 0:
                    following.append(other)
        ready = following
    return sets


def ready_one_pass_fifteenth(ops):
    """Go through the ops again and again; each whose sources are done is done in this pass."""
    done = set()
    sets = []
    left = list(ops)
    while left:
        now, later = [], []
        for op in left:
            sources = [tensor.op.name for tensor in op.inputs] + [other.name for other in op.control_inputs]
            if done.issuperset(sources):
                done.add(op.name)
                now.append(op.name)
            else:
                later.append(op)
        sets.append(now)
        left = later
    return sets


RIGHT = [ready_graphlib_fifteenth]
WRONG = {
    ready_late_fifteenth: "waits_until_it_is_needed",
    ready_one_edge_fifteenth: "loses_ops",
    ready_one_pass_fifteenth: "counts_down_too_early",
}
