"""Answers of an eighteenth author to data/q2: the rule of a conditional accumulator in plain Python."""

import numpy as np


class _Pile:
    """A running sum of the gradients of one step, and how many are in it."""

    def __init__(self):
        self.step = 0
        self.total, self.count = None, 0

    def push(self, gradient, local_step):
        if local_step < self.step:
            return
        self.total = np.array(gradient) if self.count == 0 else self.total + gradient
        self.count += 1

    def take(self, required):
        if self.count < required or self.count == 0:
            return None
        mean = self.total / self.count
        self.total, self.count = None, 0
        self.step += 1
        return mean


def methods_of_a_pile_eighteenth():
    """Keep a sum and a count in an object, and give out its two bound methods."""
    pile = _Pile()
    return pile.push, pile.take


def mean_of_all_numbers_eighteenth():
    """Collect gradients in a list and give out np.mean of the list."""
    step, kept = 0, []

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(np.array(gradient))

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.mean(kept)
        kept.clear()
        step += 1
        return mean

    return push, take


def step_of_the_newest_eighteenth():
    """Go on, after a mean, with the step after the newest one that a kept gradient came from."""
    step, newest, kept = 0, 0, []

    def push(gradient, local_step):
        nonlocal newest
        if local_step < step:
            return
        kept.append(np.array(gradient))
        newest = max(newest, local_step)

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        mean = np.mean(kept, axis=0)
        kept.clear()
        step = newest + 1
        return mean

    return push, take


def later_ones_wait_eighteenth():
    """Keep gradients by their step, and give out the mean of those of the current step."""
    step, kept = 0, {}

    def push(gradient, local_step):
        if local_step >= step:
            kept.setdefault(local_step, []).append(np.array(gradient))

    def take(required):
        nonlocal step
        if len(kept.get(step, [])) < required:
            return None
        mean = np.mean(kept.pop(step), axis=0)
        step += 1
        return mean

    return push, take


RIGHT = [methods_of_a_pile_eighteenth]
WRONG = {
    mean_of_all_numbers_eighteenth: "gives_one_number",
    step_of_the_newest_eighteenth: "follows_the_newest",
    later_ones_wait_eighteenth: "keeps_the_future_for_its_step",
}
