# %% [markdown]
# # Input
#
# **A GPU works through thousands of examples per second. Who brings them, and is that fast enough?**
#
# So far, the program took each batch from a list in its own memory and fed it. That is simple, but the data goes a long
# way: from a file to the program, from the program to the master of the session, and from there to the device that
# computes. There are two other ways: load everything once, or let the graph itself read the files.

# %%
import tempfile
import threading
from pathlib import Path

import numpy as np

import dtflab as tf

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.WARN)

# %% [markdown]
# ## The data
#
# Handwritten digits, in four text files of 250 lines. A line is an example: 64 pixels and the digit. The first line of
# a file is a header.

# %%
digits = tf.datasets.digits()
folder = Path(tempfile.mkdtemp())
files = [str(folder / f"digits-{i}-of-4.csv") for i in range(4)]
for i, name in enumerate(files):
    examples = zip(
        digits.train.images[i:1000:4], digits.train.labels[i:1000:4], strict=True
    )
    lines = [
        ",".join(f"{pixel:g}" for pixel in image) + f",{label}"
        for image, label in examples
    ]
    header = ",".join([*(f"pixel{k}" for k in range(64)), "digit"])
    Path(name).write_text("\n".join([header, *lines]) + "\n")
print(Path(files[0]).read_text().splitlines()[1][:60], "…")


def training(images, labels):
    """One layer, on worker 1; the operation that makes a training step."""
    with tf.device("/job:worker/task:1"):
        weights = tf.get_variable(
            "weights", [64, 10], initializer=tf.zeros_initializer()
        )
        logits = tf.matmul(images, weights)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return tf.train.GradientDescentOptimizer(0.5).minimize(loss)


# %% [markdown]
# ## Three ways
#
# Two workers. The session's master is worker 0, and worker 1 computes. Each way trains for three *epochs*: it sees
# every example three times. `tf.watch()` writes down every call between the program and the tasks, with the bytes in
# it.
#
# - **Feeding**: each batch goes from the program to the master, and on to worker 1.
# - **Preloading**: all examples go the same way once, into variables of worker 1. Then each step takes its batch from
#   there.
# - **Reading**: operations on worker 1 read the files. (We build them in a moment; here they come ready-made.)
#
# **Predict: how many bytes does the program send in each of the three ways? An epoch is 1,000 examples × 65 numbers × 4
# bytes, which is 0.26 MB.** (`measured`, which counts the bytes, is folded away.)

# %%
EPOCHS, BATCH, EXAMPLES = 3, 50, 1000
STEPS = EPOCHS * EXAMPLES // BATCH
images = digits.train.images[:EXAMPLES]
labels = digits.train.labels[:EXAMPLES].astype(np.int32)
ROWS = [slice(at, at + BATCH) for at in range(0, EXAMPLES, BATCH)] * EPOCHS


def feed(sess):
    """A batch with each step."""
    x, y = tf.placeholder(tf.float32, [BATCH, 64]), tf.placeholder(tf.int32, [BATCH])
    train = training(x, y)
    sess.run(tf.global_variables_initializer())
    for rows in ROWS:
        sess.run(train, {x: images[rows], y: labels[rows]})


# %%
def preload(sess):
    """Everything into two variables; a variable of its own for each type."""
    with tf.device("/job:worker/task:1"):
        all_x = tf.placeholder(tf.float32, images.shape)
        all_y = tf.placeholder(tf.int32, labels.shape)
        keep = {"trainable": False, "collections": []}
        x = tf.Variable(all_x, name="all_images", **keep)
        y = tf.Variable(all_y, name="all_labels", **keep)
        at = tf.placeholder(tf.int32, [])
        train = training(x[at : at + BATCH], y[at : at + BATCH])
    sess.run([x.initializer, y.initializer], {all_x: images, all_y: labels})
    sess.run(tf.global_variables_initializer())
    for rows in ROWS:
        sess.run(train, {at: rows.start})


# %%
def read(sess):
    """Read files, decode examples and batch them on worker 1."""
    with tf.device("/job:worker/task:1"):
        names = tf.train.string_input_producer(files, num_epochs=EPOCHS)
        _, lines = tf.TextLineReader(skip_header_lines=1).read_up_to(names, BATCH)
        *pixels, digits_of = tf.decode_csv(lines, [[0.0]] * 64 + [[0]])
        examples = [tf.stack(pixels, axis=1), digits_of]
        train = training(*tf.train.batch(examples, BATCH, enqueue_many=True))
    sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coordinator)
    for _ in range(STEPS):
        sess.run(train)
    coordinator.request_stop()
    coordinator.join(threads)


