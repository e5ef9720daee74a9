# %% [markdown]
# # Is that so?
#
# **“8 GPUs in one machine are as fast as 16 over several.” “More servers answer more queries, but not sooner.” “A small
# model is best trained on one GPU.”** Much is said of distributed training. Which of it can you check without a data
# centre?
#
# All of it, in *virtual time*: the programs are TensorFlow 1 programs, their arithmetic is real, and the seconds come
# from a model of GPUs and networks. A network that is too large to compute is *estimated* from its graph. Nine claims
# follow. Each has its assumptions next to it, and is then asked where it ends: no claim about speed holds on all
# hardware. Cells that are folded away measure or check: the last cell of each claim fails if its text does not hold.
#
# *Guess the numbers before you run a cell. That is the whole exercise.*

# %%
import collections
import tempfile
from pathlib import Path

import numpy as np

import dtflab as tf

# %load_ext dtflab
tf.logging.set_verbosity(tf.logging.WARN)

# %% [markdown]
# Real arithmetic on a laptop needs small models. To keep computing the slowest part, most of the runs have a GPU that
# is a hundred times slower than a K40.

# %%
card = tf.sim.Processor(
    "K40 / 100", "GPU", {"float32": 4.29e10}, memory_bytes=12 << 30,
    memory_bandwidth=2.88e9, launch_s=5e-4, cores=15,
    source="a K40's figures, divided by a hundred",
)  # fmt: skip


def classifier(images, units=64):
    """Logits of a network with one hidden layer."""
    first, second = (tf.random_normal_initializer(seed=seed) for seed in (1, 2))
    hidden = tf.layers.dense(images, units, tf.nn.relu, kernel_initializer=first)
    return tf.layers.dense(hidden, 10, kernel_initializer=second)


# %% [markdown]
# ## 1. Queries: more replicas answer more of them, but none sooner
#
# A web server holds the queries. Each GPU has a replica of the network, and gets the next query as soon as it has
# answered the last.
#
# *How many queries per second do 8 replicas answer, compared to one? And how long does one query take?*


# %%
def answers(replicas, rows=8, queries=10):
    """Queries per second, and the median ms of one: a batch of `rows` images."""
    tasks = {"web": 1, "worker": replicas, "visible_devices": {"web": ""}}
    hardware = {"gpus": 1, "gpu": card, "network": "1Gb/s", "clock": "virtual"}
    with tf.Cluster(**tasks, **hardware) as cluster:

        def dispatch(client):
            with tf.device(f"{client.device}/gpu:0"):
                images = tf.placeholder(tf.float32, [rows, 64])
                answer = tf.nn.softmax(classifier(images))
            # Queries and answers pass the web server:
            with tf.Session(cluster.target_of("web")) as sess:
                sess.run(tf.global_variables_initializer())
                moments = [tf.sim.now()]
                for _ in range(queries):
                    sess.run(answer, {images: np.ones([rows, 64])})
                    moments.append(tf.sim.now())
                return moments

        moments = np.array(cluster.run(dispatch))
    seconds = moments[:, -1].max() - moments[:, 0].min()
    return replicas * queries / seconds, 1000 * np.median(np.diff(moments))


# %%
counts = [1, 2, 4, 8, 16]
small, large = ([answers(n, rows) for n in counts] for rows in (8, 1000))
columns = {"replicas": counts}
for size, found in {"2 kB": small, "256 kB": large}.items():
    columns[f"queries/s of {size}"] = [f"{per_second:,.0f}" for per_second, _ in found]
    columns[f"{size} takes"] = [f"{wait:.2f} ms" for _, wait in found]
tf.viz.table(columns)

# %%
rates = {"2 kB": [one[0] for one in small], "256 kB": [one[0] for one in large]}
tf.viz.curve(counts, rates, "replicas", "queries/s")

# %% jupyter={"source_hidden": true}
# A check that the text below holds
assert small[-1][0] > 14 * small[0][0] and small[-1][1] < 1.15 * small[0][1]
assert large[-1][0] < 6 * large[0][0] and large[-1][1] > 2 * large[0][1]

