"""Workloads: what is measured, written once for both libraries.

A workload is a function of the library's TF1 namespace that sets everything up and returns `measure`; each call of that
is one more measurement, and gives one value per row. Where there is a floor below both libraries, `bare` measures that:
NumPy or gRPC by hand.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.servers import ServerProcess, free_addresses

Measure = Callable[[], Sequence[float]]


@dataclass(frozen=True)
class Row:
    """A line of the table: its unit, and the ratio to reach. Of what is counted per second, more is better."""

    unit: str
    bar: float | None = None
    against: str = "TensorFlow"

    @property
    def more_is_better(self) -> bool:
        return self.unit.endswith("/s")


@dataclass(frozen=True)
class Workload:
    """Rows of the table by name, how they are measured, and how often."""

    rows: dict[str, Row]
    prepare: Callable[[Any], Measure]
    rounds: int
    bare: Callable[[], Measure] | None = None


WORKLOADS: dict[str, Workload] = {}
_servers: list[Any] = []  # TensorFlow's end when nobody holds them
_folders: list[Any] = []  # are deleted when nobody holds them


def workload(name: str, rows: dict[str, Row], rounds: int = 5, bare: Callable[[], Measure] | None = None) -> Any:
    """Decorator: what follows is the workload `name`."""

    def register(prepare: Callable[[Any], Measure]) -> Callable[[Any], Measure]:
        WORKLOADS[name] = Workload(rows, prepare, rounds, bare)
        return prepare

    return register


def best(function: Callable[[], Any], calls: int, batches: int = 50) -> float:
    """Seconds per call in the best of some batches, each so short that other programs do not get into all of them."""

    def batch() -> float:
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - start) / calls

    return min(batch() for _ in range(batches))


# ---- starting -----------------------------------------------------------------------------------------------

_IMPORT = """
import time; start = time.perf_counter()
import {module}
seconds = time.perf_counter() - start
import resource; print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def _import(module: str) -> Measure:
    def measure() -> list[float]:
        command = [sys.executable, "-c", _IMPORT.format(module=module)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [float(word) for word in done.stdout.split()]

    return measure


_IMPORT_ROWS = {"import, fresh interpreter": Row("s", 0.1), "resident memory after it": Row("MB", 0.2)}


@workload("import", _IMPORT_ROWS, bare=lambda: _import("numpy"))
def importing(tf: Any) -> Measure:
    return _import(tf.__name__)


def _step_on_all(tf: Any, target: str, spec: dict[str, list[str]]) -> None:
    """A session and a step that needs every task."""
    with tf.Graph().as_default():
        parts = []
        for job, addresses in spec.items():
            for index in range(len(addresses)):
                with tf.device(f"/job:{job}/task:{index}"):
                    parts.append(tf.random_uniform([]))  # TensorFlow would fold constants together
        total = tf.add_n(parts)
        with tf.Session(target) as session:
            session.run(total)


@workload("start-threads", {"3 servers in one process, first step on all": Row("s")})
def start_in_one_process(tf: Any) -> Measure:
    def measure() -> list[float]:
        addresses = free_addresses(3)
        spec = {"ps": addresses[:1], "worker": addresses[1:]}
        start = time.perf_counter()
        servers = [tf.train.Server(spec, job_name=job, task_index=i) for job in spec for i in range(len(spec[job]))]
        _step_on_all(tf, servers[1].target, spec)
        seconds = time.perf_counter() - start
        for server in servers:
            if hasattr(server, "stop"):
                server.stop()
        return [seconds]

    return measure


@workload("start-processes", {"3 processes, first step on all": Row("s")}, rounds=3)
def start_processes(tf: Any) -> Measure:
    def measure() -> list[float]:
        addresses = free_addresses(3)
        spec = {"ps": addresses[:1], "worker": addresses[1:]}
        start = time.perf_counter()
        servers = [ServerProcess(tf.__name__, spec, job, i) for job in spec for i in range(len(spec[job]))]
        targets = [server.wait() for server in servers]
        _step_on_all(tf, targets[1], spec)
        seconds = time.perf_counter() - start
        for server in servers:
            server.stop()
        return [seconds]

    return measure


# ---- one small step -----------------------------------------------------------------------------------------


def _scalar_add(tf: Any, target: str = "", as_callable: bool = False) -> Callable[[], float]:
    """The latency in µs of `session.run(x + 1, {x: 2})`, or of a callable that does that."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        y = x + 1.0
        session = tf.Session(target)
        feed = {x: 2.0}
        call = session.make_callable(y, [x])
    assert session.run(y, feed) == call(2.0) == 3.0
    if as_callable:
        return lambda: 1e6 * best(lambda: call(2.0), 20)
    return lambda: 1e6 * best(lambda: session.run(y, feed), 20)


_SCALAR_ROWS = {"scalar add, feed and fetch, local session": Row("µs", 0.15), "same, a callable": Row("µs", 0.15)}


@workload("scalar-local", _SCALAR_ROWS)
def scalar_local(tf: Any) -> Measure:
    runs = [_scalar_add(tf, as_callable=as_callable) for as_callable in (False, True)]
    return lambda: [run() for run in runs]


_SERVER_ROWS = {
    "same over gRPC, server in this process": Row("µs", 0.25),
    "same, by an address that is not its": Row("µs"),
}


@workload("scalar-server", _SERVER_ROWS)
def scalar_same_process(tf: Any) -> Measure:
    server = tf.train.Server.create_local_server()
    # dtflab calls a server of its own process directly; by another name of its address it does not recognize it.
    targets = [server.target, server.target.replace("localhost", "127.0.0.1")]
    _servers.append(server)
    runs = [_scalar_add(tf, target) for target in targets]
    return lambda: [run() for run in runs]


def _echo() -> Measure:
    import grpc

    server = ServerProcess("", {}, "", 0)
    call = grpc.insecure_channel(f"127.0.0.1:{server.wait()}").unary_unary("/benchmarks.Echo/Echo")
    request = bytes(150)  # as much as RunStep has here
    call(request)
    return lambda: [1e6 * best(lambda: call(request), 20)]


@workload("scalar-process", {"same over gRPC, server in another process": Row("µs", 1.3)}, bare=_echo)
def scalar_other_process(tf: Any) -> Measure:
    server = ServerProcess(tf.__name__, {"local": free_addresses(1)}, "local", 0)
    run = _scalar_add(tf, server.wait())
    return lambda: [run()]


# ---- many small nodes, one large one ------------------------------------------------------------------------

_MANY_ROWS = {
    "chain of 2,000 dependent scalar adds, per op": Row("µs", 3),
    "2,000 independent adds and an add_n, per op": Row("µs", 1.5),
}


@workload("adds", _MANY_ROWS)
def many_adds(tf: Any) -> Measure:
    with tf.Graph().as_default():
        x = y = tf.placeholder(tf.float32, [])
        for _ in range(2000):
            y = y + x
        total = tf.add_n([x + float(i) for i in range(2000)])
        session = tf.Session()
    return lambda: [1e6 / 2000 * best(lambda t=t: session.run(t, {x: 1.0}), 2, 20) for t in (y, total)]


_SIZE = 2048


def _product_rate(multiply: Callable[[], Any]) -> Measure:
    """Billions of additions and multiplications per second."""
    return lambda: [2e-9 * _SIZE**3 / best(multiply, 1, 15)]


def _matrices() -> list[Any]:
    random = np.random.RandomState(0)
    return [random.rand(_SIZE, _SIZE).astype(np.float32) for _ in range(2)]


def _numpy_product() -> Measure:
    a, b = _matrices()
    return _product_rate(lambda: a @ b)


@workload("matmul", {"2048×2048 float32 matmul": Row("GFLOP/s", 0.98, against="bare")}, bare=_numpy_product)
def matmul(tf: Any) -> Measure:
    with tf.Graph().as_default():
        a, b = (tf.Variable(matrix) for matrix in _matrices())
        product = tf.matmul(a, b).op
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    return _product_rate(lambda: session.run(product))


# ---- queues -------------------------------------------------------------------------------------------------


@workload("queue-scalar", {"FIFOQueue, single elements: enqueue, dequeue": Row("el/s", 5)})
def queue_scalar(tf: Any) -> Measure:
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(1000, tf.float32, [()])
        put, take = queue.enqueue(1.0), queue.dequeue()
        session = tf.Session()

    def through() -> None:
        session.run(put)
        session.run(take)

    return lambda: [1 / best(through, 1, 500)]


_QUEUE_ROWS = {
    "FIFOQueue, 100 at a time": Row("el/s", 1),
    "RandomShuffleQueue, 100 at a time": Row("el/s", 1),
    "PaddingFIFOQueue, 100 at a time": Row("el/s"),
}


@workload("queue-batches", _QUEUE_ROWS)
def queue_batches(tf: Any) -> Measure:
    """Rows of 32 floats and a label, put and taken by the hundred."""
    with tf.Graph().as_default():
        types, shapes = [tf.float32, tf.int32], [(32,), ()]
        queues = [
            tf.FIFOQueue(1000, types, shapes),
            tf.RandomShuffleQueue(1000, 100, types, shapes),
            tf.PaddingFIFOQueue(1000, types, [(None,), ()]),
        ]
        rows = tf.constant(np.ones((100, 32), np.float32)), tf.constant(np.arange(100, dtype=np.int32))
        session = tf.Session()
        session.run([queue.enqueue_many(rows) for queue in queues])
        steps = [(queue.enqueue_many(rows), queue.dequeue_many(100)) for queue in queues]

    def through(put: Any, take: Any) -> None:
        session.run(put)
        session.run(take)

    return lambda: [100 / best(lambda step=step: through(*step), 5) for step in steps]


@workload("queue-threads", {"one row a step on a thread, batches of 50 on another": Row("rows/s")})
def queue_threads(tf: Any) -> Measure:
    """What a QueueRunner and a training loop do to each other."""
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(200, [tf.float32, tf.int32], [(32,), ()])
        put, take = queue.enqueue((np.ones(32, np.float32), 1)), queue.dequeue_many(50)
        session = tf.Session()

    def measure() -> list[float]:
        def fill() -> None:
            for _ in range(2000):
                session.run(put)

        start = time.perf_counter()
        filling = threading.Thread(target=fill)
        filling.start()
        for _ in range(40):
            session.run(take)
        filling.join()
        return [2000 / (time.perf_counter() - start)]

    return measure


_INPUT_ROWS = {
    "examples one by one through tf.train.batch, 1 thread": Row("/s"),
    "same, 2 threads": Row("/s"),
    "same from a slice_input_producer, 1 thread": Row("/s"),
    "same, 2 threads there": Row("/s"),
}


@workload("input", _INPUT_ROWS, rounds=3)
def input_pipeline(tf: Any) -> Measure:
    """Queue runners that put one example a step, and a loop that takes batches of 100."""
    return lambda: [_examples(tf, sliced, threads) for sliced in (False, True) for threads in (1, 2)]


def _examples(tf: Any, sliced: bool, threads: int) -> float:
    """Examples per second, of 8 floats and a label, in the best of some stretches."""
    rows, labels = np.ones((1000, 8), np.float32), np.arange(1000)
    with tf.Graph().as_default():
        example = tf.train.slice_input_producer([rows, labels]) if sliced else [tf.constant(rows[0]), tf.constant(1)]
        batch = tf.train.batch(example, 100, num_threads=threads)
        with tf.Session() as session:
            coordinator = tf.train.Coordinator()
            running = tf.train.start_queue_runners(session, coordinator)
            rate = 100 / best(lambda: session.run(batch), 20, 10)
            coordinator.request_stop()
            coordinator.join(running)
    return rate


# ---- training -----------------------------------------------------------------------------------------------


def _data(size: int, batch: int) -> tuple[Any, Any]:
    """Inputs and one-hot labels."""
    random = np.random.RandomState(0)
    return random.rand(batch, size).astype(np.float32), np.eye(10, dtype=np.float32)[random.randint(0, 10, batch)]


def _mlp(tf: Any, sizes: Sequence[int], optimizer: Any = None) -> tuple[Any, Any, Any]:
    """Placeholders and the training op of a network with layers of these sizes; gradient descent by default."""
    x, labels = tf.placeholder(tf.float32, [None, sizes[0]]), tf.placeholder(tf.float32, [None, sizes[-1]])
    layer = x
    for i, (rows, columns) in enumerate(itertools.pairwise(sizes)):
        w = tf.Variable(tf.truncated_normal([rows, columns], stddev=0.05, seed=i + 1))
        b = tf.Variable(tf.zeros([columns]))
        layer = tf.matmul(layer if i == 0 else tf.nn.relu(layer), w) + b
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=layer))
    optimizer = tf.train.GradientDescentOptimizer(0.1) if optimizer is None else optimizer
    return x, labels, optimizer.minimize(loss)


def _numpy_mlp(sizes: Sequence[int], batch: int) -> Measure:
    """The same arithmetic by hand."""
    x, labels = _data(sizes[0], batch)
    random = np.random.RandomState(1)
    weights = [random.randn(*shape).astype(np.float32) * np.float32(0.05) for shape in itertools.pairwise(sizes)]
    biases = [np.zeros(size, np.float32) for size in sizes[1:]]
    rate = np.float32(0.1)

    def step() -> None:
        layers = [x]
        for w, b in zip(weights, biases):
            layers.append(np.maximum(layers[-1] @ w + b, 0) if w is not weights[-1] else layers[-1] @ w + b)
        exp = np.exp(layers[-1] - layers[-1].max(1, keepdims=True))
        slope = (exp / exp.sum(1, keepdims=True) - labels) / np.float32(batch)
        for i in reversed(range(len(weights))):
            before = (slope @ weights[i].T) * (layers[i] > 0) if i else None
            weights[i] -= rate * (layers[i].T @ slope)
            biases[i] -= rate * slope.sum(0)
            slope = before

    return lambda: [1 / best(step, 10)]


_SMALL, _DEEP = (784, 100, 10), (784, 300, 100, 10)


@workload("mlp", {"MLP 784-100-10, batch 100": Row("steps/s", 1.8)}, bare=lambda: _numpy_mlp(_SMALL, 100))
def mlp(tf: Any) -> Measure:
    return _mlp_steps(tf, _SMALL, 100)


@workload("mlp-deep", {"MLP 784-300-100-10, batch 50": Row("steps/s", 1.5)}, bare=lambda: _numpy_mlp(_DEEP, 50))
def mlp_deep(tf: Any) -> Measure:
    return _mlp_steps(tf, _DEEP, 50)


@workload("mlp-adam", {"MLP 784-100-10, batch 100, Adam": Row("steps/s")})
def mlp_adam(tf: Any) -> Measure:
    return _mlp_steps(tf, _SMALL, 100, tf.train.AdamOptimizer())


def _mlp_steps(tf: Any, sizes: Sequence[int], batch: int, optimizer: Any = None) -> Measure:
    with tf.Graph().as_default():
        x, labels, train = _mlp(tf, sizes, optimizer)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    feed = dict(zip((x, labels), _data(sizes[0], batch), strict=True))
    return lambda: [1 / best(lambda: session.run(train, feed), 10)]


_CNN_ROWS = {"CNN 28×28, batch 32, training step": Row("steps/s", 0.4), "same, forward only": Row("steps/s", 0.4)}


@workload("cnn", _CNN_ROWS)
def cnn(tf: Any) -> Measure:
    """The net of TensorFlow's MNIST tutorial: 5×5×32, pool, 5×5×64, pool, 1024 units, 10 classes."""
    with tf.Graph().as_default():
        x, labels = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
        layer = tf.reshape(x, [-1, 28, 28, 1])
        for i, channels in enumerate(((1, 32), (32, 64))):
            w = tf.Variable(tf.truncated_normal([5, 5, *channels], stddev=0.1, seed=i))
            layer = tf.nn.conv2d(layer, w, strides=[1, 1, 1, 1], padding="SAME")
            layer = tf.nn.relu(layer + tf.Variable(tf.constant(0.1, shape=channels[1:])))
            layer = tf.nn.max_pool(layer, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
        layer = tf.reshape(layer, [-1, 7 * 7 * 64])
        for i, sizes in enumerate(((7 * 7 * 64, 1024), (1024, 10))):
            w = tf.Variable(tf.truncated_normal(sizes, stddev=0.1, seed=2 + i))
            layer = tf.matmul(layer if i == 0 else tf.nn.relu(layer), w) + tf.Variable(
                tf.constant(0.1, shape=sizes[1:])
            )
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=layer))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    feed = dict(zip((x, labels), _data(784, 32), strict=True))
    return lambda: [1 / best(lambda op=op: session.run(op, feed), 2, 20) for op in (train, layer)]