# %% jupyter={"source_hidden": true}
def measured(way):
    """MB that the program sends, MB that tasks send, virtual milliseconds."""
    cluster = tf.Cluster(worker=2, clock="virtual", network="1Gb/s")
    with cluster, tf.watch() as seen:
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            way(sess)
        ms = 1000 * cluster.now()
    by_tasks = [call for call in seen.calls if "/job:" in call.source]
    passed_on = sum(call.nbytes for call in by_tasks)
    sent = sum(call.sent for call in seen.calls if "/job:" not in call.source)
    return f"{sent / 1e6:.2f} MB", f"{passed_on / 1e6:.2f} MB", f"{ms:.1f} ms"


# %%
ways = {"feeding": feed, "preloading": preload, "reading": read}
sent, passed_on, times = zip(*map(measured, ways.values()))
columns = {"the program sends": sent, "tasks send": passed_on, "virtual time": times}
tf.viz.table({"way": [*ways]} | columns)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Fed examples cross twice in each epoch: once to the master, once more to the worker. Preloaded ones cross twice in
# all, and a worker that reads its own files sends nothing. (The milliseconds are *virtual time*: a model of two
# machines and a network says how long each thing takes, so they are the same wherever you run this. Ops of the graph
# take virtual time; the functions of a data set, `f` in `tf.data.Dataset.map(f)`, take none.)
#
# </details>
#
# | way | good for |
# | --- | --- |
# | feeding | trying things out; small data; data that the program makes itself |
# | preloading | data that fits into the memory of the device |
# | reading | everything else |
#
# ## A graph that reads
#
# Now piece by piece. A *reader* is an operation with a memory: it knows in which file it is, and at which line. It
# takes the names of files from a queue. Each run of `read` gives the next line, as text, and `decode_csv` makes numbers
# of it. The example goes into a second queue, which mixes the examples.


# %%
def example_of(names):
    """The next example of the files in the queue `names`: pixels [64] and a digit."""
    _, line = tf.TextLineReader(skip_header_lines=1).read(names)
    *pixels, digit = tf.decode_csv(line, record_defaults=[[0.0]] * 64 + [[0]])
    return [tf.stack(pixels), digit]


def queue_of_examples():
    """Room for 100; at least 20 stay inside, so that there is something to mix."""
    types, shapes = [tf.float32, tf.int32], [[64], []]
    return tf.RandomShuffleQueue(100, 20, types, shapes, name="examples", seed=1)


reading = tf.Graph()
with reading.as_default(), tf.device("/cpu:0"):
    names = tf.FIFOQueue(capacity=10, dtypes=[tf.string], shapes=[[]], name="names")
    name = tf.placeholder(tf.string, [], name="name")
    enqueue_name, close_names = names.enqueue(name), names.close()
    examples = queue_of_examples()
    with tf.name_scope("read"):
        enqueue_example = examples.enqueue(example_of(names))
    close_examples = examples.close()
    batch = examples.dequeue_up_to(50, name="batch")

# %%
# Figure 12-9
ops = [enqueue_name, enqueue_example, batch]
tf.viz.placement(ops, max_boxes=14, title="A graph that reads examples from files")

# %% [markdown]
# Who runs it? A loop: one `sess.run(enqueue_example)` per example. When the last file is at its end, the reader wants
# the name of another one. As the queue of names is closed by then, it gets an error, `OutOfRangeError`: the data has
# come to an end.
#
# The queue of examples holds 100 of them, so a loop that only reads would soon wait forever. Batches have to be taken
# at the same time: reading gets a thread of its own. `dequeue_up_to(50)` takes 50 examples, or what is left when the
# queue is closed.


# %%
def take_all(sess, batch):
    """Take batches until there are no more; the number of examples."""
    taken = 0
    try:
        while True:
            taken += len(sess.run(batch)[1])
    except tf.errors.OutOfRangeError:
        return taken


def read_to_the_end(sess):
    """Read until every file is exhausted."""
    try:
        while True:
            sess.run(enqueue_example)
    except tf.errors.OutOfRangeError:
        sess.run(close_examples)


