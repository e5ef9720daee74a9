# %% [markdown]
# # Many networks
#
# **A cluster has eight GPUs. How can all of them be used? One network over eight devices is hard to do well. But eight
# networks, one on each device?**
#
# That is easy, and useful: to find good settings for a network, to let several networks vote, to answer many queries at
# once. Most of it needs nothing new: a device, a container, a queue.
#
# Everything here runs in *virtual time*: the arithmetic is real, the seconds come from a model of the hardware, and are
# the same each time.

# %%
from collections import Counter

import numpy as np

import dtflab as tf

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.WARN)

# %% [markdown]
# Eight workers, each with a GPU, and one more task for what they share. The GPUs are a thousand times slower than a
# Tesla K40, so that our small networks keep them busy.

# %%
card = tf.sim.Processor(
    "a slow K40", "GPU", {"float32": 4.29e9}, memory_bytes=12 << 30,
    memory_bandwidth=288e6, launch_s=1e-3, cores=15,
    source="a K40's figures, divided by a thousand",
)  # fmt: skip
cluster = tf.Cluster(
    shared=1, worker=8, gpus=1, gpu=card, visible_devices={"shared": ""},
    network="1Gb/s", clock="virtual", stragglers=tf.sim.lognormal(0.05), seed=1,
)  # fmt: skip

# %% [markdown]
# The networks that we train, and how we judge them:

# %%
digits = tf.datasets.digits()


def network(name, units, images):
    """The logits of ten digits, with variables in a container of that name."""
    start = tf.glorot_uniform_initializer(seed=sum(name.encode()))  # one for each name
    dense, how = tf.layers.dense, {"kernel_initializer": start}
    with tf.container(name), tf.variable_scope(name):
        hidden = dense(images, units, tf.nn.relu, name="hidden", **how)
        return dense(hidden, 10, name="logits", **how)


def accuracy(logits, labels):
    """The share of examples that are recognized."""
    return float(np.mean(np.argmax(logits, axis=1) == labels))


# %% [markdown]
# ## One network on each device
#
# How many units should the hidden layer have? And which learning rate is good? Nobody knows beforehand, so we try:
# eight networks, each with different *hyperparameters*, on eight GPUs. Each client is the same program as for a single
# network. It only says on which device to build, and in which *container* the variables are, so that no network touches
# another one's.
#
# **Predict: how much longer do eight networks take than one?**

# %%
UNITS_OF = [8, 8, 16, 16, 32, 32, 64, 64]  # of the hidden layer, for each network
RATES = [0.1, 1.0, 0.3, 1.5, 0.1, 0.6, 0.3, 1.0]  # and its learning rate


def train(client, steps=60):
    """Train network `client.index` on the client's GPU; its accuracy on new images."""
    with tf.device(f"{client.device}/gpu:0"):
        images = tf.placeholder(tf.float32, [None, 64])
        labels = tf.placeholder(tf.int64, [None])
        logits = network(f"net{client.index}", UNITS_OF[client.index], images)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = tf.train.GradientDescentOptimizer(RATES[client.index])
        step = optimizer.minimize(loss)
    batches, new = tf.datasets.digits(seed=client.index).train, digits.validation
    with tf.Session(client.target) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(steps):
            x, y = batches.next_batch(50)
            sess.run(step, {images: x, labels: y})
        return accuracy(sess.run(logits, {images: new.images}), new.labels)


# %%
def seconds(clients):
    """Virtual seconds in which these workers train; their accuracies."""
    began = cluster.now()
    found = cluster.run(lambda each: train(each) if each.index in clients else None)
    return cluster.now() - began, found


with tf.watch() as seen:
    eight, found = seconds(clients=range(8))
one, _ = seconds(clients=[7])
print(f"one network: {one:.2f} s; eight networks: {eight:.2f} s")

# %%
# Figure 12-11
tf.viz.clients(seen, title="A network on each device")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# Eight networks in the time of one. Small networks end a little earlier, and a program that waits for all waits for the
# slowest: that is `net7`, which we also ran alone. But most of the time, all GPUs were busy.
#
# </details>
#
# Here is a row for each GPU, filled while it computes. Point at a row to read how busy it was then:

