"""Answers to input/q1, every line once per epoch, by a tenth author."""

import os

import dtflab as tf


def three_readers_by_the_handful_ten(server, filenames, epochs):
    """Read with three readers in three threads, a few lines at a time; take what is there by the handful."""
    lines = []
    with tf.Graph().as_default() as graph:
        names = tf.train.string_input_producer(list(filenames), num_epochs=epochs, shuffle=False)
        queue = tf.FIFOQueue(64, [tf.string], shapes=[[]])
        readers = [tf.TextLineReader() for _ in range(3)]
        enqueues = [queue.enqueue_many([reader.read_up_to(names, 8)[1]]) for reader in readers]
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, enqueues))
        handful = queue.dequeue_up_to(16)
        with tf.Session(server, graph=graph) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess=sess, coord=coordinator)
            try:
                while True:
                    lines.extend(sess.run(handful))
            except tf.errors.OutOfRangeError:
                pass
            finally:
                coordinator.request_stop()
                coordinator.join(threads)
    return lines


def looks_for_missing_files_first_ten(server, filenames, epochs):
    """Raise for a name that does not exist; then read, until the queue is closed."""
    for name in filenames:
        if not os.path.exists(name):
            raise tf.errors.NotFoundError(None, None, f"{name}; No such file or directory")
    lines = []
    with tf.Graph().as_default():
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]])
        _, line = tf.TextLineReader().read(names)
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        take = queue.dequeue()
        with tf.Session(server) as sess:
            sess.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            tf.train.start_queue_runners(sess, coordinator)
            try:
                while True:
                    lines.append(sess.run(take))
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
    return lines


def leaves_blank_lines_out_ten(server, filenames, epochs):
    """Read through queues and threads; keep the lines that have something in them."""
    lines = []
    with tf.Graph().as_default():
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]])
        _, line = tf.TextLineReader().read(names)
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        take = queue.dequeue()
        with tf.Session(server) as sess:
            sess.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coordinator)
            try:
                while True:
                    line = sess.run(take)
                    if line.strip():
                        lines.append(line)
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
            coordinator.join(threads)
    return lines


def opens_files_in_the_program_ten(server, filenames, epochs):
    """Open the files in Python, and send their lines through a queue on the server."""
    lines = []
    with tf.Graph().as_default():
        text = tf.placeholder(tf.string, [])
        queue = tf.FIFOQueue(1, [tf.string], shapes=[[]])
        put, take = queue.enqueue(text), queue.dequeue()
        with tf.Session(server) as sess:
            for _ in range(epochs):
                for name in filenames:
                    try:
                        with open(name, "rb") as file:
                            found = file.read().splitlines()
                    except FileNotFoundError as error:
                        raise tf.errors.NotFoundError(None, None, str(error)) from error
                    for line in found:
                        sess.run(put, {text: line})
                        lines.append(sess.run(take))
    return lines


RIGHT = [three_readers_by_the_handful_ten]
WRONG = {
    looks_for_missing_files_first_ten: "reads_elsewhere",
    leaves_blank_lines_out_ten: "leaves_out_empty_lines",
    opens_files_in_the_program_ten: "reads_elsewhere",
}