_LSTM_ROWS = {
    "LSTM 28 × 28, 128 units, batch 100, static_rnn, training step": Row("steps/s"),
    "same, forward only": Row("steps/s"),
    "the same LSTM in dynamic_rnn, training step": Row("steps/s"),
    "the same LSTM in dynamic_rnn, forward only": Row("steps/s"),
}


@workload("lstm", _LSTM_ROWS)
def lstm(tf: Any) -> Measure:
    """Images row by row, as TF1's tutorials did it: 28 steps of 28 inputs, the last output is classified."""
    feeds, steps = [], []
    for unrolled in (True, False):
        with tf.Graph().as_default():
            x, labels = tf.placeholder(tf.float32, [100, 28 * 28]), tf.placeholder(tf.float32, [100, 10])
            rows = tf.reshape(x, [100, 28, 28])
            cell = tf.nn.rnn_cell.BasicLSTMCell(128)
            if unrolled:
                last = tf.nn.static_rnn(cell, tf.unstack(rows, axis=1), dtype=tf.float32)[0][-1]
            else:
                last = tf.nn.dynamic_rnn(cell, rows, dtype=tf.float32)[1].h
            logits = tf.layers.dense(last, 10)
            loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))
            train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
            session = tf.Session()
            session.run(tf.global_variables_initializer())
        feeds.append(dict(zip((x, labels), _data(784, 100), strict=True)))
        steps += [(session, train, feeds[-1]), (session, logits, feeds[-1])]
    return lambda: [1 / best(lambda one=one: one[0].run(one[1], one[2]), 2, 20) for one in steps]


