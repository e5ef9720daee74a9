# %% [markdown]
# # Exercise 07: every line once per epoch
#
# **A program reads four files, three times over, with several threads. How does it know that it has seen every line?
# And what does it do when a file is missing?**
#
# Threads that read run next to the program. They end in two ways: because there is nothing more to read, or because of
# an error. Seen from the program, both look alike: the queue is closed. A *coordinator* knows the difference.

# %%
import tempfile
from pathlib import Path

import dtflab
import dtflab as tf

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.FATAL)  # what threads log of their errors is shown below in another way

# %% [markdown]
# ## A thread that fails
#
# First look. A thread of the queue runner below fails at its second number. Which error does `sess.run` raise, and
# which one does `join`? Predict, then run.

# %%
with tf.Graph().as_default(), tf.Session() as sess:
    count = tf.count_up_to(tf.Variable(0, name="count"), 2)  # 0, 1, then an error
    with tf.control_dependencies([tf.Assert(count < 1, ["a bad line"])]):
        number = tf.identity(count)
    queue = tf.FIFOQueue(10, [tf.int32], shapes=[[]])
    runner = tf.train.QueueRunner(queue, [queue.enqueue(number)])
    sess.run(tf.global_variables_initializer())
    coordinator = tf.train.Coordinator()
    threads = runner.create_threads(sess, coordinator, start=True)
    try:
        while True:
            print("number", sess.run(queue.dequeue()))
    except tf.errors.OutOfRangeError as error:
        print("run:", error.message.splitlines()[0])
    try:
        coordinator.join(threads)
    except tf.errors.InvalidArgumentError as error:
        print("join:", error.message.splitlines()[0])

# %% [markdown]
# ## Your task
#
# Write `read_all(server, filenames, epochs)`. It reads text files through queues and threads, and returns a list of all
# their lines:
#
# - every line of every file comes `epochs` times, in any order;
# - `server` is where to make the session: `tf.Session(server)`. The files are read there, by threads that put lines
#   into a queue while the program takes them from it;
# - if a file can't be read, `read_all` raises the error of the thread that tried (`tf.errors.NotFoundError` for a
#   missing file), and returns nothing.
#
# `tf.train.string_input_producer`, `tf.TextLineReader`, `tf.FIFOQueue`, `tf.train.QueueRunner` and
# `tf.train.Coordinator` are what you need. It may be called several times, so it makes its own graph.


# %%
def read_all(server, filenames, epochs):
    """All lines of the files, `epochs` times."""
    lines = []
    ### BEGIN SOLUTION
    with tf.Graph().as_default(), tf.Session(server) as sess:
        names = tf.train.string_input_producer(filenames, num_epochs=epochs)
        _, line = tf.TextLineReader().read(names)
        queue = tf.FIFOQueue(10, [tf.string], shapes=[[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(line)] * 3))
        take = queue.dequeue()
        sess.run(tf.local_variables_initializer())  # the epochs are counted in one
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess, coordinator)
        try:
            while True:
                lines.append(sess.run(take))
        except tf.errors.OutOfRangeError:
            coordinator.request_stop()
        coordinator.join(threads)  # raises the error of a thread that failed
    return lines
    ### END SOLUTION


# %% [markdown]
# ## Does it lose a line?
#
# The next cell grades `read_all`. Stuck? `%dtf_grade input/q1 --hint`.

# %%
dtflab.grade("input/q1")

# %% [markdown]
# ## See it at work
#
# Three files, two epochs. In which order do the lines come? Then add a name that does not exist to the list.

# %%
folder = Path(tempfile.mkdtemp())
for name, length in {"a": 3, "b": 1, "c": 4}.items():
    (folder / name).write_text("".join(f"{name}{i}\n" for i in range(length)))
found = read_all("", [str(folder / name) for name in "abc"], epochs=2)
print(len(found), "lines:", *(line.decode() for line in found))
