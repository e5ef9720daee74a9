"""Answers of a twenty-sixth author to data/q2: the rule of a conditional accumulator."""

import numpy as np


def rounds_twentysixth():
    """Keep one list per step: the last list is the current step's, and the number of those before it is the step."""
    rounds = [[]]

    def push(gradient, local_step):
        if local_step >= len(rounds) - 1:
            rounds[-1].append(np.array(gradient))

    def take(required):
        kept = rounds[-1]
        if len(kept) < required:
            return None
        rounds[-1] = None
        rounds.append([])
        return np.asarray(np.mean(kept, axis=0))

    return push, take


def filed_by_step_twentysixth():
    """File each gradient under the step that it belongs to, and take the current step's."""
    step = 0
    filed = {}

    def push(gradient, local_step):
        if local_step >= step:
            filed.setdefault(local_step, []).append(gradient)

    def take(required):
        nonlocal step
        kept = filed.get(step, [])
        if len(kept) < required:
            return None
        del filed[step]
        step += 1
        return np.mean(kept, axis=0)

    return push, take


def counts_each_take_twentysixth():
    """Count a step each time somebody asks for a mean."""
    step = 0
    kept = []

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(gradient)

    def take(required):
        nonlocal step
        step += 1
        if len(kept) < required:
            return None
        mean = sum(kept) / len(kept)
        kept.clear()
        return mean

    return push, take


def one_number_twentysixth():
    """Take NumPy's mean of the list of gradients."""
    step = 0
    kept = []

    def push(gradient, local_step):
        nonlocal kept
        if not local_step < step:
            kept = [*kept, gradient]

    def take(required):
        nonlocal step, kept
        if required > len(kept):
            return None
        ready, kept = kept, []
        step += 1
        return np.mean(ready)

    return push, take


RIGHT = [rounds_twentysixth]
WRONG = {
    filed_by_step_twentysixth: "keeps_the_future_for_its_step",
    counts_each_take_twentysixth: "counts_every_take",
    one_number_twentysixth: "gives_one_number",
}
