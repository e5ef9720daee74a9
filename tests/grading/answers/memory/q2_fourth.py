"""Answers to memory/q2 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import bisect

import dtflab as tf


def largest_batch_starts_over(step, most):
    # Breaks: "A step is expensive: for `most` = 1,000, 22 steps are enough." After each failure it goes on from what
    # fits with a stride of 1 and doubles again: some 40 steps and more.
    fits, stride = 0, 1
    while fits < most:
        wanted = min(fits + stride, most)
        try:
            step(wanted)
        except tf.errors.ResourceExhaustedError:
            if stride == 1 or wanted == fits + 1:
                break
            stride = 1
        else:
            fits = wanted
            stride *= 2
    return fits


def largest_batch_wants_a_value(step, most):
    # Breaks: "`step(n)` runs a step with `n` examples, and raises `tf.errors.ResourceExhaustedError` if they don't
    # fit." Only the error says that it does not fit; a step that returns None (a training op) fits, too.
    def result_of(n):
        try:
            return step(n)
        except tf.errors.ResourceExhaustedError:
            return None

    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if result_of(middle) is not None:
            low = middle
        else:
            high = middle - 1
    return low


def largest_batch_any_tf_error(step, most):
    # Breaks: "A step may also fail for other reasons. Let such errors through." OpError is the class of all errors
    # of TensorFlow, not only of those for want of memory.
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        try:
            step(middle)
            low = middle
        except tf.errors.OpError:
            high = middle
    return low


def largest_batch_by_bisect(step, most):
    """1, 2, …, most is a sorted list: first those that fit (False), then those that don't (True)."""

    def too_large(n):
        try:
            step(n)
        except tf.errors.ResourceExhaustedError:
            return True
        return False

    return bisect.bisect_left(range(1, most + 1), True, key=too_large)


RIGHT = [largest_batch_by_bisect]
WRONG = {
    # After each step that fails it begins again with a stride of one, so it takes far more than the 22 steps
    # that are enough for 1,000.
    largest_batch_starts_over: "tries_them_all",
    # It takes a step that returns None for one that does not fit, but a step fits if it raises no
    # ResourceExhaustedError, whatever it returns.
    largest_batch_wants_a_value: "asks_for_a_value",
    # It catches OpError, the base class of all TensorFlow errors, so a step that fails for another reason
    # looks like one that is too large; such errors must be let through.
    largest_batch_any_tf_error: "hides_errors",
}
