"""Answers to parallel/q3 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import graphlib


# "each edge that leaves it lowers the counter at its other end by 1", but "the number of edges that come in" is
# counted here without repeats: an op that reads one tensor twice, and another once, starts too early.
def ready_counts_sources(ops):
    edges = {op: [tensor.op for tensor in op.inputs] + list(op.control_inputs) for op in ops}
    counters = {op: len(set(sources)) for op, sources in edges.items()}
    ready = [op for op in ops if counters[op] == 0]
    sets = []
    while ready:
        sets.append([op.name for op in ready])
        following = []
        for done in ready:
            for op in ops:
                for source in edges[op]:
                    if source is done:
                        counters[op] -= 1
                        if counters[op] == 0:
                            following.append(op)
        ready = following
    return sets


# "An op whose counter is 0 is ready": an op that reads nothing is always put into the first set here, although
# edges of control inputs may come in.
def ready_no_inputs_first(ops):
    levels = {}

    def level(op):
        if op.name not in levels:
            if len(op.inputs) == 0:
                levels[op.name] = 0
            else:
                sources = [tensor.op for tensor in op.inputs] + list(op.control_inputs)
                levels[op.name] = 1 + max(level(source) for source in sources)
        return levels[op.name]

    sets = {}
    for op in ops:
        sets.setdefault(level(op), []).append(op.name)
    return [sets[number] for number in sorted(sets)]


# "`tensor.op` is the op that makes one": here a tensor is there when its op's name + ":0" is done, so an op that
# reads the second output of another (of tf.split, say) never gets ready and is missing from the result.
def ready_first_outputs_only(ops):
    left, done, sets = list(ops), set(), []
    while left:
        ready = [
            op
            for op in left
            if all(tensor.name in done for tensor in op.inputs)
            and all(other.name + ":0" in done for other in op.control_inputs)
        ]
        if not ready:
            break
        sets.append([op.name for op in ready])
        done.update(op.name + ":0" for op in ready)
        left = [op for op in left if op not in ready]
    return sets


# Right: Python's own topological sorter deals out what is ready.
def ready_by_graphlib(ops):
    sorter = graphlib.TopologicalSorter()
    for op in ops:
        sorter.add(op.name, *(tensor.op.name for tensor in op.inputs), *(other.name for other in op.control_inputs))
    sorter.prepare()
    sets = []
    while sorter.is_active():
        names = sorter.get_ready()
        sets.append(sorted(names))
        sorter.done(*names)
    return sets


RIGHT = [ready_by_graphlib]
WRONG = {
    # The counter counts each source once, but is lowered for each edge: an op that reads a tensor twice
    # becomes ready before all of its other inputs are there.
    ready_counts_sources: "counts_sources_once",
    # An op without inputs is taken as ready at the beginning, even if it has control inputs to wait for.
    ready_no_inputs_first: "starts_all_that_read_nothing",
    # Only the first output of an op counts as made, so an op that reads another output never becomes ready.
    ready_first_outputs_only: "loses_second_outputs",
}