# %%
cluster = tf.Cluster(localhost=1, clock="virtual")
with cluster, tf.Session(cluster.target, graph=reading) as sess, tf.watch() as seen:
    for file in files:
        sess.run(enqueue_name, {name: file})
    sess.run(close_names)
    reader = threading.Thread(target=read_to_the_end, args=[sess], name="reader")
    reader.start()
    print(f"{take_all(sess, batch)} examples in {1000 * cluster.now():.1f} ms")
    reader.join()

# %% [markdown]
# The next picture shows the *stages* of this pipeline and the queues between them: how many elements each stage passes
# on per second, and for what share of the time it works, waits to take something, or waits to put something.
#
# **Predict: which stage holds up the others?**

# %%
tf.viz.rates(seen, title="One thread reads")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Reading does: it works all the time. The stage that takes batches waits all the time, though some 20 examples are in
# the queue: these must stay inside, to be mixed with the next ones.
#
# </details>
#
# ## Many readers: Coordinator and QueueRunner
#
# Reading is the *bottleneck*. Several threads can read at the same time, each with a reader of its own, so that each is
# in another file. TensorFlow has two helpers for that:
#
# - a `QueueRunner` has a list of enqueue operations, and runs each of them again and again in a thread of its own. When
#   the data is at its end, it closes the queue;
# - a `Coordinator` lets threads stop together. Any of them can call `request_stop()`, all look at `should_stop()`, and
#   `join()` waits until they have ended. If one of them had an error, `join()` raises it.

# %%
several = tf.Graph()
with several.as_default(), tf.device("/cpu:0"):
    names = tf.FIFOQueue(capacity=10, dtypes=[tf.string], shapes=[[]], name="names")
    enqueue_names, close_names = names.enqueue_many([files]), names.close()
    examples = queue_of_examples()
    enqueues = [
        examples.enqueue(example_of(names), name=f"reader{i + 1}") for i in range(4)
    ]
    runner = tf.train.QueueRunner(examples, enqueues)
    batch = examples.dequeue_up_to(50, name="batch")

# %%
cluster = tf.Cluster(localhost=1, clock="virtual")
with cluster, tf.Session(cluster.target, graph=several) as sess:
    coordinator = tf.train.Coordinator()
    with tf.watch() as seen:
        sess.run(enqueue_names)
        sess.run(close_names)
        threads = runner.create_threads(sess, coordinator, start=True)
        print(f"{take_all(sess, batch)} examples in {1000 * cluster.now():.1f} ms")
    coordinator.request_stop()
    coordinator.join(threads)

# %%
# Figure 12-10
tf.viz.clients(seen, title="Four readers, each in another file")

# %%
tf.viz.rates(seen, title="Four threads read")

# %% [markdown]
# Four readers are four times as fast, and are still slower than the consumer.
#
# ## The short way
#
# Nobody writes all this each time. A few functions build queues and queue runners for you, and put the runners on a
# list of the graph. `tf.train.start_queue_runners(sess, coordinator)` starts all on the list.
#
# | function | what it builds |
# | --- | --- |
# | `string_input_producer(files, num_epochs=3)` | a queue of file names, shuffled again in each epoch; closed after the last |
# | `range_input_producer(10)`, `slice_input_producer([x, y])` | a queue of numbers, of rows of tensors |
# | `batch(example, 50)` | a queue, a runner, and a `dequeue_many(50)` |
# | `shuffle_batch(example, 50, capacity, min_after_dequeue)` | the same with a queue that mixes |
# | `batch_join`, `shuffle_batch_join` | the same from a list of examples, with a thread for each: one per reader |
#
# Here is a whole program with them, which also trains a network, on a GPU (a Tesla K40, simulated).


# %%
def pipeline(readers):
    """A training step on the GPU, with batches that `readers` threads bring."""
    with tf.device("/cpu:0"):
        names = tf.train.string_input_producer(files, num_epochs=2, seed=1)
        examples = [example_of(names) for _ in range(readers)]
        images, labels = tf.train.shuffle_batch_join(
            examples, 100, capacity=300, min_after_dequeue=100, seed=1
        )
    with tf.device("/gpu:0"):
        weights = tf.glorot_uniform_initializer(seed=1)
        hidden = tf.layers.dense(images, 64, tf.nn.relu, kernel_initializer=weights)
        logits = tf.layers.dense(hidden, 10, kernel_initializer=weights)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        return tf.train.GradientDescentOptimizer(0.3).minimize(loss)


