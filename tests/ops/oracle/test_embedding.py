"""Embeddings, side by side with TensorFlow: shards, norms, bags of ids, and gradients that stay sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.oracle.test_variable_scope import tried
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_answer(run):
    theirs, ours = both(run)
    assert len(theirs) == len(ours)
    for want, got in zip(theirs, ours):
        if isinstance(want, np.ndarray):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        else:
            assert got == want


@program.each()
def test_same_graph(run):
    assert_same_graph(run)


def values(tf: Any, *fetches: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(list(fetches))
        return [np.asarray(part) for fetch in found for part in (fetch if isinstance(fetch, tuple) else (fetch,))]


def table(rows: int = 10, start: int = 0) -> np.ndarray:
    return (np.arange(start * 3, (start + rows) * 3, dtype="f") / 4).reshape(rows, 3)


@program.both_kinds
def one_matrix(tf, use_resource):
    w = tf.Variable(table(), use_resource=use_resource, name="w")
    found = [tf.nn.embedding_lookup(w, ids) for ids in ([1, 3, 1], [[0, 9], [2, 2]], 5, np.array([7], "i8"))]
    clipped = [tf.nn.embedding_lookup(w, ids, max_norm=2.0, name="clipped") for ids in ([1, 3], [[0, 9]])]
    (gradient,) = tf.gradients(found[0] * found[0], w)
    return [*values(tf, *found, *clipped, gradient), type(gradient).__name__, [t.shape.as_list() for t in found]]


@program.both_kinds
def shards(tf, use_resource):
    def make(sizes):
        starts = np.cumsum([0, *sizes])
        return [tf.Variable(table(n, s), use_resource=use_resource) for n, s in zip(sizes, starts)]

    mod, div = make([4, 3, 3]), make([4, 3, 3])
    ids = tf.constant([[1, 9, 3], [0, 9, 5]])
    found = [tf.nn.embedding_lookup(mod, ids), tf.nn.embedding_lookup(div, ids, partition_strategy="div", name="d")]
    found += [tf.nn.embedding_lookup(mod, tf.placeholder_with_default(np.array([3, 8], "i8"), [None]), max_norm=1.0)]
    gradients = tf.gradients([tf.reduce_sum(f * f) for f in found], [*mod, *div])
    kinds = [type(g).__name__ for g in gradients]
    return [*values(tf, *found, *gradients), kinds, [t.shape.as_list() for t in found]]


@program.both_kinds
def partitioned(tf, use_resource):
    w = tf.get_variable(
        "w", initializer=tf.constant(table(7)), partitioner=tf.fixed_size_partitioner(3), use_resource=use_resource
    )
    ids = [0, 6, 4, 4, 2]
    return values(tf, tf.nn.embedding_lookup(w, ids, "div"), tf.nn.embedding_lookup(w, ids))


@program
def shards_of_unknown_size(tf):
    parts = [tf.placeholder_with_default(table(n, s), [None, 3]) for n, s in ((4, 0), (3, 4))]
    unknown = [tf.placeholder_with_default(table(4), None), tf.placeholder_with_default(table(3), [3, None])]
    return values(
        tf, tf.nn.embedding_lookup(parts, [0, 6, 4], partition_strategy="div"), tf.nn.embedding_lookup(unknown, [0, 5])
    )


def bags(tf: Any) -> tuple[Any, Any]:
    where = [[0, 0], [0, 2], [1, 1], [3, 0], [3, 1], [3, 3]]
    return (
        tf.SparseTensor(where, tf.constant([1, 3, 0, 2, 2, 1], tf.int64), [4, 4]),
        tf.SparseTensor(where, tf.constant([1.0, 2.0, 0.5, -1.0, 0.0, 3.0]), [4, 4]),
    )


@program.both_kinds
def bags_of_ids(tf, use_resource):
    w = tf.Variable(table(4), use_resource=use_resource)
    parts = [tf.Variable(table(2, s), use_resource=use_resource) for s in (0, 2)]
    ids, weights = bags(tf)
    found = [
        tf.nn.embedding_lookup_sparse(params, ids, given, combiner=combiner)
        for params in (w, parts) for given in (None, weights) for combiner in ("sum", "mean", "sqrtn", None)
    ]  # fmt: skip
    found += [tf.nn.embedding_lookup_sparse(w, ids, None, max_norm=1.0, name="clipped")]
    gradients = tf.gradients([tf.reduce_sum(f * f) for f in found], [w, *parts])
    plain = tf.gradients(found[1], w)
    return [*values(tf, *found, *gradients, *plain), [type(g).__name__ for g in [*gradients, *plain]]]


@program.both_kinds
def bags_that_may_be_empty(tf, use_resource):
    w = [tf.Variable(table(2, s), use_resource=use_resource) for s in (0, 2)]
    where = [[0, 0], [0, 2], [1, 1], [3, 0], [3, 1]]
    ids = tf.SparseTensor(where, tf.constant([1, -1, -3, 2, 0], tf.int64), [5, 4])
    weights = tf.SparseTensor(where, tf.constant([1.0, 2.0, 0.5, -1.0, 3.0]), [5, 4])
    deep = tf.SparseTensor([[0, 0, 0], [1, 1, 1]], tf.constant([3, 1], tf.int64), [2, 2, 3])
    safe = tf.nn.safe_embedding_lookup_sparse
    found = [
        safe(w, ids), safe(w, ids, weights), safe(w, ids, weights, combiner="sum", default_id=3),
        safe(w, ids, default_id=2, combiner="sqrtn", name="named"), safe(w, deep, partition_strategy="mod"),
        safe(w[0], tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [2, 2]), max_norm=0.5),
    ]  # fmt: skip
    return [*values(tf, *found), [t.shape.as_list() for t in found]]


@program
def refusals(tf):
    w = tf.Variable(table(4))
    ids, _weights = bags(tf)
    calls = [
        lambda: tf.nn.embedding_lookup(None, [1]),
        lambda: tf.nn.embedding_lookup([], [1]),
        lambda: tf.nn.embedding_lookup([w, w], [1], partition_strategy="other"),
        lambda: tf.nn.embedding_lookup_sparse(w, [1], None),
        lambda: tf.nn.embedding_lookup_sparse(w, ids, [1.0]),
        lambda: tf.nn.embedding_lookup_sparse(w, ids, None, combiner="other"),
        lambda: tf.nn.safe_embedding_lookup_sparse(None, ids),
        lambda: tf.nn.safe_embedding_lookup_sparse([], ids),
    ]
    return [tuple(part.replace("tensorflow.python.framework", "")[:60] for part in tried(call)) for call in calls]


@program.both_kinds
def rows_of_gradients_joined(tf, use_resource):
    """The gradients of several lookups of one matrix are rows behind each other, and train it row by row."""
    w = tf.Variable(table(6), use_resource=use_resource)
    a, b = tf.nn.embedding_lookup(w, [1, 1]), tf.gather(w, [4, 0, 1])
    loss = tf.reduce_sum(a * a) + tf.reduce_sum(b)
    (gradient,) = tf.gradients(loss, w)
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows = session.run(gradient)
        session.run(step)
        return [type(gradient).__name__, np.asarray(rows.values), np.asarray(rows.indices), session.run(w)]


@program
def matrices_of_any_rank(tf):
    found = []
    for params in (table()[:, 0], table(), table(12).reshape(6, 2, 3)):
        for ids in (3, [5, 0], [[1, 2], [3, 4]]):
            parts = [params[p::2] for p in range(2)]
            found += [tf.nn.embedding_lookup(params, ids), tf.nn.embedding_lookup(parts, ids, max_norm=1.0)]
            found += [tf.nn.embedding_lookup(params, ids, max_norm=1.0)]
    return [*values(tf, *found), [t.shape.as_list() for t in found]]


@program
def computed_matrices_and_unknown_shapes(tf):
    w = tf.Variable(table(4))
    parts = [tf.Variable(table(2, s)) for s in (0, 2)]
    feeds = [tf.placeholder(tf.float32) for _ in range(2)]
    lookups = [
        tf.nn.embedding_lookup(tf.square(w), [1, 3, 1]),
        tf.nn.embedding_lookup([tf.square(p) for p in parts], [[3], [0]]),
        tf.nn.embedding_lookup(feeds, np.array([3, 0], "i8"), partition_strategy="div"),
    ]  # fmt: skip
    gradients = tf.gradients(lookups[:2], [w, *parts])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        fed = dict(zip(feeds, (table(2), table(2, 2))))
        return [np.asarray(v) for v in session.run([*lookups, *gradients], fed)]


@program
def trained_with_momentum_and_adam(tf):
    """Optimizers with slots take rows, also of a partitioned variable; rows that were not asked for stay."""
    w = tf.get_variable("w", initializer=tf.constant(table(7)), partitioner=tf.fixed_size_partitioner(2))
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(w, [0, 6, 4, 4], partition_strategy="div")))
    steps = [tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss), tf.train.AdamOptimizer(0.1).minimize(loss)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for step in steps * 3:
            session.run(step)
        return [session.run(w.as_tensor()), [v.name for v in tf.global_variables()]]
