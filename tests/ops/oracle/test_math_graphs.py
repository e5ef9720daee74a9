"""The rest of tf.math, tf.linalg, tf.random and tf.quantization: GraphDefs equal TensorFlow's, node for node."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_graph(run):
    assert_same_graph(run, gradients=True)


EQUATIONS = [
    ("ij,jk->ik", [2, 3], [3, 4]),
    ("ij,jk", [2, 3], [3, 4]),
    ("i j -> j i", [2, 3]),
    ("ab,bc,cd->ad", [2, 3], [3, 4], [4, 5]),
    ("ab,bc,cd->ad", [2, 9], [9, 2], [2, 9]),
    ("ab,bc,cd->da", [None, 3], [3, None], [None, 2]),
    ("...ab,...bc,...cd->...ad", [2, 2, 3], [2, 3, 4], [1, 4, 5]),
    ("bhqd,bkhd,bk->bqh", [2, 3, 4, 5], [2, 6, 3, 5], [2, 6]),
    ("i,i,i->i", [3], [3], [3]),
    ("ab,b,c,cd", [2, 3], [3], [4], [4, 2]),
]


@program
def einsum(tf):
    for equation, *shapes in EQUATIONS:
        inputs = [tf.placeholder(tf.float32, shape) for shape in shapes]
        tf.einsum(equation, *inputs)
    tf.linalg.einsum("i->", tf.placeholder(tf.float32, [3]), name="mine")


@program
def gradients_of_einsum(tf):
    for equation, *shapes in [*EQUATIONS[:3], ("iji->j", [2, 3, 2]), ("abc->ca", [2, 2, 3]), ("abc->ac", [2, 2, 3]),
                              ("...ij,jk->...ik", [2, 2, 3], [3, 2]), ("abc,cd->da", [2, 2, 3], [3, 2])]:  # fmt: skip
        inputs = [tf.placeholder(tf.float32, shape) for shape in shapes]
        tf.gradients(tf.einsum(equation, *inputs), inputs)


def test_equations_that_do_not_fit():
    def errors(tf):
        found = []
        for equation, *shapes in [("ij->ijk", [2, 2]), ("ij,jk->ik", [2, 3]), ("ij->ii", [2, 2]), ("ij->i0", [2, 2]),
                                  ("ij,jk->ik", [2, 3], [4, 5]), ("ij->j", [2]), ("i$->i", [2, 2])]:  # fmt: skip
            with pytest.raises((ValueError, TypeError)) as error:
                tf.einsum(equation, *(tf.zeros(s) for s in shapes))
            found.append(type(error.value).__name__)
        return found

    theirs, ours = both(errors)
    assert ours == theirs


def test_contraction_of_many_operands():
    random = np.random.default_rng(0)
    arrays = [random.normal(size=s) for s in ((2, 3), (3, 4), (4, 5), (5,))]
    theirs, ours = both(lambda tf: tf.Session().run(tf.einsum("ab,bc,cd,d->a", *map(tf.constant, arrays))))
    np.testing.assert_allclose(ours, theirs, 1e-12)


@program
def random_choices_and_distributions(tf):
    logits = tf.placeholder(tf.float32, [None, 5])
    tf.set_random_seed(3)
    tf.multinomial(logits, 4, seed=1)
    tf.random.categorical(logits, 4, dtype=tf.int32, seed=2, name="choice")
    alpha = tf.placeholder(tf.float32, [3])
    tf.random_gamma([2], alpha, beta=2.0, seed=3)
    tf.random.gamma([2], 0.5, dtype=tf.float64)
    tf.random_poisson([1.0, 2.0], [4], seed=1)
    tf.random.poisson(3.0, [4], dtype=tf.int32)


@program
def stateless_random_numbers(tf):
    seed = [1, 2]
    tf.random.stateless_uniform([2, 3], seed)
    tf.random.stateless_uniform([2], seed, 1, 10, tf.int32, name="whole")
    tf.random.stateless_uniform([2], seed, None, None, tf.uint32)
    tf.random.stateless_normal([2], seed, mean=1.0, dtype=tf.float64)
    tf.random.stateless_truncated_normal([2], seed)
    tf.random.stateless_categorical(tf.zeros([2, 3]), 4, seed)
    tf.random.stateless_multinomial(tf.zeros([2, 3]), 4, seed, output_dtype=tf.int32)
    alpha = tf.placeholder(tf.float32, [3])
    tf.random.stateless_gamma([2, 3], seed, alpha)
    tf.random.stateless_poisson([2], seed, 3.0)
    tf.random.split(seed, 3)
    tf.random.fold_in(seed, 7)


@program
def special_functions(tf):
    x, y = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.float32, [3])
    m = tf.math
    unary = [m.lgamma, m.digamma, m.erfinv, m.ndtri, m.erfcinv, m.bessel_i0, m.bessel_i0e, m.bessel_i1, m.bessel_i1e]
    for function in unary:
        tf.gradients(function(x), x)
    for function in (tf.igamma, m.igammac, tf.polygamma, tf.zeta, m.nextafter):
        tf.gradients(function(y, x), [x, y])
    tf.gradients(tf.betainc(x, x, x), x)
    tf.lbeta(x)


def test_random_numbers_are_equal_over_two_steps():
    def program(tf):
        tf.set_random_seed(11)
        made = [
            tf.multinomial([[0.1, 1.0, -1.0], [0.0, 0.0, 9.0]], 7),
            tf.random_gamma([3], [0.5, 2.0, 1.0]),
            tf.random_poisson([0.3, 4.0, 50.0], [5]),
            tf.random.stateless_uniform([4], tf.random.split([3, 4])[1]),
            tf.truncated_normal([9]),
        ]
        session = tf.Session()
        return [session.run(made), session.run(made)]

    theirs, ours = both(program)
    for a, b in zip(ours, theirs, strict=True):
        for x, y in zip(a, b, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, 1e-6)
    assert not np.array_equal(ours[0][0], ours[1][0])


@program
def fourier_transforms(tf):
    z = tf.placeholder(tf.complex64, [2, 3, 4])
    x, unknown = tf.placeholder(tf.float32, [2, 3, 4]), tf.placeholder(tf.float32, [None, None])
    for name in ("fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"):
        tf.gradients(tf.real(getattr(tf.signal, name)(z)), z)
    for name in ("rfft", "rfft2d"):
        tf.gradients(tf.abs(getattr(tf.spectral, name)(x)), x)
    for name in ("irfft", "irfft2d"):
        tf.gradients(getattr(tf.signal, name)(z), z)
    tf.signal.rfft(unknown)
    tf.signal.rfft(x, fft_length=[8])
    tf.signal.irfft2d(z, fft_length=[5, 8])
    tf.signal.rfft3d(x)
    tf.fft(z)
    tf.ifft2d(z)


@program
def counts_and_scans(tf):
    x, n = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [None])
    tf.bincount(n)
    tf.math.bincount(n, minlength=3, maxlength=9, dtype=tf.float32)
    tf.math.bincount(n, weights=tf.cast(n, tf.float32))
    tf.histogram_fixed_width(x, [0.0, 1.0], nbins=5)
    tf.histogram_fixed_width_bins(x, [0.0, 1.0], nbins=5)
    tf.gradients(tf.math.cumulative_logsumexp(x, axis=1), x)
    tf.gradients(tf.cross(x, x), x)


@program
def bits(tf):
    a, b = tf.placeholder(tf.int32, [3]), tf.placeholder(tf.int32, [3])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
        getattr(tf.bitwise, name)(a, b)
    tf.bitwise.invert(a)


@program
def mirrored_padding(tf):
    x = tf.placeholder(tf.float32, [2, 3])
    for mode in ("REFLECT", "symmetric", "CONSTANT"):
        y = tf.pad(x, [[1, 0], [0, 2]], mode)
        tf.gradients(tf.gradients(y * y, x)[0], x)


def test_padding_beyond_the_mirror():
    def program(tf):
        found = []
        for mode, count in (("REFLECT", 2), ("SYMMETRIC", 3)):
            with pytest.raises(tf.errors.InvalidArgumentError, match="dimension size"):
                tf.Session().run(tf.pad(tf.zeros([2, 3]), [[count, 0], [0, 0]], mode))
        with pytest.raises(ValueError):
            tf.pad(tf.zeros([2]), [[1, 1]], "round")
        return found

    both(program)


@program
def sparse_products(tf):
    a, b = tf.placeholder(tf.float32, [3, 4]), tf.placeholder(tf.float32, [4, 2])
    c = tf.placeholder(tf.bfloat16, [4, 2])
    tf.gradients(tf.matmul(a, b, a_is_sparse=True), [a, b])
    tf.gradients(tf.matmul(a, a, transpose_b=True, b_is_sparse=True), a)
    tf.gradients(tf.matmul(a, c), [a, c])
    tf.matmul(c, c, transpose_a=True, b_is_sparse=True)
    tf.sparse_matmul(a, b, name="s")
