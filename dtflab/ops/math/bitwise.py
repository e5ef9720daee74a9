"""Bits moved up and down, and the number of bits that are set.

Stands for the rest of `core/ops/bitwise_ops.cc` and its `core/kernels/cwise_op_*_shift.cc`. BitwiseAnd, BitwiseOr and
BitwiseXor are in `logic.py`, Invert is in `unary.py`.

Rule: a shift by less than nothing, or by as many bits as there are, is one by the nearest that has a meaning in C.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.ops import shapes
from dtflab.ops.type_sets import INTEGER


def _binary(op_name: str, name: str, rule: Any, summary: str) -> Any:
    """Register `op_name(x, y)` on integers and return its Python function."""
    members = {"__doc__": summary, "infer": shapes.broadcast, "bind": rule, "grad": no_gradient}
    op(f"{op_name}(x: T, y: T) -> (z: T)\nT: {INTEGER}")(type(op_name, (Op,), members))

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        result: Tensor = apply_op(op_name, name, x=x, y=y)
        return result

    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


def _shift(function: str) -> Any:
    def bind(node: Any, xp: Any) -> Any:
        shift, most = getattr(xp, function), node["T"].size * 8 - 1
        return lambda x, y: shift(x, xp.minimum(xp.maximum(y, y.dtype.type(0)), y.dtype.type(most)))

    return bind


left_shift = _binary("LeftShift", "left_shift", _shift("left_shift"), "x with its bits moved up by y places.")
right_shift = _binary(
    "RightShift", "right_shift", _shift("right_shift"),
    "x with its bits moved down by y places; of signed integers the sign moves in.",
)  # fmt: skip


@op(f"""PopulationCount(x: T) -> (y: uint8)
        T: {INTEGER}""")
class PopulationCount(Op):
    """How many bits of each integer are set."""

    infer = shapes.unchanged
    grad = no_gradient

    def bind(node, xp):
        size = node["T"].size

        def kernel(x):
            bits = xp.unpackbits(xp.ascontiguousarray(x).reshape(-1).view(np.uint8))
            return bits.reshape((*x.shape, 8 * size)).sum(-1, dtype=np.uint8)

        return kernel
