"""Answers of a twenty-second author to data/q2: the rule of a conditional accumulator."""

import numpy as np


def sorted_out_at_take_twentysecond():
    """Note everything that is brought, and sort out what is stale only when somebody takes."""
    brought = []
    steps = [0]

    def push(gradient, local_step):
        brought.append((local_step, np.array(gradient)))

    def take(required):
        brought[:] = [(of_step, gradient) for of_step, gradient in brought if of_step >= steps[0]]
        if len(brought) < required:
            return None
        mean = np.stack([gradient for _, gradient in brought]).mean(axis=0)
        brought.clear()
        steps[0] += 1
        return mean

    return push, take


def first_array_is_the_sum_twentysecond():
    """Use the first gradient of each step as the sum, and add the others to it in place."""
    total, count, step = None, 0, 0

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
        nonlocal total, count, step
        if count < required:
            return None
        mean = total / count
        total, count = None, 0
        step += 1
        return mean

    return push, take


def step_of_the_workers_twentysecond():
    """After a mean, go on with the step that follows the latest one that a worker has named."""
    kept, step, latest = [], 0, 0

    def push(gradient, local_step):
        nonlocal latest
        if local_step >= step:
            kept.append(gradient.copy())
            latest = max(latest, local_step)

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.mean(kept, axis=0)
        kept.clear()
        step = latest + 1
        return mean

    return push, take


def surplus_for_next_step_twentysecond():
    """Give the mean of the first gradients that are required, and leave the others for the next step."""
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(gradient.copy())

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.mean(kept[:required], axis=0)
        del kept[:required]
        step += 1
        return mean

    return push, take


RIGHT = [sorted_out_at_take_twentysecond]
WRONG = {
    first_array_is_the_sum_twentysecond: "writes_into_gradients",
    step_of_the_workers_twentysecond: "follows_the_newest",
    surplus_for_next_step_twentysecond: "keeps_the_rest",
}
