# %% [markdown]
# # Queues
#
# **One program loads data, another one trains. How do the data get from one to the other? Who waits for whom? And can
# it happen that all wait forever?**
#
# A *queue* is a list of tensors that lives on a task, as a variable does. Anyone can put an element in at one end;
# anyone can take one out at the other. It is how programs hand over work without waiting for each other all the time.

# %%
import textwrap
import threading

import numpy as np

import dtflab as tf

# %load_ext dtflab

# %% [markdown]
# ## First in, first out
#
# Two programs use the same cluster. Each builds a graph of its own, and makes a queue in it. Both mean
# the same queue if its place and its **`shared_name`** are the same. (For a variable, place and name are enough.)
#
# The loader puts in 1, 2 and 3. **Predict: what does the trainer get, and in what order?**

# %%
# cluster = %dtf_cluster --ps 1 --worker 2
cluster


# %%
def numbers(capacity=10, name="numbers"):
    """The queue that both programs mean."""
    with tf.device("/job:ps/task:0"):
        return tf.FIFOQueue(capacity, [tf.float32], [[]], shared_name=name, name=name)


def loader(target):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        queue = numbers()
        number = tf.placeholder(tf.float32, [])
        put = queue.enqueue(number)
        for value in (1.0, 2.0, 3.0):
            sess.run(put, {number: value})


def trainer(target):
    with tf.Graph().as_default(), tf.Session(target) as sess:
        take = numbers().dequeue()
        print("got", [float(sess.run(take)) for _ in range(3)])


# %%
# Figure 12-8
def together(*programs):
    """Run programs at the same time, each as a client of its own."""
    clients = []
    for name, program, *args in programs:
        clients.append(threading.Thread(target=program, args=args, name=name))
        clients[-1].start()
    for client in clients:
        client.join(60)


with tf.watch() as seen:
    together(
        ("trainer", trainer, cluster.target_of("worker", 1)),
        ("loader", loader, cluster.target_of("worker", 0)),
    )
tf.viz.clients(seen)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# 1, 2 and 3, in the order in which they were put in. The programs were connected to different masters, and the queue
# was on a third task. The trainer was started first, and waited until there was something. That is the second use of
# a queue: it makes a program that comes too early **wait**.
#
# </details>
#
# Here are two sessions of one graph, on the same master, and a queue without a `shared_name`. **Predict: does the
# second session find what the first one has put in?**

# %%
tf.reset_default_graph()
with tf.device("/job:ps/task:0"):
    private = tf.FIFOQueue(10, [tf.float32], [[]], name="private")
put, size = private.enqueue(1.0), private.size()
with tf.Session(cluster.target) as first, tf.Session(cluster.target) as second:
    first.run(put)
    mine, theirs = first.run(size), second.run(size)
print(f"the first session sees {mine} element, the second one {theirs}")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# No: without a `shared_name`, each session has a queue of its own, which nobody else can find.
#
# </details>
#
# ## Who waits for whom?
#
# - A program that takes from an *empty* queue waits until another one puts something in.
# - A program that puts into a *full* queue waits until another one takes something out. `capacity` says how many it
#   holds.
#
# Let's watch that. The loader needs 0.1 s for an example, but each tenth one is the first of a new file, and needs 1 s.
# The trainer needs 0.2 s for each. There are 60 examples. (The seconds are *virtual*, so you need not wait for them,
# and the outcome is the same each time: `tf.sim.sleep` lets virtual time pass.)
#
# The trainer alone needs 12 s, the loader alone 11.4 s. **Predict: how long do they need
# together with capacity 1?**


# %%
def work(client, capacity):
    """Worker 0 loads, worker 1 trains; returns when it ended, in virtual seconds."""
    queue = numbers(capacity)
    number = tf.placeholder(tf.float32, [])
    put, take = queue.enqueue(number, name="put"), queue.dequeue(name="take")
    close = queue.close()
    with tf.Session(client.target) as sess:
        if client.index == 0:
            for example in range(60):
                tf.sim.sleep(1.0 if example % 10 == 9 else 0.1)
                sess.run(put, {number: example})
            sess.run(close)
        else:
            for _ in range(60):
                sess.run(take)
                tf.sim.sleep(0.2)
    return tf.sim.now()


