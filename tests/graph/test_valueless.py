"""Tensors and variables that a program takes for their values: the error says what to do."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

import dtflab as tf
from dtflab.graph.valueless import _FUNCTIONS

HINT = "Its value exists only inside a session: run it with `session.run(t)`."
TAKEN = {  # for a value, and what Python says of other objects
    "float(t)": "float() argument must be a string or a real number, not '{kind}'",
    "int(t)": "int() argument must be a string, a bytes-like object or a real number, not '{kind}'",
    "complex(t)": "float() argument must be a string or a real number, not '{kind}'",
    "math.sqrt(t)": "float() argument must be a string or a real number, not '{kind}'",
    "'%.2f' % t": "float() argument must be a string or a real number, not '{kind}'",
    "f'{t:.2f}'": "unsupported format string passed to {kind}.__format__",
    "range(t)": "'{kind}' object cannot be interpreted as an integer",
    "[1, 2][t]": "'{kind}' object cannot be interpreted as an integer",
}


def objects():
    return tf.constant(1.0), tf.Variable(1.0), tf.Variable(1.0, use_resource=True)


@pytest.mark.parametrize("code", TAKEN)
def test_what_takes_a_tensor_for_its_value_is_told_of_sessions(code):
    for t in objects():
        with pytest.raises(TypeError) as caught:
            eval(code, {"t": t, "math": math})  # noqa: S307 ours
        assert str(caught.value) == f"{TAKEN[code].format(kind=type(t).__name__)}. {HINT}"


@pytest.mark.parametrize("name", ["numpy", "item", "tolist"])
def test_methods_that_give_a_value_are_missing_and_say_what_to_do(name):
    for t in objects():
        with pytest.raises(AttributeError) as caught:
            getattr(t, name)()
        assert str(caught.value) == f"{type(t).__name__!r} object has no attribute {name!r}. {HINT}"
        assert caught.value.name == name and caught.value.obj is t and name not in dir(t)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_methods_of_arrays_name_the_function_of_the_graph(name):
    t = tf.zeros([2, 2])
    with pytest.raises(AttributeError) as caught:
        getattr(t, name)
    use = str(caught.value).partition(f"'Tensor' object has no attribute {name!r}. Use ")[2].removesuffix(".")
    given = {"tf": tf, "t": t, "dtype": tf.int32, "shape": [4], "other": t, "low": 0.0, "high": 1.0, "axis": 0}
    assert eval(use, given | {"loss": tf.reduce_sum(t), "variables": [t]}) is not None  # noqa: S307 ours


def test_what_nobody_knows_is_pythons_own_error():
    with pytest.raises(AttributeError, match=r"^'Tensor' object has no attribute 'shap'$"):
        _ = tf.constant(1.0).shap


def test_what_works_without_a_value_still_does():
    t, v, _ = objects()
    assert f"{t}" == str(t) and f"{v}" == str(v) and copy.copy(t) is not None
    assert np.array(v).dtype == object, "as in TensorFlow"
    assert sum([t, t]).dtype == tf.float32 and tf.zeros([2, 3])[tf.constant(1)].shape == [3]
    assert hasattr(t, "op") and not hasattr(t, "__wrapped__") and not hasattr(v, "nobody")
