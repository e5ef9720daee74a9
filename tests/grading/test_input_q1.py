"""The verdicts of input/q1 on answers that return no list of lines, or do not read all."""

from __future__ import annotations

from contextlib import suppress

import pytest

import dtflab as tf
from dtflab.grading.catalogue import find
from tests.grading.answers import full_marks

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


@pytest.mark.parametrize(
    ("at_the_end", "mistake"),
    [
        (swallows_the_end, "asks_nobody_to_stop"),
        (waits_for_a_stop, "asks_nobody_to_stop"),
        (joins_before_it_takes, "joins_too_early"),
        (computes_forever, ""),
    ],
)
def test_what_has_no_end_is_told_what_it_waits_for_if_that_is_seen(at_the_end, mistake, monkeypatch):
    monkeypatch.setattr(find(Q1), "checks", find(Q1).checks[:1])
    score = tf.grade(Q1, lambda *arguments: reads(*arguments, at_the_end))
    assert score == 0 and score.reports[0].results[0].mistake == mistake
    assert "Nobody fills the queue" not in score.text and "more lines than" not in score.text


def with_batches(server, filenames, epochs):
    """tf.train.batch makes queue and runner; elements in twos, the last ones fewer."""
    lines = []
    with tf.Graph().as_default():
        names = tf.train.string_input_producer(filenames, num_epochs=epochs, shuffle=False)
        batch = tf.train.batch([tf.TextLineReader().read(names)[1]], 2, allow_smaller_final_batch=True, num_threads=2)
        with tf.Session(server) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess=sess, coord=coordinator)
            try:
                while not coordinator.should_stop():
                    lines += list(sess.run(batch))
            except tf.errors.OutOfRangeError as error:
                coordinator.request_stop(error)
            finally:
                coordinator.request_stop()
                coordinator.join(threads)
    return lines


def with_a_shuffling_queue(server, filenames, epochs):
    graph, lines = tf.Graph(), []
    with graph.as_default():
        names = tf.train.string_input_producer(tf.constant(filenames), epochs)
        reader = tf.TextLineReader(name="my_reader")
        queue = tf.RandomShuffleQueue(20, 0, [tf.string], shapes=[()])
        runner = tf.train.QueueRunner(queue, [queue.enqueue(reader.read(names, name="next_line").value)])
        init = tf.local_variables_initializer()
        take = queue.dequeue_up_to(7)
    sess = tf.Session(server, graph=graph)
    sess.run(init)
    with graph.as_default():
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        threads += runner.create_threads(sess, coordinator, daemon=True, start=True)
    while True:
        try:
            lines.extend(line.decode() for line in sess.run(take))
        except tf.errors.OutOfRangeError:
            break
    coordinator.request_stop()
    coordinator.join(threads)
    sess.close()
    return lines


@pytest.mark.parametrize("answer", [with_batches, with_a_shuffling_queue])
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    full_marks(Q1, answer, monkeypatch, seeds=["0", "autumn"])