# %%
def hand_over(capacity):
    """Both at work on a cluster of their own; what was seen, and how long it took."""
    cluster = tf.Cluster(ps=1, worker=2, clock="virtual")
    with cluster, tf.watch() as seen:
        return seen, max(cluster.run(lambda client: work(client, capacity)))


narrow, seconds = hand_over(capacity=1)
print(f"capacity 1: {seconds:.1f} s")
# %dtf_queues narrow

# %% [markdown]
# The blue area is how many elements the queue holds; below it, which program waits, and when. Point at the area, and it
# says both for that moment.
#
# <details><summary><b>Show why</b></summary>
#
# While the loader is fast, the full queue stops it again and again (hatched). So when it opens a file, there is nothing
# in store, and the trainer waits (grey). Each waits for the other in turn, and both lose time.
#
# </details>
#
# **Predict: what will change with room for 10?**

# %%
wide, seconds = hand_over(capacity=10)
print(f"capacity 10: {seconds:.1f} s")
# %dtf_queues wide

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Now the queue fills while the loader is fast, and the trainer lives on it while the loader opens a file. The trainer
# hardly waits. No queue can do better: the trainer is now the slowest part, the *bottleneck*.
#
# </details>
#
# **Predict: which capacity is just enough?**

# %%
capacities = [1, 2, 3, 4, 5, 6, 8, 10]
times = {"both programs": [hand_over(capacity)[1] for capacity in capacities]}
tf.viz.curve(capacities, times, "capacity of the queue", "virtual time (s)", height=2.8)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Four. While the loader opens a file, which takes 1 s, the trainer works on five examples: one that it has taken
# already, and four from the queue. More room costs memory and brings nothing.
#
# </details>
#
# ## Take a whole batch
#
# `dequeue_many(n)` takes `n` elements at once and stacks them. If there are fewer, it waits for the rest.
# `enqueue_many` puts in every row of a tensor as an element of its own.

# %%
tf.reset_default_graph()
queue = numbers()
put = queue.enqueue_many([[1.0, 2.0, 3.0, 4.0, 5.0]])
pair, size = queue.dequeue_many(2), queue.size()
sess = tf.Session(cluster.target)
sess.run(put)
print(sess.run(pair), sess.run(pair), "left:", sess.run(size))

# %% [markdown]
# One element is left. The next call has a **time-out**: an end to its patience, here for one call, or for all calls
# of a session with `tf.ConfigProto(operation_timeout_in_ms=…)`. **Predict: what will the next `sess.run(pair)` do?
# And how many elements will be left after it?**

# %%
try:
    sess.run(pair, options=tf.RunOptions(timeout_in_ms=200))
except tf.errors.DeadlineExceededError as error:
    display(error)
print("left:", sess.run(size))

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# It waits for a second element, until its time is up; without a time-out it would wait forever. But look at the last
# line. The call had already taken the one element when its time was up, and the element is **lost**.
# This is what TensorFlow does, too. A time-out is for finding out that something is wrong; it is not a way to ask
# whether there is something in the queue. (`queue.size()` is.)
#
# </details>
#
# ## Elements of several parts
#
# An image and its label belong together. So an element can be a *tuple*: several tensors that go in and come out as
# one. (Here the image is only a text. TensorFlow keeps texts as bytes, so they come out with a `b`.)

# %%
tf.reset_default_graph()
with tf.device("/job:ps/task:0"):
    queue = tf.FIFOQueue(10, [tf.string, tf.int32], [[], []], shared_name="examples")
