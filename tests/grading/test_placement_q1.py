"""placement/q1 accepts every right answer, whichever way it is written."""

from __future__ import annotations

import random

import pytest

import dtflab as tf
from dtflab.grading.checks import placement
from dtflab.grading.device_functions import VARIABLE_OPS, mixed_types

Q1 = "placement/q1"


def bytes_of(op):
    return tf.TensorShape(op.get_attr("shape")).num_elements() * op.get_attr("dtype").size


def spreading(pick, write):
    """A right answer that takes `pick(held)` of the lightest tasks, and writes devices as `write` does."""

    def balance(ps_tasks, worker):
        held = [0] * ps_tasks

        def device_of(op):
            if op.type not in ("Variable", "VariableV2", "VarHandleOp"):
                return worker
            task = pick([t for t in range(ps_tasks) if held[t] == min(held)])
            held[task] += bytes_of(op)
            return write(task)

        return device_of

    return balance


def by_strategy(ps_tasks, worker):
    """An answer by the library's own device setter."""
    held = [0] * ps_tasks

    def lightest(op):
        task = held.index(min(held))
        held[task] += bytes_of(op)
        return task

    return tf.train.replica_device_setter(ps_tasks, worker_device=worker, ps_strategy=lightest)


class Balancer:
    """A callable object in place of a closure, with a heap of kilobytes."""

    def __init__(self, ps_tasks, worker):
        self.worker, self.held = worker, dict.fromkeys(range(ps_tasks), 0.0)

    def __call__(self, op):
        if op.type not in VARIABLE_OPS:
            return self.worker
        task = min(self.held, key=self.held.get)
        self.held[task] += bytes_of(op) / 1024
        return tf.DeviceSpec(job="ps", task=task)


RIGHT = {
    "the first of the lightest": spreading(min, "/job:ps/task:{}".format),
    "the last of the lightest": spreading(max, "/job:ps/task:{}".format),
    "with a replica and a device": spreading(min, "/job:ps/replica:0/task:{}/device:CPU:0".format),
    "with a short device type": spreading(max, "/job:ps/task:{}/cpu:0".format),
    "replica_device_setter with a strategy": by_strategy,
    "a callable object and DeviceSpec": Balancer,
}


@pytest.mark.parametrize("name", RIGHT)
def test_every_right_answer_gets_full_marks(name):
    score = tf.grade(Q1, RIGHT[name])
    assert score == 10, score.text


BAD = {
    "no function": (lambda n, w: None, "A function of an op is expected"),
    "a device in place of a function": (lambda n, w: tf.DeviceSpec(job="ps"), "A function of an op is expected"),
    "it forgets to return": (lambda n, w: lambda op: None, "it returned None; expected: '/job:ps/task:0'"),
    "no job": (lambda n, w: lambda op: "/ps:0", "it returned '/ps:0'; expected: "),
    "no task": (lambda n, w: lambda op: "/job:ps", "it returned '/job:ps'; expected: "),
    "a task that is not there": (lambda n, w: lambda op: "/job:ps/task:99", "'/job:ps/task:99'; expected: "),
    "no request": (lambda n, w: lambda op: "", "it returned ''; expected: "),
    "the worker for everything": (lambda n, w: lambda op: w, "went to /job:worker"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_answers_that_are_none_get_no_point_and_a_sentence(name):
    answer, message = BAD[name]
    score = tf.grade(Q1, answer)
    assert score == 0 and message in score.text


def test_another_worker_is_not_the_worker():
    score = tf.grade(Q1, lambda n, w: RIGHT["the first of the lightest"](n, "/job:worker/task:0"))
    assert not score.reports[0].results[0].passed
    assert "expected: /job:worker/task:" in score.text


def test_the_picture_stands_beside_the_target():
    score = tf.grade(Q1, lambda n, w: tf.train.replica_device_setter(n, worker_device=w))
    picture = next(result.picture for result in score.reports[0].results if result.picture is not None)
    assert picture.tables[0][1] == ("device", "yours", "spread evenly")
    assert "<svg" in score.html and "spread evenly" in score.text


@pytest.mark.parametrize("seed", range(20))
def test_instances_tell_mistakes_apart(seed):
    """By a rule of its own: the tasks that each wrong weight chooses are not those of the right one, nor of another."""
    drawn = random.Random(seed)
    names = ("round_robin", "counts_elements", "adds_up_the_dimensions", "takes_scalars_for_nothing")
    variables = placement._telling(drawn, lambda r: placement._with_scalars(mixed_types(r), r), 3, names)
    ways = [tuple(dealt([placement._WRONG[name](one) for one in variables], 3)) for name in names]
    ways.append(tuple(dealt([one.bytes for one in variables], 3)))
    assert len(set(ways)) == len(ways)
    assert placement._first_break(ways[-1], [one.bytes for one in variables], 3) is None
    assert all(placement._first_break(way, [one.bytes for one in variables], 3) is not None for way in ways[:-1])


def dealt(weights, ps_tasks):
    """Each to the first of the lightest tasks."""
    held = [0] * ps_tasks
    for weight in weights:
        task = min(range(ps_tasks), key=lambda one: (held[one], one))
        held[task] += weight
        yield task
