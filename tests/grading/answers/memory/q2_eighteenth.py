"""Answers of an eighteenth author to memory/q2: the largest batch that fits."""

import dtflab as tf


def _fits(step, number, errors=tf.errors.ResourceExhaustedError):
    """Tell if a step with that many examples raises none of the errors."""
    try:
        step(number)
    except errors:
        return False
    return True


def bit_by_bit_eighteenth(step, most):
    """Set the bits of the answer from the highest to the lowest, and keep those with which a step fits."""
    found = 0
    for position in reversed(range(most.bit_length())):
        more = found | 1 << position
        if more <= most and _fits(step, more):
            found = more
    return found


def strides_rounded_down_eighteenth(step, most):
    """Go up in strides, each half of the one before."""
    found, stride = 0, most // 2
    while stride:
        if found + stride <= most and _fits(step, found + stride):
            found += stride
        stride //= 2
    return found


def one_always_fits_eighteenth(step, most):
    """Halve the range from 1 to `most`."""
    low, high = min(1, most), most
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(step, middle):
            low = middle
        else:
            high = middle - 1
    return low


def any_error_is_too_large_eighteenth(step, most):
    """Halve the range from 0 to `most`; take all errors of TensorFlow for missing memory."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(step, middle, errors=tf.errors.OpError):
            low = middle
        else:
            high = middle
    return low


RIGHT = [bit_by_bit_eighteenth]
WRONG = {
    strides_rounded_down_eighteenth: "gives_what_was_not_tried",
    one_always_fits_eighteenth: "gives_one_at_least",
    any_error_is_too_large_eighteenth: "hides_errors",
}
