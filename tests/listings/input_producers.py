"""Producers: a queue, a runner that fills it again in each epoch, and an end after that many epochs.

Names of files, ranges, slices of a tensor. Without their runners nothing comes.
"""

import dtflab as tf

for name, text in (("a.txt", "1\n2\n"), ("b.txt", "3\n4\n5\n")):
    with open(name, "w") as file:
        file.write(text)

names = tf.train.string_input_producer(["a.txt", "b.txt"], num_epochs=2, shuffle=False)
_, line = tf.TextLineReader().read(names)
number = tf.string_to_number(line, out_type=tf.int32)
index = tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
word, size = tf.train.slice_input_producer([["one", "two", "three"], [3, 3, 5]], num_epochs=1, shuffle=False)
row = tf.train.input_producer([[1.0, 2.0], [3.0, 4.0]], num_epochs=1, shuffle=False).dequeue()
shuffled = tf.train.string_input_producer(["x", "y", "z"], num_epochs=3, shuffle=True, seed=5).dequeue()
matching = tf.train.match_filenames_once("*.txt")

print("runners:", len(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)))


def until_the_end(sess, fetch):
    values = []
    try:
        while True:
            values.append(sess.run(fetch))
    except tf.errors.OutOfRangeError:
        return values


with tf.Session() as sess:
    sess.run(tf.local_variables_initializer())
    print(sorted(sess.run(matching)))
    try:
        sess.run(number, options=tf.RunOptions(timeout_in_ms=100))
    except tf.errors.DeadlineExceededError:
        print("nobody has started the runners")
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess=sess, coord=coord)
    print([int(n) for n in until_the_end(sess, number)])
    print([int(n) for n in until_the_end(sess, index)])
    print(until_the_end(sess, [word, size]))
    print([each.tolist() for each in until_the_end(sess, row)])
    epochs = until_the_end(sess, shuffled)
    print([sorted(epochs[n : n + 3]) for n in (0, 3, 6)])
    coord.request_stop()
    coord.join(threads)
