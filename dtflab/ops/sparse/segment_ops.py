"""Rows looked up by index and reduced by segment in one step: what embeddings of bags of words are made of.

Stands for the SparseSegment* ops of `core/kernels/segment_reduction_ops_impl.h` and their part of
`python/ops/math_grad.py`.

Rule: output[s] is the reduction of data[indices[i]] over all i with segment_ids[i] == s; the ids rise. A mean divides
by the number of rows, `sqrt_n` by its square root. The gradient may stay sparse: rows, and which ones.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, nbytes, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.messages import invalid
from dtflab.ops.segment_kernels import add_rows


def _check_sizes(indices: Any, ids: Any) -> None:
    if indices.shape != ids.shape:
        raise invalid("segment_ids and indices should have same size.")


def _check(indices: Any, ids: Any, rows: int, count: int | None) -> None:
    _check_sizes(indices, ids)
    wrong = (indices < 0) | (indices >= rows)
    if wrong.any():
        at = int(wrong.argmax())
        raise invalid(f"Bad: indices[{at}] == {indices[at]} out of range [0, {rows})")
    if (ids[1:] < ids[:-1]).any():
        raise invalid("segment ids are not increasing")
    if count is not None and len(ids) and ids[-1] >= count:
        raise invalid("segment ids must be < num_segments")
    if (ids < 0).any():
        count = int(ids[-1]) + 1 if count is None else count
        raise invalid(
            f"Segment id {ids[0]} out of range [0, {count}), possibly because 'segment_ids' input is not sorted."
        )


def _weights(how: str, ids: Any, count: int, xp: Any, dtype: Any) -> Any:
    """The factors for the rows of each segment; None for a sum."""
    if how == "Sum":
        return None
    sizes = xp.maximum(xp.bincount(ids, minlength=count), 1)
    return (1 / (sizes if how == "Mean" else xp.sqrt(sizes))).astype(dtype)


def _columns(weights: Any, like: Any) -> Any:
    return weights.reshape(-1, *[1] * (like.ndim - 1))


class _Reduce(Op):
    how = ""  # Sum, Mean or SqrtN

    def infer(op: Operation) -> list[TensorShape]:
        data, indices, ids = (t.shape for t in op.inputs[:3])
        indices.with_rank(1).merge_with(ids.with_rank(1))
        count = folded_value(op.inputs[3]) if len(op.inputs) == 4 else None
        return [TensorShape([None if count is None else int(count)]).concatenate(data.with_rank_at_least(1)[1:])]

    @classmethod
    def kernel(cls, node: Node, xp: Any, data: Any, indices: Any, ids: Any, num_segments: Any = None) -> Any:
        dtype = node["T"].as_numpy_dtype
        computed = xp.float32 if node["T"].is_floating and node["T"].size < 4 else dtype
        given = None if num_segments is None else int(num_segments)
        _check(indices, ids, len(data), given)
        count = given if given is not None else (int(ids[-1]) + 1 if len(ids) else 0)
        out = add_rows(xp.zeros((count, *data.shape[1:]), computed), ids, data[indices].astype(computed), xp)
        weights = _weights(cls.how, ids, count, xp, computed)
        return (out if weights is None else out * _columns(weights, out)).astype(dtype)

    def flops(node: Node, ins: Any, outs: Any) -> int:
        return elements(ins[1]) * prod(ins[0].shape[1:])

    @classmethod
    def bytes(cls, node: Node, ins: Any, outs: Any) -> int:
        """Only the chosen rows of the data are read."""
        rows = cls.flops(node, ins, outs) * int(ins[0].dtype.itemsize)
        return rows + sum(map(nbytes, (*ins[1:], *outs)))

    @classmethod
    def grad(cls, op: Operation, dy: Any) -> list[Any]:
        data, indices, ids = op.inputs[:3]
        shape = arrays.shape(data)
        name, others = f"SparseSegment{cls.how}Grad", [None] * (len(op.inputs) - 1)
        arguments = {"grad": dy, "indices": indices, "segment_ids": ids}
        if op.get_attr("sparse_gradient"):
            values, rows = apply_op(f"{name}V2", None, **arguments, dense_output_dim0=shape[0])
            return [IndexedSlices(values, rows, shape), *others]
        return [apply_op(name, None, **arguments, output_dim0=shape[0]), *others]


# -- gradients ----------------------------------------------------------------------------------------


class _Grad(Op):
    """The gradient of the data: each looked up row gets that of its segment, divided as the segment was."""

    how = ""

    def infer(op: Operation) -> list[TensorShape]:
        rest = op.inputs[0].shape.with_rank_at_least(1)[1:]
        op.inputs[1].shape.with_rank(1).merge_with(op.inputs[2].shape.with_rank(1))
        rows = folded_value(op.inputs[3])
        if len(op.outputs) == 2:
            return [TensorShape([None]).concatenate(rest), TensorShape([None])]
        return [TensorShape([None if rows is None else int(rows)]).concatenate(rest)]

    @classmethod
    def kernel(cls, node: Node, xp: Any, grad: Any, indices: Any, ids: Any, rows: Any) -> Any:
        sparse = node.op.endswith("V2")
        _check_grad(indices, ids, len(grad), int(rows))
        weights = _weights(cls.how, ids, len(grad), xp, grad.dtype)
        parts = (grad if weights is None else grad * _columns(weights, grad))[ids]
        if not sparse:
            return add_rows(xp.zeros((int(rows), *grad.shape[1:]), grad.dtype), indices, parts, xp)
        found, places = np.unique(indices, return_inverse=True)
        return add_rows(xp.zeros((len(found), *grad.shape[1:]), grad.dtype), places, parts, xp), found

    def flops(node: Node, ins: Any, outs: Any) -> int:
        return elements(ins[1]) * prod(ins[0].shape[1:])


def _check_grad(indices: Any, ids: Any, segments: int, rows: int) -> None:
    _check_sizes(indices, ids)
    if len(ids) and not (ids.min() >= 0 and ids.max() < segments):
        raise invalid("Invalid number of segments")
    wrong = (indices < 0) | (indices >= rows)
    if wrong.any():
        raise invalid(f"Index {indices[wrong.argmax()]} out of range [0, {rows}).")


_FLOAT = "{bfloat16, half, float, double}"
_INDICES = """
       Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32"""
_INPUTS = "data: T, indices: Tidx, segment_ids: Tsegmentids"

for _how in ("Sum", "Mean", "SqrtN"):
    _kind = "realnumbertype" if _how == "Sum" else _FLOAT
    _attrs = f"\n       T: {_kind}{_INDICES}\n       sparse_gradient: bool = false"
    _counted = f"{_attrs}\n       Tnumsegments: {{int32, int64}} = int32"
    _name, _members = f"SparseSegment{_how}", {"how": _how}
    op(f"{_name}({_INPUTS}) -> (output: T){_attrs}")(type(_name, (_Reduce,), _members))
    op(f"{_name}WithNumSegments({_INPUTS}, num_segments: Tnumsegments) -> (output: T){_counted}")(
        type(_name, (_Reduce,), _members)
    )
    op(f"""{_name}Grad(grad: T, indices: Tidx, segment_ids: Tsegmentids, output_dim0: int32) -> (output: T)
       T: {_FLOAT}{_INDICES}""")(type(_name, (_Grad,), _members))
    op(f"""{_name}GradV2(grad: T, indices: Tidx, segment_ids: Tsegmentids, dense_output_dim0: int32) ->
       (output: T, sorted_unique_indices: Tidx)
       T: {_FLOAT}{_INDICES}""")(type(_name, (_Grad,), _members))