# %% [markdown]
# So it is: a query has to wait for a network to answer it, however many networks there are. *Where it ends:* all
# queries pass the web server's network card. A query of a thousand images is 256 kB, 2 ms at 1 Gb/s; the card carries
# no more than 490 of them per second. Then replicas wait in line, and queries take longer, too.
#
# ## 2. A hundred networks take little longer than one
#
# 50 servers have two GPUs each, and each GPU trains a network of its own: a search for good hyperparameters. They share
# nothing, so what can go wrong?
#
# *If no step takes exactly as long as planned, what is the time of all hundred, compared to one of them?*


# %%
def train_alone(client):
    """6 steps of a network on the client's own GPU; when they had ended."""
    with tf.device(f"{client.device}/gpu:0"):
        images, labels = tf.random_uniform([32, 64], seed=1), tf.zeros([32], tf.int64)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, classifier(images))
        optimizer = tf.train.GradientDescentOptimizer(0.01 * (client.index + 1))
        train = optimizer.minimize(loss)
    with tf.Session(client.target) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(6):
            sess.run(train)
    return tf.sim.now()


# %%
def search(networks, spread=0.1, slow=1.0):
    """When each network ended, two on a server; steps vary, and the first is `slow`."""
    tasks = [f"server{i // 2}:{2222 + i % 2}" for i in range(networks)]
    hardware = {
        "gpus": 2,
        "gpu": card,
        "stragglers": tf.sim.lognormal(spread),
        "seed": 1,
    }
    hardware["visible_devices"] = {"worker": [str(i % 2) for i in range(networks)]}
    with tf.Cluster({"worker": tasks}, clock="virtual", **hardware) as cluster:
        cluster.slow("worker", 0, slow)
        return np.array(cluster.run(train_alone))


# %%
one, hundred, one_slow = search(1), search(100), search(10, slow=3.0)
ends = {"one": one, "a hundred": hundred, "10, one of them slow": one_slow}
columns = {"networks": [*ends]}
for what, moment in {"first": np.min, "median": np.median, "all after": np.max}.items():
    columns[what] = [f"{1000 * moment(each):.0f} ms" for each in ends.values()]
tf.viz.table(columns)

# %% jupyter={"source_hidden": true}
# A check that the text below holds
assert 1.0 < hundred.max() / np.median(hundred) < 1.15
assert one_slow.max() > 2.7 * np.median(one_slow)
assert np.median(one_slow) < 1.05 * np.median(hundred)

# %% [markdown]
# 9% longer, for a hundred times the work. *Where it ends:* a step that waits for all workers waits for the slowest. A
# single GPU at a third of its speed makes the whole search take three times as long, though all other results were
# there long before.
#
# ## 3. The cores of a host are shared by its tasks
#
# A worker that computes on its CPU runs four multiplications at once, on a host with four cores. Then a second worker
# comes.
#
# *Does it matter whether that one is started on the same host?*


# %%
def multiply(tasks, cores):
    """Seconds in which each task makes 4 × 5 multiplications."""
    cpu = tf.sim.Processor(
        f"{cores} cores", "CPU", {"float32": 2e10 * cores}, memory_bytes=64 << 30,
        memory_bandwidth=4e10, launch_s=1e-6, cores=cores,
        source="made up: 20 GFLOP/s per core",
    )  # fmt: skip
    with tf.Cluster({"worker": tasks}, cpu=cpu, clock="virtual") as cluster:

        def work(client):
            with tf.device(client.device):
                matrix = tf.placeholder(tf.float32, [200, 200])
                ways = [(False, False), (False, True), (True, False), (True, True)]
                products = [tf.matmul(matrix, matrix, *way).op for way in ways]
            with tf.Session(client.target) as sess:
                for _ in range(5):
                    sess.run(products, {matrix: np.ones([200, 200], np.float32)})

        cluster.run(work)
        return cluster.now()


