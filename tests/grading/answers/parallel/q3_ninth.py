import graphlib


def _sources(op):
    return [tensor.op for tensor in op.inputs] + list(op.control_inputs)


# Breaks: "those that become ready when all of these are done": an op counts as done as soon as it is in the set,
# so an op that needs it may be in the same set.
def order_done_too_early(ops):
    left, done, order = list(ops), set(), []
    while left:
        ready = []
        for op in left:
            if all(source in done for source in _sources(op)):
                ready.append(op.name)
                done.add(op)
        left = [op for op in left if op not in done]
        order.append(ready)
    return order


# Breaks: "a list of all ops of a graph, in any order": one pass that takes for granted that sources come first.
def order_needs_creation_order(ops):
    level, order = {}, []
    for op in ops:
        level[op] = max((level.get(source, -1) + 1 for source in _sources(op)), default=0)
        while len(order) <= level[op]:
            order.append([])
        order[level[op]].append(op.name)
    return [names for names in order if names]


# Breaks: "Each op has a *counter*: the number of edges that come in": an op that reads nothing is taken for ready,
# although it may wait for others by control edges.
def order_no_inputs_is_ready(ops):
    level = {}

    def find(op):
        if op not in level:
            level[op] = 0 if not list(op.inputs) else 1 + max(find(source) for source in _sources(op))
        return level[op]

    order = {}
    for op in ops:
        order.setdefault(find(op), []).append(op.name)
    return [order[number] for number in sorted(order)]


# Right: the topological sorter of Python's library hands out the sets.
def order_with_graphlib(ops):
    sorter = graphlib.TopologicalSorter({op.name: {source.name for source in _sources(op)} for op in ops})
    sorter.prepare()
    order = []
    while sorter.is_active():
        names = sorter.get_ready()
        order.append(list(names))
        sorter.done(*names)
    return order


RIGHT = [order_with_graphlib]
WRONG = {
    # An op is marked as done while its set is still being built, so its successors may join it.
    order_done_too_early: "counts_down_too_early",
    # It is right only if each op comes after those that it needs, but the order is any.
    order_needs_creation_order: "goes_through_the_list_once",
    # An op without inputs is called ready at once, even if it has control inputs.
    order_no_inputs_is_ready: "starts_all_that_read_nothing",
}
