"""Answers to input/q1 by a second author, who had seen the exercise alone."""

import contextlib
import os

import dtflab as tf

_ENDS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)


def _pipeline(filenames, epochs, threads=1, capacity=32):
    names = tf.train.string_input_producer(list(filenames), num_epochs=epochs, shuffle=False)
    queue = tf.FIFOQueue(capacity, [tf.string], shapes=[[]])
    enqueues = [queue.enqueue(tf.TextLineReader().read(names)[1]) for _ in range(threads)]
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, enqueues))
    return queue


def _start(sess):
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    return coordinator, tf.train.start_queue_runners(sess, coordinator)


def _drain(sess, fetch):
    lines = []
    try:
        while True:
            lines.append(sess.run(fetch))
    except _ENDS:
        return lines


def one_thread_and_join(server, filenames, epochs):
    with tf.Graph().as_default(), tf.Session(server) as sess:
        line = _pipeline(filenames, epochs).dequeue()
        coordinator, threads = _start(sess)
        lines = _drain(sess, line)
        coordinator.request_stop()
        coordinator.join(threads)
        return lines


def three_readers(server, filenames, epochs):
    with tf.Graph().as_default(), tf.Session(server) as sess:
        line = _pipeline(filenames, epochs, threads=3, capacity=5).dequeue()
        coordinator, threads = _start(sess)
        lines = []
        try:
            while True:
                lines.append(sess.run(line))
        except _ENDS:
            pass
        finally:
            coordinator.request_stop()
        coordinator.join(threads)
    return lines


def batches_up_to(server, filenames, epochs):
    with tf.Graph().as_default(), tf.Session(server) as sess:
        some = _pipeline(filenames, epochs, threads=2).dequeue_up_to(4)
        coordinator, threads = _start(sess)
        batches = _drain(sess, some)
        coordinator.request_stop()
        coordinator.join(threads)
        return [line for batch in batches for line in batch.tolist()]


def never_joins(server, filenames, epochs):
    with tf.Graph().as_default(), tf.Session(server) as sess:
        line = _pipeline(filenames, epochs).dequeue()
        coordinator, _ = _start(sess)
        lines = _drain(sess, line)
        coordinator.request_stop()
        return lines


def whole_batches_only(server, filenames, epochs):
    with tf.Graph().as_default(), tf.Session(server) as sess:
        some = _pipeline(filenames, epochs).dequeue_many(4)
        coordinator, threads = _start(sess)
        batches = _drain(sess, some)
        coordinator.request_stop()
        coordinator.join(threads)
        return [line for batch in batches for line in batch.tolist()]


def python_open(server, filenames, epochs):
    lines = []
    for _ in range(epochs):
        for name in filenames:
            if not os.path.exists(name):
                raise tf.errors.NotFoundError(None, None, name)
            with open(name, "rb") as file:
                lines += file.read().splitlines()
    return lines


def local_session(server, filenames, epochs):
    return one_thread_and_join("", filenames, epochs)


def swallows_the_error(server, filenames, epochs):
    with tf.Graph().as_default(), tf.Session(server) as sess:
        line = _pipeline(filenames, epochs).dequeue()
        coordinator, threads = _start(sess)
        lines = _drain(sess, line)
        coordinator.request_stop()
        with contextlib.suppress(tf.errors.OpError):
            coordinator.join(threads)
        return lines


def a_producer_per_thread(server, filenames, epochs):
    with tf.Graph().as_default(), tf.Session(server) as sess:
        queue = tf.FIFOQueue(32, [tf.string], shapes=[[]])
        enqueues = []
        for _ in range(2):
            names = tf.train.string_input_producer(list(filenames), num_epochs=epochs)
            enqueues.append(queue.enqueue(tf.TextLineReader().read(names)[1]))
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, enqueues))
        line = queue.dequeue()
        coordinator, threads = _start(sess)
        lines = _drain(sess, line)
        coordinator.request_stop()
        coordinator.join(threads)
        return lines


def returns_a_set(server, filenames, epochs):
    return sorted(set(one_thread_and_join(server, filenames, epochs)))


def skips_missing_files(server, filenames, epochs):
    return one_thread_and_join(server, [name for name in filenames if os.path.exists(name)], epochs)


RIGHT = [one_thread_and_join, three_readers, batches_up_to]
WRONG = {
    # Takes the closed queue for the end and never joins: a missing file goes unnoticed.
    never_joins: "swallows_errors",
    # Dequeue_many: the lines that fill no whole batch are lost.
    whole_batches_only: "loses_the_end",
    # Reads with Python's open in the program: no session at server, no queue, no threads.
    python_open: "reads_elsewhere",
    # Makes a local session: the files are not read at server.
    local_session: "reads_elsewhere",
    # Catches the error of join and returns the lines read so far.
    swallows_the_error: "swallows_errors",
    # Each thread has its own producer of names: every line comes twice too often.
    a_producer_per_thread: "names_files_again",
    # Returns a set: lines do not come `epochs` times.
    returns_a_set: "returns_no_line_twice",
    # Leaves missing files out instead of raising the thread's error.
    skips_missing_files: "reads_some_files",
}