put = queue.enqueue_many([["a cat", "a dog", "a horse"], [0, 1, 2]])
image, label = queue.dequeue()
sess = tf.Session(cluster.target)
sess.run(put)
print(*sess.run([image, label]))

# %% [markdown]
# Two elements are left, the dog (1) and the horse (2). **Predict: what do these two calls print?**

# %%
print(sess.run(image))
print(sess.run(label))

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Each *run* takes a whole element. The first one took the dog, and threw its label away; the second one took the horse,
# and threw its image away. Fetch all parts in one run.
#
# </details>
#
# ## The end of the data
#
# How does the trainer know that nothing more will come? The loader **closes** the queue. After that, nothing can be put
# in, what is in it can still be taken out, and a dequeue that wants more than there is gets an error, at once. A queue
# that is closed stays closed: if you run this cell a second time, its first `put` fails.

# %%
tf.reset_default_graph()
queue = numbers(name="last_numbers")
put, close = queue.enqueue_many([[1.0, 2.0, 3.0]]), queue.close()
pair, up_to_two, size = queue.dequeue_many(2), queue.dequeue_up_to(2), queue.size()
sess = tf.Session(cluster.target)
sess.run(put)
sess.run(close)

print(sess.run(pair))
for what in (pair, put):
    try:
        print(sess.run(what))
    except (tf.errors.OutOfRangeError, tf.errors.CancelledError) as error:
        said = f"{type(error).__name__}: {error.message.splitlines()[0]}"
        print(textwrap.fill(said, 95))
print("left:", sess.run(size))

# %% [markdown]
# `OutOfRangeError` is not a failure: it is how a training loop learns that the data has come to its end. One element
# is left, too little for a batch of two. `dequeue_up_to` takes what there is:

# %%
print(sess.run(up_to_two), "left:", sess.run(size))

# %% [markdown]
# ## Other kinds of queues
#
# **Shuffled.** A `RandomShuffleQueue` gives any of its elements, at random. To have a choice, it always leaves at least
# `min_after_dequeue` of them inside, until it is closed.
#
# 22 numbers are put in, 10 must stay behind to choose from. **Predict: how many batches of five can be taken before one
# has to wait?**

# %%
tf.reset_default_graph()
queue = tf.RandomShuffleQueue(
    50, min_after_dequeue=10, dtypes=[tf.float32], shapes=[[]], seed=1
)
put = queue.enqueue_many([np.arange(1.0, 23.0)])
batch, size = queue.dequeue_many(5), queue.size()
sess = tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=1000))
sess.run(put)
try:
    while True:
        print(sess.run(batch), "left:", sess.run(size))
except tf.errors.DeadlineExceededError:
    print("the next batch has to wait")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Two. After them 12 numbers are inside, and a third batch would leave 7.
#
# </details>
#
# Is a large `min_after_dequeue` worth its memory? Put 60 numbers through, in order, and look at how they come out.
# Without a shuffle they would lie on a straight line. **Predict: what will you see if the queue keeps 3, and if it
# keeps 30?**


# %%
def shuffled(min_after_dequeue, count=60):
    """The numbers from 0 to count, in the order in which the queue gives them."""
    with tf.Graph().as_default(), tf.Session() as sess:
        room = min_after_dequeue + 1
        queue = tf.RandomShuffleQueue(
            room, min_after_dequeue, [tf.float32], [[]], seed=1
        )
        number = tf.placeholder(tf.float32, [])
        put, take, close = queue.enqueue(number), queue.dequeue(), queue.close()
        order = []
        for value in range(count):
            sess.run(put, {number: value})
            if value >= min_after_dequeue:
                order.append(sess.run(take))
        sess.run(close)
        return order + [sess.run(take) for _ in range(min_after_dequeue)]


tf.viz.curve(
    range(60),
    {"keeps 3": shuffled(3), "keeps 30": shuffled(30)},
    xlabel="place at which it came out",
    ylabel="number",
    dots=True,
)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# With 3, the numbers stay near their places: if the file was sorted by label, the batches still are. A shuffle queue
# mixes only what it holds at one time.
#
# </details>
#
# **Padded.** Sentences have different lengths, but a batch must be one rectangle. A `PaddingFIFOQueue` fills up with
# zeros, in each batch only as far as its longest element needs.

