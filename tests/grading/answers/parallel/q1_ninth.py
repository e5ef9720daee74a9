def _before(op):
    return [tensor.op for tensor in op.inputs] + list(op.control_inputs)


def _ancestors(op):
    found, stack = set(), [op]
    while stack:
        for source in _before(stack.pop()):
            if source not in found:
                found.add(source)
                stack.append(source)
    return found


# Breaks: "`op.device` is the full name of the device": only its end is compared, so the first GPUs of two machines
# are taken for the same.
def overlap_short_device_name(first, second):
    if first in _ancestors(second) or second in _ancestors(first):
        return False
    one, other = first.device.rpartition("/")[2], second.device.rpartition("/")[2]
    return not (one == other and "GPU" in one)


# Breaks: "`op.control_inputs` are ops that it waits for": control edges count only at the op itself, not at the ops
# on the way to it.
def overlap_control_only_direct(first, second):
    def needs(op, goal):
        if goal in op.control_inputs:
            return True
        stack, seen = [op], set()
        while stack:
            current = stack.pop()
            if current is goal:
                return True
            if current not in seen:
                seen.add(current)
                stack.extend(tensor.op for tensor in current.inputs)
        return False

    if needs(first, second) or needs(second, first):
        return False
    return first.device != second.device or ":CPU:" in first.device


# Breaks: "True if they can run at the same time in a step": ops that have a common ancestor (both read the same
# tensor) are taken for dependent.
def overlap_no_common_source(first, second):
    family = _ancestors(first) | {first}, _ancestors(second) | {second}
    if family[0] & family[1]:
        return False
    return not (first.device == second.device and "device:GPU" in first.device)


# Right: the ops before each one, layer by layer, until the other one is met.
def overlap_by_layers(first, second):
    *_, kind, _ = first.device.replace("/", ":").split(":")
    one_gpu = kind == "GPU" and first.device == second.device
    for start, goal in ((first, second), (second, first)):
        layer, known = {start}, set()
        while layer:
            if goal in layer:
                return False
            known |= layer
            layer = {source for op in layer for source in _before(op)} - known
    return not one_gpu


RIGHT = [overlap_by_layers]
WRONG = {
    # GPU:0 of one task and GPU:0 of another are different cards, and taken for the same.
    overlap_short_device_name: "takes_gpus_of_two_tasks_for_one",
    # A control edge further up the way is not followed.
    overlap_control_only_direct: "forgets_controls_in_between",
    # Two ops that read the same tensor don't need each other, and may run together.
    overlap_no_common_source: "keeps_siblings_apart",
}
