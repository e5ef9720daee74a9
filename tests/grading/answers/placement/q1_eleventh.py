"""An eleventh author's answers to placement/q1: variables over parameter servers by their bytes."""

import heapq

import dtflab as tf

_VARIABLES = ("VariableV2", "Variable", "VarHandleOp")


def _numbers(op):
    """How many numbers the variable of the op has."""
    return tf.TensorShape(op.get_attr("shape")).num_elements()


def lightest_off_a_heap_eleven(ps_tasks, worker):
    """A device function with a heap of (bytes, task), where equal ones fall to the last task."""
    heap = [(0, -task) for task in range(ps_tasks)]
    heapq.heapify(heap)

    def choose(op):
        if op.type not in _VARIABLES:
            return op.device or worker
        held, task = heap[0]
        size = _numbers(op) * tf.as_dtype(op.get_attr("dtype")).base_dtype.size
        heapq.heapreplace(heap, (held + size, task))
        return f"/job:ps/task:{-task}"

    return choose


def fewest_numbers_eleven(ps_tasks, worker):
    """A device function that counts numbers, whatever their type."""
    held = [0] * ps_tasks

    def choose(op):
        if op.type not in _VARIABLES:
            return worker
        task = held.index(min(held))
        held[task] += _numbers(op)
        return f"/job:ps/task:{task}"

    return choose


def size_of_the_output_eleven(ps_tasks, worker):
    """A device function that takes the shape and type of an op's output for those of its variable."""
    held = [0] * ps_tasks

    def choose(op):
        if op.type not in _VARIABLES:
            return worker
        task = held.index(min(held))
        output = op.outputs[0]
        size = 4 if output.dtype == tf.resource else output.dtype.base_dtype.size
        held[task] += output.shape.num_elements() * size
        return f"/job:ps/task:{task}"

    return choose


def small_ones_dealt_in_turn_eleven(ps_tasks, worker):
    """A device function that looks at bytes for large variables only, and deals small ones."""
    held, turn = [0] * ps_tasks, [0]

    def choose(op):
        if op.type not in _VARIABLES:
            return worker
        size = _numbers(op) * tf.as_dtype(op.get_attr("dtype")).base_dtype.size
        if size > 1024:
            task = held.index(min(held))
        else:
            task = turn[0] % ps_tasks
            turn[0] += 1
        held[task] += size
        return f"/job:ps/task:{task}"

    return choose


RIGHT = [lightest_off_a_heap_eleven]
WRONG = {
    fewest_numbers_eleven: "counts_elements",
    size_of_the_output_eleven: "measures_the_handle",
    small_ones_dealt_in_turn_eleven: "",
}
