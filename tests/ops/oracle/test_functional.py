"""tf.map_fn, tf.foldl, tf.foldr and tf.scan: the graphs that they make, values, gradients, what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from dtflab.machine.hosts import simulate_gpus
from tests.oracle import answers
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()  # `function(tf)` → a list of what to fetch


@program.each("make")
def test_same_values(make):
    def answer(tf):
        with tf.Graph().as_default(), tf.Session() as session:
            fetches = make(tf)
            session.run(tf.global_variables_initializer())
            return session.run(fetches)

    for theirs, ours in zip(*answers.both(answer), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-5)
        assert ours.dtype == theirs.dtype


@program.each("make")
def test_same_graph(make):
    assert_same_graph(make, gradients=True)


@program.each("make")
def test_same_static_shapes(make):
    theirs, ours = both(lambda tf: [str(t.shape) for t in make(tf)])
    assert ours == theirs


# -- map ----------------------------------------------------------------------------------------------------------


@program
def map_squares(tf):
    return [
        tf.map_fn(lambda x: x * x, np.array([1, 2, 3])),
        tf.map_fn(tf.negative, tf.constant([[1.0], [2.0]]), name="n"),
    ]


@program
def map_to_other_dtypes(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    a, b = tf.map_fn(lambda row: (tf.reduce_sum(row), tf.argmax(row)), x, dtype=(tf.float32, tf.int64))
    return [a, b, tf.map_fn(lambda row: row > 1.5, x, fn_output_signature=tf.bool)]


@program
def map_of_structures(tf):
    elems = {"x": tf.constant([1.0, 2.0]), "y": [tf.constant([[3.0], [4.0]]), np.array([5, 6])]}
    found = tf.map_fn(lambda e: {"x": e["y"][0], "y": [e["x"], e["y"][1] + 1]}, elems, dtype={
        "x": tf.float32, "y": [tf.float32, tf.int64],
    })  # fmt: skip
    return [found["x"], *found["y"]]


@program
def map_of_unknown_rows(tf):
    x = tf.placeholder_with_default([[1.0], [2.0], [3.0]], [None, 1])
    return [tf.map_fn(lambda row: row + 1.0, x, parallel_iterations=2, swap_memory=True, back_prop=False)]


@program
def map_without_shapes(tf):
    p = tf.placeholder_with_default([2, 2], [2])
    return [tf.map_fn(lambda n: tf.ones([n]), p, dtype=tf.float32, infer_shape=False)]


@program
def map_with_variables(tf):
    def scaled(row):
        with tf.variable_scope("inside", reuse=tf.AUTO_REUSE):
            return row * tf.get_variable("w", [2], initializer=tf.ones_initializer())

    rows = tf.get_variable("rows", initializer=[[1.0, 2.0], [3.0, 4.0]], use_resource=True)
    return [tf.map_fn(scaled, rows), tf.map_fn(scaled, tf.constant([[5.0, 6.0]]))]


@program
def map_in_a_map(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return [tf.map_fn(lambda row: tf.map_fn(lambda v: v * row[0], row), x)]


# -- folds ----------------------------------------------------------------------------------------------------------


@program
def folds(tf):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    return [tf.foldl(lambda a, v: a * 2 + v, x), tf.foldr(lambda a, v: a * 2 + v, x)]


@program
def folds_from_a_beginning(tf):
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    y = tf.placeholder_with_default([1.0, 2.0, 3.0], [None])
    return [
        tf.foldl(lambda a, v: a + v, x, initializer=tf.constant([10.0, 20.0]), name="sum"),
        tf.foldr(lambda a, v: a - v, y, initializer=tf.constant(1.0), parallel_iterations=1, back_prop=False),
        tf.foldl(lambda a, v: a * v, y),
    ]


@program
def folds_of_structures(tf):
    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    a, b = tf.foldl(lambda s, e: (s[0] + e[1], s[1] * e[0]), (x, y))
    c = tf.foldr(lambda s, e: s + e[0] * e[1], [x, y], initializer=tf.constant(0.0))
    return [a, b, c]


# -- scans ----------------------------------------------------------------------------------------------------------


@program
def scans(tf):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    return [tf.scan(lambda a, v: a + v, x), tf.scan(lambda a, v: a * v, x, reverse=True, name="back")]


@program
def scans_from_a_beginning(tf):
    x = tf.placeholder_with_default([[1.0], [2.0], [3.0]], [None, 1])
    return [
        tf.scan(lambda a, v: a + tf.reduce_sum(v), x, initializer=tf.constant(100.0)),
        tf.scan(lambda a, v: a * v, x, initializer=tf.constant([2.0]), reverse=True, infer_shape=False),
    ]


@program
def scans_of_structures(tf):
    fibonacci = tf.scan(lambda a, _: (a[1], a[0] + a[1]), np.zeros(6, np.int64), (np.array(0), np.array(1)))
    both = tf.scan(lambda a, e: [a[0] + e[0], a[1] * e[1]], [tf.constant([1, 2]), tf.constant([3.0, 4.0])])
    return [*fibonacci, *both]


# -- gradients --------------------------------------------------------------------------------------------------------


@program
def gradients_of_maps(tf):
    x, w = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.constant([2.0, 3.0])
    a, b = tf.map_fn(lambda row: (row * row * w, tf.reduce_sum(row)), x, dtype=(tf.float32, tf.float32))
    return tf.gradients([a, b * [1.0, 2.0, 3.0]], [x, w])


@program
def gradients_of_maps_of_unknown_rows(tf):
    x = tf.placeholder_with_default([1.0, 2.0, 3.0], [None])
    return tf.gradients(tf.map_fn(lambda v: tf.sin(v) * v, x), x)


@program
def gradients_of_folds(tf):
    x, start = tf.constant([1.0, 2.0, 3.0]), tf.constant(5.0)
    found = [tf.foldl(lambda a, v: a * v + v, x), tf.foldr(lambda a, v: a * v + v * v, x, initializer=start)]
    return tf.gradients(found, [x, start])


@program
def gradients_of_scans(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    found = [tf.scan(lambda a, v: a * v + v, x), tf.scan(lambda a, v: a * v, x, reverse=True) ** 2]
    return tf.gradients(found, x)


@program
def gradients_of_a_map_in_a_map(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return tf.gradients(tf.map_fn(lambda row: tf.map_fn(lambda v: v * v * row[0], row), x), x)


@program
def hessians(tf):
    x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([[2.0]])
    return tf.hessians(tf.reduce_sum(x**3 * x[0]) * y[0, 0] ** 2, [x, y])


# -- what they refuse -------------------------------------------------------------------------------------------------


def refused(tf: Any, make: Callable[[Any], Any]) -> str:
    with tf.Graph().as_default(), pytest.raises((TypeError, ValueError)) as info:
        make(tf)
    return info.type.__name__


@pytest.mark.parametrize(
    "make",
    [
        lambda tf: tf.map_fn(lambda x: x, []),
        lambda tf: tf.map_fn(lambda x: x, tf.constant(1.0)),
        lambda tf: tf.map_fn(lambda x: (x, x), tf.constant([1.0])),
        lambda tf: tf.map_fn(lambda x: x[0], [tf.constant([1.0]), tf.constant([1.0, 2.0])], dtype=tf.float32),
        lambda tf: tf.scan(lambda a, x: (a, x), tf.constant([1.0])),
        lambda tf: tf.foldl(lambda a, x: tf.stack([a, x]), tf.constant([1.0, 2.0])),
    ],
)
def test_same_refusals(make):
    theirs, ours = answers.both(lambda tf: refused(tf, make))
    assert ours == theirs


def test_what_is_no_function():
    for function in (dtflab.map_fn, dtflab.foldl, dtflab.foldr, dtflab.scan):
        with dtflab.Graph().as_default(), pytest.raises(TypeError, match="3 is not callable"):
            function(3, dtflab.constant([1.0]))


def test_rows_of_sparse_tensors():
    with dtflab.Graph().as_default():
        sparse = dtflab.SparseTensor([[0, 1]], [1.0], [2, 2])
        with pytest.raises(TypeError, match=r"fn\(input.values\).*tf.sparse.to_dense"):
            dtflab.map_fn(lambda row: row, sparse)


def test_a_function_that_fails_leaves_the_scope_as_it_was():
    with dtflab.Graph().as_default():
        with pytest.raises(ZeroDivisionError):
            dtflab.map_fn(lambda row: 1 / 0, dtflab.constant([1.0]))
        assert dtflab.get_variable_scope().caching_device is None


# -- on devices -------------------------------------------------------------------------------------------------------


def trained_through_a_scan(tf: Any) -> list[Any]:
    """A recurrence by hand: its last value, and its gradients by weight and input."""
    w, x = tf.constant([[0.5, -0.3], [0.2, 0.8]]), tf.constant([[[1.0, 2.0]], [[-1.0, 0.5]], [[0.3, 0.7]]])
    states = tf.scan(lambda a, row: tf.tanh(tf.matmul(a, w) + row), x, initializer=tf.zeros([1, 2]))
    squares = tf.map_fn(lambda a: a * a, states)
    return [states, *tf.gradients(squares, [w, x])]


def train_through_a_scan(tf):
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(trained_through_a_scan(tf))


def test_on_a_gpu(monkeypatch):
    expected = answers.theirs(train_through_a_scan)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(1)
    with dtflab.Graph().as_default(), dtflab.device("/gpu:0"), dtflab.Session() as session:
        fetches = trained_through_a_scan(dtflab)
        for _ in range(2):
            found = session.run(fetches)
        placed = {node.name: node.device for node in session.placed_nodes()}
    simulate_gpus(None)
    assert all("GPU:0" in where for name, where in placed.items() if "TensorArray" in name and "Array/" not in name)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-5)


@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_across_tasks(engine):
    expected = answers.theirs(train_through_a_scan)
    with dtflab.Cluster(ps=1, worker=1, engine=engine) as cluster, dtflab.Graph().as_default():
        with dtflab.device("/job:ps/task:0"):
            fetches = trained_through_a_scan(dtflab)
        with dtflab.device("/job:worker/task:0"):
            fetches = [dtflab.identity(t) for t in fetches]
        with dtflab.Session(cluster.target) as session:
            found = session.run(fetches)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-5)


def test_a_recurrence_cut_in_two_over_tasks():
    """The rows are on one task, the function of a row on another: the loop runs on both."""
    with dtflab.Cluster(ps=1, worker=1) as cluster, dtflab.Graph().as_default():
        with dtflab.device("/job:ps/task:0"):
            x = dtflab.constant([1.0, 2.0, 3.0])

        def elsewhere(v):
            with dtflab.device("/job:worker/task:0"):
                return v * v * v

        y = dtflab.map_fn(elsewhere, x)
        (dx,) = dtflab.gradients(y, x)
        with dtflab.Session(cluster.target) as session:
            assert [v.tolist() for v in session.run([y, dx])] == [[1.0, 8.0, 27.0], [3.0, 12.0, 27.0]]
