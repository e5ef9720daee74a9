"""placement/q3 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.grading.answers import full_marks

Q3 = "placement/q3"


def next_to(op, number):
    with tf.colocate_with(op):
        return [tf.negative(1.0).op for _ in range(number)]


def answer(gpu=None, cpu=None, dragged=None):
    """A right answer, but for what is replaced."""

    def without_pins(on_gpu, on_cpu, neighbours):
        return {
            "gpu": gpu(on_gpu) if gpu else [tf.ones([2]) * 2.0 for _ in range(on_gpu)],
            "cpu": cpu(on_cpu) if cpu else [tf.string_join(["a", "b"]) for _ in range(on_cpu)],
            "dragged": dragged(neighbours) if dragged else next_to(tf.Variable(0).op, neighbours),
        }

    return without_pins


RIGHT = {
    "tensors": answer(),
    "float variables": answer(gpu=lambda n: [tf.Variable(1.0).op for _ in range(n)]),
    "integer arithmetic is on the GPU": answer(gpu=lambda n: tuple(tf.add(1, 2).op for _ in range(n))),
    "integer variables": answer(cpu=lambda n: [tf.Variable(1).op for _ in range(n)]),
    "what changes them": answer(cpu=lambda n: [tf.assign_add(tf.Variable(1), 2).op for _ in range(n)]),
    "how variables are read": answer(dragged=lambda n: [tf.Variable(i)._snapshot.op for i in range(n)]),
    "next to text": answer(dragged=lambda n: next_to(tf.as_string(1).op, n)),
    "next to a queue": answer(dragged=lambda n: next_to(tf.RandomShuffleQueue(9, 1, "float").queue_ref.op, n)),
    "values only needed there": answer(dragged=lambda n: [tf.Variable(i).initializer.inputs[1].op for i in range(n)]),
}


@pytest.mark.parametrize("name", RIGHT)
def test_every_right_answer_gets_full_marks(name, monkeypatch):
    full_marks(Q3, RIGHT[name], monkeypatch, seeds="012")


def the_second_gpu(number):
    with tf.device("/gpu:1"):
        return [tf.square(2.0) for _ in range(number)]


def queues(number):
    return [tf.FIFOQueue(1, tf.float32).queue_ref.op for _ in range(number)]


def queues_on_a_task(number):
    with tf.device("/job:worker"):
        return queues(number)


def text_on_any_cpu(number):
    with tf.device("CPU"):
        return [tf.as_string(1.0) for _ in range(number)]


BAD = {
    "nothing": (lambda g, c, d: None, "without_pins returned None; expected: a dict"),
    "a list is missing": (lambda g, c, d: {"gpu": []}, "without_pins returned a dict with gpu; expected: a dict"),
    "one op again and again": (answer(gpu=lambda n: [tf.ones([])] * (n + 1)), "'gpu' has 1 op; expected"),
    "names": (answer(cpu=lambda n: [str(i) for i in range(n)]), "expected: ops of the default graph"),
    "a queue with a pin": (answer(cpu=queues_on_a_task), "is pinned to /job:worker/device:CPU:*; no op may have a pin"),
    "a pin to any CPU": (answer(cpu=text_on_any_cpu), "is pinned to /device:CPU:*; no op may have a pin"),
    "a pin": (answer(gpu=the_second_gpu), "no op may have a pin"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    wrong, message = BAD[name]
    score = tf.grade(Q3, wrong)
    assert score == 0 and message in score.text, score.text


@pytest.mark.parametrize("kind", ["cpu", "dragged"])
def test_a_queue_is_on_the_cpu_because_the_library_pins_it_and_that_alone_is_wrong(kind):
    score = tf.grade(Q3, answer(**{kind: queues}))
    assert score == 6 and "(TensorFlow itself pins each queue to the CPU)" in score.text, score.text
