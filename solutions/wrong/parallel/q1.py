"""Wrong answers to parallel/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


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


def takes_all_gpus_for_one(first, second):
    gpus = "GPU" in first.device and "GPU" in second.device
    return not gpus and not waits_for(first, second) and not waits_for(second, first)


def one_op_per_task(first, second):
    tasks = {op.device.partition("/device:")[0] for op in (first, second)}
    return len(tasks) == 2 and not waits_for(first, second) and not waits_for(second, first)


def keeps_siblings_apart(first, second):
    def needed(op):
        return {op}.union(*map(needed, sources_of(op)))

    return devices_allow(first, second) and not needed(first) & needed(second)


def follows_one_input(first, second):
    def needs(op, other):
        sources = [tensor.op for tensor in op.inputs[:1]] + list(op.control_inputs)
        return other in sources or any(needs(source, other) for source in sources)

    return devices_allow(first, second) and not needs(first, second) and not needs(second, first)


def looks_at_devices_only(first, second):
    return devices_allow(first, second)


def says_the_same_of_all(first, second):
    return True


def opens_a_session(first, second):
    with tf.Cluster(worker=2, gpus=2) as cluster, tf.Session(cluster.target, graph=first.graph) as sess:
        sess.run([first, second])
    return devices_allow(first, second)


def forgets_controls_in_between(first, second):
    def needs(op, other, inputs):
        return other in inputs or any(needs(one, other, [tensor.op for tensor in one.inputs]) for one in inputs)

    def waits(op, other):
        return needs(op, other, [*(tensor.op for tensor in op.inputs), *op.control_inputs])

    return not (waits(first, second) or waits(second, first)) and devices_allow(first, second)


def stops_at_control_inputs(first, second):
    def waits(op, other):
        return other in op.control_inputs or any(t.op is other or waits(t.op, other) for t in op.inputs)

    return not (waits(first, second) or waits(second, first)) and devices_allow(first, second)
