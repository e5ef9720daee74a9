"""Sorted arrays, and places in them: sort, argsort, searchsorted.

Stands for `core/kernels/searchsorted_op.cc`, `python/ops/sort_ops.py` and `searchsorted` of `python/ops/array_ops.py`.

Rule: there is no op that sorts. The k largest of k elements are all of them, in descending order; ascending order is
the descending one of the elements turned about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.costs import searched
from dtflab.ops.messages import invalid


def _bound_kernel(side: str, node: Any, xp: Any) -> Callable[..., Any]:
    dtype = node["out_type"].as_numpy_dtype

    def kernel(rows: Any, values: Any) -> Any:
        if len(rows) != len(values):
            raise invalid("Leading dim_size of both tensors must match.")
        out = xp.empty(values.shape, dtype)
        for i, row in enumerate(rows):
            out[i] = xp.searchsorted(row, values[i], side)
        return out

    return kernel


def _bound_shape(op: Any) -> list[TensorShape]:
    rows, values = (t.shape.with_rank(2) for t in op.inputs)
    rows[:1].assert_is_compatible_with(values[:1])
    return [op.inputs[1].shape]


def _bound_flops(node: Any, ins: Any, outs: Any) -> int:
    return elements(ins[1]) * searched(ins[0].shape[-1])


_BOUND = """(sorted_inputs: T, values: T) -> (output: out_type)
            T: type
            out_type: {int32, int64} = int32"""


@op(f"LowerBound{_BOUND}")
class LowerBound(Op):
    """Where in its row, which is sorted, each value would come, before its equals."""

    infer = _bound_shape
    flops = _bound_flops

    def bind(node, xp):
        return _bound_kernel("left", node, xp)


@op(f"UpperBound{_BOUND}")
class UpperBound(Op):
    """Where in its row, which is sorted, each value would come, after its equals."""

    infer = _bound_shape
    flops = _bound_flops

    def bind(node, xp):
        return _bound_kernel("right", node, xp)
