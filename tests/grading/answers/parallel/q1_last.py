"""Answers to parallel/q1 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf  # noqa: F401


def _needs(op, other):
    """Whether op waits for other, over any number of edges."""
    seen, todo = set(), [op]
    while todo:
        at = todo.pop()
        for source in [tensor.op for tensor in at.inputs] + list(at.control_inputs):
            if source is other:
                return True
            if source not in seen:
                seen.add(source)
                todo.append(source)
    return False


def no_path_and_not_one_gpu(first, second):
    if first is second or _needs(first, second) or _needs(second, first):
        return False
    return first.device != second.device or "/device:GPU:" not in first.device


def one_op_per_device(first, second):
    if first is second or _needs(first, second) or _needs(second, first):
        return False
    return first.device != second.device


def direct_edges_only(first, second):
    def reads(op):
        return [tensor.op for tensor in op.inputs] + list(op.control_inputs)

    if first in reads(second) or second in reads(first):
        return False
    return first.device != second.device or "GPU" not in first.device


def short_names(first, second):
    if first is second or _needs(first, second) or _needs(second, first):
        return False
    here, there = first.device[-5:], second.device[-5:]  # "GPU:0"
    return not (here == there and here.startswith("GPU"))


RIGHT = [no_path_and_not_one_gpu]
WRONG = {
    # Believes that any device, a CPU too, runs one op at a time.
    one_op_per_device: "one_op_per_device",
    # Looks only at the direct inputs of both ops, not at what these wait for in turn.
    direct_edges_only: "looks_only_at_neighbours",
    # Compares only the ends of the devices' names, so the GPU:0 of two tasks is taken for one card.
    short_names: "takes_gpus_of_two_tasks_for_one",
}
