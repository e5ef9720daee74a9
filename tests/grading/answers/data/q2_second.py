"""Answers to data/q2 by a second author, who had seen the exercise alone."""

import numpy as np

import dtflab as tf


def as_a_list():
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(np.array(gradient, copy=True))

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.mean(np.stack(kept), axis=0)
        kept.clear()
        step += 1
        return mean

    return push, take


def as_a_running_sum():
    total, count, step = None, 0, 0

    def push(gradient, local_step):
        nonlocal total, count
        if local_step < step:
            return
        total = gradient.copy() if count == 0 else total + gradient
        count += 1

    def take(required):
        nonlocal total, count, step
        if count < required:
            return None
        mean = total / count
        total, count, step = None, 0, step + 1
        return mean

    return push, take


class _Accumulator:
    def __init__(self):
        self.step, self.kept = 0, ()

    def push(self, gradient, local_step):
        if not local_step < self.step:
            self.kept += (np.array(gradient),)

    def take(self, required):
        if required > len(self.kept):
            return None
        kept, self.kept = self.kept, ()
        self.step += 1
        return sum(kept[1:], kept[0]) / len(kept)


def as_an_object():
    this = _Accumulator()
    return this.push, this.take


def never_drops():
    kept = []

    def push(gradient, local_step):
        kept.append(gradient)

    def take(required):
        if len(kept) < required:
            return None
        mean = np.mean(kept, axis=0)
        kept.clear()
        return mean

    return push, take


def only_the_same_step():
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step == step:
            kept.append(gradient)

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.mean(kept, axis=0)
        kept.clear()
        step += 1
        return mean

    return push, take


def drops_the_same_step():
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step > step:
            kept.append(gradient)

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.mean(kept, axis=0)
        kept.clear()
        step += 1
        return mean

    return push, take


def mean_of_the_first_required():
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(gradient)

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.mean(kept[:required], axis=0)
        kept.clear()
        step += 1
        return mean

    return push, take


def leaves_the_rest():
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(gradient)

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.mean(kept, axis=0)
        del kept[:required]
        step += 1
        return mean

    return push, take


def sum_divided_by_required():
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(gradient)

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.sum(kept, axis=0) / required
        kept.clear()
        step += 1
        return mean

    return push, take


def counts_failed_takes():
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(gradient)

    def take(required):
        nonlocal step
        step += 1
        if len(kept) < required:
            return None
        mean = np.mean(kept, axis=0)
        kept.clear()
        return mean

    return push, take


def asks_the_library():
    graph = tf.Graph()
    state = {}

    def push(gradient, local_step):
        if not state:
            with graph.as_default():
                state["acc"] = tf.ConditionalAccumulator(tf.float64, shape=np.shape(gradient))
                state["sess"] = tf.Session()
        with graph.as_default():
            state["sess"].run(state["acc"].apply_grad(tf.constant(gradient, tf.float64), local_step))

    def take(required):
        if not state:
            return None
        with graph.as_default():
            if state["sess"].run(state["acc"].num_accumulated()) < required:
                return None
            return state["sess"].run(state["acc"].take_grad(required))

    return push, take


RIGHT = [as_a_list, as_a_running_sum, as_an_object]
WRONG = {
    # Keeps stale gradients, too: has no step of its own.
    never_drops: "keeps_stale",
    # Drops gradients of a later step: keeps only those of exactly its own step.
    only_the_same_step: "only_the_same_step",
    # Off by one: takes a gradient of the accumulator's own step for stale.
    drops_the_same_step: "drops_the_fresh",
    # Means only the first `required` gradients, not all that are kept.
    mean_of_the_first_required: "takes_no_more_than_required",
    # Forgets only `required` of the gradients, so that the others are counted again in the next mean.
    leaves_the_rest: "forgets_the_first_only",
    # Divides the sum of all by `required` instead of by their number.
    sum_divided_by_required: "divides_by_required",
    # Counts a step also when take returns None, so that good gradients become stale.
    counts_failed_takes: "counts_every_take",
    # Sly: lets tf.ConditionalAccumulator do it, in a session, which the text does not allow.
    asks_the_library: "runs_the_library",
}
