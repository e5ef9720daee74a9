"""Initializers, side by side with TensorFlow: the numbers of equal seeds, configurations, shards, refusals, graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both


def initializers(tf: Any) -> dict[str, Any]:
    of = tf.initializers
    return {
        "zeros": of.zeros(), "ones": of.ones(dtype=tf.float64), "constant": of.constant(2.5),
        "list": of.constant([1, 2, 3], dtype=tf.int32), "uniform": of.random_uniform(-1, 2, seed=3),
        "normal": of.random_normal(1.0, 0.5, seed=3), "truncated": of.truncated_normal(1.0, 0.5, seed=3),
        "unit": of.uniform_unit_scaling(1.5, seed=3), "glorot_normal": of.glorot_normal(seed=3),
        "glorot_uniform": of.glorot_uniform(seed=3), "he_normal": of.he_normal(seed=3),
        "he_uniform": of.he_uniform(seed=3), "lecun_normal": of.lecun_normal(seed=3),
        "lecun_uniform": of.lecun_uniform(seed=3), "orthogonal": of.orthogonal(2.0, seed=3),
        "identity": of.identity(3.0),
        **{
            f"{mode}_{kind}": of.variance_scaling(2.0, mode, kind, seed=3)
            for mode in ("fan_in", "fan_out", "fan_avg")
            for kind in ("normal", "uniform", "untruncated_normal")
        },
    }  # fmt: skip


def test_same_configuration():
    theirs, ours = both(lambda tf: {name: i.get_config() for name, i in initializers(tf).items()})
    assert ours == theirs
    remade = both(lambda tf: {n: type(i).from_config(i.get_config()).get_config() for n, i in initializers(tf).items()})
    assert remade[1] == remade[0] == theirs


def values(tf: Any, shape: list[int]) -> dict[str, np.ndarray]:
    unfit = {0: {"identity", "orthogonal", "list"}, 1: {"identity", "orthogonal"}, 3: {"identity"}}.get(
        len(shape), set()
    )
    made = {name: i for name, i in initializers(tf).items() if name not in unfit}
    with tf.variable_scope("v", reuse=tf.AUTO_REUSE):
        variables = {name: tf.get_variable(name, shape, initializer=i, dtype=i.dtype) for name, i in made.items()}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(variables)


@pytest.mark.parametrize("shape", [[4, 3], [3, 4], [2, 3, 4], [5], []], ids=str)
def test_same_numbers(shape):
    theirs, ours = both(lambda tf: values(tf, shape))
    for name, want in theirs.items():
        assert ours[name].dtype == want.dtype
        np.testing.assert_allclose(ours[name], want, rtol=2e-5, atol=1e-6, err_msg=name)


def test_same_graphs():
    assert_same_graph(lambda tf: [i([4, 3]) for i in initializers(tf).values()])


def test_orthogonal_matrices_are():
    import dtflab as tf

    with tf.Graph().as_default(), tf.Session() as session:
        tall, wide = (session.run(tf.orthogonal_initializer(seed=1)(shape)) for shape in ([6, 3], [3, 6]))
    np.testing.assert_allclose(tall.T @ tall, np.eye(3), atol=1e-6)
    np.testing.assert_allclose(wide @ wide.T, np.eye(3), atol=1e-6)


def refusals(tf: Any) -> list[Any]:
    calls: list[Callable[[], Any]] = [
        lambda: tf.constant_initializer({1}),
        lambda: tf.constant_initializer([1, 2, 3], verify_shape=True)([2, 2]),
        lambda: tf.constant_initializer([1, 2, 3])([2], verify_shape=True),
        lambda: tf.constant_initializer([1, 2, 3])([2]),
        lambda: tf.constant_initializer([1, 2, 3])([4]).shape.as_list(),
        lambda: tf.random_normal_initializer(dtype=tf.int32),
        lambda: tf.truncated_normal_initializer(dtype=tf.string),
        lambda: tf.variance_scaling_initializer(0.0),
        lambda: tf.variance_scaling_initializer(mode="fan"),
        lambda: tf.variance_scaling_initializer(distribution="other"),
        lambda: tf.orthogonal_initializer(dtype=tf.int32),
        lambda: tf.orthogonal_initializer()([3]),
        lambda: tf.initializers.identity()([3]),
        lambda: tf.initializers.identity(dtype=tf.int32),
        lambda: tf.random_uniform_initializer(0, dtype=tf.int32)([3]),
    ]
    seen: list[Any] = []
    for call in calls:
        try:
            seen.append(call())
        except Exception as error:
            seen.append((type(error).__name__, str(error).split(". ")[0].replace("'", "")))
    return seen


def test_those_that_are_operations():
    assert_same_graph(lambda tf: [tf.initializers.tables_initializer(), tf.initializers.tables_initializer("named")])


def test_same_refusals():
    theirs, ours = both(refusals)
    assert ours == theirs


def test_same_values_in_shards():
    """Initializers that depend on the shape use that of the whole."""

    def program(tf):
        cut = tf.fixed_size_partitioner(2)
        made = ("unit", "glorot_normal", "he_uniform", "identity", "constant", "normal", "fan_out_uniform")
        found = {n: i for n, i in initializers(tf).items() if n in made}
        parts = {n: list(tf.get_variable(n, [4, 4], initializer=i, partitioner=cut)) for n, i in found.items()}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return session.run(parts)

    theirs, ours = both(program)
    for name, parts in theirs.items():
        for want, got in zip(parts, ours[name], strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, err_msg=name)
