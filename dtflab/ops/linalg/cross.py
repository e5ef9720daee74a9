"""The cross product of vectors.

Stands for `core/kernels/cross_op.cc` and its gradient.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.ops import shapes
from dtflab.ops.messages import invalid, shape_text


@op("""Cross(a: T, b: T) -> (product: T)
       T: realnumbertype""")
class Cross(Op):
    """The cross products of vectors of three elements."""

    infer = shapes.merged

    def bind(node, xp):
        def kernel(a, b):
            if a.shape != b.shape or a.shape[-1:] != (3,):
                raise invalid(f"inputs must have one shape that ends with 3: {shape_text(a)}, {shape_text(b)}")
            after, before = xp.asarray([1, 2, 0]), xp.asarray([2, 0, 1])
            return a[..., after] * b[..., before] - a[..., before] * b[..., after]

        return kernel

    def grad(op, dy):
        a, b = op.inputs
        return [cross(b, dy), cross(dy, a)]


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross products of the vectors along the last axis, which has 3 elements."""
    return apply_op("Cross", name, a=a, b=b)
