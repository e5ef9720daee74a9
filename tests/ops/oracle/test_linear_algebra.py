"""Decompositions whose vectors are free in sign or order, what is made of them, and the GraphDefs of all functions."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as real_tf

import dtflab
from tests import conditions
from tests.oracle.graph_defs import assert_same_graph, both

SOME, MANY = 3, 12  # roundings, of one decomposition or of several and what is made of them
KINDS = {"float32": 1e-4, "float64": 1e-10, "complex64": 1e-4, "complex128": 1e-10}


def matrices(kind, *shape, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=shape)
    return (x + 1j * random.normal(size=shape) if "complex" in kind else x).astype(kind)


def values(program):
    """The program's tensors in TensorFlow and here."""
    theirs, ours = both(lambda tf: (lambda fetches: tf.Session().run(fetches))(program(tf)))
    return theirs, ours


def close(program, tolerance):
    theirs, ours = values(program)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, tolerance, tolerance)


def assert_right(program, arrays, roundings):
    """Check the program's results here and in TensorFlow: near those of TensorFlow in double precision."""
    theirs, ours = values(lambda tf: program(tf, *map(tf.constant, arrays)))
    with real_tf.Graph().as_default(), real_tf.Session() as session:
        inputs = [real_tf.placeholder(conditions.widened(x).dtype, x.shape) for x in arrays]
        fetches = program(real_tf, *inputs)
        exact = conditions.exact(lambda xs: session.run(fetches, dict(zip(inputs, xs))), arrays, roundings)
    for a, b, near in zip(ours, theirs, exact, strict=True):
        assert a.dtype == b.dtype
        assert not near.wrong(a, "dtflab")
        assert not near.wrong(b, "TensorFlow")


def product(tf, *factors):
    result = factors[0]
    for factor in factors[1:]:
        result = tf.matmul(result, factor)
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (2, 3, 4)])
def test_svd_and_its_gradient(kind, shape):
    """s, and u · f(s) · vᴴ, which no sign changes."""

    def program(tf, x):
        s, u, v = tf.svd(x)
        made = product(tf, u, tf.cast(tf.linalg.diag(s * s + 1), x.dtype), tf.linalg.adjoint(v))
        full = tf.svd(x, full_matrices=True)
        return [s, made, tf.svd(x, compute_uv=False), *tf.gradients(tf.real(tf.reduce_sum(made * made)), x),
                *tf.gradients(tf.svd(x, compute_uv=False), x), tf.shape(full[1]), tf.shape(full[2])]  # fmt: skip

    assert_right(program, [matrices(kind, *shape)], MANY)


@pytest.mark.parametrize("kind", KINDS)
def test_eigenvalues_of_hermitian_matrices(kind):
    def program(tf, x):
        e, v = tf.self_adjoint_eig(x)
        made = product(tf, v, tf.cast(tf.linalg.diag(e * e), x.dtype), tf.linalg.adjoint(v))
        return [e, made, tf.self_adjoint_eigvals(x), *tf.gradients(tf.real(tf.reduce_sum(made)), x),
                *tf.gradients(tf.square(tf.real(tf.linalg.eigvalsh(x))), x)]  # fmt: skip

    assert_right(program, [matrices(kind, 2, 4, 4)], MANY)


