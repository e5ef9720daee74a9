"""Answers to placement/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import heapq

import dtflab as tf

_held = [0] * 64  # bytes on each task, for balance_global_list


# "the ps task that holds the fewest bytes so far": the list is not begun again for each device function.
def balance_global_list(ps_tasks, worker):
    def device_of(op):
        if op.type not in ("VariableV2", "VarHandleOp"):
            return worker
        shape = tf.TensorShape(op.get_attr("shape"))
        task = min(range(ps_tasks), key=lambda number: _held[number])
        _held[task] += shape.num_elements() * op.get_attr("dtype").size
        return f"/job:ps/task:{task}"

    return device_of


# "holds the fewest bytes": the op of a resource variable puts out a handle, whose type has size 0; so resource
# variables weigh nothing here.
def balance_type_of_output(ps_tasks, worker):
    held = [0] * ps_tasks

    def device_of(op):
        if op.type not in ("VariableV2", "VarHandleOp"):
            return worker
        shape = tf.TensorShape(op.get_attr("shape"))
        task = held.index(min(held))
        held[task] += shape.num_elements() * op.outputs[0].dtype.base_dtype.size
        return f"/job:ps/task:{task}"

    return device_of


# "fewest bytes so far": a scalar has bytes, too (one element), but here it has none.
def balance_scalars_weigh_nothing(ps_tasks, worker):
    held = [0] * ps_tasks

    def device_of(op):
        if op.type not in ("VariableV2", "VarHandleOp"):
            return worker
        dimensions = tf.TensorShape(op.get_attr("shape")).as_list()
        elements = dimensions[0] if dimensions else 0
        for dimension in dimensions[1:]:
            elements *= dimension
        task = held.index(min(held))
        held[task] += elements * op.get_attr("dtype").size
        return f"/job:ps/task:{task}"

    return device_of


# Right: an object that can be called, with a heap of (bytes, task).
class _Balance:
    VARIABLES = frozenset({"Variable", "VariableV2", "AutoReloadVariable", "VarHandleOp"})

    def __init__(self, ps_tasks, worker):
        self.worker = worker
        self.heap = [(0, task) for task in range(ps_tasks)]

    @staticmethod
    def size_of(op):
        size = tf.as_dtype(op.get_attr("dtype")).size
        for dimension in tf.TensorShape(op.get_attr("shape")).as_list():
            size *= dimension
        return size

    def __call__(self, op):
        if op.type in self.VARIABLES:
            held, task = self.heap[0]
            heapq.heapreplace(self.heap, (held + self.size_of(op), task))
            return tf.DeviceSpec(job="ps", task=task)
        return op.device or self.worker


def balance_with_a_heap(ps_tasks, worker):
    balance = _Balance(ps_tasks, worker)
    return lambda op: (lambda device: device if isinstance(device, str) else device.to_string())(balance(op))


RIGHT = [balance_with_a_heap]
WRONG = {
    # The bytes are counted in a list outside of the function, so a second device function begins with the
    # bytes of the first.
    balance_global_list: "shared_state",
    # The size of an element is taken from the output's type; a resource variable puts out a handle, so its
    # bytes count as 0.
    balance_type_of_output: "measures_the_handle",
    # A scalar variable counts as 0 bytes instead of one element, so scalars pile up on one task.
    balance_scalars_weigh_nothing: "takes_scalars_for_nothing",
}