# %%
tf.reset_default_graph()
queue = tf.PaddingFIFOQueue(50, dtypes=[tf.int32], shapes=[[None]])
words = tf.placeholder(tf.int32, [None])
put, batch = queue.enqueue(words), queue.dequeue_many(2)
sess = tf.Session()
for sentence in ([4, 8], [15, 16, 23, 42], [7], [3, 1]):
    sess.run(put, {words: sentence})
print(sess.run(batch), sess.run(batch), sep="\n\n")

# %% [markdown]
# **By priority.** The first part of each element of a `PriorityQueue` is a whole number. The element with the smallest
# one comes first, whenever it was put in.

# %%
tf.reset_default_graph()
queue = tf.PriorityQueue(50, types=[tf.string], shapes=[[]])
put = queue.enqueue_many([np.array([3, 1, 2], np.int64), ["third", "first", "second"]])
priority, text = queue.dequeue()
sess = tf.Session()
sess.run(put)
for _ in range(3):
    print(*sess.run([priority, text]))

# %% [markdown]
# ## Now break it: everybody waits
#
# Somebody has two queues, one for images and one for labels, and room for 5 elements in each. A file has 10 examples.
# The loader puts in all images of the file, then all its labels. The trainer takes an image, then its label, and again.
#
# **Predict: what happens, and after how many images? Play it through on paper.**


# %%
def two_queues(client, room=5):
    """Worker 0 loads a file of 10 examples, worker 1 trains on them."""
    with tf.device("/job:ps/task:0"):
        images, labels = [
            tf.FIFOQueue(room, [tf.float32], [[]], shared_name=name, name=name)
            for name in ("images", "labels")
        ]
    put_image = images.enqueue(0.0, name="put_image")
    put_label = labels.enqueue(0.0, name="put_label")
    take_image = images.dequeue(name="take_image")
    take_label = labels.dequeue(name="take_label")
    loads = [put_image] * 10 + [put_label] * 10
    trains = [take_image, take_label] * 10
    with tf.Session(client.target) as sess:
        for step in loads if client.index == 0 else trains:
            sess.run(step)
            tf.sim.sleep(0.1)


# %%
with tf.Cluster(ps=1, worker=2, clock="virtual") as virtual, tf.watch() as seen:
    try:
        virtual.run(two_queues)
    except tf.errors.InternalError as error:
        deadlock = error
# %dtf_queues seen

# %%
tf.viz.waits(deadlock)

# %% [markdown]
# When the deadlock was found, both steps were cancelled. The error knows which op waited for which then: follow the
# thick arrows.
#
# <details><summary><b>Show why</b></summary>
#
# The loader (`put_image`, of the client of worker 0) can't put in its seventh image: the queue
# of images is full. The trainer (`take_label`, of the client of worker 1) would make room, but it waits for a label.
# The label would come, but the loader is not done with the images. Each waits for the other: a **deadlock** is a circle
# of arrows. Worker 1 is not in it. It only waits for the label that the `ps` has not got yet.
#
# </details>
#
# In virtual time dtflab can prove that nothing will ever happen again, and says so. In real time it can't know: perhaps
# you will come and help. There, a deadlock looks like a program that hangs, without any message. So ask the cluster
# **who waits for what**. With `--live` the picture goes on while other cells run, so you can see how it comes to that.

# %%
# %dtf_queues cluster --live

# %% [markdown]
# The next cell, folded away, lets the two programs run until they hang. Watch the queues above.

# %% jupyter={"source_hidden": true}
ended = []


def both():
    try:
        cluster.run(two_queues)
    except tf.errors.OpError as error:
        ended.append(error)


