import numpy as np


# "It returns two functions" that count "from 0": the lists belong to all accumulators together.
def accumulator_shared_state(kept=[], step=[0]):  # noqa: B006
    def push(gradient, local_step):
        if local_step >= step[0]:
            kept.append(np.array(gradient))

    def take(required):
        if len(kept) < required:
            return None
        mean = np.mean(kept, axis=0)
        kept.clear()
        step[0] += 1
        return mean

    return push, take


# "the mean of all that are kept": += changes the first gradient itself, which is wrong if it is pushed again.
def accumulator_sums_in_place():
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
        mean, total, count = total / count, None, 0
        step += 1
        return mean

    return push, take


# "the mean of all that are kept, forgets them": gradients of later steps are saved up for these steps.
def accumulator_saves_up():
    kept = []
    step = 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append((local_step, np.array(gradient)))

    def take(required):
        nonlocal kept, step
        now = [gradient for of, gradient in kept if of == step]
        if len(now) < required:
            return None
        kept = [(of, gradient) for of, gradient in kept if of > step]
        step += 1
        return np.mean(now, axis=0)

    return push, take


class Collected:
    """The state of an accumulator: a running mean of what is kept."""

    def __init__(self):
        self.step = 0
        self.count, self.mean = 0, None

    def push(self, gradient, local_step):
        if local_step < self.step:
            return
        self.count += 1
        if self.count == 1:
            self.mean = np.array(gradient, dtype=float)
        else:
            self.mean = self.mean + (gradient - self.mean) / self.count

    def take(self, required):
        if self.count < required:
            return None
        mean, self.mean, self.count = self.mean, None, 0
        self.step += 1
        return mean


def accumulator_of_class():
    collected = Collected()
    return collected.push, collected.take


RIGHT = [accumulator_of_class]
WRONG = {
    # The state is in default arguments, so a second accumulator goes on with the gradients and the step of the first.
    accumulator_shared_state: "shared_state",
    # It adds to the first gradient in place: if that array is pushed again (or used), it is not the worker's gradient
    # any more, and the mean is wrong.
    accumulator_sums_in_place: "writes_into_gradients",
    # Gradients of a later step do not count for this mean and are not forgotten: they are kept for the later step.
    accumulator_saves_up: "keeps_the_future_for_its_step",
}
