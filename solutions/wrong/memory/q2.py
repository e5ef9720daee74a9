"""Wrong answers to memory/q2, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def fitting(step, n):
    try:
        step(n)
    except tf.errors.ResourceExhaustedError:
        return False
    return True


def halving(fits, most):
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def hides_errors(step, most):
    def fits(n):
        try:
            step(n)
        except tf.errors.OpError:
            return False
        return True

    return halving(fits, most)


def tries_them_all(step, most):
    n = 0
    while n < most and fitting(step, n + 1):
        n += 1
    return n


def only_doubles(step, most):
    n = 1
    while 2 * n <= most and fitting(step, 2 * n):
        n *= 2
    return n if fitting(step, n) else 0


def off_by_one(step, most):
    return halving(lambda n: fitting(step, n), most - 1)


def never_tries(step, most):
    return min(most, 2713)


def halves_until_it_fits(step, most):
    while most and not fitting(step, most):
        most //= 2
    return most


def goes_in_large_steps(step, most):
    n = 0
    while n + 16 <= most and fitting(step, n + 16):
        n += 16
    return n


def gives_what_was_not_tried(step, most):
    n = halving(lambda n: fitting(step, n), most)
    return n * 9 // 10  # to be on the safe side


def asks_for_a_value(step, most):
    def fits(n):
        try:
            return step(n) is not None
        except tf.errors.ResourceExhaustedError:
            return False

    return halving(fits, most)


def goes_beyond_most(step, most):
    n = 1
    while fitting(step, n):
        n *= 2
    return halving(lambda batch: fitting(step, batch), n - 1)


def gives_one_at_least(step, most):
    fits, fails = 1, most + 1
    while fails - fits > 1:
        middle = (fits + fails) // 2
        try:
            step(middle)
            fits = middle
        except tf.errors.ResourceExhaustedError:
            fails = middle
    return fits
