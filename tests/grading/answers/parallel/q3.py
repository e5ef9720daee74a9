"""Answers to parallel/q3 by other authors: right ones in another style, and wrong ones with the hint that fits."""

from collections import Counter
from functools import cache
from graphlib import TopologicalSorter

import dtflab as tf


def edges(op):
    return [tensor.op for tensor in op.inputs] + list(op.control_inputs)


def with_graphlib(ops):
    sorter = TopologicalSorter({op: set(edges(op)) for op in ops})
    sorter.prepare()
    order = []
    while sorter.is_active():
        order.append(sorter.get_ready())
        sorter.done(*order[-1])
    return [[op.name for op in part] for part in order]


def by_longest_path(ops):
    @cache
    def depth(op):
        return max([depth(source) + 1 for source in edges(op)] or [0])

    return [[op.name for op in ops if depth(op) == i] for i in range(1 + max(map(depth, ops), default=-1))]


def counted(ops, count, fall):
    """Kahn's way; an op's counter begins with count(edges), and falls by fall(edges from one source)."""
    counter = {op: count(edges(op)) for op in ops}
    order, ready = [], [op for op in ops if counter[op] == 0]
    while ready:
        order.append([op.name for op in ready])
        touched = []
        for op in ready:
            for other in ops:
                if op in edges(other):
                    counter[other] -= fall(edges(other).count(op))
                    touched.append(other)
        ready = [op for op in dict.fromkeys(touched) if counter[op] == 0]
    return order


def counts_once_falls_twice(ops):
    return counted(ops, lambda sources: len(set(sources)), lambda number: number)


def only_control_edges(ops):
    order, done = [], set()
    while len(done) < len(ops):
        now = [op for op in ops if op not in done and done.issuperset(op.control_inputs)]
        order.append([op.name for op in now])
        done.update(now)
    return order


def as_late_as_possible(ops):
    consumers = {op: [other for other in ops if op in edges(other)] for op in ops}

    @cache
    def height(op):
        return max([height(other) + 1 for other in consumers[op]] or [0])

    top = max(map(height, ops), default=-1)
    return [[op.name for op in ops if height(op) == top - i] for i in range(top + 1)]


def sources_then_the_rest(ops):
    parts = [[op.name for op in ops if not edges(op)], [op.name for op in ops if edges(op)]]
    return [part for part in parts if part]


def everything_at_once(ops):
    return [[op.name for op in ops]] if ops else []


def forgets_the_last_set(ops):
    return by_longest_path(ops)[:-1]


def backwards(ops):
    return by_longest_path(ops)[::-1]


def by_number_of_edges(ops):
    number = Counter(len(edges(op)) for op in ops)
    return [[op.name for op in ops if len(edges(op)) == i] for i in sorted(number)]


def steps_through(ops):
    """By the wrong means: the library finds them."""
    if not ops:
        return []
    with tf.Session(graph=ops[0].graph) as sess:
        return [[ran.name for ran in record.ran] for record in sess.step_through(ops)]


def from_the_checks(ops):
    """By the wrong means: the checks find them."""
    from dtflab.grading.checks import parallel_ready

    return parallel_ready._ready(ops) if ops else []


def eight_rounds(ops):
    done, found = set(), []
    for _ in range(8):
        ready = [op for op in ops if op not in done and done.issuperset(edges(op))]
        if not ready:
            break
        found.append([op.name for op in ready])
        done.update(ready)
    return found


RIGHT = [with_graphlib, by_longest_path]
WRONG = {
    counts_once_falls_twice: "counts_sources_once",
    only_control_edges: "ignores_inputs",
    as_late_as_possible: "waits_until_it_is_needed",
    sources_then_the_rest: "puts_the_rest_together",
    everything_at_once: "ignores_inputs",
    forgets_the_last_set: "stops_too_early",
    backwards: "goes_backwards",
    by_number_of_edges: "sorts_by_edges",
    steps_through: "opens_a_session",
    from_the_checks: "",
    eight_rounds: "stops_too_early",
}