# %%
tf.viz.busy(cluster.log(), until=eight)

# %% [markdown]
# The validation set, which no network has trained on, says which are best:

# %%
best = sorted(range(8), key=lambda i: -found[i])[:3]
places = [f"number {best.index(i) + 1}" if i in best else "" for i in range(8)]
settings = {"network": [f"net{i}" for i in range(8)], "units": UNITS_OF, "rate": RATES}
tf.viz.table(settings | {"accuracy": [f"{one:.3f}" for one in found], "place": places})

# %% [markdown]
# ## An ensemble
#
# The three best could decide together: each says how probable it finds each digit, and the mean counts. That is called
# an *ensemble*. Its members make different mistakes, so together they should make fewer.
#
# First as one big graph, with each member on its own device, and one client that runs it: *in-graph replication*. The
# variables need not be moved or loaded: they are still where they were trained, in their containers.
#
# **Predict: is the ensemble better than its best member?**


# %%
def member(i, images):
    """The probabilities that network `i` gives each digit, where it was trained."""
    with tf.device(f"/job:worker/task:{i}/gpu:0"):
        return tf.nn.softmax(network(f"net{i}", UNITS_OF[i], images))


tf.reset_default_graph()
with tf.device("/job:shared/cpu:0"):
    images = tf.placeholder(tf.float32, [None, 64], name="images")
members = [member(i, images) for i in best]
with tf.device("/job:shared/cpu:0"):
    ensemble = tf.reduce_mean(tf.stack(members), axis=0, name="mean")
with tf.Session(cluster.target_of("shared")) as sess:
    *each, together = sess.run([*members, ensemble], {images: digits.test.images})

right = [accuracy(guess, digits.test.labels) for guess in [*each, together]]
names = [*(f"net{i}" for i in best), "together", "mean of the three"]
shares = [f"{share:.3f}" for share in [*right, np.mean(right[:3])]]
tf.viz.table({"network": names, "share of the test images": shares})

# %%
# Figure 12-12
tf.viz.placement([ensemble], max_boxes=10, title="An ensemble in one graph")

# %% [markdown]
# In the picture: point at `mean`, and see what comes to it, and from where.
#
# <details><summary><b>Show why</b></summary>
#
# Yes, but by one image of 400 only. The mean of the three says more: it is the average of choosing a member at random.
# And nobody could know which one would be best on the test images: on the validation set, two of them were equally
# good.
#
# </details>
#
# ## The same with a client for each member
#
# The other way is a graph and a client for each member: *between-graph replication*. They talk through queues. One
# client puts the images of a query into the queue of each member. Each member takes from its own queue, and puts what
# it thinks into a queue of predictions. A last client takes one prediction from each member and computes the mean.
#
# That is more to write, but each part is small, can be tested alone, and can fail alone. And you can set a limit: an
# answer that comes later is ignored.

# %%
QUERIES = 30  # of one image each
# The contents of a queue: the number of the query, and an image or probabilities
shapes = {"question": [[], [1, 64]], "answer": [[], [1, 10]]}


def queue(kind, i):
    """The queue of questions for member `i`, or of its answers, for all clients."""
    types, name = [tf.int32, tf.float32], f"{kind}s of net{i}"
    with tf.device("/job:shared/cpu:0"), tf.container("talk"):
        return tf.FIFOQueue(100, types, shapes[kind], shared_name=name)


# %% [markdown]
# A member answers until no more questions come; another client asks all of them:


# %%
def think(client):
    """A member: from its questions to its answers."""
    number, image = queue("question", client.index).dequeue()
    answers = queue("answer", client.index)
    put = answers.enqueue([number, member(client.index, image)])
    close = answers.close()
    with tf.Session(client.target) as sess:
        try:
            while True:
                sess.run(put)
        except tf.errors.OutOfRangeError:  # its questions are closed, and none is left
            sess.run(close)


