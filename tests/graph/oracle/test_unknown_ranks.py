"""Static shapes and refusals where ranks are not known before the step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.graph_defs import both

SHAPES = (None, [3, 3], [None, 3, 3], [2, None, None], [3, 2], [5, 3, 2])


def unknown(tf, dtype="float32", shape=None):
    return tf.placeholder(dtype, shape)


def outcome(function):
    """The function's result, or the kind of its error."""
    try:
        return function()
    except Exception as error:
        return type(error).__name__


def same(program):
    theirs, ours = both(program)
    assert ours == theirs
    return ours


@pytest.mark.parametrize("name", ["matrix_solve", "matrix_solve_ls"])
def test_shapes_of_solutions(name):
    def program(tf):
        pairs = [(unknown(tf, shape=a), unknown(tf, shape=b)) for a in SHAPES for b in SHAPES]
        solve = getattr(tf, name)
        more = {} if name == "matrix_solve" else {"fast": False}
        return [outcome(lambda m=m, rhs=rhs: str(solve(m, rhs, **more).shape)) for m, rhs in pairs]

    assert "(3, 2)" in same(program)


@pytest.mark.parametrize("shape", [None, [None], [2]])
def test_shapes_of_a_sparse_slice(shape):
    def program(tf):
        sizes = [unknown(tf, "int64", shape) for _ in range(3)]
        x = tf.SparseTensor(unknown(tf, "int64"), unknown(tf), sizes[0])
        box = tf.sparse.slice(x, *sizes[1:])
        return [str(t.shape) for t in (box.indices, box.values, box.dense_shape)]

    same(program)


def test_reversed_with_axes_from_the_feed():
    def program(tf):
        x, axes = unknown(tf), unknown(tf, "int32")
        y, session = tf.reverse(x, axes), tf.Session()
        feeds = [(1.0, [0]), (1.0, 0), ([1.0, 2], [0]), ([1.0, 2], [-1]), ([1.0, 2], 0), ([1.0], [2]), ([1.0], [0, 0])]
        return [outcome(lambda v=v, a=a: session.run(y, {x: v, axes: a}).tolist()) for v, a in feeds]

    assert same(program)[0] == 1


@pytest.mark.parametrize("sizes", [[-1, 0, 0], [-1, 0], [0, -1], [-1], [-1, -1, 0], [-2, 0]])
def test_an_empty_tensor_reshaped(sizes):
    def program(tf):
        x, shape = unknown(tf), unknown(tf, "int32")
        y = tf.reshape(x, shape)
        return [outcome(lambda v=v: tf.Session().run(y, {x: v, shape: sizes}).shape) for v in (np.zeros((0, 0)), [1.0])]

    same(program)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0)])
def test_the_exponential_of_an_empty_matrix(shape):
    def program(tf):
        x = unknown(tf)
        return tf.Session().run(tf.linalg.expm(x), {x: np.zeros(shape)}).shape

    assert same(program) == shape


@pytest.mark.parametrize("shape", [None, [3], []])
def test_no_band_in_a_vector(shape):
    def program(tf):
        x = unknown(tf, shape=shape)
        band = tf.matrix_band_part(x, 0, 0)
        return str(band.shape), outcome(lambda: tf.Session().run(band, {x: np.ones(shape or ())}))

    assert same(program)[1] == "InvalidArgumentError"


@pytest.mark.parametrize("seed", [[3], [1], [0], [2, 2], [2], [None], None])
def test_seeds_are_two_numbers(seed):
    def program(tf):
        s, logits = unknown(tf, "int32", seed), tf.zeros([2, 3])
        draws = [lambda: tf.random.stateless_categorical(logits, 4, s), lambda: tf.multinomial(logits, 4),
                 lambda: tf.random.stateless_multinomial(logits, 4, s),
                 lambda: tf.random.stateless_poisson([2], s, [1.0, 2.0])]  # fmt: skip
        return [outcome(lambda draw=draw: str(draw().shape)) for draw in draws]

    same(program)


def test_ranges_to_a_fed_limit():
    def program(tf):
        limit = unknown(tf, "int32")
        mask, session = tf.sequence_mask([1, 3], limit), tf.Session()
        return [outcome(lambda v=v: session.run(mask, {limit: v}).tolist()) for v in (4, [4], [4, 5], [[4]], [])]

    found = same(program)
    assert found[0] == found[1]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_no_gradient_of_a_question(dtype):
    def program(tf):
        x = unknown(tf, dtype, [2])
        return [outcome(lambda f=f: tf.gradients(f(x), x)) for f in (tf.is_nan, tf.is_inf, tf.is_finite)]

    assert same(program) == ["LookupError"] * 3


@pytest.mark.parametrize("shape", [None, [None, None], [None, 3], [None, 3, 3]])
@pytest.mark.parametrize("name", ["pinv", "expm"])
def test_the_nodes(name, shape):
    same(lambda tf: (getattr(tf.linalg, name)(unknown(tf, shape=shape)), names(tf))[1])


def names(tf):
    return [(node.name, node.op, list(node.input)) for node in tf.get_default_graph().as_graph_def().node]