# %%
apart, together = ["host0:2222", "host1:2222"], ["host0:2222", "host0:2223"]
seconds = {n: (multiply(apart, n), multiply(together, n)) for n in (4, 8)}
for cores, (two, one) in seconds.items():
    print(
        f"{cores} cores: two hosts {1000 * two:.1f} ms   one host {1000 * one:.1f} ms"
    )

# %% jupyter={"source_hidden": true}
# A check that the text below holds
assert 1.9 < seconds[4][1] / seconds[4][0] < 2.1 and seconds[8][1] < 1.1 * seconds[8][0]

# %% [markdown]
# It does: two tasks of one host take twice as long, for the cores are the same. *Where it ends:* where there are cores
# to spare. TensorFlow tasks know nothing of each other; each makes as many threads as the host has cores.
#
# ## 4. Three ways to a batch
#
# Training examples lie on a file server. A program can **feed** them: the client gets each batch and gives it to the
# master, which sends it to the worker. It can **preload** them into a variable of the worker, once. Or the graph
# **reads** them: a reader is an operation, and its records go straight to where they are needed.
#
# Here every machine is a task: `files` has the reader, the client lives on the machine of `program`, and the `master`
# is not the worker that computes. Three epochs over 1,000 records of 1 kB.
#
# *How many bytes leave each machine, in each of the three ways?*

# %%
RECORDS, LENGTH, BATCH, EPOCHS = 1000, 1024, 100, 3
path = Path(tempfile.mkdtemp()) / "records.bin"
path.write_bytes(np.random.default_rng(1).bytes(RECORDS * LENGTH))


def record_reader():
    """A batch of records, read on the file server."""
    with tf.device("/job:files/cpu:0"):
        names = tf.FIFOQueue(EPOCHS, tf.string, shapes=[[]], shared_name="names")
        names_to_read = names.enqueue_many([[str(path)] * EPOCHS])
        _, records = tf.FixedLengthRecordReader(LENGTH).read_up_to(names, BATCH)
    return names_to_read, records


# %% jupyter={"source_hidden": true}
def passed(way, steps):
    """Bytes that left each task while `way(sess, steps)` trained, and its seconds."""
    tasks = dict.fromkeys(("files", "program", "master", "worker"), 1)
    with tf.Cluster(**tasks, clock="virtual", network="1Gb/s") as cluster:
        with tf.Graph().as_default(), tf.Session(cluster.target_of("program")) as sess:
            way(sess, steps)
        sent: collections.Counter[str] = collections.Counter()
        for happened in cluster.log().lines:
            if happened.target and happened.nbytes > 1000:  # calls are smaller
                task = happened.where.partition("/device")[0].replace("/replica:0", "")
                sent[task] += happened.nbytes
        return dict(sent), cluster.now()


# %%
def on_worker(records):
    """A stand-in for training: the sum of all bytes."""
    with tf.device("/job:worker/cpu:0"):
        numbers = tf.reshape(tf.decode_raw(records, tf.uint8), [-1, LENGTH])
        return tf.reduce_sum(tf.cast(numbers, tf.float32))


def by_the_master(records):
    """The same records, after they have come to the master."""
    with tf.device("/job:master/cpu:0"):
        return tf.identity(records)


def fed(sess, steps):
    """Client and master are in the way of every batch."""
    names_to_read, records = record_reader()
    batch = tf.placeholder(tf.string, [BATCH])
    total = on_worker(by_the_master(batch))
    sess.run(names_to_read)
    for _ in range(steps):
        sess.run(total, {batch: sess.run(records)})


