"""The verdicts of input/q1 on answers that return no list of lines, or do not read all."""

from __future__ import annotations

from contextlib import suppress

import pytest

import dtflab as tf
from dtflab.grading.catalogue import find

Q1 = "input/q1"


def by_python(server, filenames, epochs):
    lines = []
    for name in filenames * epochs:
        lines += open(name).read().splitlines()  # noqa: SIM115 - left open, as beginners do
    return lines


@pytest.mark.parametrize(
    ("answer", "message", "absent"),
    [
        (lambda *_: None, "A list of lines is expected, not None", "Lines at the end"),
        (lambda *_: [], "lines should come; 0 came. 'file 0 line 0", "are expected"),
        (by_python, "raised FileNotFoundError", "ResourceWarning"),
        (by_python, "No queue was used on `server`", "PASS"),
    ],
)
def test_what_is_told(answer, message, absent, monkeypatch):
    monkeypatch.setenv("DTFLAB_GRADE_SEED", "0")
    text = tf.grade(Q1, answer).text
    assert message in text and absent not in text


def reads(server, filenames, epochs, at_the_end):
    """The solution, but it reads until no line comes any more."""
    with tf.Graph().as_default(), tf.Session(server) as sess:
        queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
        _, line = tf.TextLineReader().read(tf.train.string_input_producer(filenames, num_epochs=epochs))
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)]))
        take = queue.dequeue()
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        return at_the_end(lambda: sess.run(take), coordinator, threads)


def swallows_the_end(take, coordinator, threads):
    while True:
        with suppress(tf.errors.OutOfRangeError):
            take()


def waits_for_a_stop(take, coordinator, threads):
    with suppress(tf.errors.OutOfRangeError):
        while True:
            take()
    coordinator.wait_for_stop()


def joins_before_it_takes(take, coordinator, threads):
    coordinator.join(threads)


def computes_forever(take, coordinator, threads):
    while True:
        pass


@pytest.mark.parametrize("at_the_end", [swallows_the_end, waits_for_a_stop, joins_before_it_takes, computes_forever])
def test_what_has_no_end_is_told_what_it_usually_means(at_the_end, monkeypatch):
    monkeypatch.setattr(find(Q1), "checks", find(Q1).checks[:1])
    score = tf.grade(Q1, lambda *arguments: reads(*arguments, at_the_end))
    assert score == 0 and "An answer without an end usually waits for somebody whom nobody asks to stop" in score.text
    assert "Nobody fills the queue" not in score.text and "more lines than" not in score.text
