"""An eleventh author's answers to memory/q2: the largest batch that fits."""

import dtflab as tf


def from_the_highest_bit_eleven(step, most):
    """The number, built bit by bit: a bit stays if a step of that size fits."""
    fits = 0
    for bit in reversed(range(int(most).bit_length())):
        larger = fits | 1 << bit
        if larger > most:
            continue
        try:
            step(larger)
        except tf.errors.ResourceExhaustedError:
            continue
        fits = larger
    return fits


def the_upper_end_left_out_eleven(step, most):
    """Halving between 0 and `most`, where the upper end counts as too large."""
    fits, too_large = 0, most
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            step(middle)
            fits = middle
        except tf.errors.ResourceExhaustedError:
            too_large = middle
    return fits


def any_error_is_too_large_eleven(step, most):
    """Halving, where a step that fails does not fit, whatever its error is."""
    fits, too_large = 0, most + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            step(middle)
        except tf.errors.OpError:
            too_large = middle
        else:
            fits = middle
    return fits


def strides_and_then_ones_eleven(step, most):
    """Strides of the square root of `most` until a step fails, then one more example each time."""
    stride, fits = max(1, int(most**0.5)), 0
    for by in (stride, 1):
        while fits + by <= most:
            try:
                step(fits + by)
            except tf.errors.ResourceExhaustedError:
                break
            fits += by
    return fits


RIGHT = [from_the_highest_bit_eleven]
WRONG = {
    the_upper_end_left_out_eleven: "off_by_one",
    any_error_is_too_large_eleven: "hides_errors",
    strides_and_then_ones_eleven: "tries_them_all",
}
