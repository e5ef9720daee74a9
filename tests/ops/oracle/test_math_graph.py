"""Wrapper functions and operators make the nodes that TensorFlow makes: names, ops, inputs, attributes, constants."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph

Program = Callable[[Any], Any]


def unary(name: str) -> Program:
    return lambda tf: (getattr(tf, name)(tf.constant([1.5, 0.25])), getattr(tf, name)(0.5, name="named"))


PAIR = (0.5, 1.0)
UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1",
    "floor", "is_finite", "is_inf", "is_nan", "log", "log1p", "negative", "reciprocal", "rint", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "conj", "real", "imag", "zeros_like",
    "ones_like", "identity", "stop_gradient", "shape", "size", "rank", "transpose", "squeeze",
]  # fmt: skip
BINARY = [
    "add", "subtract", "multiply", "div", "divide", "truediv", "floordiv", "realdiv", "mod", "floormod", "pow",
    "maximum", "minimum", "squared_difference", "less", "less_equal", "greater", "greater_equal", "equal",
    "not_equal", "div_no_nan", "truncatediv", "truncatemod", "atan2", "floor_div",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    assert_same_graph(unary(name))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    def program(tf):
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        f = getattr(tf, name)
        return f(x, x), f(x, 2.0), f(2.5, x), f(x, np.ones([3], np.float32), name="named"), f(x, 3)

    assert_same_graph(program)


OPERATORS: dict[str, Program] = {
    "add whole": lambda x: (x + x, x + 1, 1 + x),
    "add": lambda x: (x + x, x + 1, 1 + x, x + np.float32(2), np.ones(2, np.float32) + x, x + PAIR),
    "sub": lambda x: (x - x, x - 1, 1 - x),
    "mul": lambda x: (x * x, x * 2, 2 * x),
    "truediv": lambda x: (x / x, x / 2, 2 / x),
    "floordiv": lambda x: (x // x, x // 2, 2 // x),
    "mod": lambda x: (x % x, x % 2, 2 % x),
    "neg": lambda x: (-x, +1 - -x),
    "abs": lambda x: abs(x),
    "compare": lambda x: (x < 1, x <= x, x > 2, x >= x, x > 3, x < 1),
    "power": lambda x: (x**2, x**x, 2**x),
}


DTYPES = ["float32", "int32", "float64", "int64", "bfloat16", "uint8"]
NO_SUCH_OP = {("uint8", "neg"), ("uint8", "abs"), ("uint8", "power")}  # in TensorFlow


@pytest.mark.parametrize(
    ("dtype", "name"), [pair for pair in itertools.product(DTYPES, OPERATORS) if pair not in NO_SUCH_OP]
)
def test_operators(dtype, name):
    key = "add whole" if name == "add" and dtype != "float32" else name
    assert_same_graph(lambda tf: OPERATORS[key](tf.placeholder(dtype, [None, 2])))


def test_complex_operators():
    def program(tf):
        x = tf.placeholder(tf.complex64, [2])
        y = tf.complex(tf.real(x), tf.imag(x))
        return x * y + 1j, x / 2, abs(x), tf.conj(x), tf.sign(x), tf.angle(x), tf.angle(tf.real(x)), -x

    assert_same_graph(program)


def test_logical_operators():
    def program(tf):
        a = tf.placeholder(tf.bool, [3])
        b = a & True
        c = (a | b) ^ b
        i = tf.placeholder(tf.int32)
        return ~c, True & a, False | b, False ^ c, i & 3, i | i, i ^ 1, ~i, 5 & i, a * b

    assert_same_graph(program)


def test_equality_is_identity():
    import dtflab as tf

    with tf.Graph().as_default() as graph:
        a, b = tf.constant(1), tf.constant(1)
        assert a == a and a != b and a not in [b] and a is not None
        assert a != 1
        assert len(graph.get_operations()) == 2
        assert {a: 1}[a] == 1


def test_matmul_operator_and_function():
    def program(tf):
        x = tf.placeholder(tf.float32, [None, 3])
        w = np.ones((3, 2), np.float32)
        y = x @ w
        tf.matmul(w, x, transpose_a=True, transpose_b=True, name="both")
        tf.matmul(y, w, transpose_b=True)
        tf.matmul(y, w, adjoint_b=True)
        tf.matmul([[1.0, 2.0]], [[1.0], [2.0]])
        tf.matmul(np.ones((2, 3, 4)), np.ones((4, 5)))
        tf.matmul(tf.placeholder(tf.complex64, [2, 3, 4]), tf.placeholder(tf.complex64), transpose_b=True)
        tf.matmul(tf.placeholder(tf.float32), x, adjoint_a=True)
        return [[1.0, 2.0]] @ tf.transpose(y)

    assert_same_graph(program)


GETITEM: dict[str, Program] = {
    "int": lambda x, tf: (x[0], x[-1], x[1, 2], x[0][1]),
    "slice": lambda x, tf: (x[1:], x[:2], x[:], x[::2], x[1:2, ::-1], x[-2:-1]),
    "ellipsis": lambda x, tf: (x[...], x[..., 0], x[0, ..., 1], x[..., 1:]),
    "newaxis": lambda x, tf: (x[tf.newaxis], x[:, None], x[..., None], x[None, 0, None]),
    "tensor": lambda x, tf: (x[tf.constant(1)], x[tf.constant(0) : tf.constant(2)], x[:, tf.constant(1) :]),
    "int64": lambda x, tf: (
        x[tf.constant(1, tf.int64)],
        x[tf.constant(0, tf.int64) :],
        x[1 : tf.constant(2, tf.int64)],
    ),
    "numpy": lambda x, tf: (x[np.int32(1)], x[np.int64(0), 1:2]),
    "mask": lambda x, tf: (x[x > 0], x[np.array([True, False, True])]),
    "list": lambda x, tf: (x[[0, 1]],),
    "of shape": lambda x, tf: (tf.shape(x)[0], tf.shape(tf.placeholder(tf.float32, [None, 2]))[1:]),
    "dimension": lambda x, tf: (x[: x.shape[0]],),
}


@pytest.mark.parametrize("name", GETITEM)
def test_getitem(name):
    assert_same_graph(lambda tf: GETITEM[name](tf.constant(np.arange(12.0).reshape(3, 4)), tf))


REDUCERS = ["reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min", "reduce_logsumexp"]


@pytest.mark.parametrize("name", REDUCERS)
def test_reductions(name):
    def program(tf):
        reduce = getattr(tf, name)
        x = tf.placeholder(tf.float32, [2, None])
        reduce(x)
        reduce(x, 0)
        reduce(x, [0, 1], keepdims=True)
        reduce(x, axis=-1, name="named")
        reduce(tf.placeholder(tf.float32))
        reduce(tf.constant(3.0))
        reduce([1.0, 2.0])
        reduce(np.ones((2, 3), np.float32), tf.constant([1]))

    assert_same_graph(program)


def test_old_argument_names():
    def program(tf):
        x = tf.placeholder(tf.float32, [2, 1])
        tf.reduce_sum(x, reduction_indices=[1], keep_dims=True)
        tf.expand_dims(x, dim=0)
        tf.squeeze(x, squeeze_dims=[1])
        tf.argmax(x, dimension=1)
        tf.concat([x, x], 1)

    assert_same_graph(program)


@pytest.mark.parametrize("name", ["reduce_all", "reduce_any"])
def test_logical_reductions(name):
    def program(tf):
        reduce = getattr(tf, name)
        return reduce([True, False]), reduce(tf.placeholder(tf.bool, [2, 3]), 1, True)

    assert_same_graph(program)


PROGRAMS: dict[str, Program] = {
    "zeros": lambda tf: (tf.zeros([2, 3]), tf.zeros([40, 50], tf.int32), tf.zeros(tf.constant([2])), tf.zeros([])),
    "zeros of tensors": lambda tf: (tf.zeros([tf.constant(2), 3]), tf.zeros(tf.placeholder(tf.int32, [None]))),
    "zeros of kinds": lambda tf: (tf.zeros([2], tf.bool), tf.zeros([2], tf.string), tf.zeros(tf.TensorShape([2, 2]))),
    "ones": lambda tf: (tf.ones([2, 3]), tf.ones([1000], tf.float64), tf.ones([2], tf.bool), tf.ones(5)),
    "zeros_like": lambda tf: (
        tf.zeros_like(tf.placeholder(tf.float32, [None, 2])),
        tf.zeros_like(tf.placeholder(tf.float32, [None, 2]), dtype=tf.int32),
        tf.zeros_like([1, 2]),
        tf.zeros_like(tf.constant([1.0]), dtype=tf.int64),
        tf.zeros_like(tf.constant([1.0]), optimize=False),
    ),
    "ones_like": lambda tf: (
        tf.ones_like(tf.placeholder(tf.float32, [None, 2])),
        tf.ones_like(tf.placeholder(tf.float32, [3, 2]), dtype=tf.int32),
        tf.ones_like([1, 2]),
    ),
    "fill": lambda tf: (tf.fill([2, 3], 9.0), tf.fill(tf.constant([2], tf.int64), "a")),
    "placeholder": lambda tf: (
        tf.placeholder(tf.float32),
        tf.placeholder(tf.int32, [None, 3]),
        tf.placeholder(tf.string, (), name="s"),
        tf.placeholder_with_default([1.0, 2.0], [None]),
        tf.placeholder_with_default(1, (), name="d"),
    ),
    "range": lambda tf: (
        tf.range(5), tf.range(1, 5, 2), tf.range(0.0, 1.0, 0.25), tf.range(3, dtype=tf.float32),
        tf.range(tf.constant(3), name="r"), tf.range(tf.constant(0, tf.int64), 4), tf.add(range(3), [1, 2, 3]),
    ),
    "linspace": lambda tf: (tf.linspace(0.0, 1.0, 5), tf.lin_space([1.0, 2.0], [3.0, 4.0], 3, axis=-1)),
    "cast": lambda tf: (
        tf.cast([1.5], tf.int32), tf.cast(tf.constant(1.0), tf.float32), tf.to_float(3), tf.to_int32([1.0]),
        tf.to_double(tf.constant(1.0)), tf.to_int64(2.0), tf.cast(1, tf.int32), tf.cast(True, tf.float32, name="c"),
    ),
    "shapes": lambda tf: (
        tf.shape(tf.placeholder(tf.float32, [None, 2])), tf.shape([1, 2], out_type=tf.int64),
        tf.size(tf.placeholder(tf.float32)), tf.rank(tf.placeholder(tf.float32)),
        tf.size(tf.placeholder(tf.float32, [None, 0])), tf.rank([1]), tf.shape_n([[1], [2, 3]]),
    ),
    "reshape": lambda tf: (
        tf.reshape([1, 2, 3, 4], [2, 2]), tf.reshape(tf.placeholder(tf.float32), [-1, 3]),
        tf.reshape([1.0, 2.0], tf.TensorShape([2, 1])),
        tf.reshape(tf.zeros([4]), [tf.shape(tf.placeholder(tf.float32))[0], -1], name="r"),
        tf.expand_dims([1, 2], 0), tf.expand_dims([1, 2], -1, name="e"), tf.squeeze([[1]]), tf.squeeze([[1]], [0]),
        tf.squeeze([[1]], 0), tf.squeeze([[1]], axis=-1, name="s"),
    ),
    "transpose": lambda tf: (
        tf.transpose([[1, 2]]), tf.transpose([[1, 2]], [1, 0]), tf.transpose(tf.placeholder(tf.float32)),
        tf.transpose(tf.placeholder(tf.complex64, [2, 2]), conjugate=True, name="h"),
        tf.matrix_transpose(tf.placeholder(tf.float32, [2, 3, 4])), tf.matrix_transpose(tf.placeholder(tf.float32)),
    ),
    "concat": lambda tf: (
        tf.concat([[1], [2]], 0), tf.concat([tf.constant([[1]]), [[2]]], axis=1, name="c"), tf.concat([[1]], 0),
        tf.concat([[1.0], [2.0], tf.zeros([1])], tf.constant(0)), tf.concat(tf.constant([1, 2]), 0),
    ),
    "split": lambda tf: (
        tf.split(tf.zeros([4, 6]), 2), tf.split(tf.zeros([4, 6]), [2, 4], 1), tf.split([1, 2], tf.constant([1, 1])),
        tf.split(tf.zeros([4, 6]), 3, axis=1, name="s"),
    ),
    "stack": lambda tf: (
        tf.stack([1, 2]), tf.stack([tf.constant(1), 2]), tf.stack([[1], [2]], axis=1),
        tf.stack([tf.constant([1.0]), [2.0]], axis=-1, name="s"), tf.unstack([[1, 2], [3, 4]]),
        tf.unstack(tf.zeros([2, 3]), axis=1), tf.unstack(tf.placeholder(tf.float32), num=2, name="u"),
        tf.convert_to_tensor([[tf.constant(1), 2], [3, 4]]),
    ),
    "tile, pad": lambda tf: (
        tf.tile([1, 2], [3]), tf.pad([[1.0]], [[1, 0], [0, 1]]), tf.pad([1], [[1, 1]], constant_values=7),
        tf.broadcast_to([1, 2], [3, 2]), tf.reverse([1, 2], [0]), tf.broadcast_dynamic_shape([2, 1], [3]),
        tf.invert_permutation([1, 0]),
    ),
    "gather": lambda tf: (
        tf.gather([1, 2, 3], [0, 2]), tf.gather([[1, 2]], 0, axis=1), tf.gather([1, 2], [[0]], name="g"),
        tf.gather(tf.zeros([2, 3]), [[0], [1]], batch_dims=1, axis=1), tf.gather_nd([[1, 2]], [[0, 1]]),
        tf.scatter_nd([[1]], [5.0], [3]), tf.scatter_nd([[1]], [5.0], [3], "IGNORE", "s"),
    ),
    "one_hot": lambda tf: (
        tf.one_hot([0, 1], 3), tf.one_hot([0, 1], 3, dtype=tf.int32), tf.one_hot([0], 2, 5.0, -1.0, axis=0),
        tf.one_hot(tf.placeholder(tf.int64), tf.constant(4), on_value=True, off_value=False, name="o"),
    ),
    "where": lambda tf: (
        tf.where([True, False], [1, 2], [3, 4]), tf.where([True, False]), tf.where_v2([True], 1.0, [2.0, 3.0]),
        tf.where(tf.constant(True), 1, 2, name="w"),
    ),
    "logic": lambda tf: (
        tf.logical_and([True], [False]), tf.logical_or(True, False), tf.logical_not([True]),
        tf.logical_xor([True], [False]), tf.equal("a", ["b"]), tf.not_equal(1, 2),
    ),
    "add_n": lambda tf: (
        tf.add_n([tf.constant(1), 2]), tf.add_n([tf.constant(1)]), tf.add_n([tf.constant(1)], name="one"),
        tf.add_n([[1.0], [2.0], [3.0]], name="n"), tf.accumulate_n([[1.0], [2.0]]),
        tf.scalar_mul(2, tf.constant([1.0])),
    ),
    "argmax": lambda tf: (
        tf.argmax([[1, 2]]), tf.argmax([[1, 2]], 1), tf.argmin([1.0], output_type=tf.int32),
        tf.argmax([1], tf.constant(0)),
    ),
    "cumulative": lambda tf: (
        tf.cumsum([1, 2]), tf.cumsum([1.0], axis=0, exclusive=True, reverse=True, name="c"), tf.cumprod([[1, 2]], 1),
    ),
    "slice": lambda tf: (
        tf.slice([1, 2, 3], [1], [-1]), tf.strided_slice([1, 2, 3], [0], [2]),
        tf.strided_slice([1, 2, 3], [0], [3], [2], end_mask=1, name="s"),
    ),
    "partition": lambda tf: (
        tf.dynamic_stitch([[0], [1]], [[1.0], [2.0]]), tf.dynamic_partition([1, 2], [0, 1], 2), tf.unique([1, 1]),
        tf.setdiff1d([1, 2], [2]), tf.boolean_mask([1, 2], [True, False]), tf.count_nonzero([0, 1]),
        tf.unsorted_segment_sum([1.0], [0], 1), tf.segment_sum([1.0], [0]),
    ),
    "identity": lambda tf: (
        tf.identity([1.0]), tf.identity_n([1, 2.0]), tf.stop_gradient(3), tf.ensure_shape(tf.constant([1]), [None]),
    ),
    "strings": lambda tf: (tf.constant(["a", "b"]) + "c", tf.add("a", "b"), tf.constant(b"\xff")),
    "clip": lambda tf: (
        tf.clip_by_value([1.0], 0.0, 1.0), tf.clip_by_norm([3.0, 4.0], 1.0),
        tf.clip_by_norm([3.0], tf.constant(1.0), 0),
        tf.clip_by_global_norm([tf.constant([3.0]), None, tf.constant([4.0])], 1.0),
        tf.global_norm([tf.constant([3.0])], name="g"), tf.clip_by_average_norm([3.0], 1.0),
    ),
    "linear algebra": lambda tf: (
        tf.eye(3), tf.eye(2, 3, dtype=tf.float64), tf.eye(tf.constant(2), batch_shape=[3]), tf.norm([3.0, 4.0]),
        tf.norm(tf.ones([2, 3]), ord=1, axis=1), tf.tensordot(tf.ones([2, 3]), tf.ones([3, 2]), 1),
        tf.tensordot(tf.ones([2, 3, 4]), tf.placeholder(tf.float32, [4, None, 3]), [[1, 2], [2, 0]], name="t"),
        tf.tensordot(tf.placeholder(tf.float32), tf.ones([3, 2]), 1),
        tf.trace([[1.0]]), tf.matrix_diag([1.0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    assert_same_graph(PROGRAMS[name])


def test_within_scopes():
    def program(tf):
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        with tf.name_scope("layer"):
            w = tf.ones([4, 2], name="w")
            y = tf.matmul(x, w) + PAIR
            with tf.name_scope("loss"), tf.device("/cpu:0"):
                loss = tf.reduce_mean(tf.square(y - 1.0), name="loss")
        with tf.control_dependencies([loss]), tf.name_scope(None):
            tf.identity(y * 2, name="after")
        with tf.name_scope("layer"):
            return tf.maximum(y, 0) / 3, x[0] // 2

    assert_same_graph(program)
