"""Steps of training: perceptrons, convolutional and recurrent nets, parameter servers."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks.servers import free_addresses
from benchmarks.workloads import by_hand
from benchmarks.workloads.workload import KEPT, Measure, Row, best, in_threads, workload


def examples(size: int, batch: int) -> tuple[Any, Any]:
    """Inputs and one-hot labels."""
    random = np.random.RandomState(0)
    return random.rand(batch, size).astype(np.float32), np.eye(10, dtype=np.float32)[random.randint(0, 10, batch)]


def perceptron(tf: Any, sizes: Sequence[int], optimizer: Any = None, step: Any = None) -> tuple[Any, Any, Any]:
    """Placeholders and the training op of a network with layers of these sizes; gradient descent by default."""
    x, labels = tf.placeholder(tf.float32, [None, sizes[0]]), tf.placeholder(tf.float32, [None, sizes[-1]])
    layer = x
    for i, (rows, columns) in enumerate(itertools.pairwise(sizes)):
        w = tf.Variable(tf.truncated_normal([rows, columns], stddev=0.05, seed=i + 1))
        b = tf.Variable(tf.zeros([columns]))
        layer = tf.matmul(layer if i == 0 else tf.nn.relu(layer), w) + b
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=layer))
    optimizer = tf.train.GradientDescentOptimizer(0.1) if optimizer is None else optimizer
    return x, labels, optimizer.minimize(loss, global_step=step)


SMALL, _DEEP = (784, 100, 10), (784, 300, 100, 10)


def perceptron_by_hand(sizes: Sequence[int], batch: int, update: Callable[..., None] = by_hand.descend) -> by_hand.Step:
    shapes = [shape for pair in itertools.pairwise(sizes) for shape in (pair, pair[1:])]
    return by_hand.perceptron(_weights(shapes), *examples(sizes[0], batch), update)


def _weights(shapes: Sequence[Sequence[int]]) -> list[Any]:
    """Random matrices and filters, and biases of 0.1."""
    random = np.random.RandomState(1)
    return [
        random.randn(*shape).astype(np.float32) * np.float32(0.05)
        if len(shape) > 1
        else np.full(shape, 0.1, np.float32)
        for shape in shapes
    ]


def _rates(*steps: Callable[[], Any], batches: int = 20) -> Measure:
    """Steps per second of each."""
    return lambda: [1 / best(step, 2, batches) for step in steps]


def _bare_rates(*steps: Callable[[], Any], batches: int = 20, threads: tuple[int | None, ...] = (1, None)) -> Measure:
    """Steps per second with one thread of NumPy's BLAS, or with all (None) if that is faster."""

    def rate(step: Callable[[], Any], limit: int | None) -> float:
        with threadpoolctl.threadpool_limits(limit):
            return 1 / best(step, 2, batches)

    return lambda: [max(rate(step, limit) for limit in threads) for step in steps]


def _bare_cnn() -> Measure:
    """Measure the CNN by hand with one thread of BLAS: it has two of its own, and more would spin for a core."""
    return _bare_rates(*by_hand.convolutional(_weights(_CNN_SHAPES), *examples(784, 32)), threads=(1,))


@workload(
    "mlp",
    {"MLP 784-100-10, batch 100": Row("steps/s", 1.5)},
    bare=lambda: _bare_rates(perceptron_by_hand(SMALL, 100), batches=200),
)
def mlp(tf: Any) -> Measure:
    return _mlp_steps(tf, SMALL)


@workload(
    "mlp-deep",
    {"MLP 784-300-100-10, batch 100": Row("steps/s", 1.5)},
    bare=lambda: _bare_rates(perceptron_by_hand(_DEEP, 100), batches=200),
)
def mlp_deep(tf: Any) -> Measure:
    return _mlp_steps(tf, _DEEP)


@workload(
    "mlp-adam",
    {"MLP 784-100-10, batch 100, Adam": Row("steps/s", 1.2)},
    bare=lambda: _bare_rates(perceptron_by_hand(SMALL, 100, by_hand.adam()), batches=200),
)
def mlp_adam(tf: Any) -> Measure:
    return _mlp_steps(tf, SMALL, tf.train.AdamOptimizer())


def _mlp_steps(tf: Any, sizes: Sequence[int], optimizer: Any = None) -> Measure:
    with tf.Graph().as_default():
        x, labels, train = perceptron(tf, sizes, optimizer)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    feed = dict(zip((x, labels), examples(sizes[0], 100), strict=True))
    return _rates(lambda: session.run(train, feed), batches=200)


