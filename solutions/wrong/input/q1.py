"""Wrong answers to input/q1, each called as the mistake that its hint names. Tests grade them; people read them."""

import dtflab as tf


def read(
    server, filenames, epochs, start=True, initialize=True, join=True, batch=0, most=10**6, own_graph=True, **reader
):
    """The right way, but for a step that is left out."""
    lines = []
    graph = tf.Graph() if own_graph else tf.get_default_graph()
    with graph.as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = reader.pop("kind", tf.TextLineReader)(**reader).read(names)
        queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 2))
        take = queue.dequeue_many(batch) if batch else queue.dequeue()
        if initialize:
            sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator) if start else []
        try:
            while len(lines) < most:
                taken = sess.run(take)
                lines.extend(taken if batch else [taken])
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        if join:
            coordinator.join(threads)
    return lines


def reads_elsewhere(server, filenames, epochs):
    return [line for name in filenames * epochs for line in open(name).read().splitlines()]


def reads_by_itself(server, filenames, epochs):
    lines = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        _, line = tf.TextLineReader().read(tf.train.string_input_producer(filenames, num_epochs=epochs))
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                lines.append(sess.run(line))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return lines


def forgets_to_start(server, filenames, epochs):
    return read(server, filenames, epochs, start=False)


def forgets_local_variables(server, filenames, epochs):
    return read(server, filenames, epochs, initialize=False)


def swallows_errors(server, filenames, epochs):
    return read(server, filenames, epochs, join=False)


def reads_forever(server, filenames, epochs):
    return read(server, filenames, epochs=None)


def asks_nobody_to_stop(server, filenames, epochs):
    lines = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
        _, line = tf.TextLineReader().read(tf.train.string_input_producer(filenames, num_epochs=epochs))
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)]))
        take = queue.dequeue()
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        while not coordinator.should_stop():
            try:
                lines.append(sess.run(take))
            except tf.errors.OutOfRangeError:
                continue
        coordinator.join(threads)
    return lines


def one_epoch_only(server, filenames, epochs):
    return read(server, filenames, epochs=1)


def loses_the_end(server, filenames, epochs):
    return read(server, filenames, epochs, batch=4)


def joins_too_early(server, filenames, epochs):
    with tf.Graph().as_default(), tf.Session(server) as sess:
        queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
        _, line = tf.TextLineReader().read(tf.train.string_input_producer(filenames, num_epochs=epochs))
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)]))
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        coordinator.join(tf.train.start_queue_runners(sess, coordinator))
        return [sess.run(queue.dequeue()) for _ in range(sess.run(queue.size()))]


def skips_the_first_lines(server, filenames, epochs):
    return read(server, filenames, epochs, skip_header_lines=1)


def reads_whole_files(server, filenames, epochs):
    return read(server, filenames, epochs, kind=tf.WholeFileReader)


def puts_and_takes(server, filenames, epochs):
    """A reader and a queue, and no thread: each line is put in and taken out by the program."""
    lines = []
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
        put, take = queue.enqueue(tf.TextLineReader().read(names)[1]), queue.dequeue()
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                sess.run(put)
                lines.append(sess.run(take))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)
    return lines


def reads_some_files(server, filenames, epochs):
    return read(server, filenames[:1], epochs)


def names_files_again(server, filenames, epochs):
    return read(server, filenames * 2, epochs)


def returns_no_line_twice(server, filenames, epochs):
    return sorted(set(read(server, filenames, epochs)))


def leaves_out_empty_lines(server, filenames, epochs):
    return [line for line in read(server, filenames, epochs) if line]


def reads_all_first(server, filenames, epochs):
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        queue = tf.FIFOQueue(10**6, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(tf.TextLineReader().read(names)[1])]))
        take, closed = queue.dequeue_up_to(10**6), queue.is_closed()
        sess.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        while not sess.run(closed):
            pass
        coordinator.request_stop()
        coordinator.join(threads)
        return list(sess.run(take))


def makes_an_error_of_its_own(server, filenames, epochs):
    try:
        return read(server, filenames, epochs)
    except tf.errors.OpError:
        raise tf.errors.NotFoundError(None, None, "a file is missing") from None


def builds_in_the_callers_graph(server, filenames, epochs):
    return read(server, filenames, epochs, own_graph=False)
