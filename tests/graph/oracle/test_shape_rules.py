"""Shapes that do not fit while a graph is built: the words of TensorFlow's shape rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle.graph_defs import both


def holder(tf: Any, *shape: int) -> Any:
    return tf.placeholder(tf.float32, shape)


def variable(tf: Any, use_resource: bool = False) -> Any:
    return tf.Variable([0.0, 1.0, 2.0, 3.0], use_resource=use_resource)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "another rank": lambda tf: variable(tf).assign([[1.0, 2.0]]),
    "another size": lambda tf: variable(tf).assign([1.0, 2.0]),
    "a scalar added": lambda tf: variable(tf).assign_add(1.0),
    "a scalar added to a resource": lambda tf: variable(tf, True).assign_add(1.0),
    "less added to a resource": lambda tf: variable(tf, True).assign_sub([1.0, 2.0]),
    "add_n": lambda tf: tf.add_n([holder(tf, 2, 3), holder(tf, 2, 4)]),
    "add_n of ranks": lambda tf: tf.add_n([holder(tf, 2), holder(tf)]),
    "stack": lambda tf: tf.stack([holder(tf, 2, 3), holder(tf, 3, 3)]),
    "gradient descent": lambda tf: tf.raw_ops.ApplyGradientDescent(
        var=variable(tf)._ref(), alpha=1.0, delta=[[1.0, 2.0]]
    ),
    "a name that is none": lambda tf: tf.read_file(["a", "b"]),
    "sparse segments": lambda tf: tf.sparse_segment_sum(holder(tf, 3), [[0]], [0]),
    "scatter_nd outside": lambda tf: tf.scatter_nd([[0], [1]], [1.0], [3]),
    "scatter_nd inside": lambda tf: tf.scatter_nd([[0], [1]], [[1.0] * 3] * 2, tf.constant([3, 2])),
    "scatter_nd into nothing": lambda tf: tf.scatter_nd([[0]], [1.0], [0]),
    "scatter_nd_add": lambda tf: tf.scatter_nd_add(variable(tf), [[0], [1]], [1.0, 2.0, 3.0]),
    "scatter_nd_add to a resource": lambda tf: tf.scatter_nd_add(variable(tf, True), [[0], [1]], [[1.0], [2.0]]),
    "tensor_scatter_add": lambda tf: tf.tensor_scatter_add(holder(tf, 2, 2), [[0]], [[1.0] * 3]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_misfit(name):
    def refused(tf: Any) -> str:
        with pytest.raises(ValueError) as caught:
            PROGRAMS[name](tf)
        return str(caught.value).partition(" for '{{")[0].partition("\n\tFrom merging")[0]

    theirs, ours = both(refused)
    assert ours == theirs


def beside(tf: Any) -> None:
    with tf.name_scope("s"), tf.control_dependencies([tf.no_op()]):
        tf.assign_add(variable(tf), [1.0])


def options_of_records(tf: Any, **options: Any) -> None:
    tf.raw_ops.DecodeCSV(records=["a"], record_defaults=[[[1.0]], [1]], field_delim="\t", **options)


def leak(tf: Any, alpha: float) -> None:
    tf.raw_ops.LeakyReluGrad(gradients=holder(tf, 2), features=holder(tf, 3), alpha=alpha)


# Attributes of every kind, long ones, and inputs that are not the first output of their operation.
SHOWN: dict[str, Callable[[Any], Any]] = {
    "assign": lambda tf: variable(tf).assign([1.0, 2.0]),
    "in a scope": beside,
    "add": lambda tf: tf.unstack(holder(tf, 3, 2))[1] + tf.split(holder(tf, 3, 9), 3)[2],
    "types": lambda tf: tf.raw_ops.RestoreV2(
        prefix=["a", "b"], tensor_names=["x"], shape_and_slices=[""], dtypes=[tf.float32, tf.int64]
    ),
    "texts": lambda tf: options_of_records(tf, na_value="é\"'\x01\n\\", select_cols=[0, 1]),
    "a long text": lambda tf: options_of_records(tf, na_value="ab\n" * 40),
    "a float": lambda tf: leak(tf, 1 / 3),
    "a small float": lambda tf: leak(tf, 1e-7),
    "a large float": lambda tf: leak(tf, 1234567.0),
    "shape": lambda tf: tf.ensure_shape(holder(tf, 2, 3), [4, None]),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_an_error_says_of_the_operation(name):
    def refused(tf: Any) -> str:
        with pytest.raises(ValueError, match="with input shapes") as caught:
            SHOWN[name](tf)
        return str(caught.value)

    theirs, ours = both(refused)
    assert ours == theirs


# What the kernel has to find, since the graph can't know: shapes of indices, updates and what is written to.
SHAPES = [
    ((2, 1), (1,), (3,)), ((2, 1), (2, 3), (3, 2)), ((2, 2), (2,), (3,)), ((), (2,), (3,)), ((2, 1), (), (3,)),
    ((1, 2), (1,), (0, 2)), ((2, 2, 1), (2, 3, 4), (5, 4)), ((2, 1), (2,), ()), ((3, 2, 2), (2, 2, 2), (2, 2, 2)),
]  # fmt: skip
WRITES: dict[str, Callable[..., Any]] = {
    "scatter_nd": lambda tf, where, what, into: tf.scatter_nd(where, what, tf.shape(into)),
    "add": lambda tf, where, what, into: tf.raw_ops.ScatterNdNonAliasingAdd(input=into, indices=where, updates=what),
    "tensor": lambda tf, where, what, into: tf.tensor_scatter_add(into, where, what),
}
UNLIKE = {("tensor", 1)}  # TensorFlow says this one in other words
RANDOM = {("add", 3), ("add", 4)}  # TensorFlow says the size of a dimension that is not there


KERNEL_CASES = [
    pytest.param(*one, marks=pytest.mark.live("see RANDOM")) if one in RANDOM else one
    for one in ((write, case) for write in WRITES for case in range(len(SHAPES)))
    if one not in UNLIKE
]


@pytest.mark.parametrize("write, case", KERNEL_CASES)
def test_misfit_in_the_kernel(write, case):
    where, what, into = (np.zeros(shape, kind) for shape, kind in zip(SHAPES[case], "iff", strict=True))

    def refused(tf: Any) -> str:
        hidden = [tf.placeholder(tf.as_dtype(x.dtype)) for x in (where, what, into)]
        with pytest.raises(tf.errors.InvalidArgumentError) as caught, tf.Session() as session:
            session.run(WRITES[write](tf, *hidden), dict(zip(hidden, (where, what, into), strict=True)))
        return caught.value.message

    theirs, ours = both(refused)
    said = ours.partition("\n")[0].partition("[[")[0].strip()
    assert (said.partition(" must match")[0].partition("] =")[0] if (write, case) in RANDOM else said) in theirs
