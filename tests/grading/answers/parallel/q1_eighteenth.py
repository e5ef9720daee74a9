"""Answers of an eighteenth author to parallel/q1: ops that can run at the same time."""

import dtflab as tf


def subgraphs_eighteenth(first, second):
    """Look for each op's name in the part of the graph that the other one needs; then compare the streams."""
    definition = first.graph.as_graph_def()
    for needed, asked in ((first, second), (second, first)):
        part = tf.graph_util.extract_sub_graph(definition, [asked.name])
        if needed.name in {node.name for node in part.node}:
            return False
    streams = [op.device for op in (first, second) if tf.DeviceSpec.from_string(op.device).device_type == "GPU"]
    return len(streams) == len(set(streams))


def _reads(op, other, seen):
    """Follow what op reads, back to other; a control input counts where it is met."""
    if op in seen:
        return False
    seen.add(op)
    if op is other:
        return True
    return any(_reads(tensor.op, other, seen) for tensor in op.inputs)


def control_only_direct_eighteenth(first, second):
    """Follow the data edges all the way, and look at the control inputs of the two ops themselves."""
    if first in second.control_inputs or second in first.control_inputs:
        return False
    if _reads(first, second, set()) or _reads(second, first, set()):
        return False
    return "GPU" not in first.device or first.device != second.device


def _needs(op):
    """Collect all ops that op needs, and op itself."""
    found, todo = set(), [op]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += [tensor.op for tensor in one.inputs] + list(one.control_inputs)
    return found


def short_device_names_eighteenth(first, second):
    """Compare the last part of the device names, after all that the ops need has been looked through."""
    if first in _needs(second) or second in _needs(first):
        return False
    one, other = (op.device.rpartition("/device:")[2] for op in (first, second))
    return not (one == other and one.startswith("GPU"))


def common_source_eighteenth(first, second):
    """Let two ops overlap only if nothing in the graph is needed by both."""
    if _needs(first) & _needs(second):
        return False
    return first.device != second.device or "CPU" in first.device


RIGHT = [subgraphs_eighteenth]
WRONG = {
    control_only_direct_eighteenth: "forgets_controls_in_between",
    short_device_names_eighteenth: "takes_gpus_of_two_tasks_for_one",
    common_source_eighteenth: "keeps_siblings_apart",
}
