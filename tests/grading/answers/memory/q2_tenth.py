"""Ways to find the largest batch that fits: one right, three wrong."""

import dtflab as tf


def bit_by_bit_ten(step, most):
    """Build the number from its highest bit down, and keep each bit that fits."""
    found = 0
    for place in reversed(range(most.bit_length())):
        tried = found | 1 << place
        if tried > most:
            continue
        try:
            step(tried)
        except tf.errors.ResourceExhaustedError:
            pass
        else:
            found = tried
    return found


def any_error_of_tf_is_memory_ten(step, most):
    """Halve, and take each error of the library for a step that is too large."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        try:
            step(middle)
            low = middle
        except tf.errors.OpError:
            high = middle - 1
    return low


def the_end_is_too_large_ten(step, most):
    """Halve between a number that fits and one that does not: 0 and `most`."""
    fits, too_large = 0, most
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            step(middle)
        except tf.errors.ResourceExhaustedError:
            too_large = middle
        else:
            fits = middle
    return fits


def digit_by_digit_ten(step, most):
    """Count up in thousands, hundreds, tens and ones, until a step does not fit."""
    found, stride = 0, 10 ** (len(str(most)) - 1)
    while stride:
        while found + stride <= most:
            try:
                step(found + stride)
            except tf.errors.ResourceExhaustedError:
                break
            found += stride
        stride //= 10
    return found


RIGHT = [bit_by_bit_ten]
WRONG = {
    any_error_of_tf_is_memory_ten: "hides_errors",
    the_end_is_too_large_ten: "off_by_one",
    digit_by_digit_ten: "tries_them_all",
}
