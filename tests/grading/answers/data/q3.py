"""Answers to data/q3 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf
from solutions.wrong.data.q3 import joined, ring


def asks_the_library(tensors, devices):
    return tf.train.all_reduce(tensors)


def asks_the_library_by_another_name(tensors, devices):
    return tf.train.all_reduce(tensors, "ring", name="mine")


def keeps_its_own(tensors, devices):
    return tensors


def joins_in_another_order(tensors, devices):
    return ring(tensors, devices, at_the_end=lambda parts, devices: joined([one[::-1] for one in parts], devices))


def one_device_further(tensors, devices):
    """Each result is on the neighbour."""
    return ring(tensors, devices, at_the_end=lambda parts, devices: joined(parts, [*devices[1:], devices[0]]))


def both_rounds_too_short(tensors, devices):
    return ring(tensors, devices, first=len(devices) - 2, second=len(devices) - 2)


RIGHT: list = []
WRONG = {
    asks_the_library: "leaves_it_to_the_library",
    asks_the_library_by_another_name: "leaves_it_to_the_library",
    keeps_its_own: "sends_nothing",
    joins_in_another_order: "joins_in_another_order",
    one_device_further: "results_elsewhere",
    both_rounds_too_short: "first_round_too_short",
}