def ask(client):
    """Each query goes to all members."""
    number, image = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [1, 64])
    queues = [queue("question", i) for i in best]
    put = [queue.enqueue([number, image]) for queue in queues]
    close = [queue.close() for queue in queues]
    with tf.Session(client.target) as sess:
        for i in range(QUERIES):
            sess.run(put, {number: i, image: digits.test.images[i : i + 1]})
        sess.run(close)


# %% [markdown]
# And one decides, with the answers that come within its limit. (`run_ensemble`, which starts all clients, each in its
# role, is folded away.)


# %%
def take(sess, answer, query, options):
    """A member's answer to a query, past those to earlier ones; None if it is late."""
    try:
        while True:
            number, probabilities = sess.run(answer, options=options)
            if number == query:
                return probabilities
    except tf.errors.DeadlineExceededError:
        return None


def decide(client, limit=None):
    """Rows (milliseconds that a query took, answers in time, is the digit right)."""
    options = None if limit is None else tf.RunOptions(timeout_in_ms=limit)
    answers, rows = [queue("answer", i).dequeue() for i in best], []
    with tf.Session(client.target) as sess:
        for query, digit in enumerate(digits.test.labels[:QUERIES]):
            began = tf.sim.now()
            came = [take(sess, answer, query, options) for answer in answers]
            came = [one for one in came if one is not None]
            right = bool(came) and np.argmax(np.mean(came, axis=0)) == digit
            rows.append((1000 * (tf.sim.now() - began), len(came), right))
    return rows


# %% jupyter={"source_hidden": true}
def run_ensemble(limit=None):
    """All clients at once: three members, one that asks, one that decides."""
    # No queues of an earlier run:
    tf.Session.reset(cluster.target_of("shared"), ["talk"])
    asks, decides, *others = [i for i in range(8) if i not in best]
    roles = dict.fromkeys(best, think) | dict.fromkeys(others, lambda client: None)
    roles |= {asks: ask, decides: lambda client: decide(client, limit)}
    results = cluster.run(lambda client: roles[client.index](client))
    return np.array(results[decides])


def summary(rows):
    """The results of `decide`, in a line."""
    ms, members, right = rows.T
    answered = f"{members.mean():.1f} members answer in time"
    return f"{np.median(ms):5.1f} ms per query, {answered}, {right.mean():.0%} right"


# %%
with tf.watch() as seen:
    rows = run_ensemble()
print(summary(rows))

# %%
# Figure 12-13
tf.viz.clients(seen, title="An ensemble of clients")

# %% [markdown]
# ## Now break it: a slow member
#
# **Predict: one of the three members becomes thirty times slower. What happens to the ensemble?**

# %%
cluster.slow("worker", best[-1], factor=30)
print("all must answer:   ", summary(run_ensemble()))

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# The whole ensemble is as slow as its slowest member.
#
# </details>
#
# The cure is a time limit. `tf.RunOptions(timeout_in_ms=20)` lets a step that takes longer end with
# `DeadlineExceededError`; `take` above catches it, and `decide` goes on without that answer. (When it comes after
# all, `take` throws it away: it has the number of an older query.)

# %%
print("20 ms for an answer:", summary(run_ensemble(limit=20)))
cluster.slow("worker", best[-1], factor=1)

# %% [markdown]
# Queries are answered again, by two members. `tf.ConfigProto(operation_timeout_in_ms=20)` sets the same limit for every
# step of a session.
#
# ## Many queries
#
# A network that people use gets queries at all times, perhaps more than one GPU can answer. So put a copy of it, a
# *replica*, on each of several GPUs, and all queries into one queue. A replica that has nothing to do takes the next
# one.

# %%
UNITS = UNITS_OF[best[0]]


def values_of(i):
    """The variables of the trained network number `i`."""
    with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}/gpu:0"):
        network(f"net{i}", UNITS_OF[i], tf.zeros([1, 64]))
        with tf.Session(cluster.target_of("worker", i)) as sess:
            return sess.run(tf.global_variables())


def copy(name, values, client):
    """Put a network with these variables into a container on the client's GPU."""
    with tf.Graph().as_default(), tf.device(f"{client.device}/gpu:0"):
        network(name, UNITS, tf.zeros([1, 64]))
        variables = tf.global_variables()
        new = [tf.placeholder(tf.float32, variable.shape) for variable in variables]
        load = [tf.assign(*pair).op for pair in zip(variables, new)]
        with tf.Session(client.target) as sess:
            sess.run(load, dict(zip(new, values)))