# %%
def train_to_the_end(sess, train, start, now):
    """Train until no more examples come; the number of steps, and when it ended."""
    coordinator, steps = tf.train.Coordinator(), 0
    threads = tf.train.start_queue_runners(sess, coordinator) if start else []
    try:
        while not coordinator.should_stop():
            sess.run(train)
            steps += 1
    except tf.errors.OutOfRangeError:
        coordinator.request_stop()
    ended = now()
    coordinator.join(threads)
    return steps, ended


# %%
def train_from_files(readers, start=True):
    """Two epochs. Returns examples per second, and what was seen at the queues."""
    tf.reset_default_graph()
    train = pipeline(readers)
    cluster = tf.Cluster(localhost=1, gpus=1, gpu="K40", clock="virtual")
    with cluster, tf.Session(cluster.target) as sess:
        sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        with tf.watch() as seen:
            began = cluster.now()
            steps, ended = train_to_the_end(sess, train, start, cluster.now)
        return 100 * steps / (ended - began), seen


# %%
results = {readers: train_from_files(readers) for readers in (1, 2, 4)}
rates = [f"{rate:,.0f}" for rate, _ in results.values()]
tf.viz.table({"readers": [*results], "examples per second": rates})

# %% [markdown]
# In the pictures, the readers' stage is named after `shuffle_batch_join/…enqueue`, and the training step after
# the operation with which it takes a batch, `shuffle_batch_join`.

# %%
tf.viz.rates(results[1][1], title="One reader and a GPU")

# %% [markdown]
# The GPU waits half the time, because examples do not come faster. **Predict: with four readers, what is the
# bottleneck?**

# %%
tf.viz.rates(results[4][1], title="Four readers and a GPU")

# %%
tf.viz.queues(results[4][1], title="The queues with four readers")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Now training sets the pace, as it should: it hardly ever waits. The queue is full half the time, and then the readers
# wait to put. More readers would gain nothing.
#
# </details>
#
# ## Now break it: a forgotten `start_queue_runners`
#
# The most common mistake with queues: everything is built, but nobody starts the threads.
#
# **Predict: what does the first `sess.run(train)` do? Is there an error?**

# %%
try:
    train_from_files(readers=1, start=False)
except tf.errors.InternalError as error:
    deadlock = error

tf.viz.waits(deadlock)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# The step waits for a batch that nobody will ever bring. In virtual time nothing else can happen any more, and this can
# be *proved*, so it is an error that reports which op waits for what. On a real cluster, another program could still
# come and fill the queue: there is no error, the program just stands still.
#
# </details>
#
# Two things help to find such a mistake on a real cluster. A step can have a time limit:

# %%
tf.reset_default_graph()
names = tf.train.string_input_producer(files)
images, labels = tf.train.shuffle_batch(
    example_of(names), 50, capacity=300, min_after_dequeue=100
)
sess = tf.Session()
sess.run(tf.local_variables_initializer())
try:
    sess.run(images, options=tf.RunOptions(timeout_in_ms=200))
except tf.errors.DeadlineExceededError as error:
    display(error)

# %% [markdown]
# And `%dtf_queues` shows the queues as they are now. That of examples is empty, and that of names does not even exist:
# nobody has ever asked for it.

# %%
# %dtf_queues sess

# %% [markdown]
# The repair is one line (and `tf.train.MonitoredTrainingSession` starts queue runners by itself):

# %%
coordinator = tf.train.Coordinator()
threads = tf.train.start_queue_runners(sess, coordinator)
print(sess.run(images).shape)
coordinator.request_stop()
coordinator.join(threads)
sess.close()

# %% [markdown]
# ## Exercise
#
# [exercises/ex07_input](../exercises/ex07_input.ipynb): read every line of some files once per epoch, with several
# threads, and know when all is read and when something went wrong.
#
# And try this here:
#
# - With `num_epochs=1` and a batch of 64: how many examples does `shuffle_batch` leave in the queue? And
#   `dequeue_up_to`?
# - Give `shuffle_batch_join` a `capacity` of 120 instead of 300. Does it matter to the rates?
#
# ## What you can do now
#
# - Choose between feeding, preloading and reading, and say what each of them sends.
# - Build a pipeline of readers, queues and batches, start it, and stop it in order.
# - Find the stage that holds up the others, and a queue that nobody fills.