clients = threading.Thread(target=both)
clients.start()
while not ended and str(cluster.waits()).count(" waits at ") < 2:
    tf.sim.sleep(0.05)  # they still work

# %%
# %dtf_queues cluster

# %% [markdown]
# `%dtf_queues` draws which op waits for which, and how full the queues are. From an op an arrow leads to
# its queue, with what it wants there. From a queue an arrow asks: *which program could bring it, and what is that
# program doing?* It may be one that has done so before, or one whose graph could. If the answers make a circle, you
# have found your deadlock. (`cluster.waits()` has the same as lines of text.)
#
# Somebody from outside can break the circle, by closing the queues. **Predict: is a plain `close` enough?**

# %%
task = "/job:ps/task:0"
with tf.Graph().as_default(), tf.Session(cluster.target) as sess, tf.device(task):
    images, labels = [
        tf.FIFOQueue(5, [tf.float32], [[]], shared_name=name)
        for name in ("images", "labels")
    ]
    try:
        sess.run(images.close(), options=tf.RunOptions(timeout_in_ms=500))
    except tf.errors.DeadlineExceededError:
        print("a plain close waits, too")
    for queue in (images, labels):
        sess.run(queue.close(cancel_pending_enqueues=True))
clients.join(60)
said = f"{type(ended[0]).__name__}: {ended[0].message.splitlines()[0]}"
print(textwrap.fill(f"ended with {said}", 95))

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# No: an enqueue that already waits may still succeed, so a plain `close` waits for it. Now three programs wait. With
# `cancel_pending_enqueues=True`, a waiting enqueue gets an error instead: `CancelledError`. The trainer gets
# one, too: `OutOfRangeError`, since no label will come any more. (Which of the two you see above is chance.)
#
# </details>
#
# **A cure?** More room. **Predict: how much is just enough for a file of 10 examples?**


# %%
def outcome(room):
    """The outcome of a file of 10 examples if each queue has room for that many."""
    with tf.Cluster(ps=1, worker=2, clock="virtual") as virtual:
        try:
            virtual.run(lambda client: two_queues(client, room))
        except tf.errors.InternalError as error:
            return error.message.partition(":")[0]
        return f"all done after {virtual.now():.1f} s"


rooms = [*range(5, 12)]
tf.viz.table({"room": rooms, "outcome": [outcome(room) for room in rooms]})

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Nine, since the trainer holds the tenth.
#
# </details>
#
# It works until somebody has a file of eleven, and then it hangs on a machine far away, without a message. **The cure
# is one queue of pairs**, as above: what belongs together goes in and out together, and no circle can arise, even
# with room for a single pair.


# %%
def one_queue(client):
    """The same file of 10 examples, as pairs."""
    with tf.device("/job:ps/task:0"):
        pairs = tf.FIFOQueue(1, [tf.float32, tf.float32], [[], []], shared_name="pairs")
    put, take = pairs.enqueue((0.0, 0.0)), pairs.dequeue()
    with tf.Session(client.target) as sess:
        for _ in range(10):
            sess.run(put if client.index == 0 else take)
            tf.sim.sleep(0.2)


with tf.Cluster(ps=1, worker=2, clock="virtual") as virtual:
    virtual.run(one_queue)
    print(f"one queue, room for 1 pair: all done after {virtual.now():.1f} s")

# %% [markdown]
# ## Exercises
#
# - [exercises/ex06_queues](../exercises/ex06_queues.ipynb): sentences of all lengths go through several padding queues,
#   so that their batches have few zeros.
# - [exercises/ex06_deadlock](../exercises/ex06_deadlock.ipynb): jobs that need two GPUs each, and must not wait for
#   each other forever.
#
# ## What you can do now
#
# - Let programs hand over data through a shared queue, in batches and in tuples, to a clean end.
# - See from the level of a queue which side is the bottleneck, and how much capacity is worth having.
# - Find a deadlock with `tf.viz.waits` or `%dtf_queues`, explain its circle, and take it apart.
