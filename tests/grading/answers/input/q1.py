"""Answers to input/q1 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf
from solutions.wrong.input.q1 import read


def goes_through_a_queue(server, filenames, epochs):
    """The client reads, and sends each line through a queue of the server and back."""
    lines = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        line = tf.placeholder(tf.string, [])
        queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
        put, take = queue.enqueue(line), queue.dequeue()
        for name in filenames * epochs:
            with tf.gfile.GFile(name) as file:
                for text in file.read().splitlines():
                    sess.run(put, {line: text})
                    lines.append(sess.run(take))
    return lines


def catches_all_errors(server, filenames, epochs):
    lines = []
    try:
        with tf.Graph().as_default(), tf.Session(server) as sess:
            names = tf.train.string_input_producer(filenames, num_epochs=epochs)
            queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
            tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(tf.TextLineReader().read(names)[1])]))
            take = queue.dequeue()
            sess.run(tf.local_variables_initializer())
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(sess, coordinator)
            while True:
                try:
                    lines.append(sess.run(take))
                except tf.errors.OutOfRangeError:
                    break
            coordinator.request_stop()
            coordinator.join(threads)
    except tf.errors.OpError:
        pass
    return lines


def each_line_once(server, filenames, epochs):
    return sorted(set(read(server, filenames, epochs)))


def one_file_only(server, filenames, epochs):
    return read(server, filenames[:1], epochs)


def in_a_session_of_its_own(server, filenames, epochs):
    return read("", filenames, epochs)


RIGHT: list = []
WRONG = {
    goes_through_a_queue: "reads_elsewhere",
    catches_all_errors: "swallows_errors",
    each_line_once: "returns_no_line_twice",
    one_file_only: "reads_some_files",
    in_a_session_of_its_own: "reads_elsewhere",
}
