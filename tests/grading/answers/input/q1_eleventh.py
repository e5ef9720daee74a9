"""Answers to input/q1: every line of some files, once per epoch."""

import dtflab as tf


def names_from_a_queue_of_my_own_eleven(server, filenames, epochs):
    """All lines, with a queue of names that is filled and closed before the threads start."""
    found = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        todo = list(filenames) * epochs
        names = tf.FIFOQueue(max(1, len(todo)), [tf.string], shapes=[[]])
        content = tf.FIFOQueue(7, [tf.string], shapes=[[]])
        puts = [content.enqueue(tf.TextLineReader().read(names)[1]) for _ in range(2)]
        runner = tf.train.QueueRunner(content, puts)
        for name in todo:
            sess.run(names.enqueue(name))
        sess.run(names.close())
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(sess, coordinator, start=True)
        get = content.dequeue()
        try:
            while True:
                found.append(sess.run(get))
        except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
            coordinator.request_stop()
        coordinator.join(threads)
    return found


def until_the_queue_is_closed_eleven(server, filenames, epochs):
    """All lines until the queue is closed, whatever has closed it."""
    found = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        content = tf.FIFOQueue(50, [tf.string], shapes=[[]])
        put = content.enqueue(tf.TextLineReader().read(names)[1])
        tf.train.add_queue_runner(tf.train.QueueRunner(content, [put] * 3))
        get = content.dequeue()
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                found.append(sess.run(get))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        for thread in threads:
            thread.join()
    return found


def lines_with_something_in_them_eleven(server, filenames, epochs):
    """All lines that have a text."""
    found = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        content = tf.FIFOQueue(50, [tf.string], shapes=[[]])
        put = content.enqueue(tf.TextLineReader().read(names)[1])
        tf.train.add_queue_runner(tf.train.QueueRunner(content, [put] * 3))
        get = content.dequeue()
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                line = sess.run(get)
                if line:
                    found.append(line)
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return found


def read_by_the_program_eleven(server, filenames, epochs):
    """All lines, each read by the program when it wants one."""
    found = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        line = tf.TextLineReader().read(names)[1]
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                found.append(sess.run(line))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return found


RIGHT = [names_from_a_queue_of_my_own_eleven]
WRONG = {
    until_the_queue_is_closed_eleven: "swallows_errors",
    lines_with_something_in_them_eleven: "leaves_out_empty_lines",
    read_by_the_program_eleven: "reads_by_itself",
}
