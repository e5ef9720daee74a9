"""Answers to data/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf
from solutions.wrong.data.q1 import work


def learns_at_one_rate(client, build_loss, rate, sync, steps):
    return work(client, build_loss, 0.5, sync, steps)


def makes_up_its_seconds(client, build_loss, rate, sync, steps):
    work(client, build_loss, rate, sync, steps)
    return 1e-6


def gives_a_tenth_of_its_seconds(client, build_loss, rate, sync, steps):
    return work(client, build_loss, rate, sync, steps) / 10


def tells_the_time(client, build_loss, rate, sync, steps):
    """The moment of its end, not how long it took."""
    work(client, build_loss, rate, sync, steps)
    return tf.sim.now()


def gives_no_seconds(client, build_loss, rate, sync, steps):
    work(client, build_loss, rate, sync, steps)


RIGHT: list = []
WRONG = {
    learns_at_one_rate: "uses_another_rate",
    makes_up_its_seconds: "measures_too_little",
    gives_a_tenth_of_its_seconds: "measures_too_little",
    tells_the_time: "tells_the_time",
    gives_no_seconds: "returns_nothing",
}
