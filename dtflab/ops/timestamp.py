"""Timestamp: the time when the op runs.

Stands for `TimestampOp` in `core/kernels/logging_ops.cc`.
"""

from __future__ import annotations

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.ops import shapes
from dtflab.ops.costs import free


@op("Timestamp() -> (ts: double)")
class Timestamp(Op):
    stateful = True
    needs_ctx = True
    grad = no_gradient
    infer = shapes.scalar
    flops = bytes = free

    def bind(node, xp):
        return lambda ctx: np.float64(ctx.step.clock.time())


def timestamp(name: str | None = None) -> Tensor:
    """Seconds since 1970, float64, when the op runs; in virtual time, those of its clock."""
    stamp: Tensor = apply_op("Timestamp", name)
    return stamp
