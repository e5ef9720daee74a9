"""Wrong answers to data/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

import numpy as np

import dtflab as tf


kept_by_all: list = []


def rule(
    divide=lambda kept, required: kept,
    stale=lambda local, step: local < step,
    restarts=True,
    loses=False,
    kept=None,
    most=lambda required: slice(None),
    enough=lambda kept, required: kept >= required,
    mean=lambda counted: sum(counted),
    too_few=None,
    counts="means",
    rest=lambda kept, required: [],
):
    """The right way, but for what an argument changes."""
    step, kept = 0, [] if kept is None else kept

    def push(gradient, local_step):
        if not stale(local_step, step):
            kept.append(gradient)

    def take(required):
        nonlocal step
        step += counts == "takes"
        if not enough(len(kept), required):
            if loses:
                kept.clear()
            return too_few
        counted = kept[most(required)]
        total = mean(counted) / divide(len(counted), required)
        step += counts == "means"
        if restarts:
            kept[:] = rest(kept, required)
        return total

    return push, take


def sums():
    return rule(divide=lambda kept, required: 1)


def divides_by_required():
    return rule(divide=lambda kept, required: required)


def takes_no_more_than_required():
    return rule(most=lambda required: slice(required))


def keeps_what_was_used():
    return rule(restarts=False)


def keeps_stale():
    return rule(stale=lambda local, step: False)


def only_the_same_step():
    return rule(stale=lambda local, step: local != step)


def loses_when_too_few():
    return rule(loses=True)


def shared_state():
    return rule(kept=kept_by_all)


def writes_into_gradients():
    step, total, count = 0, None, 0

    def push(gradient, local_step):
        nonlocal total, count
        if local_step < step:
            return
        if total is None:
            total = gradient
        else:
            total += gradient
        count += 1

    def take(required):
        nonlocal step, total, count
        if count < required:
            return None
        mean = total / count
        step, total, count = step + 1, None, 0
        return mean

    return push, take


def gives_one_number():
    return rule(mean=lambda counted: np.mean(np.sum(counted, axis=0)))


def keeps_the_rest():
    return rule(most=lambda required: slice(required), rest=lambda kept, required: kept[required:])


def counts_no_steps():
    return rule(counts="nothing")


def counts_every_take():
    return rule(counts="takes")


def drops_the_fresh():
    return rule(stale=lambda local, step: local <= step)


def gives_zero():
    return rule(too_few=np.zeros(2))


def waits_for_one_more():
    return rule(enough=lambda kept, required: kept > required)


def takes_what_there_is():
    return rule(enough=lambda kept, required: kept > 0)


def takes_the_median():
    return rule(mean=lambda counted: np.median(counted, axis=0) * len(counted))


def forgets_the_first_only():
    return rule(rest=lambda kept, required: kept[required:])


def runs_the_library():
    graph = tf.Graph()
    sess = tf.Session(graph=graph)
    with graph.as_default():
        given = tf.placeholder(tf.float64, [2]), tf.placeholder(tf.int64, []), tf.placeholder(tf.int32, [])
        library = tf.ConditionalAccumulator(tf.float64, shape=[2])
        ops = library.apply_grad(*given[:2]), library.take_grad(given[2]), library.num_accumulated()

    def push(gradient, local_step):
        sess.run(ops[0], dict(zip(given, (gradient, local_step), strict=False)))

    def take(required):
        return None if sess.run(ops[2]) < required else sess.run(ops[1], {given[2]: required})

    return push, take


def keeps_the_future_for_its_step():
    push, take = rule()
    step, later = 0, []

    def push_in_time(gradient, local_step):
        later.append((gradient, local_step)) if local_step > step else push(gradient, local_step)

    def take_and_go_on(required):
        nonlocal step, later
        mean = take(required)
        if mean is not None:
            step, now, later = step + 1, later, []
            for one in now:
                push_in_time(*one)
        return mean

    return push_in_time, take_and_go_on


def follows_the_newest():
    step, kept = 0, []

    def push(gradient, local_step):
        if local_step >= step:
            kept.append((local_step, gradient))

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        step = 1 + max(local_step for local_step, _ in kept)
        mean = sum(gradient for _, gradient in kept) / len(kept)
        kept.clear()
        return mean

    return push, take


def counts_the_stale():
    step, kept, count = 0, [], 0

    def push(gradient, local_step):
        nonlocal count
        count += 1
        if local_step >= step:
            kept.append(gradient)

    def take(required):
        nonlocal step, count
        if count < required or not kept:
            return None
        mean = sum(kept) / len(kept)
        step, count = step + 1, 0
        kept.clear()
        return mean

    return push, take
