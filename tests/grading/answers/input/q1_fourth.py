"""Answers to input/q1 of a fourth batch, whose author had seen the exercise alone and looked for its edges."""

import threading
import time
from pathlib import Path

import dtflab as tf


def read_all_up_to_a_blank_line(server, filenames, epochs):
    # Breaks: "every line of every file comes `epochs` times". A blank line is b"", which ends this loop or, as here,
    # is left out.
    lines = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(50, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)]))
        get = queue.dequeue()
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                text = sess.run(get)
                if text:
                    lines.append(text)
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        coordinator.join(threads)
    return lines


def read_all_after_the_threads(server, filenames, epochs):
    # Breaks: "threads that put lines into a queue while the program takes them from it". The program waits until all
    # threads have ended; the queue has to hold everything.
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(10_000_000, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)]))
        size, get, closed = queue.size(), queue.dequeue(), queue.is_closed()
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        while not sess.run(closed):
            time.sleep(0.01)
        coordinator.request_stop()
        coordinator.join(threads)
        return [sess.run(get) for _ in range(sess.run(size))]


def read_all_looks_before(server, filenames, epochs):
    # Breaks: "if a file can't be read, `read_all` raises the error of the thread that tried". It raises an error of
    # its own for a missing file, and never asks the threads: a folder, or a file without permission, is left out.
    for name in filenames:
        if not Path(name).exists():
            raise tf.errors.NotFoundError(None, None, f"{name}; No such file or directory")
    lines = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(50, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)]))
        get = queue.dequeue()
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                lines.append(sess.run(get))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
    return lines


def read_all_with_threads_of_its_own(server, filenames, epochs):
    """Three Python threads enqueue lines until their reader has no more names; the last one closes the queue."""
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(list(filenames) * epochs, num_epochs=1, shuffle=False)
        queue = tf.FIFOQueue(20, [tf.string], shapes=[[]])
        puts = [queue.enqueue(tf.TextLineReader().read(names)[1]) for _ in range(3)]
        get, close = queue.dequeue(), queue.close()
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        at_work, lock = [len(puts)], threading.Lock()

        def fill(put):
            try:
                with coordinator.stop_on_exception():
                    try:
                        while not coordinator.should_stop():
                            sess.run(put)
                    except tf.errors.OutOfRangeError:
                        pass  # no more names
            finally:
                with lock:
                    at_work[0] -= 1
                    if at_work[0] == 0:
                        sess.run(close)

        threads = [threading.Thread(target=fill, args=(put,), daemon=True) for put in puts]
        for thread in threads:
            thread.start()
        threads += tf.train.start_queue_runners(sess, coordinator)

        def taken():
            try:
                while True:
                    yield sess.run(get)
            except tf.errors.OutOfRangeError:
                return

        lines = list(taken())
        coordinator.request_stop()
        coordinator.join(threads)
        return lines


RIGHT = [read_all_with_threads_of_its_own]
WRONG = {
    # It leaves out blank lines, because an empty text counts as false; a blank line is a line of the file,
    # too.
    read_all_up_to_a_blank_line: "leaves_out_empty_lines",
    # The program waits for the end of all threads before it takes the first line, so the queue must hold all
    # lines at once instead of being emptied while they are read.
    read_all_after_the_threads: "reads_all_first",
    # It looks for missing files itself and never joins the threads, so the error of a thread that can't read
    # a file (a folder, for example) is lost, and lines are missing without a word.
    read_all_looks_before: "reads_elsewhere",
}
