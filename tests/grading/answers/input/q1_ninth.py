import os

import dtflab as tf


# "every line of every file comes `epochs` times": the last lines, less than a batch of 4, are lost.
def read_all_in_batches(server, filenames, epochs):
    lines = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(50, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        batch = queue.dequeue_many(4)
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                lines.extend(sess.run(batch))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return lines


# "every line of every file": an empty line is a line, too.
def read_all_but_empty(server, filenames, epochs):
    lines = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(50, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        following = queue.dequeue()
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                text = sess.run(following)
                if text:
                    lines.append(text)
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return lines


# "if a file can't be read, read_all raises the error of the thread that tried": it looks for missing files itself,
# and never hears of any other error of a thread.
def read_all_looks_first(server, filenames, epochs):
    for filename in filenames:
        if not os.path.exists(filename):
            raise tf.errors.NotFoundError(None, None, f"{filename}: no such file")
    lines = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(50, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        following = queue.dequeue()
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        tf.train.start_queue_runners(sess, tf.train.Coordinator())
        try:
            while True:
                lines.append(sess.run(following))
        except tf.errors.OutOfRangeError:
            return lines


def read_all_own_runners(server, filenames, epochs):
    """Both queues by hand, one reader per thread, and the program takes all that has come so far at a time."""
    graph = tf.Graph()
    with graph.as_default():
        names = tf.FIFOQueue(max(1, len(filenames) * epochs), [tf.string], shapes=[[]])
        feed = [names.enqueue(filename) for filename in list(filenames) * epochs]
        full = names.close()
        queue = tf.FIFOQueue(200, [tf.string], shapes=[[]])
        puts = [queue.enqueue(tf.TextLineReader().read(names)[1]) for _ in range(3)]
        runner = tf.train.QueueRunner(queue, puts)
        some = queue.dequeue_up_to(16)
    lines = []
    with tf.Session(server, graph=graph) as sess:
        if feed:
            sess.run(feed)
        sess.run(full)
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(sess, coordinator, start=True)
        done = False
        while not done:
            try:
                lines += list(sess.run(some))
            except (tf.errors.OutOfRangeError, tf.errors.CancelledError):
                done = True
        coordinator.request_stop()
        coordinator.join(threads)
    return lines


RIGHT = [read_all_own_runners]
WRONG = {
    # It takes four lines at a time; the last one to three lines that make no whole batch are lost.
    read_all_in_batches: "loses_the_end",
    # It leaves out empty lines, which are lines of the file like any other.
    read_all_but_empty: "leaves_out_empty_lines",
    # It looks for missing files itself and never asks the coordinator, so the error of a thread that cannot read a file
    # that exists (a directory, for example) is lost, and a part of the lines is returned.
    read_all_looks_first: "reads_elsewhere",
}
