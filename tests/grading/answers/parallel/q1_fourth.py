"""Answers to parallel/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""


def _closure(op):
    """All ops that op needs, itself too."""
    found, todo = set(), [op]
    while todo:
        op = todo.pop()
        if op not in found:
            found.add(op)
            todo += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return found


def may_overlap_short_device_names(first, second):
    # Breaks: "`op.device` is the full name of the device" (and A, two ops on two GPUs, can). Only the last piece is
    # compared, so GPU:0 of task 0 and GPU:0 of task 1 are taken for one card.
    if first in _closure(second) or second in _closure(first):
        return False
    one, other = (op.device.split("/")[-1] for op in (first, second))
    return not ("GPU" in one and one == other)


def may_overlap_waits_at_the_ends(first, second):
    # Breaks: "`op.control_inputs` are ops that it waits for without reading anything". They are looked at for the
    # two ops only, not for the ops between them.
    def needs(op, wanted):
        if wanted in op.control_inputs:
            return True
        found, todo = set(), list(op.inputs) + [t for other in op.control_inputs for t in other.inputs]
        while todo:
            maker = todo.pop().op
            if maker is wanted:
                return True
            if maker not in found:
                found.add(maker)
                todo += list(maker.inputs)
        return False

    if first is second or needs(first, second) or needs(second, first):
        return False
    return first.device != second.device or "GPU" not in first.device


def may_overlap_no_common_source(first, second):
    # Breaks: "True if they can run at the same time in a step". Two ops that read the same tensor don't need each
    # other, and can.
    if _closure(first) & _closure(second):
        return False
    return first.device != second.device or "CPU" in first.device


def may_overlap_by_waves(first, second):
    """Goes back from both ops, one edge at a time, and then looks at the devices."""
    pair = {first, second}
    if len(pair) == 1:
        return False
    reached = set()
    wave = pair
    while wave:
        before = {tensor.op for op in wave for tensor in op.inputs}.union(*(op.control_inputs for op in wave))
        wave = before - reached
        reached |= wave
    devices = {op.device for op in pair}
    one_card = len(devices) == 1 and ":GPU:" in devices.pop()
    return pair.isdisjoint(reached) and not one_card


RIGHT = [may_overlap_by_waves]
WRONG = {
    # It compares only the end of the device names, so the GPU:0 of two tasks are taken for the same card
    # although they are two GPUs.
    may_overlap_short_device_names: "takes_gpus_of_two_tasks_for_one",
    # Control dependencies of ops that lie further back between the two are not followed, so it misses that
    # one op has to wait for the other.
    may_overlap_waits_at_the_ends: "forgets_controls_in_between",
    # It says no as soon as both ops need some third op, but two ops that read the same tensor do not need
    # each other and can run at the same time.
    may_overlap_no_common_source: "keeps_siblings_apart",
}
