"""Answers of an eighteenth author to input/q1: every line of some files, once per epoch."""

import uuid

import dtflab as tf


def names_in_a_closed_queue_eighteenth(server, filenames, epochs):
    """Fill a queue with all names of all epochs, close it, and let three threads read what it holds."""
    names = list(filenames) * epochs
    lines = []
    with tf.Graph().as_default(), tf.container(uuid.uuid4().hex):
        name_queue = tf.FIFOQueue(max(len(names), 1), [tf.string], shapes=[[]])
        fill = [name_queue.enqueue(name) for name in names]
        _, line = tf.TextLineReader().read(name_queue)
        line_queue = tf.FIFOQueue(64, [tf.string], shapes=[[]])
        some = line_queue.dequeue_up_to(16)
        runner = tf.train.QueueRunner(line_queue, [line_queue.enqueue(line)] * 3)
        coordinator = tf.train.Coordinator()
        with tf.Session(server) as sess:
            sess.run(fill)
            sess.run(name_queue.close())
            threads = runner.create_threads(sess, coordinator, start=True)
            with coordinator.stop_on_exception():
                while True:
                    lines.extend(sess.run(some))
            coordinator.join(threads)
    return lines


def ten_at_a_time_eighteenth(server, filenames, epochs):
    """Take ten lines at a time from the queue, until it is closed."""
    lines = []
    with tf.Graph().as_default(), tf.container(uuid.uuid4().hex):
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        ten = queue.dequeue_many(10)
        with tf.Session(server) as sess:
            sess.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coordinator)
            try:
                while True:
                    lines.extend(sess.run(ten))
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
            coordinator.join(threads)
    return lines


def closed_means_done_eighteenth(server, filenames, epochs):
    """Take lines until the queue is closed, then tell the threads to stop and return what came."""
    lines = []
    with tf.Graph().as_default(), tf.container(uuid.uuid4().hex):
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        take = queue.dequeue()
        with tf.Session(server) as sess:
            sess.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            tf.train.start_queue_runners(sess, coordinator)
            try:
                while True:
                    lines.append(sess.run(take))
            except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
                coordinator.request_stop()
    return lines


def names_for_each_thread_eighteenth(server, filenames, epochs):
    """Give each of two threads a reader and a producer of names of its own."""
    lines = []
    with tf.Graph().as_default(), tf.container(uuid.uuid4().hex):
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]])
        enqueues = []
        for _ in range(2):
            names = tf.train.string_input_producer(filenames, num_epochs=epochs)
            _, line = tf.TextLineReader().read(names)
            enqueues.append(queue.enqueue(line))
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, enqueues))
        take = queue.dequeue()
        with tf.Session(server) as sess:
            sess.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coordinator)
            try:
                while True:
                    lines.append(sess.run(take))
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
            coordinator.join(threads)
    return lines


RIGHT = [names_in_a_closed_queue_eighteenth]
WRONG = {
    ten_at_a_time_eighteenth: "loses_the_end",
    closed_means_done_eighteenth: "swallows_errors",
    names_for_each_thread_eighteenth: "names_files_again",
}
