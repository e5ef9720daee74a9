"""Wrong answers to placement/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf

held_by_all = []
VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def elements_of(op):
    return tf.TensorShape(op.get_attr("shape")).num_elements()


def bytes_of(op):
    return elements_of(op) * op.get_attr("dtype").size


def spread(ps_tasks, worker, weigh, types=VARIABLES):
    """The right way, but for what is weighed and what is taken for a variable."""
    held = [0] * ps_tasks

    def device_of(op):
        if op.type not in types:
            return worker
        task = held.index(min(held))
        held[task] += weigh(op)
        return f"/job:ps/task:{task}"

    return device_of


def round_robin(ps_tasks, worker):
    return spread(ps_tasks, worker, lambda op: 1)


def counts_elements(ps_tasks, worker):
    return spread(ps_tasks, worker, elements_of)


def forgets_resource_variables(ps_tasks, worker):
    return spread(ps_tasks, worker, bytes_of, types=("Variable", "VariableV2"))


def forgets_reference_variables(ps_tasks, worker):
    return spread(ps_tasks, worker, bytes_of, types=("VarHandleOp",))


def adds_up_the_dimensions(ps_tasks, worker):
    def weigh(op):
        return max(sum(tf.TensorShape(op.get_attr("shape")).as_list()), 1) * op.get_attr("dtype").size

    return spread(ps_tasks, worker, weigh)


def takes_scalars_for_nothing(ps_tasks, worker):
    return spread(ps_tasks, worker, lambda op: bytes_of(op) if tf.TensorShape(op.get_attr("shape")).ndims else 0)


def knows_one_worker(ps_tasks, worker):
    return spread(ps_tasks, "/job:worker/task:0", bytes_of)


def measures_the_handle(ps_tasks, worker):
    def weigh(op):
        return op.outputs[0].shape.num_elements() * op.outputs[0].dtype.base_dtype.size

    return spread(ps_tasks, worker, weigh)


def pins_everything(ps_tasks, worker):
    held = [0] * ps_tasks

    def device_of(op):
        task = held.index(min(held))
        held[task] += bytes_of(op) if op.type in VARIABLES else 0
        return f"/job:ps/task:{task}"

    return device_of


def state_made_again(ps_tasks, worker):
    def device_of(op):
        held = [0] * ps_tasks
        if op.type not in VARIABLES:
            return worker
        task = held.index(min(held))
        held[task] += bytes_of(op)
        return f"/job:ps/task:{task}"

    return device_of


def shared_state(ps_tasks, worker):
    def device_of(op):
        held_by_all.extend([0] * (ps_tasks - len(held_by_all)))
        if op.type not in VARIABLES:
            return worker
        held = held_by_all[:ps_tasks]
        task = held.index(min(held))
        held_by_all[task] += bytes_of(op)
        return f"/job:ps/task:{task}"

    return device_of


def counts_rows(ps_tasks, worker):
    def weigh(op):
        return (tf.TensorShape(op.get_attr("shape")).as_list() or [1])[0] * op.get_attr("dtype").size

    return spread(ps_tasks, worker, weigh)


def forgets_what_lay_there(ps_tasks, worker):
    held = [0] * ps_tasks

    def device_of(op):
        if op.type not in VARIABLES:
            return worker
        task = held.index(min(held))
        held[task] = bytes_of(op)
        return f"/job:ps/task:{task}"

    return device_of


def fills_tasks_up(ps_tasks, worker):
    held = [0]

    def device_of(op):
        if op.type not in VARIABLES:
            return worker
        if held[-1] > 20_000 and len(held) < ps_tasks:
            held.append(0)
        held[-1] += bytes_of(op)
        return f"/job:ps/task:{len(held) - 1}"

    return device_of


def sets_large_ones_apart(ps_tasks, worker):
    held = [0] * ps_tasks

    def device_of(op):
        if op.type not in VARIABLES:
            return worker
        task = ps_tasks - 1 if bytes_of(op) > 10_000 else held.index(min(held))
        held[task] += bytes_of(op)
        return f"/job:ps/task:{task}"

    return device_of


def counts_in_kilobytes(ps_tasks, worker):
    return spread(ps_tasks, worker, lambda op: bytes_of(op) // 1024)


def knows_two_sizes(ps_tasks, worker):
    def weigh(op):
        return elements_of(op) * (8 if op.get_attr("dtype") in (tf.float64, tf.int64) else 4)

    return spread(ps_tasks, worker, weigh)