@pytest.mark.parametrize("kind", KINDS)
def test_eigenvalues_of_any_matrices(kind):
    """Sorted, and v · e · v⁻¹ = x."""
    x = matrices(kind, 4, 4)

    def program(tf):
        wide = tf.complex128 if kind in ("float64", "complex128") else tf.complex64
        e, v = tf.raw_ops.Eig(input=tf.constant(x), Tout=wide)
        alone = tf.raw_ops.Eig(input=tf.constant(x), Tout=wide, compute_v=False)[0]
        return [e, alone, product(tf, v, tf.linalg.diag(e), tf.linalg.inv(v))]

    theirs, ours = values(program)
    for i in (0, 1):
        np.testing.assert_allclose(np.sort_complex(ours[i]), np.sort_complex(theirs[i]), KINDS[kind], KINDS[kind])
    np.testing.assert_allclose(ours[2], x, KINDS[kind], KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_systems_and_functions_of_matrices(kind):
    base = matrices(kind, 2, 3, 3)
    definite = (base @ base.conj().swapaxes(-1, -2) + 2 * np.eye(3)).astype(kind)
    tall = matrices(kind, 5, 3)

    def program(tf, a, b, n, tall):
        chol = tf.cholesky(a)
        found = [chol, tf.cholesky_solve(chol, b), tf.matrix_determinant(n), *tf.linalg.slogdet(n), tf.linalg.logdet(a),
                 tf.matrix_solve(n, b), tf.matrix_triangular_solve(n, b, lower=False), *tf.linalg.lu(n),
                 tf.linalg.sqrtm(a), tf.matrix_solve_ls(n, b), tf.linalg.adjoint(n), tf.linalg.normalize(n, axis=-1)[0],
                 tf.linalg.band_part(n, 1, 0), tf.cross(tf.real(n), tf.real(n)[..., ::-1])]  # fmt: skip
        if a.dtype.is_complex:
            return [*found, tf.linalg.logm(a)]
        return [*found, tf.linalg.pinv(tall), tf.linalg.lstsq(tall, tall, l2_regularizer=0.1, fast=True)]

    assert_right(program, [definite, matrices(kind, 2, 3, 2, seed=1), base, tall], MANY)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_matrices_of_low_rank(kind):
    """Rounding makes the smallest singular values; the default cutoff is above them, `rcond` far above."""
    low = (matrices(kind, 4, 2) @ matrices(kind, 2, 4)).astype(kind)
    theirs, ours = values(lambda tf: [tf.linalg.matrix_rank(low), tf.linalg.pinv(low)])
    assert ours[0] == theirs[0] == 2 and np.linalg.matrix_rank(ours[1], 1e-3) == 2
    assert_right(lambda tf, low: [tf.linalg.pinv(low, rcond=1e-3)], [low], MANY)


@pytest.mark.parametrize("kind", KINDS)
def test_expm(kind):
    x = np.stack([scale * matrices(kind, 3, 3) for scale in (0.01, 0.3, 1, 3)]).astype(kind)

    def program(tf, n):
        return [tf.linalg.expm(n), tf.linalg.expm(n[0]), *tf.gradients(tf.real(tf.linalg.expm(n)), n)]

    assert_right(program, [x], MANY)


def test_what_can_not_be_solved():
    def program(tf):
        singular, session = tf.zeros([2, 2]), tf.Session()
        for y in (tf.matrix_solve(singular, tf.ones([2, 1])), tf.linalg.inv(singular), tf.linalg.lu(singular)):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y)
        with pytest.raises(ValueError):
            tf.matrix_determinant(tf.zeros([2, 3]))

        both_kinds = session.run(tf.cholesky(tf.stack([-tf.eye(2), 4 * tf.eye(2)])))
        halves = session.run(tf.matrix_triangular_solve([[0.0, 0.0], [1.0, 2.0]], [[1.0], [3.0]]))
        return np.isnan(both_kinds[0, 0, 0]), both_kinds[1], halves

    theirs, ours = both(program)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("axis", [(-2, -1), (2, 0)])
def test_spectral_norm(axis):
    x = matrices("float64", 2, 3, 4)

    def program(tf, x):
        norms = [tf.norm(x, 2, axis, keepdims=keep) for keep in (False, True)]
        return [*norms, *tf.gradients(norms[0], x)]

    assert_right(program, [x], MANY)
    assert_same_graph(lambda tf: tf.norm(tf.placeholder(tf.float32, [2, 3, 4]), 2, axis))


def test_no_real_square_root():
    x = np.stack([np.diag([4.0, -2.0]), np.diag([4.0, 9.0])])
    theirs, ours = values(lambda tf: tf.linalg.sqrtm(tf.constant(x)))
    assert np.isnan(ours[0]).any() and np.isnan(theirs[0]).any()
    np.testing.assert_allclose(ours[1], theirs[1])


