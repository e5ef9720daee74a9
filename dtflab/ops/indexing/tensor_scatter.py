"""Copies of a tensor with slices at positions written: the TensorScatter family.

Stands for `core/kernels/scatter_nd_op.cc` and its part of `python/ops/array_grad.py`. `scatter_nd`, which writes into
zeros, is in `gathering.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import scatter
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.scatter import check_static_slices, check_tensor, check_variable
from dtflab.ops.type_sets import NUMBER_BOOL


def _infer(op: Operation) -> list[TensorShape]:
    check_static_slices(*(t.shape for t in op.inputs))
    return [op.inputs[0].shape]


def _flops(node: Node, ins: Any, outs: Any) -> int:
    return elements(ins[2])


def _update_grad(op: Operation, dy: Any) -> list[Any]:
    _, indices, updates = op.inputs
    blank = arrays.zeros_like(updates, dtype=dy.dtype)
    kept = apply_op("TensorScatterUpdate", tensor=arrays.identity(dy), indices=indices, updates=blank)
    return [kept, None, indexing.gather_nd(dy, indices)]


def _add_grad(op: Operation, dy: Any) -> list[Any]:
    return [arrays.identity(dy), None, indexing.gather_nd(dy, op.inputs[1])]


def _sub_grad(op: Operation, dy: Any) -> list[Any]:
    return [arrays.identity(dy), None, -indexing.gather_nd(dy, op.inputs[1])]


def _extreme_grad(op: Operation, dy: Any) -> list[Any]:
    """The gradient goes to the element that is the extreme; several share it."""
    (tensor, indices, updates), output = op.inputs, op.outputs[0]
    kept = arrays.cast(math.equal(tensor, output), dy.dtype)
    written = arrays.cast(math.equal(updates, indexing.gather_nd(output, indices)), dy.dtype)
    shape = arrays.shape(tensor, out_type=indices.dtype)
    share = dy / (kept + indexing.scatter_nd(indices, written, shape))
    return [share * kept, None, indexing.gather_nd(share, indices) * written]


def _scatter_op(inputs: str, how: str, grad: Any, types: str, index_types: str, check: Any) -> None:
    """Register an op that gives a copy of its first input, with slices at positions written."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        write = scatter.writer(how, xp, scatter.positions(check))
        return lambda tensor, indices, updates: write(tensor, None, indices, updates)

    members = {"infer": _infer, "bind": bind, "grad": grad, "flops": _flops}
    op(f"""{inputs} -> (output: T)
           T: {types}
           Tindices: {index_types}
           bad_indices_policy: string = ''""")(type(inputs.partition("(")[0], (Op,), members))


_TENSOR, _WIDE = "(tensor: T, indices: Tindices, updates: T)", "{int16, int32, int64, uint16}"
_INPUT = "(input: T, indices: Tindices, updates: T)"  # TensorScatterAdd under an older name

_scatter_op(f"TensorScatterUpdate{_TENSOR}", "update", _update_grad, "type", _WIDE, check_tensor)
_scatter_op(f"TensorScatterAdd{_TENSOR}", "add", _add_grad, "type", "{int32, int64}", check_tensor)
_scatter_op(f"TensorScatterSub{_TENSOR}", "sub", _sub_grad, "type", "{int32, int64}", check_tensor)
_scatter_op(f"TensorScatterMin{_TENSOR}", "min", _extreme_grad, "type", "{int32, int64}", check_tensor)
_scatter_op(f"TensorScatterMax{_TENSOR}", "max", _extreme_grad, "type", "{int32, int64}", check_tensor)
_scatter_op(f"ScatterNdNonAliasingAdd{_INPUT}", "add", _add_grad, NUMBER_BOOL, "{int32, int64}", check_variable)
