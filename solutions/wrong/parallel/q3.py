"""Wrong answers to parallel/q3, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def sources_of(op):
    return [tensor.op for tensor in op.inputs] + list(op.control_inputs)


def sets(ops, sources, ready):
    """Ops in sets: one is put after a set when `ready` says so of which of its edges' sources are done."""
    order, done = [], set()
    while True:
        now = [op for op in ops if op not in done and ready([source in done for source in sources(op)])]
        if not now:
            return order
        order.append([op.name for op in now])
        done.update(now)


def finds_a_set_without_ops(ops):
    return sets(ops, sources_of, all) or [[]]


def forgets_control_inputs(ops):
    return sets(ops, lambda op: [tensor.op for tensor in op.inputs], all)


def takes_the_first_source(ops):
    return sets(ops, sources_of, lambda done: any(done) or not done)


def one_at_a_time(ops):
    return [[name] for part in sets(ops, sources_of, all) for name in part]


def loses_ops(ops):
    counter = {op: len(sources_of(op)) for op in ops}
    order, ready = [], [op for op in ops if not counter[op]]
    while ready:
        order.append([op.name for op in ready])
        after = []
        for op in ops:
            for _ in set(sources_of(op)) & set(ready):  # an edge that is there twice falls only by one
                counter[op] -= 1
                after += [op] if counter[op] == 0 else []
        ready = after
    return order


def counts_down_too_early(ops):
    order, done = [], set()
    while len(done) < len(ops):
        order.append([])
        for op in ops:
            if op not in done and done.issuperset(sources_of(op)):
                order[-1].append(op.name)
                done.add(op)  # the next one in the loop takes it for done
    return order


def repeats_ops(ops):
    order, now = [], [op for op in ops if not sources_of(op)]
    while now:
        order.append([op.name for op in now])
        now = [op for op in ops if set(sources_of(op)) & set(now)]
    return order


def follows_one_input(ops):
    return sets(ops, lambda op: [tensor.op for tensor in op.inputs[:1]] + list(op.control_inputs), all)


def ignores_inputs(ops):
    return sets(ops, lambda op: op.control_inputs, all)


def stops_too_early(ops):
    return sets(ops, sources_of, all)[:-1]


def goes_backwards(ops):
    return sets(ops, sources_of, all)[::-1]


def puts_the_rest_together(ops):
    first = [op.name for op in ops if not sources_of(op)]
    rest = [op.name for op in ops if op.name not in first]
    return [part for part in (first, rest) if part]


def waits_until_it_is_needed(ops):
    return sets(ops, lambda op: [other for other in ops if op in sources_of(other)], all)[::-1]


def sorts_by_edges(ops):
    numbers = sorted({len(sources_of(op)) for op in ops})
    return [[op.name for op in ops if len(sources_of(op)) == number] for number in numbers]


def opens_a_session(ops):
    with tf.Session(graph=ops[0].graph) as sess, sess.step_through(ops) as steps:
        return [[ran.name for ran in record.ran] for record in steps]


def counts_sources_once(ops):
    left = {op: len(set(sources_of(op))) for op in ops}
    order, now = [], [op for op in ops if not left[op]]
    while now:
        order.append([op.name for op in now])
        for op in ops:
            left[op] -= sum(source in now for source in sources_of(op))
        done = {name for part in order for name in part}
        now = [op for op in ops if op.name not in done and left[op] <= 0]
    return order


def loses_second_outputs(ops):
    order, made = [], set()
    while True:
        done = {name for part in order for name in part}
        now = [
            op
            for op in ops
            if op.name not in done
            and made.issuperset(tensor.name for tensor in op.inputs)
            and done.issuperset(other.name for other in op.control_inputs)
        ]
        if not now:
            return order
        order.append([op.name for op in now])
        made |= {op.outputs[0].name for op in now}


def starts_all_that_read_nothing(ops):
    return sets(ops, lambda op: sources_of(op) if len(op.inputs) else [], all)


def counts_either_kind(ops):
    return sets(ops, lambda op: [tensor.op for tensor in op.inputs] or op.control_inputs, all)


def forgets_earlier_sets(ops):
    order = [[op for op in ops if not sources_of(op)]]
    while order[-1]:
        order.append([op for op in ops if sources_of(op) and {*sources_of(op)} <= {*order[-1]}])
    return [[op.name for op in part] for part in order[:-1]]


def goes_through_the_list_once(ops):
    level = {}
    for op in ops:
        level[op] = 1 + max((level.get(source, -1) for source in sources_of(op)), default=-1)
    return [[op.name for op in level if level[op] == i] for i in sorted(set(level.values()))]


def waits_for_one_control(ops):
    return sets(ops, lambda op: [tensor.op for tensor in op.inputs] + list(op.control_inputs)[:1], all)
