import bisect

import dtflab as tf


def _fits(step, n):
    try:
        step(n)
    except tf.errors.ResourceExhaustedError:
        return False
    return True


# Breaks: "Return the largest number of examples that fits, from 0 to `most`": it begins with 1 as if that had been
# tried; where not even one example fits, the answer is 1 and not 0.
def batch_at_least_one(step, most):
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(step, middle):
            low = middle
        else:
            high = middle - 1
    return min(low, most)


# Breaks: "from 0 to `most`": the doubling stops above `most` without a try, and the search below may return
# more than `most` (1,023 of 1,000).
def batch_beyond_most(step, most):
    high = 1
    while high <= most and _fits(step, high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(step, middle):
            low = middle
        else:
            high = middle
    return low


# Breaks: "A step is expensive: for `most` = 1,000, 22 steps are enough": up to nine steps for each decimal digit.
def batch_digit_by_digit(step, most):
    best, stride = 0, 1
    while stride * 10 <= most:
        stride *= 10
    while stride >= 1:
        while best + stride <= most and _fits(step, best + stride):
            best += stride
        stride //= 10
    return best


# Right: the library's bisection, over a sequence that is computed by running steps.
class _TooLarge:
    def __init__(self, step, most):
        self.step, self.most = step, most

    def __len__(self):
        return self.most

    def __getitem__(self, index):
        return not _fits(self.step, index + 1)


def batch_with_bisect(step, most):
    return bisect.bisect_left(_TooLarge(step, most), True)


RIGHT = [batch_with_bisect]
WRONG = {
    # It takes for granted that one example fits, and returns 1 where the answer is 0.
    batch_at_least_one: "gives_one_at_least",
    # Where everything fits, it returns more than `most`.
    batch_beyond_most: "goes_beyond_most",
    # The answer is right, but it takes up to 28 steps where 22 are enough.
    batch_digit_by_digit: "tries_them_all",
}
