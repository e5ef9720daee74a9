"""Biases, softmax and its losses."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples


@examples("BiasAdd", "BiasAddV1")
def bias_add(v: Values) -> list[Example]:
    found = [v(v.array(2, 3), v.array(3)), v(v.array(2, 2, 2, 3), v.array(3))]
    return found if v.op == "BiasAddV1" else [*found, v(v.array(2, 3, 2, 2), v.array(3), data_format="NCHW")]


@examples("BiasAddGrad")
def bias_add_grad(v: Values) -> list[Example]:
    return [v(v.array(2, 3)), v(v.array(2, 2, 2, 3)), v(v.array(2, 3, 2, 2), data_format="NCHW")]


@examples("Softmax", "LogSoftmax")
def softmax(v: Values) -> list[Example]:
    return [v(v.array(2, 3)), v(v.array(4)), v(v.array(2, 2, 3)), v(v.array(2, 3) * 30)]


@examples("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(v: Values) -> list[Example]:
    labels = np.array([[0.2, 0.3, 0.5], [1, 0, 0]]).astype(v.dtype.as_numpy_dtype)
    spread = [(v.array(2, 3), labels[:1]), (v.array(1, 3), labels)]
    return [v(v.array(2, 3), labels), *(v(*inputs, gradient=False) for inputs in spread)]


@examples("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(v: Values) -> list[Example]:
    return [v(v.array(2, 3), np.array([2, 0], t)) for t in (np.int32, np.int64)]
