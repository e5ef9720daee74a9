"""Ways to balance variables by their bytes: one right, three wrong."""

import dtflab as tf


def setter_with_a_strategy_ten(ps_tasks, worker):
    """The library's own setter, with a strategy that keeps a sorted list of (bytes, task)."""
    held = [(0, task) for task in range(ps_tasks)]

    def fewest(op):
        size, task = held.pop(0)
        numbers = tf.TensorShape(op.get_attr("shape")).num_elements()
        held.append((size + numbers * tf.as_dtype(op.get_attr("dtype")).size, task))
        held.sort()
        return task

    kinds = ["Variable", "VariableV2", "VarHandleOp"]
    return tf.train.replica_device_setter(ps_tasks, worker_device=worker, ps_ops=kinds, ps_strategy=fewest)


def kibibytes_are_fine_enough_ten(ps_tasks, worker):
    """The task with the fewest KiB so far."""
    kib = [0] * ps_tasks

    def device_of(op):
        if op.type not in ("VariableV2", "VarHandleOp"):
            return worker
        numbers = tf.TensorShape(op.get_attr("shape")).num_elements()
        task = kib.index(min(kib))
        kib[task] += numbers * tf.as_dtype(op.get_attr("dtype")).size // 1024
        return f"/job:ps/task:{task}"

    return device_of


def type_of_the_output_ten(ps_tasks, worker):
    """Bytes from the attribute for the shape, and from the output for the type."""
    held = dict.fromkeys(range(ps_tasks), 0)

    def device_of(op):
        if op.type in ("VariableV2", "VarHandleOp"):
            task = min(held, key=held.get)
            held[task] += tf.TensorShape(op.get_attr("shape")).num_elements() * op.outputs[0].dtype.size
            return f"/job:ps/task:{task}"
        return worker

    return device_of


def whatever_is_called_var_ten(ps_tasks, worker):
    """Each op with `Var` in its type counts as a variable."""
    held = [0] * ps_tasks

    def device_of(op):
        if "Var" not in op.type:
            return worker
        task = min(range(ps_tasks), key=held.__getitem__)
        if "shape" in op.node_def.attr:
            numbers = tf.TensorShape(op.get_attr("shape")).num_elements()
            held[task] += numbers * tf.as_dtype(op.get_attr("dtype")).size
        return f"/job:ps/task:{task}"

    return device_of


RIGHT = [setter_with_a_strategy_ten]
WRONG = {
    kibibytes_are_fine_enough_ten: "counts_in_kilobytes",
    type_of_the_output_ten: "measures_the_handle",
    whatever_is_called_var_ten: "pins_everything",
}
