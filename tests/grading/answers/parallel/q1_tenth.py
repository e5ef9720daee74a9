"""Ways to say whether two ops may overlap: one right, three wrong."""

import dtflab as tf


def grows_what_is_needed_ten(first, second):
    """Compare what each op needs, grown to a fixed point, and whether they share a GPU."""
    for op, other in ((first, second), (second, first)):
        needs, size = {op}, 0
        while len(needs) != size:
            size = len(needs)
            needs |= {tensor.op for known in needs for tensor in known.inputs}
            needs |= {waited for known in needs for waited in known.control_inputs}
        if other in needs:
            return False
    spec = tf.DeviceSpec.from_string(first.device)
    return spec.device_type != "GPU" or spec != tf.DeviceSpec.from_string(second.device)


def control_only_at_the_end_ten(first, second):
    """Follow what is read, and look for waiting at the two ops themselves."""

    def reads(op):
        found, todo = set(), [op]
        while todo:
            for tensor in todo.pop().inputs:
                if tensor.op not in found:
                    found.add(tensor.op)
                    todo.append(tensor.op)
        return found

    for op, other in ((first, second), (second, first)):
        if other is op or other in reads(op) or other in op.control_inputs:
            return False
    return "GPU" not in first.device or first.device != second.device


def last_part_of_the_device_ten(first, second):
    """Compare the GPUs by the last part of their names."""

    def before(op):
        found, todo = {op}, [op]
        while todo:
            known = todo.pop()
            for source in [tensor.op for tensor in known.inputs] + list(known.control_inputs):
                if source not in found:
                    found.add(source)
                    todo.append(source)
        return found

    if first in before(second) or second in before(first):
        return False
    one, other = first.device.split("/")[-1], second.device.split("/")[-1]
    return not (one == other and one.startswith("device:GPU"))


def only_the_later_may_wait_ten(first, second):
    """Look for the first op among all that the second one needs."""
    todo, found = [second], set()
    while todo:
        op = todo.pop()
        if op is first:
            return False
        for source in [tensor.op for tensor in op.inputs] + list(op.control_inputs):
            if source not in found:
                found.add(source)
                todo.append(source)
    return "GPU" not in first.device or first.device != second.device


RIGHT = [grows_what_is_needed_ten]
WRONG = {
    control_only_at_the_end_ten: "forgets_controls_in_between",
    last_part_of_the_device_ten: "takes_gpus_of_two_tasks_for_one",
    only_the_later_may_wait_ten: "looks_in_one_direction",
}
