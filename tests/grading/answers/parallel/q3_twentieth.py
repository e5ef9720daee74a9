"""Answers of a twentieth author to parallel/q3: which ops are ready together."""

import collections

import numpy as np


def _sources(op):
    """The ops at the other ends of the edges that come in, once per edge."""
    return [tensor.op for tensor in op.inputs] + list(op.control_inputs)


def matrix_of_edges_twentieth(ops):
    """Multiply a matrix of edges with those that are left: who waits for one of them is in a later set."""
    place = {op.name: row for row, op in enumerate(ops)}
    edges = np.zeros((len(ops), len(ops)), dtype=int)
    for op in ops:
        for source in _sources(op):
            edges[place[op.name], place[source.name]] += 1
    sets, left = [], np.ones(len(ops), dtype=bool)
    while left.any():
        later = edges @ left > 0
        sets.append([ops[row].name for row in np.flatnonzero(left & ~later)])
        left = later
    return sets


def one_per_op_twentieth(ops):
    """Lower the counter of each op that reads or waits for one that is done."""
    counters = {op: len(_sources(op)) for op in ops}
    readers = collections.defaultdict(set)
    for op in ops:
        for source in _sources(op):
            readers[source].add(op)
    sets, ready = [], [op for op in ops if counters[op] == 0]
    while ready:
        sets.append([op.name for op in ready])
        after = []
        for op in ready:
            for reader in readers[op]:
                counters[reader] -= 1
                if counters[reader] == 0:
                    after.append(reader)
        ready = after
    return sets


def first_source_twentieth(ops):
    """Go through the graph breadth first from the ops without edges, and put each op where it is met first."""
    readers = collections.defaultdict(list)
    for op in ops:
        for source in _sources(op):
            readers[source].append(op)
    current = [op for op in ops if not _sources(op)]
    seen, sets = set(current), []
    while current:
        sets.append([op.name for op in current])
        after = []
        for op in current:
            for reader in readers[op]:
                if reader not in seen:
                    seen.add(reader)
                    after.append(reader)
        current = after
    return sets


def done_at_once_twentieth(ops):
    """Sweep over the ops that are left, and run each one whose sources are done."""
    sets, done, left = [], set(), list(ops)
    while left:
        ready = []
        for op in left:
            if all(source in done for source in _sources(op)):
                ready.append(op.name)
                done.add(op)
        sets.append(ready)
        left = [op for op in left if op not in done]
    return sets


RIGHT = [matrix_of_edges_twentieth]
WRONG = {
    one_per_op_twentieth: "loses_ops",
    first_source_twentieth: "takes_the_first_source",
    done_at_once_twentieth: "counts_down_too_early",
}
