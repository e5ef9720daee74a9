"""Answers to placement/q1 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def bytes_from_the_attributes(ps_tasks, worker):
    held = [0] * ps_tasks
    where = {}  # in case that an op is asked for twice: it stays where it was put

    def device_of(op):
        if op.type not in ("Variable", "VariableV2", "VarHandleOp"):
            return worker
        if op not in where:
            size = tf.as_dtype(op.get_attr("dtype")).size
            for dimension in tf.TensorShape(op.get_attr("shape")).as_list():
                size *= dimension
            task = held.index(min(held))
            held[task] += size
            where[op] = f"/job:ps/task:{task}"
        return where[op]

    return device_of


def counts_numbers(ps_tasks, worker):
    held = [0] * ps_tasks

    def device_of(op):
        if op.type in ("VariableV2", "VarHandleOp"):
            task = held.index(min(held))
            held[task] += tf.TensorShape(op.get_attr("shape")).num_elements()
            return f"/job:ps/task:{task}"
        return worker

    return device_of


def size_of_the_output(ps_tasks, worker):
    held = [0] * ps_tasks

    def device_of(op):
        if op.type in ("VariableV2", "VarHandleOp"):
            task = held.index(min(held))
            held[task] += op.outputs[0].shape.num_elements() * tf.as_dtype(op.get_attr("dtype")).size
            return f"/job:ps/task:{task}"
        return worker

    return device_of


def whatever_has_a_shape(ps_tasks, worker):
    held = [0] * ps_tasks

    def device_of(op):
        if "shape" in op.node_def.attr:
            task = held.index(min(held))
            elements = tf.TensorShape(op.get_attr("shape")).num_elements() or 0
            held[task] += elements * tf.as_dtype(op.get_attr("dtype")).size
            return f"/job:ps/task:{task}"
        return worker

    return device_of


RIGHT = [bytes_from_the_attributes]
WRONG = {
    # Adds up the numbers of elements and not the bytes: a float64 weighs as much as a float32.
    counts_numbers: "counts_elements",
    # Takes the shape of the op's output, which for a resource variable is that of its handle, a scalar.
    size_of_the_output: "measures_the_handle",
    # Takes every op with an attribute 'shape' for a variable, so placeholders go to the ps, too.
    whatever_has_a_shape: "pins_everything",
}
