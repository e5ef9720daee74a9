"""Wrong answers to parallel/q1, each called as the mistake that its hint names. Tests grade them; people read them."""


def sources_of(op, controls=True):
    return [tensor.op for tensor in op.inputs] + (list(op.control_inputs) if controls else [])


def waits_for(op, other, controls=True):
    sources = sources_of(op, controls)
    return other in sources or any(waits_for(source, other, controls) for source in sources)


def devices_allow(first, second):
    return first.device != second.device or "CPU" in first.device


def one_op_per_device(first, second):
    return first.device != second.device and not waits_for(first, second) and not waits_for(second, first)


def a_gpu_is_no_cpu(first, second):
    return not waits_for(first, second) and not waits_for(second, first)


def forgets_control_inputs(first, second):
    path = waits_for(first, second, controls=False) or waits_for(second, first, controls=False)
    return devices_allow(first, second) and not path


def looks_only_at_neighbours(first, second):
    return devices_allow(first, second) and first not in sources_of(second) and second not in sources_of(first)


def looks_in_one_direction(first, second):
    return devices_allow(first, second) and not waits_for(first, second)


def compares_depths(first, second):
    def depth(op):
        return 1 + max(map(depth, sources_of(op)), default=0)

    return devices_allow(first, second) and depth(first) == depth(second)


def takes_gpus_of_two_tasks_for_one(first, second):
    one_gpu = first.device[-5:] == second.device[-5:] and "GPU" in first.device
    return not one_gpu and not waits_for(first, second) and not waits_for(second, first)
