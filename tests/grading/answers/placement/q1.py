"""Answers to placement/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import heapq
import math

import dtflab as tf

TYPES = {"Variable", "VariableV2", "VarHandleOp"}


def size_of(op):
    dims = [dim.size for dim in op.node_def.attr["shape"].shape.dim]
    return math.prod(dims) * tf.as_dtype(op.get_attr("dtype")).size


def spread(choose, weigh=size_of):
    """A function that gives each variable to `choose(held)`, and adds what it weighs."""

    def balance_by_bytes(ps_tasks, worker):
        held = [0] * ps_tasks

        def device_of(op):
            if op.type not in TYPES:
                return op.device or worker
            task = choose(held)
            held[task] += weigh(op)
            return f"/job:ps/task:{task}"

        return device_of

    return balance_by_bytes


def with_a_heap(ps_tasks, worker):
    heap = [(0, -task) for task in range(ps_tasks)]
    heapq.heapify(heap)

    def device_of(op):
        if op.type not in TYPES:
            return worker
        held, task = heap[0]
        heapq.heapreplace(heap, (held + size_of(op), task))
        return tf.DeviceSpec(job="ps", task=-task, device_type="CPU", device_index=0).to_string()

    return device_of


def by_difference(ps_tasks, worker):
    placed = []  # (task, bytes) of all until now

    def device_of(op):
        if op.type in TYPES:
            held = {task: sum(size for other, size in placed if other == task) for task in range(ps_tasks)}
            placed.append((min(held, key=held.get), size_of(op)))
            return f"/job:ps/task:{placed[-1][0]}"
        return worker

    return device_of


def fullest(ps_tasks, worker):
    return spread(lambda held: held.index(max(held)))(ps_tasks, worker)


def always_the_first(ps_tasks, worker):
    return spread(lambda held: 0)(ps_tasks, worker)


def first_until_it_is_full(ps_tasks, worker):
    """Goes on to the next task when the one before has 100 kB."""
    return spread(lambda held: next((t for t, size in enumerate(held) if size < 100_000), len(held) - 1))(
        ps_tasks, worker
    )


def never_adds(ps_tasks, worker):
    """One held more than the last: the bytes are assigned, not added."""
    held = [0] * ps_tasks

    def device_of(op):
        if op.type not in TYPES:
            return worker
        task = held.index(min(held))
        held[task] = size_of(op)
        return f"/job:ps/task:{task}"

    return device_of


def rows_only(ps_tasks, worker):
    def weigh(op):
        shape = tf.TensorShape(op.get_attr("shape")).as_list()
        return shape[0] * op.get_attr("dtype").size if shape else 4

    return spread(lambda held: held.index(min(held)), weigh)(ps_tasks, worker)


def weighs_all_ops(ps_tasks, worker):
    """Other ops go to the worker, and weigh on the ps tasks all the same."""
    held = [0] * ps_tasks

    def device_of(op):
        task = held.index(min(held))
        held[task] += size_of(op) if op.type in TYPES else 4000
        return f"/job:ps/task:{task}" if op.type in TYPES else worker

    return device_of


def largest_goes_to_the_last(ps_tasks, worker):
    """Large variables have a task of their own, others share those that are left."""
    held = [0] * ps_tasks

    def device_of(op):
        if op.type not in TYPES:
            return worker
        task = ps_tasks - 1 if size_of(op) > 50_000 else held.index(min(held))
        held[task] += size_of(op)
        return f"/job:ps/task:{task}"

    return device_of


def no_number_has_more_than_8_bytes(ps_tasks, worker):
    """A complex128 has 16."""

    def weigh(op):
        size = tf.as_dtype(op.get_attr("dtype")).size
        return size_of(op) // size * min(size, 8)

    return spread(lambda held: held.index(min(held)), weigh)(ps_tasks, worker)


def whatever_else_has_a_shape(ps_tasks, worker):
    held = [0] * ps_tasks

    def choose(op):
        if "shape" not in op.node_def.attr or op.type == "Placeholder":
            return worker
        task = held.index(min(held))
        held[task] += size_of(op)
        return f"/job:ps/task:{task}"

    return choose


RIGHT = [with_a_heap, by_difference]
WRONG = {
    fullest: "state_made_again",
    always_the_first: "state_made_again",
    first_until_it_is_full: "fills_tasks_up",
    never_adds: "forgets_what_lay_there",
    rows_only: "counts_rows",
    weighs_all_ops: "",
    no_number_has_more_than_8_bytes: "",
    largest_goes_to_the_last: "sets_large_ones_apart",
    whatever_else_has_a_shape: "pins_everything",
}