# %%
def preloaded(sess, steps):
    """The same way, but once; from then on, all is on the worker."""
    names_to_read, records = record_reader()
    everything = tf.placeholder(tf.string, [RECORDS])
    with tf.device("/job:worker/cpu:0"):
        start = by_the_master(everything)
        training_set = tf.Variable(start, trainable=False, collections=[])
        at = tf.placeholder(tf.int32, [])
        total = on_worker(tf.slice(training_set, [at], [BATCH]))
    sess.run(names_to_read)
    data = np.concatenate([sess.run(records) for _ in range(RECORDS // BATCH)])
    sess.run(training_set.initializer, {everything: data})
    for step in range(steps):
        sess.run(total, {at: step * BATCH % RECORDS})


# %%
def read(sess, steps):
    """From the file server to the worker."""
    names_to_read, records = record_reader()
    total = on_worker(records)
    sess.run(names_to_read)
    for _ in range(steps):
        sess.run(total)


steps = EPOCHS * RECORDS // BATCH
hops = {way.__name__: passed(way, steps) for way in (fed, preloaded, read)}
loads = {name: sent for name, (sent, _) in hops.items()}
tf.viz.loads("Bytes that left each task", loads)

# %%
size = RECORDS * LENGTH
for name, (sent, took) in hops.items():
    times = sum(sent.values()) / size
    print(
        f"{name:10} the data set crossed the network {times:.0f} times, in {took:.2f} s"
    )

# %% jupyter={"source_hidden": true}
# A check that the text below holds
on_the_way = [f"/job:{job}/task:0" for job in ("files", "program", "master")]
assert hops["fed"][0] == dict.fromkeys(on_the_way, EPOCHS * size)
assert hops["preloaded"][0] == dict.fromkeys(on_the_way, size)
assert hops["read"][0] == {"/job:files/task:0": EPOCHS * size}

# %% [markdown]
# Feeding sends everything three times per epoch, preloading three times in all, reading once per epoch. *Where it
# ends:* preloading wants memory for the whole set, and for a single epoch, it is not better than feeding.
#
# ### One file server for everybody
#
# *Now n clients train n networks on the same data, each reading for itself. What does each of them see?*


# %%
def readers(clients, network):
    """Batches per second and client."""
    zeros, tasks = tf.zeros_initializer(), {"files": 1, "worker": clients}
    with tf.Cluster(**tasks, clock="virtual", network=network) as cluster:

        def train(client):
            with tf.device("/job:files/cpu:0"):
                stored = tf.get_variable("images", [128, 1024], initializer=zeros)
                images = tf.identity(stored)
            with tf.device(client.device):
                step = tf.reduce_sum(images)
            with tf.Session(client.target) as sess:
                sess.run(tf.global_variables_initializer())
                began = tf.sim.now()
                for _ in range(10):
                    sess.run(step)
                    tf.sim.sleep(0.02)  # what training takes
                return 10 / (tf.sim.now() - began)

        return float(np.mean(cluster.run(train)))


# %%
many, networks = [1, 2, 4, 8, 16, 32], ("1Gb/s", "10Gb/s", "100Gb/s")
rates = {network: [readers(n, network) for n in many] for network in networks}
tf.viz.curve(many, rates, "clients", "batches/s for each client")

# %% jupyter={"source_hidden": true}
# A check that the text below holds
slow, fast = rates["1Gb/s"], rates["100Gb/s"]
assert slow[-1] < 0.25 * slow[0] and fast[-1] > 0.9 * fast[0]
used = 32 * slow[-1] * 128 * 1024 * 4  # bytes/s, of 125 MB/s that the link can carry
assert 0.8 < used / 125e6 < 1.1

# %% [markdown]
# The link is theirs together. A batch is 524 kB here, 4 ms at 1 Gb/s, and a client alone wants one every 25 ms: more
# than six fill the link, and then twice as many clients get little more than half as much each. Before that they are in
# each other's way, too, since all ask at the same moments. *Where it ends:* at 100 Gb/s, the server has room for
# all 32.
#
# ## 5. A control dependency that makes room on the wire
#
# A worker needs eight large blocks of another machine at the end of a step. Meanwhile it works on something else, for
# which it asks the same machine now and then, in small messages. A graph says nothing of the order, so all blocks leave
# at once.
#
# *With a control dependency, each block waits until the one before has arrived. That does not make the link faster.
# What is gained?*


# %%
def fetched(blocks, one_by_one):
    """The ends of `blocks` that come from the store to the worker."""
    arrived, zeros = [], tf.zeros_initializer()
    for i in range(blocks):
        with tf.device("/job:store/cpu:0"):
            block = tf.get_variable(f"block{i}", [1500, 1500], initializer=zeros)
            with tf.control_dependencies(arrived[-1:] if one_by_one else []):
                sent = tf.identity(block)
        with tf.device("/job:worker/cpu:0"):
            arrived.append(tf.reduce_max(sent))
    return arrived


def talk():
    """The end of four rounds: the GPU computes, then asks the store."""
    with tf.device("/job:store/cpu:0"):
        zeros = tf.zeros_initializer()
        question = tf.identity(tf.get_variable("small", [256, 256], initializer=zeros))
    for _ in range(4):
        with tf.device("/job:worker/gpu:0"):
            for _ in range(10):
                question = tf.matmul(question, question)
        with tf.device("/job:store/cpu:0"):
            question = tf.add(question, 1.0)
    return question.op


# %% jupyter={"source_hidden": true}
def step(one_by_one, blocks=8, network="10Gb/s"):
    """Trace and seconds of a step that fetches `blocks` and talks in small messages."""
    hardware = {"gpus": 1, "gpu": card, "visible_devices": {"store": ""}}
    tasks = {"worker": 1, "store": 1}
    with (
        tf.Cluster(**tasks, network=network, clock="virtual", **hardware) as cluster,
        tf.Graph().as_default(),
    ):
        ends = [*fetched(blocks, one_by_one), talk()]
        with tf.Session(cluster.target) as sess:
            sess.run(tf.global_variables_initializer())
            began = cluster.now()
            metadata = sess.trace(ends)
            return metadata.step_stats, cluster.now() - began


# %%
at_once, in_turns = step(one_by_one=False), step(one_by_one=True)
print(f"at once {1000 * at_once[1]:.0f} ms, one by one {1000 * in_turns[1]:.0f} ms")
tf.viz.timeline(at_once[0], title="All blocks at once")

# %%
tf.viz.timeline(in_turns[0], title="One block after the other")

# %%
for network in ("1Gb/s", "10Gb/s", "100Gb/s"):
    together, apart = (1000 * step(way, network=network)[1] for way in (False, True))
    print(f"{network:>8}: at once {together:3.0f} ms, one by one {apart:3.0f} ms")

# %% jupyter={"source_hidden": true}
# A check that the text below holds
assert in_turns[1] < 0.8 * at_once[1]

# %% [markdown]
# The link carries the same bytes in both pictures. But links serve first come, first served: a small question that
# comes behind eight blocks waits for all of them, and the GPU with it. One by one, there is never more than one block
# ahead. *Where it ends:* on a slow link, fetching takes most of the time, and on a fast one nothing has to wait: then
# there is little to gain. (Nor is it free: the link is idle while the news that a block has arrived travels back.)
#
# ## 6. A small model on a huge data set: one GPU
#
# A network of 2,400 parameters, batches of 32, real K40s this time, 10 Gb/s. A billion examples wait.
#
# *How many GPUs would you take? There are three ways to use several: let each train on its own share, synchronously or
# not, or give each GPU a layer.*


# %%
def small_loss(index, second_gpu=""):
    """The loss of a small network; its upper layer may have a GPU of its own."""
    images = tf.random_uniform([32, 64], seed=index + 1)
    hidden = tf.layers.dense(images, 32, activation=tf.nn.relu)
    with tf.device(second_gpu):
        logits = tf.layers.dense(hidden, 10)
        return tf.losses.sparse_softmax_cross_entropy(tf.zeros([32], tf.int64), logits)


# %%
def replica_loop(client, way, steps):
    """A worker of data parallelism: the seconds that `steps` global steps took."""
    workers = client.cluster_spec.num_tasks("worker")
    tasks = {"cluster": client.cluster_spec, "ps_device": "/job:ps/cpu:0"}
    gpu = f"{client.device}/gpu:0"
    place = tf.train.replica_device_setter(**tasks, worker_device=gpu)
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    hooks = [tf.train.StopAtStepHook(last_step=steps)]
    if way == "sync":
        optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
        hooks.append(optimizer.make_session_run_hook(client.is_chief))
    with tf.device(place):
        count = tf.train.get_or_create_global_step()
        train = optimizer.minimize(small_loss(client.index), global_step=count)
    options = {"hooks": hooks, "stop_grace_period_secs": 1}
    with tf.train.MonitoredTrainingSession(
        client.target, client.is_chief, **options
    ) as sess:
        tf.sim.sleep(1.0 - tf.sim.now())  # all begin at the same moment
        while not sess.should_stop():
            sess.run(train)
            end = tf.sim.now()
    return end - 1.0


# %% jupyter={"source_hidden": true}
def shared(way, workers, gpu="K40", network="10Gb/s", steps=8):
    """Examples per second of `workers` with variables on a parameter server."""
    hardware = {"gpus": 1, "gpu": gpu, "network": network, "clock": "virtual"}
    with tf.Cluster(ps=1, worker=workers, **hardware) as cluster:
        total = steps if way == "sync" else steps * workers
        chief, *_ = cluster.run(lambda client: replica_loop(client, way, total))
    return 32 * workers * steps / chief


def alone(gpus=1, gpu="K40"):
    """Examples per second of one client with one GPU, or a layer on each of two."""
    with (
        tf.Cluster(worker=1, gpus=2, gpu=gpu, clock="virtual") as cluster,
        tf.Graph().as_default(),
    ):
        with tf.device("/gpu:0"):
            loss = small_loss(0, second_gpu="/gpu:1" if gpus == 2 else "")
            train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        with tf.Session(cluster.target) as sess:
            sess.run(tf.global_variables_initializer())
            began = cluster.now()
            for _ in range(8):
                sess.run(train)
            return 32 * 8 / (cluster.now() - began)


# %%
gpus = [2, 4, 8, 16]
by_way = {way: [shared(way, n) for n in gpus] for way in ("sync", "async")}
one_gpu, two_layers = alone(), alone(2)
hours = 1e9 / one_gpu / 3600
print(f"one GPU {one_gpu:,.0f} examples/s: a billion in {hours:.1f} h")
print(f"a layer each: {two_layers:,.0f} examples/s")
tf.viz.curve(gpus, by_way | {"one GPU": [one_gpu] * len(gpus)}, "GPUs", "examples/s")

# %%
slow_one, slow_eight = alone(gpu=card), shared("sync", 8, gpu=card)
print("GPUs of a hundredth of the speed:")
print(f"one {slow_one:,.0f} examples/s, eight {slow_eight:,.0f} examples/s")

# %% jupyter={"source_hidden": true}
# A check that the text below holds
assert two_layers < one_gpu and max(*by_way["sync"][:2], *by_way["async"][:2]) < one_gpu
assert max(by_way["sync"][2], by_way["async"][2]) < 1.6 * one_gpu
assert slow_eight > 6 * slow_one
assert 2.6 < by_way["async"][3] / one_gpu < 2.8

# %% [markdown]
# One. Two GPUs are a third as fast, four not as fast, and eight bring some 15 or 35%, for which they want eight times
# the money and the larger batch, or the stale gradients, of eight workers. A layer each loses, too, though PCIe is
# quick. A step takes 145 µs on a GPU; to ask for the variables and to send the gradients takes 700 µs more, however few
# bytes they are. The size of the data set changes nothing about that: it only says how often you pay.
#
# “Best” overstates it: sixteen asynchronous workers are 2.7 times as fast. *Where it ends:* “small” is meant in
# comparison with the network. On GPUs of a hundredth of the speed, computing takes so long that the same network is a
# large one, and eight GPUs are seven times as fast as one.
#
# ## 7. Eight GPUs in one machine, or sixteen in several?
#
# This is too large to compute here, so it is an estimate: ResNet-50 on K40s, 32 images per GPU, synchronously. Each
# machine has a parameter server, and adds up its GPUs' gradients before they go to the network. In one machine,
# variables are in its memory, and PCIe is all the network there is.
#
# *From which bandwidth on would you rather have the sixteen?*


# %%
def images(machines, gpus, network="10Gb/s", model="resnet50", **options):
    """Speed-up over one GPU of `machines` with as many GPUs each."""
    servers = machines if machines > 1 else 0
    hardware = {"ps_colocated": True, "gpus_per_worker": gpus, "network": network}
    where = tf.sim.cluster_model(machines, servers, **hardware)
    return tf.sim.estimate(model, where, steps=20, **options).speedup


# %%
gigabits, eight, grouped = [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40], images(1, 8), {}
for n in (16, 4, 2):
    of_sixteen = [images(n, 16 // n, f"{rate}Gb/s") for rate in gigabits]
    grouped[f"{n} × {16 // n}"] = of_sixteen
lines = grouped | {"1 × 8": [eight] * len(gigabits)}
title = "Machines × GPUs in each"
tf.viz.curve(gigabits, lines, "network (Gb/s)", "times one GPU", title=title)

# %%
scattered = np.array(grouped["16 × 1"])
even = np.interp(eight, scattered, gigabits)
one_by_one = [images(n, 16 // n, "5Gb/s", local_aggregation=False) for n in (16, 2)]
least, most = scattered[0], scattered[-1]
print(f"8 GPUs in one machine:  {eight:4.1f} times one GPU")
print(
    f"16 in 16 machines:      {least:4.1f} times at 1 Gb/s, {most:.1f} times at 40 Gb/s"
)
print(f"                        as fast as the 8 at {even:.1f} Gb/s")
print("without sums inside the machines, at 5 Gb/s:")
print(f"16 × 1 {one_by_one[0]:.1f} times one GPU, 2 × 8 {one_by_one[1]:.1f} times")

# %% jupyter={"source_hidden": true}
# A check that the text below holds
assert scattered[0] < eight / 2 and 3 < even < 10
assert (np.diff(list(grouped.values())) > -0.05).all()
assert scattered[-1] > 0.95 * grouped["2 × 8"][-1]
assert (np.array(grouped["2 × 8"]) > scattered).all() and one_by_one[1] < one_by_one[0]

# %% [markdown]
# Below 6 Gb/s, it is so: eight GPUs are as fast as sixteen in sixteen machines, or faster. At 1 Gb/s they are four
# times as fast; at 40 Gb/s sixteen are nearly twice as fast as eight, wherever they stand. And grouping sixteen on few
# machines helps.
#
# *Where it ends:* with fast networks, and with the sums. A machine pulls the variables once and pushes one gradient,
# which is the sum of its GPUs'. Without that (`local_aggregation=False`), eight GPUs share one network card for eight
# times the bytes, and scattering them is better.
#
# ## 8. Past saturation, more GPUs are slower
#
# A step trains on a fixed number of examples, and more GPUs have fewer each. Computing gets shorter, but every GPU
# still pulls all variables and pushes all gradients. A *dense* network needs them all in each step: Inception-v3, 1,024
# images, 16 parameter servers. Of a *sparse* one, a step reads a few rows of large tables: a ranker of 1 GB, 1,048,576
# examples, tables cut over 128 servers. K40s, 10 Gb/s.
#
# *How many GPUs are best for each?*

# %%
inception = tf.sim.Profile.from_graph(tf.sim.models.get("inception_v3")(32).loss)
wide = {"hidden": (4096, 2048, 1024), "depth": 32, "ids": 10}
ranker = tf.sim.Profile.from_graph(tf.sim.models.get("ranker")(4096, **wide).loss)
DENSE = {"model": inception, "examples": 1024, "servers": 16}
SPARSE = {"model": ranker, "examples": 1 << 20, "servers": 128}
SPARSE |= {"parts": 128, "most_items": 128}


def split(workers, model, examples, servers, network="10Gb/s", **options):
    """Examples per second when `workers` share out the examples of each step."""
    where = tf.sim.cluster_model(workers, servers, network=network)
    batch = examples // workers
    return tf.sim.estimate(model, where, steps=4, batch=batch, **options).throughput


def speedups(counts, model, **options):
    """Over one GPU, for each number of workers."""
    one = tf.sim.estimate(model, tf.sim.cluster_model(1, 0), steps=1).single
    return np.array([split(n, model, **options) for n in counts]) / one


# %%
workers = np.array([16, 32, 64, 128, 256, 512])
dense, sparse = speedups(workers, **DENSE), speedups(workers, **SPARSE)
tf.viz.curve(workers, {"dense": dense, "sparse": sparse}, "GPUs", "times one GPU")

# %%
card_without_limit = tf.sim.Nic("no limit", 1e18, 0.0, "made up")
wires = tf.sim.Network(card_without_limit, 0.0, per_message_cpu_s=0.0)
free = speedups(workers, **DENSE, network=wires, off=["rpc", "stragglers"])
faster = speedups(workers, **DENSE, network="40Gb/s")
lines = {"dense": dense, "dense, 40 Gb/s": faster, "dense, free network": free}
lines |= {"sparse": sparse}
columns = {name: [f"{times:.1f}" for times in line] for name, line in lines.items()}
tf.viz.table({"GPUs": workers} | columns)

# %%
per_gpu = {n: split(n, inception, 32 * n, 16) for n in (128, 256, 512)}
print("dense, with 32 images for each GPU:")
for n, rate in per_gpu.items():
    print(f"GPUs: {n}   {rate:,.0f} images/s")

# %% jupyter={"source_hidden": true}
# A check that the text below holds
assert workers[dense.argmax()] in (32, 64) and dense[-1] < dense.max() / 4
assert workers[faster.argmax()] == 64
assert workers[sparse.argmax()] in (128, 256) and sparse[-1] < sparse.max()
assert (np.diff(free[:-1]) > 0).all() and 1.0 < per_gpu[512] / per_gpu[256] < 1.2

# %% [markdown]
# For the dense network a few dozen, for the sparse one a few hundred. Then it gets worse: each server has to send its
# part of the variables to every worker. Twice the workers are twice the bytes, while computing gets shorter.
#
# *Where it ends:* with a network that costs nothing, 256 GPUs are better than 128. (At 512, with two images for each,
# what is slow is to add up 512 gradients.) And if each GPU keeps its 32 images, training does not get slower, but twice
# the GPUs bring a tenth more. The numbers depend on the batch, on the servers and on the network: with 40 Gb/s, 64 GPUs
# are best for the dense one.
#
# ## 9. Published results
#
# Google's figures of 2016 come without hardware, networks or numbers of servers. The library's estimates next to them,
# for asynchronous workers with K40s and 10 Gb/s, name what they assume; nothing in them was fitted to these figures.
# (There are more in `docs/simulator.md`.)

# %%
others = ("ResNet", "one host")
shown = [it for it in tf.sim.CLAIMS if not any(name in it.name for name in others)]
speedup = {claim.name: claim.predicted("10Gb/s").speedup for claim in shown}
tf.viz.table({
    "network": [claim.name for claim in shown],
    "published": [f"{claim.published} ×" for claim in shown],
    "estimated": [f"{times:.0f} ×" for times in speedup.values()],
    "assumed": [claim.assumed for claim in shown],
})  # fmt: skip

# %% jupyter={"source_hidden": true}
# A check that the text below holds
assert 25 < speedup["Inception-v3, 50 GPUs"] < 50
assert 4 < speedup["seq2seq, 8 GPUs in 8 hosts"] < 8
assert speedup["dense: VGG-16, 50 GPUs"] < 10 < 25 < speedup["the same, variables cut"]

# %% [markdown]
# Inception and translation come out near what was published. VGG-16 does not scale while its largest variable lies
# whole on one server, and does when that is cut. The ranker reaches half of its 300: with these sizes its dense layers
# fill the network first. We let that stand: a model that agrees with everything explains nothing.
#
# *Which claim of a colleague, or of an advertisement, would you like to try next?*
