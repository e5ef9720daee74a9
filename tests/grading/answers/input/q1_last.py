"""Answers to input/q1 of a last batch, written from the exercise alone after the checks were done."""

import uuid

import dtflab as tf


def joins_the_threads(server, filenames, epochs):
    lines = []
    filenames = list(filenames)
    if not filenames or epochs < 1:
        return lines
    with tf.Graph().as_default(), tf.container(f"read_all_{uuid.uuid4().hex}"):
        names = tf.train.string_input_producer(filenames, num_epochs=epochs, shuffle=False)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        next_line = queue.dequeue()
        with tf.Session(server) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coordinator)
            try:
                while True:
                    lines.append(sess.run(next_line))
            except tf.errors.OutOfRangeError:
                pass
            finally:
                coordinator.request_stop()
            coordinator.join(threads)
    return lines


def never_joins_2(server, filenames, epochs):
    lines = []
    with tf.Graph().as_default():
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        next_line = queue.dequeue()
        with tf.Session(server) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            tf.train.start_queue_runners(sess, coordinator)
            try:
                while True:
                    lines.append(sess.run(next_line))
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
    return lines


def producer_for_each_thread(server, filenames, epochs):
    lines = []
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]])
        enqueues = []
        for _ in range(2):  # two threads
            names = tf.train.string_input_producer(filenames, num_epochs=epochs)
            _, line = tf.TextLineReader().read(names)
            enqueues.append(queue.enqueue(line))
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, enqueues))
        next_line = queue.dequeue()
        with tf.Session(server) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coordinator)
            try:
                while True:
                    lines.append(sess.run(next_line))
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
            coordinator.join(threads)
    return lines


def whole_batches_only_2(server, filenames, epochs):
    lines = []
    with tf.Graph().as_default():
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(100, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        next_lines = queue.dequeue_many(10)
        with tf.Session(server) as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coordinator)
            try:
                while True:
                    lines.extend(sess.run(next_lines))
            except tf.errors.OutOfRangeError:
                coordinator.request_stop()
            coordinator.join(threads)
    return lines


RIGHT = [joins_the_threads]
WRONG = {
    # Takes the closed queue for the end of the input and never joins the threads, so the error of a missing file is
    # lost.
    never_joins_2: "swallows_errors",
    # Gives each thread a producer of its own that lists all files, so each line comes twice as often.
    producer_for_each_thread: "names_files_again",
    # Takes ten lines at a time with dequeue_many, so up to nine lines at the end are lost.
    whole_batches_only_2: "loses_the_end",
}
