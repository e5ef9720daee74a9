"""Answers of a twentieth author to parallel/q1: two ops at the same time."""

import dtflab as tf


def _needed(op):
    """The op and all ops that it needs, directly or not, by data or by control."""
    found, todo = {op}, [op]
    while todo:
        current = todo.pop()
        for other in [tensor.op for tensor in current.inputs] + list(current.control_inputs):
            if other not in found:
                found.add(other)
                todo.append(other)
    return found


def cut_out_twentieth(first, second):
    """Cut out the part of the graph that each op needs, and look for the name of the other one in it."""
    graph_def = first.graph.as_graph_def()
    for target, other in [(first, second), (second, first)]:
        if other.name in {node.name for node in tf.graph_util.extract_sub_graph(graph_def, [target.name]).node}:
            return False
    device = tf.DeviceSpec.from_string(first.device)
    same = device.to_string() == tf.DeviceSpec.from_string(second.device).to_string()
    return not (same and device.device_type == "GPU")


def one_direction_twentieth(first, second):
    """Let two ops overlap if the second one does not need the first one, unless they share a GPU."""
    if first in _needed(second):
        return False
    return first.device != second.device or "GPU" not in first.device


def short_device_twentieth(first, second):
    """Compare the last part of the device's name, such as GPU:0."""
    if first in _needed(second) or second in _needed(first):
        return False
    mine, yours = first.device.split("device:")[-1], second.device.split("device:")[-1]
    return mine != yours or mine.startswith("CPU")


def nothing_in_common_twentieth(first, second):
    """Let two ops overlap only if the parts of the graph that they need are disjoint."""
    if _needed(first) & _needed(second):
        return False
    return first.device != second.device or "GPU" not in first.device


RIGHT = [cut_out_twentieth]
WRONG = {
    one_direction_twentieth: "looks_in_one_direction",
    short_device_twentieth: "takes_gpus_of_two_tasks_for_one",
    nothing_in_common_twentieth: "keeps_siblings_apart",
}