@workload("ps", {"MLP 64-32-10, batch 32, 1 ps + 2 workers in one process": Row("steps/s")})
def ps_training(tf: Any) -> Measure:
    """Between-graph replication: each worker has its own graph and thread, the variables are on the ps."""
    addresses = free_addresses(3)
    spec = {"ps": addresses[:1], "worker": addresses[1:]}
    servers = [tf.train.Server(spec, job_name=job, task_index=i) for job in spec for i in range(len(spec[job]))]
    _servers.extend(servers)
    steps = [_ps_client(tf, spec, servers[1 + index].target, index) for index in (0, 1)]

    def together() -> None:
        threads = [threading.Thread(target=lambda s=step: [s() for _ in range(25)]) for step in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return lambda: [25 * len(steps) / best(together, 1, batches=20)]


def _ps_client(tf: Any, spec: dict[str, list[str]], target: str, index: int) -> Callable[[], Any]:
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{index}")):
            x, labels, train = _mlp(tf, (64, 32, 10))
        session = tf.Session(target)
        if index == 0:
            session.run(tf.global_variables_initializer())
    feed = dict(zip((x, labels), _data(64, 32), strict=True))
    session.run(train, feed)
    return lambda: session.run(train, feed)


# ---- reading ------------------------------------------------------------------------------------------------


def _csv_columns(tf: Any, path: str, batch: int | None) -> Callable[[], Any]:
    """A step that reads the next record, or the next `batch`, of a file that is read again and again."""
    with tf.Graph().as_default():
        names = tf.FIFOQueue(1000, [tf.string], shapes=[()])
        reader = tf.TextLineReader()
        _, lines = reader.read(names) if batch is None else reader.read_up_to(names, batch)
        columns = tf.decode_csv(lines, [[0.0]] * 4 + [[0]])
        fill = names.enqueue_many([[path] * 1000])
        session = tf.Session()
        session.run(fill)
    return lambda: session.run(columns)


@workload("csv", {"CSV records of 5 columns, one per run": Row("/s"), "same, read_up_to 1,000": Row("/s")})
def csv(tf: Any) -> Measure:
    folder = tempfile.TemporaryDirectory()
    path = os.path.join(folder.name, "records.csv")
    random = np.random.RandomState(0)
    with open(path, "w", encoding="ascii") as file:
        for row in random.rand(50_000, 4):
            file.write(",".join(f"{x:.3f}" for x in row) + f",{random.randint(3)}\n")
    one, many = _csv_columns(tf, path, None), _csv_columns(tf, path, 1000)
    _folders.append(folder)
    return lambda: [1 / best(one, 50), 1000 / best(many, 2)]


_DATA_ROWS = {
    "from_tensor_slices().repeat(), one row a step": Row("/s", 1),
    "same in batches of 100": Row("batches/s", 1),
    "map(x * 2 + 1), batches of 100": Row("batches/s"),
    "same with prefetch(2)": Row("batches/s"),
    "same with num_parallel_calls=2": Row("batches/s"),
    "shuffle(1,000), batches of 100": Row("batches/s", 0.8),
}


@workload("data", _DATA_ROWS)
def data(tf: Any) -> Measure:
    """Rows of 32 floats and a label through tf.data, taken by one step each."""
    rows = np.ones((1000, 32), np.float32), np.arange(1000)
    with tf.Graph().as_default():
        endless = tf.data.Dataset.from_tensor_slices(rows).repeat()
        mapped, beside = (
            endless.map(lambda x, label: (x * 2 + 1, label), num_parallel_calls=calls).batch(100) for calls in (None, 2)
        )
        made = [endless, endless.batch(100), mapped, mapped.prefetch(2), beside, endless.shuffle(1000).batch(100)]
        iterators = [dataset.make_initializable_iterator() for dataset in made]
        elements = [iterator.get_next() for iterator in iterators]
        session = tf.Session()
        session.run([iterator.initializer for iterator in iterators])
    calls = (
        200,
        200,
        100,
        100,
        100,
        100,
    )  # many more than TensorFlow makes ahead, unasked, between two batches of them
    return lambda: [1 / best(lambda e=e: session.run(e), n, 3) for e, n in zip(elements, calls, strict=True)]


# ---- large graphs -------------------------------------------------------------------------------------------


_GRAPH_ROWS = {
    "building 5,000 ops": Row("s", 0.3),
    "their gradients": Row("s", 0.3),
    "the first run of both": Row("s", 0.3),
}


@workload("graph", _GRAPH_ROWS, rounds=3)
def graph(tf: Any) -> Measure:
    def measure() -> list[float]:
        with tf.Graph().as_default():
            times = [time.perf_counter()]
            x = y = tf.placeholder(tf.float32, [])
            while len(tf.get_default_graph().get_operations()) < 5000:
                y = tf.tanh(y * 0.5 + x)
            times.append(time.perf_counter())
            (slope,) = tf.gradients(y, x)
            times.append(time.perf_counter())
            with tf.Session() as session:
                session.run([y, slope], {x: 0.5})
            times.append(time.perf_counter())
        return [end - start for start, end in itertools.pairwise(times)]

    return measure
