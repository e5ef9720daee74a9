"""Answers of a twentieth author to placement/q1: balance variables over parameter servers."""

import heapq

import numpy as np

import dtflab as tf

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def _task(number):
    """The device of a parameter server."""
    return f"/job:ps/task:{number}"


def _chooser(ps_tasks, worker):
    """Yield the device of the op that was sent in; the loads live in the generator's own variables."""
    held = np.zeros(ps_tasks, dtype=np.int64)
    op = yield
    while True:
        device = worker
        if op.type in _VARIABLES:
            attributes = op.node_def.attr
            sizes = [dim.size for dim in attributes["shape"].shape.dim]
            lightest = int(held.argmin())
            held[lightest] += np.prod(sizes, dtype=np.int64) * tf.as_dtype(attributes["dtype"].type).size
            device = _task(lightest)
        op = yield device


def generator_twentieth(ps_tasks, worker):
    """Start a generator, and hand out its method `send` as the device function."""
    chooser = _chooser(ps_tasks, worker)
    next(chooser)
    return chooser.send


def size_of_handle_twentieth(ps_tasks, worker):
    """Multiply the elements of the attribute `shape` with the size of the output's type."""
    held = [0] * ps_tasks

    def device_of(op):
        if op.type not in _VARIABLES:
            return worker
        task = held.index(min(held))
        elements = tf.TensorShape(op.get_attr("shape")).num_elements()
        held[task] += elements * op.outputs[0].dtype.size
        return _task(task)

    return device_of


def has_a_shape_twentieth(ps_tasks, worker):
    """Take each op with an attribute `shape` for a variable."""
    held = [0] * ps_tasks

    def device_of(op):
        if "shape" not in op.node_def.attr:
            return worker
        task = min(range(ps_tasks), key=held.__getitem__)
        elements = 1
        for dim in op.get_attr("shape").dim:
            elements *= dim.size
        held[task] += elements * tf.as_dtype(op.get_attr("dtype")).size
        return _task(task)

    return device_of


def last_size_twentieth(ps_tasks, worker):
    """Keep the tasks in a heap, the lightest at its top."""
    heap = [(0, task) for task in range(ps_tasks)]

    def device_of(op):
        if op.type not in _VARIABLES:
            return worker
        size = tf.TensorShape(op.get_attr("shape")).num_elements() * tf.as_dtype(op.get_attr("dtype")).size
        _, task = heap[0]
        heapq.heapreplace(heap, (size, task))
        return _task(task)

    return device_of


RIGHT = [generator_twentieth]
WRONG = {
    size_of_handle_twentieth: "measures_the_handle",
    has_a_shape_twentieth: "pins_everything",
    last_size_twentieth: "forgets_what_lay_there",
}
