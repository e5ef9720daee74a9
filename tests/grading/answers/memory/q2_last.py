"""Answers to memory/q2 of a last batch, written from the exercise alone after the checks were done."""

import dtflab as tf


def halves_the_gap(step, most):
    low, high = 0, most  # low fits, and nothing above high does
    while low < high:
        middle = (low + high + 1) // 2
        try:
            step(middle)
        except tf.errors.ResourceExhaustedError:
            high = middle - 1
        else:
            low = middle
    return low


def one_by_one(step, most):
    for n in range(1, most + 1):
        try:
            step(n)
        except tf.errors.ResourceExhaustedError:
            return n - 1
    return most


def any_error_means_full(step, most):
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        try:
            step(middle)
            low = middle
        except Exception:
            high = middle - 1
    return low


def never_tries_most(step, most):
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        try:
            step(middle)
        except tf.errors.ResourceExhaustedError:
            high = middle
        else:
            low = middle
    return low


RIGHT = [halves_the_gap]
WRONG = {
    # Tries 1, 2, 3, … until one does not fit: hundreds of steps where 22 have to be enough.
    one_by_one: "tries_them_all",
    # Catches every exception, so an error with another reason is taken for full memory and does not get through.
    any_error_means_full: "hides_errors",
    # Begins the search as if `most` were known to fail, and gives most - 1 where all examples fit.
    never_tries_most: "off_by_one",
}
