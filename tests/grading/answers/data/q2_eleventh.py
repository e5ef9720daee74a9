"""Answers to data/q2: the rule of a conditional accumulator."""

from itertools import count

import numpy as np

import dtflab as tf


def generations_eleven():
    """Two functions around a dictionary of the copies that belong to the present step."""
    numbers = count()
    kept = {next(numbers): []}

    def push(gradient, local_step):
        (now,) = kept
        if local_step >= now:
            kept[now].append(np.array(gradient))

    def take(required):
        (now,) = kept
        if len(kept[now]) < required:
            return None
        mean = np.mean(np.stack(kept.pop(now)), axis=0)
        kept[next(numbers)] = []
        return mean

    return push, take


def around_the_library_eleven():
    """Two functions around the library's accumulator, in a graph and a session of their own."""
    graph = tf.Graph()
    state = {}

    def push(gradient, local_step):
        gradient = np.asarray(gradient, np.float64)
        with graph.as_default():
            if not state:
                state["session"] = tf.Session(graph=graph)
                state["all"] = tf.ConditionalAccumulator(tf.float64, shape=gradient.shape)
                state["size"] = state["all"].num_accumulated()
            state["session"].run(state["all"].apply_grad(tf.constant(gradient), local_step))

    def take(required):
        if not state or state["session"].run(state["size"]) < required:
            return None
        with graph.as_default():
            return state["session"].run(state["all"].take_grad(required))

    return push, take


def step_for_each_take_eleven():
    """Two functions, with a step for each take."""
    kept, step = [], 0

    def push(gradient, local_step):
        if local_step >= step:
            kept.append(np.array(gradient))

    def take(required):
        nonlocal step
        step += 1
        if len(kept) < required:
            return None
        mean = np.mean(kept, axis=0)
        kept.clear()
        return mean

    return push, take


def sum_over_required_eleven():
    """Two functions around a running sum, which is divided by the number that was asked for."""
    total, kept, step = 0.0, 0, 0

    def push(gradient, local_step):
        nonlocal total, kept
        if local_step >= step:
            total, kept = total + gradient, kept + 1

    def take(required):
        nonlocal total, kept, step
        if kept < required:
            return None
        mean = total / required
        total, kept, step = 0.0, 0, step + 1
        return mean

    return push, take


RIGHT = [generations_eleven]
WRONG = {
    around_the_library_eleven: "runs_the_library",
    step_for_each_take_eleven: "counts_every_take",
    sum_over_required_eleven: "divides_by_required",
}