# %% [markdown]
# What all share is on the task `shared`: a queue of queries, and the number of the version that answers them. Here are
# the programs of a replica and of the visitors. `serve`, which starts them and measures, is folded away.


# %%
def queries():
    """The queue of queries: their numbers."""
    with tf.device("/job:shared/cpu:0"), tf.container("talk"):
        return tf.FIFOQueue(1000, [tf.int32], [[]], shared_name="queries")


def version_variable():
    """The version of the network that answers."""
    with tf.device("/job:shared/cpu:0"), tf.container("talk"):
        return tf.get_variable("version", initializer=1)


def visitors(client, count, per_second):
    """Queries, at random moments."""
    number, queue = tf.placeholder(tf.int32, []), queries()
    put, close = queue.enqueue(number), queue.close()
    random, asked = np.random.default_rng(1), []
    with tf.Session(client.target) as sess:
        for i in range(count):
            tf.sim.sleep(random.exponential(1 / per_second))
            asked.append(tf.sim.now())
            sess.run(put, {number: i})
        sess.run(close)
    return np.array(asked)


# %%
def replica(client, versions):
    """Answer to the end; rows (query, version, moment of the answer, is it right)."""
    query, version = queries().dequeue(name="next_query"), version_variable()
    test, rows = digits.test, []
    with tf.device(f"{client.device}/gpu:0"):
        image = tf.placeholder(tf.float32, [1, 64])
        logits = {i: network(f"v{i}", UNITS, image) for i in versions}
        answers = {i: tf.argmax(each, axis=1) for i, each in logits.items()}
    with tf.Session(client.target) as sess:
        try:
            while True:
                number, now = sess.run([query, version])
                at = number % len(test.images)
                (digit,) = sess.run(answers[now], {image: test.images[at : at + 1]})
                rows.append((number, now, tf.sim.now(), digit == test.labels[at]))
        except tf.errors.OutOfRangeError:
            return rows


# %% jupyter={"source_hidden": true}
def serve(replicas, count=150, per_second=300, versions=(1,), meanwhile=None):
    """For each query the milliseconds until it was answered, and its replica's row."""
    target = cluster.target_of("shared")
    tf.Session.reset(target, ["talk"])
    with tf.Graph().as_default(), tf.Session(target) as sess:
        sess.run(version_variable().initializer)

    def work(client):
        if client.index < replicas:
            return replica(client, versions)
        if client.index == 7:
            return visitors(client, count, per_second)
        return meanwhile(client) if client.index == 6 and meanwhile else None

    *answers, asked = cluster.run(work)
    rows = np.array(sorted(row for of_one in answers[:replicas] for row in of_one))
    return 1000 * (rows[:, 2] - asked), rows


# %% [markdown]
# **Predict: 300 queries per second come in. A replica needs about 7 ms for one. How many replicas are enough? Will a
# query be answered sooner if there are more?**

# %%
trained = values_of(best[0])
cluster.run(lambda client: copy("v1", trained, client))
waited, watched, counts = {}, {}, [1, 2, 3, 4, 6]
for replicas in counts:
    with tf.watch() as watched[replicas]:
        waited[replicas], _ = serve(replicas)
medians = [f"{np.median(each):.1f} ms" for each in waited.values()]
longest = [f"{each.max():.1f} ms" for each in waited.values()]
columns = {"replicas": counts, "a query takes (median)": medians, "at most": longest}
tf.viz.table(columns)

# %%
some = {f"replicas: {n}": waited[n] for n in (1, 2, 4)}
tf.viz.curve(range(150), some, "query", "time until it is answered (ms)")

# %%
tf.viz.queues(watched[1], title="The queue of queries, with one replica")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# One replica is too slow: queries come faster than they are answered, and the queue grows and grows. With three, hardly
# any query has to wait for a replica. More of them change nothing: a query still takes as long as the network needs for
# it.
#
# </details>
#
# **Predict: with six replicas, what share of the time does each GPU work?**

