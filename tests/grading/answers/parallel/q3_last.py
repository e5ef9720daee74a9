"""Answers to parallel/q3 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf  # noqa: F401


def with_counters(ops):
    counter, leaving = {}, {op: [] for op in ops}
    for op in ops:
        sources = [tensor.op for tensor in op.inputs] + list(op.control_inputs)
        counter[op] = len(sources)
        for source in sources:
            leaving[source].append(op)
    sets = []
    ready = [op for op in ops if counter[op] == 0]
    while ready:
        sets.append([op.name for op in ready])
        coming = []
        for op in ready:
            for reader in leaving[op]:
                counter[reader] -= 1
                if counter[reader] == 0:
                    coming.append(reader)
        ready = coming
    return sets


def data_edges_only(ops):
    done, sets, left = set(), [], list(ops)
    while left:
        ready = [op for op in left if all(tensor.op in done for tensor in op.inputs)]
        sets.append([op.name for op in ready])
        done.update(ready)
        left = [op for op in left if op not in done]
    return sets


def once_per_op_that_is_done(ops):
    counter = {op: len(op.inputs) + len(op.control_inputs) for op in ops}
    sets = []
    ready = [op for op in ops if counter[op] == 0]
    while ready:
        sets.append([op.name for op in ready])
        coming = []
        for done in ready:
            for op in ops:
                if done in [tensor.op for tensor in op.inputs] or done in op.control_inputs:
                    counter[op] -= 1
                    if counter[op] == 0:
                        coming.append(op)
        ready = coming
    return sets


def after_the_first_source(ops):
    def sources(op):
        return {tensor.op for tensor in op.inputs} | set(op.control_inputs)

    seen = set()
    ready = [op for op in ops if not sources(op)]
    sets = []
    while ready:
        sets.append([op.name for op in ready])
        seen |= set(ready)
        ready = [op for op in ops if op not in seen and sources(op) & set(ready)]
    return sets


RIGHT = [with_counters]
WRONG = {
    # Forgets control_inputs: an op that only waits, without reading, is taken to be ready too early.
    data_edges_only: "forgets_control_inputs",
    # An op that reads the same op twice has two edges, but its counter is lowered once: it never gets ready.
    once_per_op_that_is_done: "loses_ops",
    # A breadth-first search: takes an op to be ready as soon as one of its sources is done, not all.
    after_the_first_source: "takes_the_first_source",
}
