"""Answers to parallel/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import functools

import dtflab as tf


def sources(op):
    return {tensor.op for tensor in op.inputs} | set(op.control_inputs)


def before(op):
    found = set()
    for source in sources(op):
        found |= {source} | before(source)
    return found


def linked(first, second):
    return first in before(second) or second in before(first)


def one_gpu(first, second):
    return first.device == second.device and "GPU" in first.device


@functools.cache
def reaches(first, second):
    return first is second or any(reaches(first, source) for source in sources(second))


def with_a_cache(first, second):
    if reaches(first, second) or reaches(second, first):
        return False
    spec = tf.DeviceSpec.from_string(first.device)
    return spec.device_type != "GPU" or spec.to_string() != tf.DeviceSpec.from_string(second.device).to_string()


def forwards(first, second):
    """Follows the edges forwards, by the consumers of tensors and the control inputs of all ops."""
    all_ops = first.graph.get_operations()

    def after(op):
        found, todo = set(), [op]
        while todo:
            this = todo.pop()
            more = {c for t in this.outputs for c in t.consumers()} | {o for o in all_ops if this in o.control_inputs}
            todo += more - found
            found |= more
        return found

    return not (second in after(first) or first in after(second) or one_gpu(first, second))


def always_in_parallel(first, second):
    return True


def never_in_parallel(first, second):
    return False


def looks_at_devices_only(first, second):
    return not one_gpu(first, second)


def no_two_gpus(first, second):
    """Takes all GPUs for one."""
    return not linked(first, second) and not ("GPU" in first.device and "GPU" in second.device)


def one_task_only(first, second):
    """Ops of one task run one after the other."""
    tasks = [tf.DeviceSpec.from_string(op.device).task for op in (first, second)]
    return not linked(first, second) and tasks[0] != tasks[1]


def common_source_counts(first, second):
    return not linked(first, second) and not one_gpu(first, second) and not before(first) & before(second)


def only_the_first_input(first, second):
    def chain(op):
        return {op}.union(*map(chain, [*[tensor.op for tensor in op.inputs[:1]], *op.control_inputs]))

    return not one_gpu(first, second) and first not in chain(second) and second not in chain(first)


def runs_them(first, second):
    """By the wrong means: a trace of the step."""
    with tf.Cluster(worker=2, gpus=2, clock="virtual") as cluster:
        stats = tf.Session(cluster.target, graph=first.graph).trace([first, second]).step_stats.dev_stats
    spans = {
        n.node_name: (n.all_start_nanos, n.all_start_nanos + n.all_end_rel_nanos) for d in stats for n in d.node_stats
    }
    (begin, end), (other_begin, other_end) = spans[first.name], spans[second.name]
    return max(begin, other_begin) + 1000 < min(end, other_end)


def from_the_checks(first, second):
    """By the wrong means: a rule from the checks, as there once was one."""
    from dtflab.grading.checks import parallel_overlap

    pair = parallel_overlap.Pair(lambda make: (first, second), level=True)
    case = parallel_overlap.Case(first, second, pair, False, "")
    return not case.link and not case.on_one_gpu


def looks_four_levels_up(first, second):
    def needs(op, other, levels):
        return levels > 0 and any(one is other or needs(one, other, levels - 1) for one in sources(op))

    if needs(first, second, 4) or needs(second, first, 4):
        return False
    return first.device != second.device or "CPU" in first.device


RIGHT = [with_a_cache, forwards]
WRONG = {
    always_in_parallel: "says_the_same_of_all",
    never_in_parallel: "says_the_same_of_all",
    looks_at_devices_only: "looks_at_devices_only",
    no_two_gpus: "takes_all_gpus_for_one",
    one_task_only: "one_op_per_task",
    common_source_counts: "keeps_siblings_apart",
    only_the_first_input: "follows_one_input",
    runs_them: "opens_a_session",
    from_the_checks: "",
    looks_four_levels_up: "",
}
