"""Ranking: is the target among the k largest, and which are they. InTopK and TopK.

Stands for `core/kernels/in_topk_op.cc`, `topk_op.cc` and their part of `nn_ops.py` and `nn_grad.py`.

Rule: as many classes as tie at the k-th place count as among the first k for InTopK; TopK takes the lower
index first among equals.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import of_first, searched
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.messages import invalid
from dtflab.ops.reduce import functions as reduce


def _rows(operation: Any) -> list[TensorShape]:
    predictions, targets = operation.inputs[0].shape.with_rank(2), operation.inputs[1].shape.with_rank(1)
    return [predictions[:1].merge_with(targets)]


def _in_top_k(xp: Any, predictions: Any, targets: Any, k: int) -> Any:
    if predictions.ndim != 2:
        raise invalid("predictions must be 2-dimensional")
    if targets.ndim != 1:
        raise invalid("targets must be 1-dimensional")
    if len(predictions) != len(targets):
        raise invalid(f"First dimension of predictions {len(predictions)} must match length of targets {len(targets)}")
    classes = predictions.shape[1]
    known = (targets >= 0) & (targets < classes)
    of_target = predictions[xp.arange(len(targets)), xp.where(known, targets, 0)]
    larger = (predictions > of_target[:, None]).sum(axis=1)
    return known & xp.isfinite(predictions).all(axis=1) & (larger < k)


@op("InTopK(predictions: float, targets: T) -> (precision: bool) where k: int, T: {int32, int64} = int32")
class InTopK(Op):
    infer = _rows
    flops = of_first

    def kernel(node, xp, predictions, targets):
        return _in_top_k(xp, predictions, targets, node["k"])


@op("InTopKV2(predictions: float, targets: T, k: T) -> (precision: bool) where T: {int32, int64} = int32")
class InTopKV2(Op):
    infer = _rows
    flops = of_first

    def kernel(node, xp, predictions, targets, k):
        return _in_top_k(xp, predictions, targets, int(k))


def _top_shape(operation: Any) -> list[TensorShape]:
    shape, k = operation.inputs[0].shape.with_rank_at_least(1), folded_value(operation.inputs[1])
    if shape.ndims is None:
        return [TensorShape(None)] * 2
    if k is not None and shape[-1].value is not None and shape[-1].value < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {shape[-1].value}")
    return [shape[:-1].concatenate([None if k is None else int(k)])] * 2


def _top(xp: Any, values: Any, k: int, index_type: Any) -> tuple[Any, Any]:
    if values.ndim < 1:
        raise invalid(f"input must be >= 1-D, got shape {list(values.shape)}")
    if k < 0:
        raise invalid(f"Need k >= 0, got {k}")
    if values.shape[-1] < k:
        raise invalid(f"input must have at least k columns. Had {values.shape[-1]}, needed {k}")
    first = _places(xp, values, k)
    return xp.take_along_axis(values, first, axis=-1), first.astype(index_type)


def _places(xp: Any, values: Any, k: int) -> Any:
    """Where the k largest of each row are, the largest first."""
    width = values.shape[-1]
    if 0 < _FEW * k <= width and values.dtype.kind in "fiu":
        least = xp.partition(values, width - k, axis=-1)[..., width - k, None]
        among = values >= least
        if (among.sum(axis=-1) == k).all():  # else there are equals at the k-th place, or no numbers
            few = xp.nonzero(among)[-1].reshape(*values.shape[:-1], k)
            order = _descending(xp, xp.take_along_axis(values, few, axis=-1))
            return xp.take_along_axis(few, order, axis=-1)
    return _descending(xp, values)[..., :k]


_FEW = 16  # elements per wanted one, from which finding the k largest before sorting them pays


def _descending(xp: Any, values: Any) -> Any:
    """Sorting the reversed row ascending and reading it backwards puts the lower index first among equals."""
    return values.shape[-1] - 1 - xp.argsort(values[..., ::-1], axis=-1, kind="stable")[..., ::-1]


def _top_grad(operation: Any, dy: Any, _: Any) -> list[Tensor]:
    """dy put back where the values were taken; a zero for the indices."""
    in_shape = arrays.shape(operation.inputs[0])
    taken_shape = arrays.shape(operation.outputs[1])
    taken = indexing.gather(arrays.cast(taken_shape, dtypes.int64), arrays.size(taken_shape) - 1)
    rows = arrays.reshape(operation.outputs[1], arrays.stack([-1, taken]))
    width = indexing.gather(arrays.cast(in_shape, dtypes.int64), arrays.size(in_shape) - 1)
    count = arrays.cast(arrays.shape(rows)[0], dtypes.int64)
    starts = arrays.expand_dims(arrays.range(0, count * width, width), -1)
    flat = arrays.reshape(rows + arrays.cast(starts, dtypes.int32), [-1])
    spread = indexing.scatter_nd(arrays.expand_dims(flat, -1), arrays.reshape(dy, [-1]), [reduce.reduce_prod(in_shape)])
    return [arrays.reshape(spread, in_shape), arrays.zeros([], dtypes.int32)]


@op("""TopKV2(input: T, k: Tk) -> (values: T, indices: index_type)
       sorted: bool = true, T: realnumbertype, Tk: {int16, int32, int64} = int32
       index_type: {int16, int32, int64} = int32""")
class TopKV2(Op):
    infer = _top_shape

    def kernel(node, xp, values, k):
        return _top(xp, values, int(k), node["index_type"].as_numpy_dtype)

    def flops(node, ins, outs):
        return elements(ins[0]) * searched(outs[0].shape[-1])

    grad = _top_grad
