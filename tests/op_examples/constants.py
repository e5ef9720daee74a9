"""Tensors made from nothing."""

from __future__ import annotations

import numpy as np

from dtflab.graph.tensor_shape import TensorShape
from tests.op_examples import Example, Values, examples


@examples("Const")
def const(v: Values) -> list[Example]:
    return [v(value=v.array(*shape), dtype=v.dtype) for shape in ((2, 3), (), (0, 2), (1,))] + [
        v(value=np.broadcast_to(v.array(), (2, 5)), dtype=v.dtype)
    ]


@examples("Fill")
def fill(v: Values) -> list[Example]:
    return [v(np.array(s, t), v.array()) for s in ([2, 3], [], [0]) for t in (np.int32, np.int64)]


@examples("Range")
def range_(v: Values) -> list[Example]:
    def one(*limits):
        return v(*(np.array(x).astype(v.dtype.as_numpy_dtype) for x in limits))

    found = [one(0, 5, 1), one(3, 10, 3), one(2, 2, 1)]
    return found if v.dtype.is_unsigned else [*found, one(5, -3, -2)]


@examples("LinSpace")
def lin_space(v: Values) -> list[Example]:
    return [v(v.array(), v.array(), np.array(n, t)) for n in (1, 2, 5) for t in (np.int32, np.int64)]


@examples("PlaceholderWithDefault")
def placeholder_with_default(v: Values) -> list[Example]:
    shapes = [[2, 3], [None, 3], TensorShape(None)]
    return [v(v.array(2, 3), shape=s) for s in shapes]
