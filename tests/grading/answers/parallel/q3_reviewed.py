"""Answers to parallel/q3 that a review found: wrong ones with the hint of another mistake."""

from solutions.wrong.parallel.q3 import sets, sources_of


def counted(ops, number):
    """Counters that begin with `number`, fall by 1 for each edge, and are to be 0 exactly."""
    left, order = {op: number(op) for op in ops}, []
    now = [op for op in ops if not left[op]]
    while now:
        order.append([op.name for op in now])
        fallen = {op: sum(source in now for source in sources_of(op)) for op in ops}
        left = {op: left[op] - fallen[op] for op in ops}
        now = [op for op in ops if fallen[op] and not left[op]]
    return order


def counts_sources_of_inputs_once(ops):
    return counted(ops, lambda op: len({tensor.op for tensor in op.inputs}) + len(op.control_inputs))


def one_edge_for_all_control_inputs(ops):
    return counted(ops, lambda op: len(op.inputs) + bool(op.control_inputs))


def waits_for_the_last_control_input(ops):
    return sets(ops, lambda op: [tensor.op for tensor in op.inputs] + list(op.control_inputs)[-1:], all)


def forgets_control_inputs_and_has_an_empty_set(ops):
    return sets(ops, lambda op: [tensor.op for tensor in op.inputs], all) or [[]]


def no_list_without_ops(ops):
    return sets(ops, sources_of, all) or None


RIGHT: list = []
WRONG = {
    counts_sources_of_inputs_once: "counts_sources_once",
    one_edge_for_all_control_inputs: "",
    waits_for_the_last_control_input: "",
    forgets_control_inputs_and_has_an_empty_set: "forgets_control_inputs finds_a_set_without_ops",
    no_list_without_ops: "finds_a_set_without_ops",
}
