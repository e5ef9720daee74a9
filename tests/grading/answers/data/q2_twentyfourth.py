"""Answers of a twenty-fourth author to data/q2: the rule of a conditional accumulator."""

import numpy as np


def sums_in_the_first_twentyfourth():
    """Collect the arrays themselves, and add the others to the first one."""
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(gradient)

    def take(required):
        nonlocal step
        if len(kept) < required:
            return None
        total = kept[0]
        for gradient in kept[1:]:
            total += gradient
        mean = total / len(kept)
        kept.clear()
        step += 1
        return mean

    return push, take


def later_ones_wait_twentyfourth():
    """Keep a list for each step, and take the mean of the current step's list."""
    kept, step = {}, 0

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


_kept, _step = [], 0


def shared_state_twentyfourth():
    """Keep the gradients and the step in global variables, and reset them at the start."""
    global _kept, _step
    _kept, _step = [], 0

    def push(gradient, local_step):
        if local_step >= _step:
            _kept.append(np.array(gradient))

    def take(required):
        global _kept, _step
        if len(_kept) < required:
            return None
        mean = np.mean(_kept, axis=0)
        _kept, _step = [], _step + 1
        return mean

    return push, take


def forgets_too_few_twentyfourth():
    """Empty the list first, then see if there were enough."""
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(np.array(gradient))

    def take(required):
        nonlocal kept, step
        taken, kept = kept, []
        if len(taken) < required:
            return None
        step += 1
        return np.mean(taken, axis=0)

    return push, take


class _Accumulator:
    """A running sum, the number of its gradients, and the step."""

    def __init__(self):
        self.step, self.number, self.total = 0, 0, 0.0

    def push(self, gradient, local_step):
        """Add the gradient to a new sum, if it is fresh."""
        if local_step < self.step:
            return
        self.total = np.add(self.total, gradient)
        self.number += 1

    def take(self, required):
        """Divide the sum by its number, and begin the next step."""
        if self.number < required:
            return None
        mean = self.total / self.number
        self.step, self.number, self.total = self.step + 1, 0, 0.0
        return mean


def object_with_sum_twentyfourth():
    """Give out the two methods of an object that keeps a sum instead of a list."""
    state = _Accumulator()
    return state.push, state.take


def _steps():
    """Yield, for each message, the mean or None: one round of the outer loop is one step."""
    step, answer = 0, None
    while True:
        kept = []
        while True:
            gradient, number = yield answer
            answer = None
            if gradient is None:
                if len(kept) >= number:
                    break
            elif not number < step:
                kept.append(gradient.copy())
        answer = sum(kept[1:], kept[0]) / len(kept)
        step += 1


def coroutine_twentyfourth():
    """Send every call to a generator, whose place in its loops is the state."""
    steps = _steps()
    next(steps)

    def push(gradient, local_step):
        steps.send((np.asarray(gradient), local_step))

    def take(required):
        return steps.send((None, required))

    return push, take


RIGHT = [object_with_sum_twentyfourth, coroutine_twentyfourth]
WRONG = {
    sums_in_the_first_twentyfourth: "writes_into_gradients",
    later_ones_wait_twentyfourth: "keeps_the_future_for_its_step",
    shared_state_twentyfourth: "shared_state",
    forgets_too_few_twentyfourth: "loses_when_too_few",
}
