"""The cost of a step: a small one, many small nodes, one large one; and large graphs, to build and to take in."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.workloads.workload import KEPT, Measure, Row, best, workload


def scalar_add(tf: Any, target: str = "", as_callable: bool = False) -> Callable[[], Any]:
    """A step `session.run(x + 1, {x: 2})`, or of a callable that does that."""
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        y = x + 1.0
        session = tf.Session(target)
        feed = {x: 2.0}
        call = session.make_callable(y, [x])
    assert session.run(y, feed) == call(2.0) == 3.0
    return (lambda: call(2.0)) if as_callable else (lambda: session.run(y, feed))


_SCALAR_ROWS = {"scalar add, feed and fetch, local session": Row("µs", 0.15), "same, a callable": Row("µs", 0.15)}


@workload("scalar-local", _SCALAR_ROWS)
def scalar_local(tf: Any) -> Measure:
    runs = [scalar_add(tf, as_callable=as_callable) for as_callable in (False, True)]
    return lambda: [1e6 * best(run, 20) for run in runs]


_SERVER_ROWS = {
    "same on a server of this process": Row("µs", 0.25),
    "same, by an address that is not its": Row("µs"),
}


@workload("scalar-server", _SERVER_ROWS)
def scalar_same_process(tf: Any) -> Measure:
    server = tf.train.Server.create_local_server()
    # dtflab calls a server of its own process directly; by another name of its address it does not recognize it.
    targets = [server.target, server.target.replace("localhost", "127.0.0.1")]
    KEPT.append(server)
    runs = [scalar_add(tf, target) for target in targets]
    return lambda: [1e6 * best(run, 20) for run in runs]


# ---- many small nodes, one large one ------------------------------------------------------------------------

_MANY_ROWS = {
    "chain of 2,000 dependent scalar adds, per op": Row("µs", aim=0.7),
    "2,000 independent adds and an add_n, per op": Row("µs", 1.5),
}


def _bare_adds() -> Measure:
    x, others = np.float32(1), np.arange(2000, dtype=np.float32)

    def chain() -> None:
        y = x
        for _ in range(2000):
            y = y + x

    def independent() -> None:
        sum([x + other for other in others])

    return lambda: [1e6 / 2000 * best(adds, 2, 20) for adds in (chain, independent)]


@workload("adds", _MANY_ROWS, bare=_bare_adds)
def many_adds(tf: Any) -> Measure:
    with tf.Graph().as_default():
        x = y = tf.placeholder(tf.float32, [])
        for _ in range(2000):
            y = y + x
        total = tf.add_n([x + float(i) for i in range(2000)])
        session = tf.Session()
    return lambda: [1e6 / 2000 * best(lambda t=t: session.run(t, {x: 1.0}), 2, 20) for t in (y, total)]


def _bare_loop() -> Measure:
    first, one, last = np.int32(0), np.int32(1), np.int32(1000)

    def loop() -> None:
        i = first
        while i < last:
            i = i + one

    return lambda: [1e6 / 1000 * best(loop, 1, 20)]


@workload("while", {"a turn of tf.while_loop, a counter": Row("µs", aim=5)}, bare=_bare_loop)
def while_loop(tf: Any) -> Measure:
    with tf.Graph().as_default():
        last = tf.placeholder(tf.int32, [])
        count = tf.while_loop(lambda i: i < last, lambda i: i + 1, [0])
        session = tf.Session()
    assert session.run(count, {last: 7}) == 7
    return lambda: [1e6 / 1000 * best(lambda: session.run(count, {last: 1000}), 1, 20)]


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


@workload("matmul", {"2048×2048 float32 matmul": Row("GFLOP/s", 0.97, against="bare")}, bare=_numpy_product)
def matmul(tf: Any) -> Measure:
    with tf.Graph().as_default():
        a, b = (tf.Variable(matrix) for matrix in _matrices())
        product = tf.matmul(a, b).op
        session = tf.Session()
        session.run(tf.global_variables_initializer())
    return _product_rate(lambda: session.run(product))


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
