"""Quantized tensors: through the session, constants, variables and the wire, each step's integers TensorFlow's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both

TYPES = ("qint8", "quint8", "qint16", "quint16", "qint32")
RANGES = [(-1.0, 2.0), (0.0, 6.0), (-3.0, 0.5), (0.5, 0.5005), (-100.0, 100.0), (2.0, 5.0)]
VALUES = np.concatenate([np.random.default_rng(3).uniform(-4, 7, 200), [0, -0.0, 1e6, -1e6, 0.5, 2.5]]).astype("f4")


def runs(program):
    theirs, ours = both(lambda tf: (lambda fetches: tf.Session().run(fetches))(program(tf)))
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype == np.float32:  # Eigen's products of a step and an integer may round another way
            np.testing.assert_allclose(a, b, 2e-7)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", ["MIN_COMBINED", "MIN_FIRST", "SCALED"])
@pytest.mark.parametrize("name", TYPES[:4])
def test_quantize_and_back(name, mode):
    def program(tf):
        found = []
        for low, high in RANGES:
            for more in [{}, {"round_mode": "HALF_TO_EVEN", "narrow_range": True}] if mode == "SCALED" else [{}]:
                q = tf.quantize_v2(VALUES, low, high, getattr(tf, name), mode=mode, **more)
                found += [*q, tf.dequantize(*q, mode=mode, narrow_range=more.get("narrow_range", False))]
        return found

    runs(program)


@pytest.mark.parametrize("mode", ["MIN_COMBINED", "SCALED"])
def test_a_range_for_each_place_on_an_axis(mode):
    x = VALUES[:24].reshape(2, 3, 4)

    def program(tf):
        q = tf.quantization.quantize(tf.constant(x), [-1.0, -2.0, -3.0], [1.0, 4.0, 2.0], tf.qint8, mode=mode, axis=-2)
        return [*q, tf.quantization.dequantize(*q, mode=mode, axis=1)]

    runs(program)


def test_dequantize_to_bfloat16():
    def program(tf):
        q = tf.quantize(VALUES, -4.0, 7.0, tf.quint8)
        return [tf.dequantize(*q, dtype=tf.bfloat16)]

    runs(program)


@pytest.mark.parametrize("name", TYPES)
def test_quantized_numbers_are_constants_fed_and_kept(name):
    """Made by Const, fed, reshaped, sliced, joined, kept in a variable."""

    def program(tf):
        dtype = getattr(tf, name)
        x = tf.constant(np.array([[1, 2, 3], [4, 5, 6]]).astype(dtype.as_numpy_dtype))
        fed = tf.placeholder(dtype, [2])

        session = tf.Session()

        moved = [tf.reshape(x, [3, 2]), tf.identity(fed), tf.expand_dims(x, 0), x]
        value = np.array([(7,), (8,)], dtype.as_numpy_dtype)
        return session.run(moved, {fed: value})

    theirs, ours = both(program)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.tolist() == b.tolist()


def test_graph():
    def program(tf):
        x = tf.placeholder(tf.float32, [2, 3])
        q = tf.quantize(x, -1.0, 1.0, tf.qint8)
        tf.quantize_v2(x, -1.0, 1.0, tf.quint8, mode="SCALED", name="q", ensure_minimum_range=0.1)
        tf.dequantize(*q, mode="MIN_FIRST")
        y = tf.fake_quant_with_min_max_args(x)
        v = tf.Variable(-1.0, use_resource=False), tf.Variable(1.0, use_resource=False)
        z = tf.fake_quant_with_min_max_vars(y, *v, num_bits=4)
        w = tf.quantization.fake_quant_with_min_max_vars_per_channel(z, [-1.0] * 3, [1.0] * 3)
        a = tf.quantization.quantize_and_dequantize(w, -1.0, 1.0, range_given=True)
        tf.gradients(tf.quantization.quantize_and_dequantize_v2(a, -1.0, 1.0, range_given=True), [x, *v])

    assert_same_graph(program, gradients=True)


def test_a_range_the_wrong_way_round():
    def program(tf):
        with pytest.raises(tf.errors.InvalidArgumentError, match="input_max_range must be larger"):
            tf.Session().run(tf.quantize([1.0], 2.0, 1.0, tf.qint8))

    both(program)


REFUSED = [
    lambda tf: tf.quantize([1.0], 0.0, 1.0, tf.qint8, mode="MIN_FIRST", round_mode="HALF_TO_EVEN"),
    lambda tf: tf.quantization.fake_quant_with_min_max_args([1.0], 3.0, 1.0),
    lambda tf: tf.quantization.fake_quant_with_min_max_args([1.0], num_bits=17),
    lambda tf: tf.quantization.fake_quant_with_min_max_vars([1.0], 0.0, 1.0, num_bits=1),
]


@pytest.mark.parametrize("make", REFUSED)
def test_refused(make):
    def program(tf):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            tf.Session().run(make(tf))
        return "num_bits" in str(caught.value), "smaller than max" in str(caught.value)

    theirs, ours = both(program)
    assert ours == theirs


def test_ends_on_an_axis_that_is_not_there():
    def program(tf):
        quantized = tf.quantize(tf.placeholder(tf.float32), [-1.0, -2.0], [1.0, 2.0], tf.qint8, mode="SCALED", axis=0)
        with pytest.raises(ValueError):
            tf.quantize([[1.0]], [0.0], [1.0], tf.qint8, mode="SCALED", axis=2)
        empty = tf.dequantize(tf.bitcast(np.array([1, 2], np.uint8), tf.quint8), 2.0, 2.0, mode="MIN_FIRST")
        return [str(t.shape) for t in quantized], tf.Session().run(empty).tolist()

    theirs, ours = both(program)
    assert ours == theirs
