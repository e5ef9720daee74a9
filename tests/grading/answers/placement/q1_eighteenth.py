"""Answers of an eighteenth author to placement/q1: variables balanced over parameter servers by bytes."""

import heapq
from collections import Counter

import dtflab as tf

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
_HELD = Counter()


def _bytes(op):
    """The bytes of the variable that `op` holds."""
    return tf.TensorShape(op.get_attr("shape")).num_elements() * tf.as_dtype(op.get_attr("dtype")).size


def setter_with_a_heap_eighteenth(ps_tasks, worker):
    """Give the library's setter a strategy that takes the lightest task from a heap."""
    tasks = [(0, task) for task in range(ps_tasks)]

    def lightest(op):
        """Put the bytes of `op` on the lightest task, and return its number."""
        held, task = tasks[0]
        heapq.heapreplace(tasks, (held + _bytes(op), task))
        return task

    return tf.train.replica_device_setter(ps_tasks, worker_device=worker, ps_ops=list(_VARIABLES), ps_strategy=lightest)


def whatever_has_a_shape_eighteenth(ps_tasks, worker):
    """Balance all ops that have an attribute 'shape'."""
    held = [0] * ps_tasks

    def device_of(op):
        """The device of `op`, by its attributes."""
        if "shape" not in op.node_def.attr:
            return worker
        task = held.index(min(held))
        elements = tf.TensorShape(op.get_attr("shape")).num_elements() or 0
        held[task] += elements * tf.as_dtype(op.get_attr("dtype")).size
        return f"/job:ps/task:{task}"

    return device_of


def bytes_of_the_handle_eighteenth(ps_tasks, worker):
    """Balance by the bytes of the op's output."""
    held = dict.fromkeys(range(ps_tasks), 0)

    def device_of(op):
        """The device of `op`, by the size of its output."""
        if op.type not in _VARIABLES:
            return worker
        task = min(held, key=held.get)
        output = op.outputs[0]
        held[task] += output.shape.num_elements() * output.dtype.base_dtype.size
        return f"/job:ps/task:{task}"

    return device_of


def held_by_the_module_eighteenth(ps_tasks, worker):
    """Balance with bytes that the module remembers."""

    def device_of(op):
        """The device of `op`, by what all models so far have put on the tasks."""
        if op.type not in _VARIABLES:
            return worker
        task = min(range(ps_tasks), key=lambda number: _HELD[number])
        _HELD[task] += _bytes(op)
        return f"/job:ps/task:{task}"

    return device_of


RIGHT = [setter_with_a_heap_eighteenth]
WRONG = {
    whatever_has_a_shape_eighteenth: "pins_everything",
    bytes_of_the_handle_eighteenth: "measures_the_handle",
    held_by_the_module_eighteenth: "shared_state",
}