@pytest.mark.parametrize("kind", KINDS)
def test_functions_on_the_edge(kind):
    """Eigenvalues of 0 and below, a defective matrix: what has no function spoils its own matrix only."""
    jordan = 2 * np.eye(3) + np.eye(3, k=1)
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 4.0]])
    x = np.stack([-np.eye(3), np.zeros((3, 3)), np.diag([1.0, 0, 4]), jordan, turn, np.diag([1, 4.0, -9]),
                  np.eye(3)]).astype(kind)  # fmt: skip

    def program(tf):
        roots = [tf.linalg.sqrtm(tf.constant(x))]
        return [*roots, tf.linalg.logm(tf.constant(x[3:]))] if "complex" in kind else roots

    close(program, KINDS[kind])


def test_no_function_of_what_is_not_finite():
    """TensorFlow gives NaN for such real matrices, and never ends with complex ones, nor with the logarithm of 0."""
    x = np.stack([np.full((3, 3), np.inf), np.full((3, 3), np.nan), np.eye(3)])
    close(lambda tf: [tf.linalg.sqrtm(tf.constant(x))], 1e-10)
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        found = session.run(dtflab.linalg.logm(dtflab.constant(np.stack([*x, np.diag([1, 0, 2])]).astype(complex))))
    assert np.isnan(found[[0, 1, 3]]).all() and not found[2].any()


def test_the_square_root_of_a_defective_matrix():
    basis = np.linalg.qr(matrices("float64", 8, 8))[0]
    x = basis @ (2 * np.eye(8) + np.eye(8, k=1)) @ basis.T
    theirs, ours = values(lambda tf: tf.linalg.sqrtm(tf.constant(x)))
    np.testing.assert_allclose(ours, theirs, 0, 1e-5)


def test_shapes_with_a_diagonal():
    def program(tf):
        some = tf.placeholder(tf.float32)
        with pytest.raises(ValueError):
            tf.matrix_set_diag(tf.zeros([3]), tf.zeros([3]))
        return [str(tf.matrix_set_diag(some, tf.zeros(shape)).shape) for shape in ([3], [2, 3])]

    theirs, ours = both(program)
    assert ours == theirs


def test_graphs():
    def program(tf):
        x, b = tf.placeholder(tf.float32, [2, 3, 3]), tf.placeholder(tf.float32, [2, 3, 1])
        la = tf.linalg
        ys = [tf.cholesky(x), tf.cholesky_solve(x, b), la.det(x), la.slogdet(x)[1], la.logdet(x), la.solve(x, b),
              la.triangular_solve(x, b), la.sqrtm(x), la.eigvalsh(x), la.eigh(x)[0], la.svd(x, compute_uv=False),
              tf.cross(x, x), tf.matrix_solve_ls(x, b, 0.1)]  # fmt: skip
        for y in ys:
            tf.gradients(y, x)
        la.lu(x)
        la.normalize(x, axis=1)
        la.pinv(x)
        la.matrix_rank(x)
        la.adjoint(x)
        la.lu_solve(*la.lu(x[0]), rhs=b[0])
        la.lu_reconstruct(*la.lu(x[0]))
        la.lu_matrix_inverse(*la.lu(x[0]))

    assert_same_graph(program)


def test_lu_and_back():
    x, rhs = matrices("float64", 2, 4, 4), matrices("float64", 2, 4, 3, seed=1)

    def program(tf, x, rhs):
        both, order = tf.linalg.lu(x)
        return [tf.linalg.lu_reconstruct(both, order), tf.linalg.lu_matrix_inverse(both, order),
                tf.linalg.lu_solve(both, order, rhs)]  # fmt: skip

    assert_right(program, [x, rhs], SOME)
    assert np.allclose(dtflab.Session().run(program(dtflab, dtflab.constant(x), rhs))[0], x)
