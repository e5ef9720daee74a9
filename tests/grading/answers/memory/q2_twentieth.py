"""Answers of a twentieth author to memory/q2: the largest batch that fits."""

import math

import dtflab as tf


def _fits(step, n):
    """True if a step with n examples finds enough memory."""
    try:
        step(n)
    except tf.errors.ResourceExhaustedError:
        return False
    return True


def fibonacci_search_twentieth(step, most):
    """Search an interval whose length is a Fibonacci number; what lies above `most` counts as too large, unrun."""
    shorter, length = 1, 1
    while length <= most:
        shorter, length = length, shorter + length
    # From here on: `base` fits, `base + length` does not; `shorter` is the Fibonacci number before `length`.
    base = 0
    while length > 1:
        middle = base + length - shorter
        if middle <= most and _fits(step, middle):
            base = middle
            shorter, length = length - shorter, shorter
        else:
            shorter, length = 2 * shorter - length, length - shorter
    return base


def doubles_past_most_twentieth(step, most):
    """Double the batch until it fails, then halve the gap."""
    good, bad = 0, 1
    while bad <= most and _fits(step, bad):
        good, bad = bad, 2 * bad
    while bad - good > 1:
        middle = (good + bad) // 2
        if _fits(step, middle):
            good = middle
        else:
            bad = middle
    return good


def coarse_then_fine_twentieth(step, most):
    """Go up in strides of the square root of `most`, then one by one from the last stride that fits."""
    stride = max(1, math.isqrt(most))
    n = 0
    while n + stride <= most and _fits(step, n + stride):
        n += stride
    while n + 1 <= most and _fits(step, n + 1):
        n += 1
    return n


RIGHT = [fibonacci_search_twentieth]
WRONG = {
    doubles_past_most_twentieth: "goes_beyond_most",
    coarse_then_fine_twentieth: "tries_them_all",
}
