"""Sparse tensors, side by side with TensorFlow: fed, fetched, converted, cut, joined, reshaped, computed with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()


@program
def functions_that_keep_zeros(tf):
    x = tf.SparseTensor([[0, 1], [2, 0]], [0.25, -0.5], [3, 2])
    m = tf.math
    names = [m.abs, m.negative, m.sin, m.tan, m.asin, m.atan, m.asinh, m.atanh, m.sign, m.square, m.erf, m.tanh]
    found = [*(function(x) for function in names), tf.sqrt(m.abs(x), name="root")]
    return plain(tf.Session().run([*found, tf.square([2.0])]))


test_same_answer = program.same_answers()


@program.each()
def test_same_graph(run):
    assert_same_graph(run)


def plain(value: Any) -> Any:
    """A fetched value as lists, rounded, with its dtype."""
    if type(value).__name__ == "SparseTensorValue":
        return [plain(part) for part in value]
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        rounded = np.round(value, 4) if value.dtype.kind in "fc" else value
        return value.dtype.name, rounded.tolist()
    return value


def tried(call: Callable[[], Any]) -> Any:
    """The result of a call, or the class of its error."""
    try:
        return plain(call())
    except Exception as error:
        return type(error).__name__


def run(tf: Any, *fetches: Any) -> list[Any]:
    with tf.Session() as session:
        return [tried(lambda f=f: session.run(f)) for f in fetches]


def static(*sparse: Any) -> list[Any]:
    return [(str(s.shape), str(s.indices.shape), str(s.values.shape), s.dtype.name) for s in sparse]


def example(tf: Any, dtype: str = "f") -> Any:
    where = np.array([[0, 1], [1, 0], [1, 3], [2, 2]], np.int64)
    return tf.SparseTensor(where, tf.constant(np.array([1, 2, 3, 4], dtype)), [3, 4])


def other(tf: Any) -> Any:
    return tf.SparseTensor([[0, 0], [1, 0], [2, 2]], [5.0, -2.0, -4.5], [3, 4])


@program
def fed_and_fetched(tf):
    p, q = tf.sparse_placeholder(tf.float32, [None, 3], name="p"), tf.sparse_placeholder(tf.int32)
    r = tf.sparse_placeholder(tf.float32, tf.TensorShape([2, 3]))
    total = tf.sparse_reduce_sum(p)
    value = tf.SparseTensorValue(np.array([[0, 1]]), np.array([2.0], "f"), np.array([4, 3]))
    with tf.Session() as session:
        calls = [
            lambda: session.run(p, {p: value}),
            lambda: session.run([p, {"q": q}, total], {p: ([[0, 1]], [2.0], [4, 3]), q: ([[1]], [3], [9])}),
            lambda: session.run(r, {r: ([[0, 1]], [2.0], [2, 3])}),
            lambda: session.run(p),
            lambda: session.run(p, {p: ([[0, 1, 2]], [2.0], [1, 2, 3])}),
            lambda: p.eval({p: value}, session),
            lambda: example(tf).eval(session=session),
            lambda: session.run(tf.SparseTensorValue(tf.constant(1), tf.constant(2), tf.constant(3))),
        ]
        return static(p, q, r), [tried(call) for call in calls]


@program
def made_of_parts(tf):
    a = example(tf)
    made = tf.SparseTensor.from_value(tf.SparseTensorValue([[0, 1]], [1.5], [2, 2]))
    unknown = tf.SparseTensor(tf.placeholder(tf.int64), tf.placeholder(tf.float32), tf.placeholder(tf.int64))
    unknown.set_shape([None, 3])
    calls = [
        lambda: tf.SparseTensor([[0, 0]], [1, 2], [3, 4]), lambda: tf.SparseTensor([0, 0], [1, 2], [3, 4]),
        lambda: tf.SparseTensor([[0, 0]], [1], [3]), lambda: tf.SparseTensor([[0.5, 0]], [1], [3, 4]),
        lambda: tf.convert_to_tensor(a), lambda: a + 1, lambda: tf.SparseTensor.from_value(3),
        lambda: a.set_shape([2, 2]), lambda: tf.convert_to_tensor_or_sparse_tensor(a, tf.int32),
    ]  # fmt: skip
    converted = tf.convert_to_tensor_or_sparse_tensor
    same = [converted(a) is a, converted(a, tf.float32) is a, converted([1, 2]).shape.as_list()]
    doubled = a.with_values(a.values * 2)
    parts = [tf.shape(a), tf.size(a), tf.rank(a), tf.cast(a, tf.int32), tf.identity(a), tf.to_double(a), doubled]
    names = [a.op.name, a.graph is tf.get_default_graph(), str(a.get_shape()), a.values.dtype.name]
    return static(a, made, unknown), [tried(call) for call in calls], same, run(tf, *parts), names


@program
def to_dense_and_back(tf):
    a = example(tf)
    words = tf.SparseTensor([[0, 1], [1, 0]], ["a", "b"], [2, 2])
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 1]], tf.constant([2, 0, 2], tf.int64), [3, 2])
    unordered = tf.SparseTensor([[1, 0], [0, 1]], [1.0, 2.0], [2, 2])
    outside = tf.SparseTensor([[5, 0]], [1.0], [2, 2])
    dense = [
        tf.sparse_tensor_to_dense(a), tf.sparse_tensor_to_dense(a, -1.0, name="d"),
        tf.sparse_tensor_to_dense(words, "?"), tf.sparse_to_dense([1, 3], [5], 2), tf.sparse_to_dense(2, [5], 1.5, 9.0),
        tf.sparse_to_dense([[0, 1], [1, 0]], [2, 2], [1, 2], name="m"), tf.sparse_to_indicator(ids, 4),
        tf.sparse_tensor_to_dense(unordered), tf.sparse_tensor_to_dense(unordered, validate_indices=False),
        tf.sparse_tensor_to_dense(outside), tf.sparse_tensor_to_dense(tf.sparse_reorder(unordered)),
    ]  # fmt: skip
    return [str(t.shape) for t in dense], run(tf, *dense, tf.sparse.from_dense([[0, 3], [1, 0]]), tf.sparse.eye(2, 3))


@program
def order_and_shape(tf):
    a = example(tf)
    unordered = tf.SparseTensor([[1, 0], [0, 1], [0, 0]], ["b", "c", "a"], [2, 2])
    unknown = tf.SparseTensor(a.indices, a.values, tf.placeholder_with_default(np.array([3, 4], "i8"), [2]))
    made = [
        tf.sparse_reorder(unordered), tf.sparse_reorder(unknown), tf.sparse_reshape(a, [4, 3]),
        tf.sparse_reshape(a, [-1, 2], name="r"), tf.sparse_reshape(unknown, [2, -1]), tf.sparse_transpose(a),
        tf.sparse_transpose(a, [0, 1]), tf.sparse_transpose(unknown, [1, 0]), tf.sparse_reset_shape(a),
        tf.sparse_reset_shape(a, [5, 6]), tf.sparse.expand_dims(a),
        tf.sparse.expand_dims(a, 0),
    ]  # fmt: skip
    calls = [
        lambda: tf.sparse_reshape(a, [5]), lambda: tf.sparse_reshape(a, [-1, -1]),
        lambda: tf.sparse_reset_shape(a, [2, 4]), lambda: tf.sparse_reset_shape(a, [5]), lambda: tf.sparse_reorder(3),
    ]  # fmt: skip
    return static(*made), run(tf, *made), [tried(call) for call in calls]


@program
def parts_and_wholes(tf):
    a, b = example(tf), other(tf)
    narrow = tf.SparseTensor([[2, 1]], [9.0], [3, 2])
    made = [
        tf.sparse_concat(0, [a, b]), tf.sparse_concat(1, [a, b, narrow]), tf.sparse_concat(-1, [a, narrow], name="c"),
        tf.sparse_concat(0, [a, narrow], expand_nonconcat_dim=True),
        tf.sparse_concat(sp_inputs=[a], concat_dim=0, axis=None),
        *tf.sparse_split(sp_input=a, num_split=2, axis=1), *tf.sparse_split(sp_input=a, num_split=2, axis=0, name="s"),
        tf.sparse_slice(a, [1, 0], [2, 3]), tf.sparse_slice(a, [0, 1], [9, 9]),
        tf.sparse_retain(a, [True, False, False, True]), tf.sparse_retain(a, a.values > 2),
    ]  # fmt: skip
    filled, empty = tf.sparse_fill_empty_rows(tf.SparseTensor([[1, 0], [3, 2]], [1.0, 2.0], [5, 4]), -1.0)
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([3, 1, 2]), [2, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [0.5, 1.5, 2.5], [2, 2])
    made += [filled, tf.sparse_merge(ids, weights, 5), tf.sparse_merge([ids, ids], weights, [5, 6], name="two")]
    made += [tf.sparse_merge(ids, weights, 5, already_sorted=True)]
    calls = [
        lambda: tf.sparse_split(a), lambda: tf.sparse_split(3, a, 2, 0), lambda: tf.sparse_concat(0, 3),
        lambda: tf.sparse_merge(ids, weights, [5]), lambda: tf.sparse_merge([ids], weights, [5, 6]),
        lambda: tf.sparse_retain(a, [True]), lambda: tf.sparse_retain(a, True),
    ]  # fmt: skip
    return static(*made), run(tf, *made, empty), [tried(call) for call in calls]


@program
def arithmetic(tf):
    a, b = example(tf), other(tf)
    dense = tf.reshape(tf.range(12.0), [3, 4])
    whole = example(tf, "i4")
    made = [
        tf.sparse_add(a, b), tf.sparse_add(a, b, 1.0), tf.sparse_add(a, dense), tf.sparse_add(dense, a),
        tf.sparse_maximum(a, b), tf.sparse_minimum(a, b, name="least"),
        tf.sparse_softmax(a), a * dense, a / (dense + 1.0),
        a * tf.constant(2.0), dense * a, whole / tf.constant(2), a * [1.0, 2.0, 3.0, 4.0],
        tf.sparse_tensor_dense_matmul(a, tf.transpose(dense)), tf.sparse_tensor_dense_matmul(a, dense, adjoint_a=True),
        tf.sparse_tensor_dense_matmul(a, dense, adjoint_b=True, name="m"),
        tf.sparse_tensor_dense_matmul(dense, a, adjoint_b=True),
    ]  # fmt: skip
    return run(tf, *made), tried(lambda: tf.sparse_add(dense, dense)), [str(t.shape) for t in made]


@program
def reductions(tf):
    a = example(tf)
    unknown = tf.SparseTensor(a.indices, a.values, tf.placeholder_with_default(np.array([3, 4], "i8"), [None]))
    made = []
    for reduce in (
        tf.sparse_reduce_sum,
        tf.sparse_reduce_max,
        tf.sparse_reduce_sum_sparse,
        tf.sparse_reduce_max_sparse,
    ):
        made += [reduce(a), reduce(a, 0), reduce(a, [-1], keepdims=True), reduce(a, [0, 1], True), reduce(unknown, 1)]
        made += [reduce(a, reduction_axes=0, keep_dims=True)]
    return run(tf, *made), [str(t.shape) for t in made]


@program
def segments(tf):
    data = tf.constant(np.arange(8, dtype="f").reshape(4, 2))
    made = [
        f(data, [0, 3, 3], [0, 0, 2], **more)
        for f in (tf.sparse_segment_sum, tf.sparse_segment_mean, tf.sparse_segment_sqrt_n)
        for more in ({}, {"num_segments": 4}, {"name": "named"})
    ]
    wrong = [([0, 9], [0, 1]), ([0, 1], [1, 0]), ([0, 1], [-1, 0])]
    return run(tf, *made, *(tf.sparse_segment_sum(data, *w) for w in wrong)), [str(t.shape) for t in made]


@program
def messages(tf):
    a, words = example(tf), tf.SparseTensor([[0, 1], [1, 0]], ["a", "b" * 200], [2, 4])
    one, two, rows = tf.serialize_sparse(a), tf.serialize_sparse(words, name="w"), tf.serialize_many_sparse(a)
    wide = tf.serialize_sparse(tf.SparseTensor([[4, 5]], [9.0], [5, 6]))
    back = [
        tf.deserialize_many_sparse(rows, tf.float32, rank=2),
        tf.deserialize_many_sparse(tf.stack([one, wide]), tf.float32),
        tf.deserialize_many_sparse(tf.expand_dims(two, 0), tf.string, name="s"),
    ]  # fmt: skip
    low, high = [tf.SparseTensor([[place, 1]], [1.0], [2, 4]) for place in (0, 5)]
    refused = [
        tf.deserialize_many_sparse(rows, tf.int32), tf.deserialize_many_sparse([["a", "b", "c"]], tf.int32),
        tf.serialize_many_sparse(high), tf.serialize_many_sparse(tf.SparseTensor([[1]], [1.0], [2])),
    ]  # fmt: skip
    return static(*back), [str(t.shape) for t in (one, rows)], run(tf, one, two, rows, *back, low), run(tf, *refused)


@program
def masked(tf):
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [3.0]]), tf.constant([4, 6, 8]), tf.constant([10, 1]))
    kept = tf.sparse_mask(slices, [6, 9], name="m")
    return run(tf, kept.values, kept.indices, tf.sparse.mask(slices, [4]).values)


@program
def gradients(tf):
    values = tf.constant([1.0, 2.0, 3.0, 4.0])
    a = tf.SparseTensor([[0, 1], [1, 0], [1, 3], [2, 2]], values, [3, 4])
    b, dense = other(tf), tf.reshape(tf.range(1.0, 13.0), [3, 4])
    made = [
        tf.sparse_tensor_to_dense(a), tf.sparse_reorder(a).values, tf.sparse_add(a, b).values, tf.sparse_add(a, dense),
        tf.sparse_reduce_sum(a, 1), tf.sparse_slice(a, [1, 0], [2, 3]).values, tf.sparse_softmax(a).values,
        tf.sparse_tensor_dense_matmul(a, dense, adjoint_b=True), (a * dense).values, (a / dense).values,
        tf.sparse_fill_empty_rows(a, 0.0)[0].values, tf.sparse_retain(a, values > 2).values,
    ]  # fmt: skip
    found = [g for y in made for g in tf.gradients(y * y, [values, dense]) if g is not None]
    return run(tf, *found)


@program
def values_instead_of_tensors(tf):
    """Functions also take what a session gives."""
    where = np.array([[0, 1], [1, 0]], np.int64)
    a = tf.SparseTensorValue(where, np.array([1.0, 2.0], "f"), np.array([2, 3], np.int64))
    ids = tf.SparseTensorValue(a.indices, np.array([1, 2], np.int64), a.dense_shape)
    dense = tf.ones([2, 3])
    calls = [
        lambda: tf.sparse_tensor_to_dense(a), lambda: tf.sparse_reorder(a), lambda: tf.sparse_reshape(a, [3, 2]),
        lambda: tf.sparse_retain(a, [True, False]), lambda: tf.sparse_concat(0, [a, a]), lambda: tf.sparse_add(a, a),
        lambda: tf.sparse_add(a, dense), lambda: tf.sparse_split(sp_input=a, num_split=2, axis=0),
        lambda: tf.sparse_slice(a, [0, 0], [1, 2]), lambda: tf.sparse_fill_empty_rows(a, 0.0)[0],
        lambda: tf.sparse_to_indicator(ids, 4), lambda: tf.sparse_merge(ids, a, 4), lambda: tf.sparse_reset_shape(a),
        lambda: tf.sparse_tensor_dense_matmul(a, dense, adjoint_b=True), lambda: tf.sparse_reduce_sum(a, 1),
        lambda: tf.sparse_reduce_sum(a), lambda: tf.sparse_reduce_max(a, 0), lambda: tf.sparse_softmax(a),
        lambda: tf.sparse_maximum(a, a), lambda: tf.sparse_transpose(a), lambda: tf.serialize_sparse(a),
        lambda: tf.shape(a), lambda: tf.size(a), lambda: tf.rank(a), lambda: tf.cast(a, tf.int32),
    ]  # fmt: skip
    with tf.Session() as session:
        return [tried(lambda call=call: session.run(call())) for call in calls]


@program
def shapes_known_to_the_step_only(tf):
    fed = tf.sparse_placeholder(tf.float32)
    a = tf.SparseTensor([[0, 0], [1, 2]], [1.0, 2.0], [2, 3])
    changed = [tf.sparse_reset_shape(fed, [3, 4]), tf.sparse_reset_shape(a, tf.placeholder_with_default([4, 4], None))]
    total = tf.sparse_tensor_to_dense(tf.sparse_reduce_sum_sparse(a))
    consumers = sorted(op.name for op in a.consumers())
    with tf.Session() as session:
        seen = session.run([*changed, total], {fed: tf.SparseTensorValue([[1, 1]], [5.0], [2, 2])})
    return plain(seen), static(*changed), consumers


@pytest.mark.parametrize("least", [False, True])
def test_operands_that_do_not_fit(least):
    cases = [
        ([[0, 0]], [1.0], [1, 1], [[0]], [1.0], [2]), ([[0]], [1.0], [1], [[0]], [1.0], [2]),
        ([[0]], [1.0], [1, 2], [[0]], [1.0], [2]), ([[0]], [1.0, 2.0], [1], [[0]], [1.0], [1]),
    ]  # fmt: skip

    def refused(tf):
        op, said = tf.sparse_minimum if least else tf.sparse_maximum, []
        parts = [tf.placeholder(kind) for kind in (tf.int64, tf.float32, tf.int64) * 2]
        either = op(tf.SparseTensor(*parts[:3]), tf.SparseTensor(*parts[3:]))
        with tf.Session() as session:
            for case in cases:
                with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                    session.run(either, dict(zip(parts, case, strict=True)))
                said.append(caught.value.message)
        return said

    theirs, ours = both(refused)
    for their, our in zip(theirs, ours, strict=True):
        assert our.partition("\n")[0].strip() in their


def test_a_new_shape_that_does_not_fit():
    def refused(tf):
        sp, wanted, said = tf.sparse_placeholder(tf.float32), tf.placeholder(tf.int64), []
        changed = tf.sparse_reset_shape(sp, wanted)
        with tf.Session() as session:
            for shape in ([3], [1, 3]):
                with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                    session.run(changed, {sp: tf.SparseTensorValue([[0, 0]], [1.0], [2, 3]), wanted: shape})
                said.append("x == y did not hold" in str(caught.value))
        return said, session.graph.get_operations()[-1].name

    theirs, ours = both(refused)
    assert ours == theirs