# %%
run = {"since": watched[6].began, "until": watched[6].ended}
tf.viz.busy(cluster.log(), **run, device="/gpu:0", title="Six replicas at work")

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# A quarter of it. If no query may wait, GPUs must: each of the short bars is one query.
#
# </details>
#
# ## A new version, without an interruption
#
# Meanwhile somebody has trained the network some more, and version 2 is to replace version 1, while queries come in. A
# second *container* makes that easy: the new variables are put next to the old ones, `v2` next to `v1`, under names of
# their own. When all replicas have them, one variable changes from 1 to 2, and each replica looks at it before each
# query. No query is lost, and none is answered by a half-loaded network.
#
# **Predict: will there be a moment without answers?** (The training of version 2 is folded away.)

# %% jupyter={"source_hidden": true}
with tf.Graph().as_default():  # version 2: more steps, from where version 1 ended
    images = tf.placeholder(tf.float32, [None, 64])
    labels = tf.placeholder(tf.int64, [None])
    logits = network("v2", UNITS, images)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    variables = tf.trainable_variables()
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as sess:
        for variable, value in zip(variables, trained, strict=True):
            variable.load(value, sess)
        for _ in range(600):
            x, y = digits.train.next_batch(50)
            sess.run(step, {images: x, labels: y})
        better = sess.run(variables)


# %%
def deploy(client):
    """Load version 2 everywhere, then switch to it."""
    tf.sim.sleep(0.2)
    for i in range(4):
        copy("v2", better, cluster.client("worker", i))
    switch = tf.assign(version_variable(), 2)
    with tf.Session(client.target) as sess:
        sess.run(switch)


# %%
waits, rows = serve(4, count=300, versions=(1, 2), meanwhile=deploy)
number, version, when, right = rows.T
asked = when - waits / 1000
print(f"{len(rows)} queries, {len(set(number))} answers")
longest = [1000 * np.diff(np.sort(moments)).max() for moments in (asked, when)]
for what, ms in zip(("queries", "answers"), longest):
    print(f"longest time between two {what}: {ms:.0f} ms")
of = [version == 1, version == 2]
counts = [int(each.sum()) for each in of]
shares = [f"{right[each].mean():.0%}" for each in of]
tf.viz.table({"version": [1, 2], "queries": counts, "right": shares})

# %%
tf.viz.curve(number, {"version": version}, "query", "version that answered", height=2.8)

# %% [markdown]
# <details><summary><b>Show why</b></summary>
#
# No: at each moment, queries were answered about as soon as they came. A replica looks at the version before each
# query, and both networks are in its memory.
#
# </details>
#
# Once nobody uses version 1 any more, its container can be emptied on each worker, and its memory is free.
# (`held`, folded away, counts bytes.)


# %% jupyter={"source_hidden": true}
def held():
    """Bytes of the variables on worker 0, for each container."""
    found = Counter()
    for variable in cluster.variables():
        if "/job:worker/replica:0/task:0/" in variable.device:
            found[variable.container] += variable.nbytes
    return found


# %%
before = held()
tf.Session.reset(cluster.target_of("worker", 0), ["v1"])
after, names = held(), sorted(before)
times = {"bytes before": before, "bytes after": after}
columns = {when: [of[name] for name in names] for when, of in times.items()}
tf.viz.table({"container": names} | columns)

# %% [markdown]
# ## Exercise
#
# - [exercises/ex08_search](../exercises/ex08_search.ipynb): write the program that trains one network, with options for
#   where and how, and find the best three of six.
# - [exercises/ex08_ensemble](../exercises/ex08_ensemble.ipynb): build the ensemble of the best three, one device each.
#
# And try this here:
#
# - Let *two* members be slow. Is the ensemble of what is left still worth it?
# - Let the visitors come 600 times per second (`per_second=600` in `serve`). How many replicas are enough now?
#
# ## What you can do now
#
# - Train a network on each device, with settings of its own, and choose the best by a validation set.
# - Put networks together: in one graph, or by clients and queues, with a time limit for the slow ones.
# - Answer many queries with replicas, and change the version while they come in.
