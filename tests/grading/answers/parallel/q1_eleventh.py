"""An eleventh author's answers to parallel/q1: whether two ops can run at the same time."""


def _needed_by(op):
    """The ops that this one waits for, directly or not, found over all edges."""
    found, stack = set(), [op]
    while stack:
        for source in _edges(stack.pop()):
            if source not in found:
                found.add(source)
                stack.append(source)
    return found


def _edges(op):
    """The ops at the other ends of the edges that come in."""
    return [tensor.op for tensor in op.inputs] + list(op.control_inputs)


def flood_from_each_of_them_eleven(first, second):
    """No way from one to the other, by a flood down the edges of the graph, and no GPU that both need."""
    if first.device == second.device and "/device:GPU:" in first.device:
        return False
    for begin, end in ((first, second), (second, first)):
        wet, grows = {begin}, True
        while grows and end not in wet:
            fresh = {op for op in begin.graph.get_operations() if op not in wet and not wet.isdisjoint(_edges(op))}
            wet |= fresh
            grows = bool(fresh)
        if end in wet:
            return False
    return True


def first_is_made_first_eleven(first, second):
    """No way from the first to the second, and no shared GPU."""
    if first.device == second.device and "GPU" in first.device:
        return False
    return first not in _needed_by(second)


def gpus_of_the_same_number_eleven(first, second):
    """No way from one to the other, and no GPUs of the same number."""
    one, other = first.device.rpartition("/device:")[2], second.device.rpartition("/device:")[2]
    if one == other and one.startswith("GPU"):
        return False
    return first not in _needed_by(second) and second not in _needed_by(first)


def only_what_is_read_is_followed_eleven(first, second):
    """No way of tensors from one to the other, no direct waiting, and no shared GPU."""
    if first.device == second.device and "GPU" in first.device:
        return False
    for one, other in ((first, second), (second, first)):
        if one in other.control_inputs:
            return False
        found, stack = set(), [other]
        while stack:
            for tensor in stack.pop().inputs:
                if tensor.op not in found:
                    found.add(tensor.op)
                    stack.append(tensor.op)
        if one in found:
            return False
    return True


RIGHT = [flood_from_each_of_them_eleven]
WRONG = {
    first_is_made_first_eleven: "looks_in_one_direction",
    gpus_of_the_same_number_eleven: "takes_gpus_of_two_tasks_for_one",
    only_what_is_read_is_followed_eleven: "forgets_controls_in_between",
}
