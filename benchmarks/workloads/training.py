"""Steps of training: perceptrons, convolutional and recurrent nets, parameter servers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.servers import free_addresses
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


def numpy_perceptron(sizes: Sequence[int], batch: int) -> Callable[[], None]:
    """A step of the same arithmetic by hand."""
    x, labels = examples(sizes[0], batch)
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

    return step


SMALL, _DEEP = (784, 100, 10), (784, 300, 100, 10)


@workload("mlp", {"MLP 784-100-10, batch 100": Row("steps/s", 1.8)}, bare=lambda: _bare_steps(SMALL, 100))
def mlp(tf: Any) -> Measure:
    return _mlp_steps(tf, SMALL, 100)


@workload("mlp-deep", {"MLP 784-300-100-10, batch 50": Row("steps/s", 1.5)}, bare=lambda: _bare_steps(_DEEP, 50))
def mlp_deep(tf: Any) -> Measure:
    return _mlp_steps(tf, _DEEP, 50)


@workload("mlp-adam", {"MLP 784-100-10, batch 100, Adam": Row("steps/s")})
def mlp_adam(tf: Any) -> Measure:
    return _mlp_steps(tf, SMALL, 100, tf.train.AdamOptimizer())


def _bare_steps(sizes: Sequence[int], batch: int) -> Measure:
    step = numpy_perceptron(sizes, batch)
    return lambda: [1 / best(step, 10)]


def _mlp_steps(tf: Any, sizes: Sequence[int], batch: int, optimizer: Any = None) -> Measure:
    with tf.Graph().as_default():
        x, labels, train = perceptron(tf, sizes, optimizer)
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    feed = dict(zip((x, labels), examples(sizes[0], batch), strict=True))
    return lambda: [1 / best(lambda: session.run(train, feed), 10)]


@workload("ps", {"MLP 64-32-10, batch 32, 1 ps + 2 workers in one process": Row("steps/s")})
def ps_training(tf: Any) -> Measure:
    """Between-graph replication: each worker has its own graph and thread, the variables are on the ps."""
    addresses = free_addresses(3)
    spec = {"ps": addresses[:1], "worker": addresses[1:]}
    servers = [tf.train.Server(spec, job_name=job, task_index=i) for job in spec for i in range(len(spec[job]))]
    KEPT.extend(servers)
    steps = [_ps_client(tf, spec, servers[1 + index].target, index) for index in (0, 1)]

    together = in_threads(steps, 25)
    return lambda: [25 * len(steps) / best(together, 1, batches=20)]


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
    feed = dict(zip((x, labels), examples(784, 32), strict=True))
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
        feeds.append(dict(zip((x, labels), examples(784, 100), strict=True)))
        steps += [(session, train, feeds[-1]), (session, logits, feeds[-1])]
    return lambda: [1 / best(lambda one=one: one[0].run(one[1], one[2]), 2, 20) for one in steps]
