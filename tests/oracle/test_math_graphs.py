"""The rest of tf.math, tf.linalg, tf.random and tf.quantization: GraphDefs equal TensorFlow's, node for node."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.oracle.graph_defs import assert_same_graph, both

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda f: f.__name__)
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
            found.append(type(error.value))
        return found

    theirs, ours = both(errors)
    assert ours == theirs


def test_contraction_of_many_operands():
    random = np.random.default_rng(0)
    arrays = [random.normal(size=s) for s in ((2, 3), (3, 4), (4, 5), (5,))]
    theirs, ours = both(lambda tf: tf.Session().run(tf.einsum("ab,bc,cd,d->a", *map(tf.constant, arrays))))
    np.testing.assert_allclose(ours, theirs, 1e-12)