@workload("ps", {"MLP 64-32-10, batch 32, 1 ps + 2 workers in one process": Row("steps/s")})
def ps_training(tf: Any) -> Measure:
    """Between-graph replication: each worker has its own graph and thread, the variables are on the ps."""
    together = in_threads(ps_clients(tf, 2), 25)
    return lambda: [50 / best(together, 1, batches=20)]


def ps_clients(tf: Any, workers: int) -> list[Callable[[], Any]]:
    """A step of each worker, of a new cluster in this process."""
    addresses = free_addresses(1 + workers)
    spec = {"ps": addresses[:1], "worker": addresses[1:]}
    servers = [tf.train.Server(spec, job_name=job, task_index=i) for job in spec for i in range(len(spec[job]))]
    KEPT.extend(servers)
    return [_ps_client(tf, spec, server.target, index) for index, server in enumerate(servers[1:])]


def _ps_client(tf: Any, spec: dict[str, list[str]], target: str, index: int) -> Callable[[], Any]:
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{index}")):
            x, labels, train = perceptron(tf, (64, 32, 10))
        session = tf.Session(target)
        if index == 0:
            session.run(tf.global_variables_initializer())
    feed = dict(zip((x, labels), examples(64, 32), strict=True))
    session.run(train, feed)
    return lambda: session.run(train, feed)


# ---- networks -----------------------------------------------------------------------------------------------

_CNN_ROWS = {"CNN 28×28, batch 32, training step": Row("steps/s", 0.7), "same, forward only": Row("steps/s", 0.4)}
_CNN_SHAPES = ([5, 5, 1, 32], [32], [5, 5, 32, 64], [64], [7 * 7 * 64, 1024], [1024], [1024, 10], [10])


def convolutional(tf: Any) -> tuple[Any, Any, Any, Any]:
    """Placeholders, training op and logits of the net of TensorFlow's MNIST tutorial, without dropout."""
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
        layer = tf.matmul(layer if i == 0 else tf.nn.relu(layer), w) + tf.Variable(tf.constant(0.1, shape=sizes[1:]))
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=layer))
    return x, labels, tf.train.GradientDescentOptimizer(0.01).minimize(loss), layer


@workload("cnn", _CNN_ROWS, bare=_bare_cnn)
def cnn(tf: Any) -> Measure:
    return _rates(*_steps(tf, convolutional, 32))


def _steps(tf: Any, network: Callable[[Any], tuple[Any, Any, Any, Any]], batch: int) -> list[Callable[[], Any]]:
    """A training step and a forward pass of the network."""
    with tf.Graph().as_default():
        x, labels, train, logits = network(tf)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    feed = dict(zip((x, labels), examples(784, batch), strict=True))
    return [lambda: session.run(train, feed), lambda: session.run(logits, feed)]


_LSTM_ROWS = {
    "LSTM 28×28, 128 units, batch 100, static_rnn, training step": Row("steps/s", 0.8),
    "same, forward only": Row("steps/s"),
    "the same LSTM in dynamic_rnn, training step": Row("steps/s", 0.8),
    "the same LSTM in dynamic_rnn, forward only": Row("steps/s"),
}
_LSTM_SHAPES = ([28 + 128, 4 * 128], [4 * 128], [128, 10], [10])


def recurrent(tf: Any, unrolled: bool) -> tuple[Any, Any, Any, Any]:
    """Images row by row, as TF1's tutorials did it: 28 steps of 28 inputs, the last output is classified."""
    x, labels = tf.placeholder(tf.float32, [100, 28 * 28]), tf.placeholder(tf.float32, [100, 10])
    rows = tf.reshape(x, [100, 28, 28])
    cell = tf.nn.rnn_cell.BasicLSTMCell(128)
    if unrolled:
        last = tf.nn.static_rnn(cell, tf.unstack(rows, axis=1), dtype=tf.float32)[0][-1]
    else:
        last = tf.nn.dynamic_rnn(cell, rows, dtype=tf.float32)[1].h
    logits = tf.layers.dense(last, 10)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits))
    return x, labels, tf.train.GradientDescentOptimizer(0.01).minimize(loss), logits


def _bare_lstm() -> Measure:
    measure = _bare_rates(*by_hand.recurrent(_weights(_LSTM_SHAPES), *examples(784, 100)))
    return lambda: 2 * [*measure()]  # unrolled or not


@workload("lstm", _LSTM_ROWS, bare=_bare_lstm)
def lstm(tf: Any) -> Measure:
    steps = [_steps(tf, functools.partial(recurrent, unrolled=unrolled), 100) for unrolled in (True, False)]
    return _rates(*itertools.chain(*steps))
