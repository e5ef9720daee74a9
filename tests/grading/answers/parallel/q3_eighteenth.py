"""Answers of an eighteenth author to parallel/q3: the sets of ops that are ready together."""

import numpy as np


def edge_matrix_eighteenth(ops):
    """Count edges in a matrix: a row per op that waits, a column per op that it waits for."""
    place = {op.name: index for index, op in enumerate(ops)}
    edges = np.zeros((len(ops), len(ops)), int)
    for op in ops:
        for source in [tensor.op for tensor in op.inputs] + list(op.control_inputs):
            edges[place[op.name], place[source.name]] += 1
    counters = edges.sum(axis=1)
    order = []
    while (ready := np.flatnonzero(counters == 0)).size:
        order.append([ops[index].name for index in ready])
        counters -= edges[:, ready].sum(axis=1)
        counters[ready] = -1
    return order


def _sources(op):
    """List the ops at the other end of each edge that comes in."""
    return [tensor.op for tensor in op.inputs] + list(op.control_inputs)


def first_source_eighteenth(ops):
    """Walk through the graph from the ops without edges, and put each op into the set after the one it is met from."""
    now = [op for op in ops if not _sources(op)]
    seen, order = set(now), []
    while now:
        order.append([op.name for op in now])
        done = set(now)
        now = [op for op in ops if op not in seen and done.intersection(_sources(op))]
        seen.update(now)
    return order


def lowered_once_eighteenth(ops):
    """Give each op a counter, and lower it by 1 for each op of the last set from which it has an edge."""
    counters = {op: len(_sources(op)) for op in ops}
    order = []
    ready = [op for op in ops if counters[op] == 0]
    while ready:
        order.append([op.name for op in ready])
        following = []
        for done in ready:
            for op in ops:
                if done in _sources(op):
                    counters[op] -= 1
                    if counters[op] == 0:
                        following.append(op)
        ready = following
    return order


def done_in_the_same_pass_eighteenth(ops):
    """Pass over the ops that are left again and again, and take each whose sources are all done."""
    done, order, left = set(), [], list(ops)
    while left:
        ready = []
        for op in left:
            if done.issuperset(_sources(op)):
                ready.append(op.name)
                done.add(op)
        left = [op for op in left if op not in done]
        order.append(ready)
    return order


RIGHT = [edge_matrix_eighteenth]
WRONG = {
    first_source_eighteenth: "takes_the_first_source",
    lowered_once_eighteenth: "loses_ops",
    done_in_the_same_pass_eighteenth: "counts_down_too_early",
}
