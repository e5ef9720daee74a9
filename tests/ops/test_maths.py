"""Parts that the walk over all ops does not see: bare ufuncs, sparse gradients, operators, mixed dtypes."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

import dtflab as tf
from dtflab.graph.indexed_slices import dense
from dtflab.ops.math import elementwise
from tests.evaluate import evaluate, kernel


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def values(*tensors):
    return evaluate(list(tensors))


@pytest.mark.parametrize(
    ("op", "exact"), [("add", operator.add), ("multiply", operator.mul), ("maximum", np.maximum), ("less", operator.lt)]
)
def test_exact_kernels_are_pythons_operators_or_numpys_ufuncs(op, exact):
    assert kernel(getattr(tf, op)(1.0, 2.0).op) is exact


NUMBERS = [0, 1, -1, -1.5, 0.1, 7, 127, 65504, 2**31 - 1, -(2**63), 1e-40, 3e38, np.inf, np.nan]


@pytest.mark.parametrize(
    "dtype", [tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int8, tf.uint8, tf.int32, tf.int64]
)
@pytest.mark.parametrize("name", elementwise._OPERATORS)
def test_operators_give_the_bits_of_the_ufuncs(name, dtype):
    with np.errstate(all="ignore"):
        scalars = [np.array(v).astype(dtype.as_numpy_dtype)[()] for v in NUMBERS]
        for operands in [(x,) for x in scalars] if name == "negative" else itertools.product(scalars, scalars):
            found, expected = elementwise._OPERATORS[name](*operands), getattr(np, name)(*operands)
            assert type(found) is type(expected) and found.tobytes() == expected.tobytes(), operands


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16, tf.float32, tf.int8, tf.uint16, tf.int64])
def test_python_numbers_take_the_tensors_dtype(dtype):
    x = tf.constant([1, 2, 3], dtype)
    results = [x + 1, 2 * x, 7 - x, x // 2, x % 2, tf.maximum(x, 2), tf.reduce_sum(x), tf.reduce_mean(x), tf.square(x)]
    for tensor, value in zip(results, values(*results)):
        assert tensor.dtype == dtype
        assert np.asarray(value).dtype == dtype.as_numpy_dtype


def test_short_floats_are_summed_in_float32():
    many = np.ones(3000, np.float32)
    for dtype in (tf.bfloat16, tf.float16):
        total, mean = values(tf.reduce_sum(tf.cast(many, dtype)), tf.reduce_mean(tf.cast(many, dtype)))
        assert abs(float(total) - 3000) <= 8  # what bfloat16 rounds to; adding in bfloat16 stops at 256
        assert float(mean) == 1


def test_no_warnings_from_what_is_not_a_number():
    x = tf.constant([0.0, -1.0, np.inf, np.nan])
    values(1 / x, tf.log(x), tf.sqrt(x), x - x, tf.cast(x, tf.int32), tf.reduce_max(x), tf.sigmoid(x * 1e30), x**0.5)


def test_two_dtypes_are_refused():
    x = tf.constant([1, 2])
    with pytest.raises(TypeError, match="'y' of 'AddV2' Op has type float32 that does not match type int32"):
        x + 2.5
    with pytest.raises(TypeError, match="must have the same dtype"):
        x / 2.5
    with pytest.raises(TypeError, match="int32"):
        x + tf.constant(1, tf.int64)
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 2 and 3"):
        x + np.array([1, 2, 3])


def test_an_operand_that_knows_tensors_is_asked():
    class Knows:
        def __radd__(self, other):
            return "asked"

    assert tf.constant(1) + Knows() == "asked"
    with pytest.raises((TypeError, ValueError)):
        tf.constant(1) + object()


def test_numpy_on_the_left_leaves_the_work_to_the_tensor():
    result = np.ones((2, 2), np.float32) @ tf.constant([[1.0], [2.0]])
    assert isinstance(result, tf.Tensor)
    np.testing.assert_array_equal(values(result)[0], [[3], [3]])


def test_strings_stay_bytes_in_arrays():
    words = tf.constant(["p", "q"])
    single = [tf.constant("") + "p", tf.unstack(words)[0], tf.gather(words, 0), tf.gather_nd(words, [0]), words[0]]
    for value in values(*single):
        assert isinstance(value, np.ndarray) and value.shape == () and value[()] == b"p"
    assert values(tf.equal("q", words))[0].tolist() == [False, True]


def test_the_gradient_of_a_gather_is_sparse():
    params = tf.constant(np.zeros((1000, 3), np.float32))
    (grad,) = tf.gradients(tf.gather(params, [5, 7, 5]) * 2, params)
    assert isinstance(grad, tf.IndexedSlices)
    assert grad.shape.as_list() == [1000, 3] and grad.dtype == tf.float32
    rows, full = values(grad.indices, tf.convert_to_tensor(grad))
    assert rows.tolist() == [5, 7, 5]
    assert full[5].tolist() == [4, 4, 4] and full[7].tolist() == [2, 2, 2] and full.sum() == 18


def test_sparse_gradients_stay_sparse_where_they_can(graph):
    params = tf.constant(np.zeros((10, 3), np.float32))
    (grad,) = tf.gradients(tf.gather(params, [1]), params)
    for same in (
        -grad,
        tf.identity(grad),
        tf.cast(grad, tf.float64),
        tf.scalar_mul(2, grad),
        tf.clip_by_value(grad, 0, 1),
    ):
        assert isinstance(same, tf.IndexedSlices)
    assert isinstance(tf.clip_by_norm(grad, 1.0), tf.IndexedSlices)
    assert isinstance(grad * 2.0 if hasattr(grad, "__mul__") else tf.add(grad, 0.0), tf.Tensor)
    assert isinstance(tf.add_n([grad, grad]), tf.Tensor)
    assert dense(params) is params
    before = len(graph.get_operations())
    with tf.control_dependencies([grad]):
        waits = tf.no_op()
    assert waits.control_inputs == [grad.op] and len(graph.get_operations()) == before + 1


def test_slices_without_a_shape_have_no_dense_form():
    loose = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]))
    assert loose.shape.ndims is None
    with pytest.raises(ValueError, match="without dense_shape"):
        tf.convert_to_tensor(loose)
    with pytest.raises(ValueError, match="Incompatible tensor conversion"):
        tf.convert_to_tensor(tf.IndexedSlices(loose.values, loose.indices, tf.constant([3, 1])), tf.int32)


def test_views_are_not_copies():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    t = tf.placeholder(tf.float32, [3, 4])
    for view in (
        tf.reshape(t, [4, 3]),
        tf.transpose(t),
        t[1:, ::2],
        tf.squeeze(t),
        tf.expand_dims(t, 0),
        tf.identity(t),
    ):
        (value,) = evaluate([view], {t: x})
        assert np.shares_memory(value, x)
        assert view.op.op_class.aliasing


def test_getitem_refuses_what_tensorflow_refuses():
    x = tf.constant([[1, 2], [3, 4]])
    for key in (1.0, "a", tf.constant([0, 1]), tf.constant(0.5), np.array([0, 1])):
        with pytest.raises(TypeError, match="are valid indices"):
            x[key]
    with pytest.raises(ValueError, match="Index out of range using input dim 2; input has only 2 dims"):
        x[0, 0, 0]
    with pytest.raises(ValueError, match="slice index 5 of dimension 0 out of bounds"):
        x[5]
    with pytest.raises(ValueError, match="must be non-zero"):
        x[::0]
    with pytest.raises(ValueError, match="Multiple ellipses"):
        x[..., ...]


def test_any_index_gives_what_numpy_gives():
    x = np.arange(60).reshape(3, 4, 5)
    random = np.random.default_rng(0)
    parts = [0, -1, 2, slice(None), slice(1, None), slice(-2, None, 1), slice(None, None, -1), slice(2, 0, -1), None]
    keys = [tuple(parts[i] for i in random.integers(0, len(parts), random.integers(1, 4))) for _ in range(60)]
    keys += [(*key, ...) for key in keys[:20]] + [(..., *key) for key in keys[20:40]]
    t = tf.constant(x)
    for key in keys:
        result = t[key]
        (value,) = values(result)
        np.testing.assert_array_equal(value, x[key], err_msg=str(key))
        assert result.shape.as_list() == list(x[key].shape), key
