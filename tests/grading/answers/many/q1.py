"""Answers to many/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

from solutions.wrong.many.q1 import trained


def trains_on_test_images(argv):
    return trained(argv, on="test")


def small_batches(argv):
    return trained(argv, batch=16)


def one_width(argv):
    return trained(argv, hidden=32)


def always_fifty_steps(argv):
    return trained(argv, steps=50)


def gives_percent(argv):
    return 100 * trained(argv)


def one_step_less(argv):
    return trained(argv, more=-1)


RIGHT: list = []
WRONG = {
    trains_on_test_images: "trains_on_other_images",
    small_batches: "other_batches",
    one_width: "own_numbers",
    always_fifty_steps: "own_numbers",
    gives_percent: "returns_no_share",
    one_step_less: "miscounts_the_steps",
}
