"""Answers to data/q2, the rule of a conditional accumulator, by a tenth author."""

import numpy as np

import dtflab as tf


def tallies_in_a_dict_ten():
    """(push, take) over one dict: the step, how many gradients are kept, and a sum that is a copy."""
    book = {"step": 0, "count": 0, "total": None}

    def push(gradient, local_step):
        if local_step >= book["step"]:
            book["total"] = np.array(gradient) if book["count"] == 0 else book["total"] + gradient
            book["count"] += 1

    def take(required):
        count, total = book["count"], book["total"]
        if count < required or not count:
            return None
        book.update(step=book["step"] + 1, count=0, total=None)
        return total / count

    return push, take


def asks_the_library_itself_ten():
    """(push, take) that hand each call on to a tf.ConditionalAccumulator in a graph of their own."""
    sess = tf.Session(graph=tf.Graph())
    found = {}

    def push(gradient, local_step):
        gradient = np.asarray(gradient)
        with sess.graph.as_default():
            if not found:
                found["accumulator"] = tf.ConditionalAccumulator(tf.as_dtype(gradient.dtype), shape=gradient.shape)
            sess.run(found["accumulator"].apply_grad(tf.constant(gradient), local_step))

    def take(required):
        if not found:
            return None
        with sess.graph.as_default():
            if sess.run(found["accumulator"].num_accumulated()) < required:
                return None
            return sess.run(found["accumulator"].take_grad(required))

    return push, take


def saves_early_ones_for_their_step_ten():
    """(push, take) with a list of gradients for each step; take uses the list of its own step."""
    kept, now = {}, 0

    def push(gradient, local_step):
        if local_step >= now:
            kept.setdefault(local_step, []).append(np.array(gradient))

    def take(required):
        nonlocal now
        mine = kept.get(now, [])
        if len(mine) < required:
            return None
        kept.pop(now)
        now += 1
        return np.mean(mine, axis=0)

    return push, take


def sums_up_in_place_ten():
    """(push, take) that keep a sum only, and add to it in place to save memory."""
    total, count, now = None, 0, 0

    def push(gradient, local_step):
        nonlocal total, count
        if local_step < now:
            return
        if total is None:
            total = gradient
        else:
            total += gradient
        count += 1

    def take(required):
        nonlocal total, count, now
        if count < required:
            return None
        mean = total / count
        total, count, now = None, 0, now + 1
        return mean

    return push, take


RIGHT = [tallies_in_a_dict_ten]
WRONG = {
    asks_the_library_itself_ten: "runs_the_library",
    saves_early_ones_for_their_step_ten: "keeps_the_future_for_its_step",
    sums_up_in_place_ten: "writes_into_gradients",
}
