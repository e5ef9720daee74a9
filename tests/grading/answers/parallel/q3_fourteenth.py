"""Answers to parallel/q3 by a second author, one right and three wrong."""

import graphlib

import dtflab as tf


def ready_order_fourteenth(ops):
    """Lets Python's graphlib keep the counters: each round takes all names that are ready and marks them as done."""
    waits = {op.name: {tensor.op.name for tensor in op.inputs} | {o.name for o in op.control_inputs} for op in ops}
    sorter = graphlib.TopologicalSorter(waits)
    sorter.prepare()
    sets = []
    while sorter.is_active():
        sets.append(list(sorter.get_ready()))
        sorter.done(*sets[-1])
    return sets


def counts_tensors_fourteenth(ops):
    """Counters of the tensors that an op reads and the ops it waits for, lowered once by each op that is done."""
    counter, followers = {}, {op.name: set() for op in ops}
    for op in ops:
        read = {tensor.name: tensor.op.name for tensor in op.inputs}
        waited = {other.name for other in op.control_inputs}
        counter[op.name] = len(read) + len(waited)
        for name in waited.union(read.values()):
            followers[name].add(op.name)
    ready = [name for name, count in counter.items() if count == 0]
    sets = []
    while ready:
        sets.append(ready)
        ready = []
        for name in sets[-1]:
            for follower in followers[name]:
                counter[follower] -= 1
                if counter[follower] == 0:
                    ready.append(follower)
    return sets


def start_reads_nothing_fourteenth(ops):
    """Starts with all ops that read nothing, then takes those whose inputs and control inputs are all done."""
    ready = [op for op in ops if not list(op.inputs)]
    sets, done = [], set()
    while ready:
        sets.append([op.name for op in ready])
        done.update(sets[-1])
        ready = [
            op
            for op in ops
            if op.name not in done
            and all(tensor.op.name in done for tensor in op.inputs)
            and all(other.name in done for other in op.control_inputs)
        ]
    return sets


def asks_the_session_fourteenth(ops):
    """Lets a session step through the graph and copies down what it shows."""
    if not ops:
        return []
    with tf.Session(graph=ops[0].graph) as sess:
        return [[ran.name for ran in record.ran] for record in sess.step_through(ops)]


RIGHT = [ready_order_fourteenth]
WRONG = {
    counts_tensors_fourteenth: "loses_second_outputs",
    start_reads_nothing_fourteenth: "starts_all_that_read_nothing",
    asks_the_session_fourteenth: "opens_a_session",
}
