"""Softmax, its logarithm, the cross entropies that are computed with it in one op, and L2Loss.

Stands for `kernels/softmax_op_functor.h`, `xent_op.h`, `sparse_xent_op.h`, and their part of `nn_grad.py`.
The Python functions are in `cross_entropy.py`.

Rule: a row's maximum is subtracted before anything is exponentiated, so nothing overflows; half and bfloat16
are computed in float32. A cross entropy op gives its own gradient as second output, which costs it nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape, broadcast_shape
from dtflab.ops import shapes
from dtflab.ops.costs import per_input
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce

_FLOAT = "T: {half, bfloat16, float, double}"


def _at_least_vector(operation: Any) -> list[TensorShape]:
    return [operation.inputs[0].shape.with_rank_at_least(1)]


def _widened(node: Node, compute: Callable[..., Any]) -> Callable[..., Any]:
    """`compute` with two-byte floats given to it as float32 and its results rounded back."""
    dtype = np.dtype(node["T"].as_numpy_dtype)
    if dtype.itemsize != 2:
        return compute

    def kernel(first: Any, *others: Any) -> Any:
        wide = [x.astype(np.float32) if x.dtype == dtype else x for x in (first, *others)]
        out = compute(*wide)
        return tuple(o.astype(dtype) for o in out) if isinstance(out, tuple) else out.astype(dtype)

    return kernel


def _shifted(xp: Any, x: Any) -> Any:
    """A new array: x less the maximum of its row."""
    if x.ndim == 0:
        raise invalid("logits must have >= 1 dimension, got 0")
    if x.size == 0:
        return x.copy()
    x = _columns_first(xp, x)
    return x - x.max(-1, None, True)


def _columns_first(xp: Any, x: Any) -> Any:
    """x, laid out so that few classes are fast: NumPy's reductions are slow along short rows (4 times for 1000×10)."""
    return xp.asfortranarray(x) if x.shape[-1] < 64 else x


@op(f"Softmax(logits: T) -> (softmax: T) where {_FLOAT}")
class Softmax(Op):
    infer = _at_least_vector
    flops = per_input(5)

    def bind(node, xp):
        def softmax(x):
            e = _shifted(xp, x)
            xp.exp(e, out=e)
            e /= e.sum(axis=-1, keepdims=True)
            return e

        return _widened(node, softmax)

    def grad(op, dy):
        softmax = op.outputs[0]
        return [(dy - reduce.reduce_sum(dy * softmax, -1, keepdims=True)) * softmax]


@op(f"LogSoftmax(logits: T) -> (logsoftmax: T) where {_FLOAT}")
class LogSoftmax(Op):
    infer = _at_least_vector
    flops = per_input(5)

    def bind(node, xp):
        def log_softmax(x):
            shifted = _shifted(xp, x)
            return shifted - xp.log(xp.exp(shifted).sum(axis=-1, keepdims=True))

        return _widened(node, log_softmax)

    def grad(op, dy):
        softmax = apply_op("Exp", x=op.outputs[0])
        return [dy - reduce.reduce_sum(dy, -1, keepdims=True) * softmax]


# -- cross entropies ----------------------------------------------------------------------------------


def _dense_shapes(operation: Any) -> list[TensorShape]:
    features, labels = (t.shape for t in operation.inputs)
    both = broadcast_shape(features, labels).with_rank(2)
    return [both[:1], both]


@op(f"SoftmaxCrossEntropyWithLogits(features: T, labels: T) -> (loss: T, backprop: T) where {_FLOAT}")
class SoftmaxCrossEntropyWithLogits(Op):
    """For each row: the loss, and its derivative by the logits."""

    infer = _dense_shapes
    flops = per_input(8)

    def bind(node, xp):
        def cross_entropy(features, labels):
            if features.shape != labels.shape:
                features, labels = _broadcast(features, labels)
            if features.ndim != 2:
                raise invalid("logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional")
            shifted = _shifted(xp, features)
            e = xp.exp(shifted)
            total = xp.add.reduce(e, axis=1, keepdims=True)
            surprise = xp.subtract(xp.log(total), shifted, out=shifted)
            labels = _columns_first(xp, labels)
            surprise *= labels
            e /= total
            e -= labels
            return xp.add.reduce(surprise, axis=1), e

        return _widened(node, cross_entropy)

    def grad(op, d_loss, d_backprop):
        dx = _through_logits(op, d_loss, d_backprop)
        log_probabilities = apply_op("LogSoftmax", logits=op.inputs[0])
        return [dx, _times_rows(d_loss, apply_op("Neg", x=log_probabilities))]


def _broadcast(features: Any, labels: Any) -> tuple[Any, Any]:
    try:
        return tuple(np.broadcast_arrays(features, labels))  # type: ignore[return-value]
    except ValueError:
        sizes = f"logits_size={shape_text(features)} labels_size={shape_text(labels)}"
        raise invalid(f"logits and labels must be broadcastable: {sizes}") from None


def _sparse_shapes(operation: Any) -> list[TensorShape]:
    features, labels = operation.inputs[0].shape.with_rank(2), operation.inputs[1].shape.with_rank(1)
    rows = features[:1].merge_with(labels)
    return [rows, rows.concatenate(features[1:])]


@op(f"""SparseSoftmaxCrossEntropyWithLogits(features: T, labels: Tlabels) -> (loss: T, backprop: T)
       {_FLOAT}, Tlabels: {{int32, int64}} = int64""")
class SparseSoftmaxCrossEntropyWithLogits(Op):
    """The loss and its derivative for labels that are class numbers."""

    infer = _sparse_shapes
    flops = per_input(6)

    def bind(node, xp):
        def cross_entropy(features, labels):
            _check_sparse(features, labels)
            shifted = _shifted(xp, features)
            e = xp.exp(shifted)
            total = e.sum(axis=1, keepdims=True)
            backprop = e / total
            rows = xp.arange(len(labels))
            backprop[rows, labels] -= 1
            return xp.log(total[:, 0]) - shifted[rows, labels], backprop

        return _widened(node, cross_entropy)

    def grad(op, d_loss, d_backprop):
        return [_through_logits(op, d_loss, d_backprop), None]


def _check_sparse(features: Any, labels: Any) -> None:
    if features.ndim != 2:
        raise invalid(f"logits must be 2-D, but got shape {shape_text(features)}")
    if labels.ndim != 1:
        raise invalid(f"labels must be 1-D, but got shape {shape_text(labels)}")
    if features.shape[0] != labels.shape[0]:
        text = f"got logits shape {shape_text(features)} and labels shape {shape_text(labels)}"
        raise invalid(f"logits and labels must have the same first dimension, {text}")
    classes = features.shape[1]
    if labels.size and not (labels.min() >= 0 and labels.max() < classes):
        wrong = next(v for v in labels.tolist() if not 0 <= v < classes)
        text = f"Label values: {' '.join(map(str, labels.tolist()))}"
        raise invalid(f"Received a label value of {wrong} which is outside the valid range of [0, {classes}).  {text}")


def _times_rows(column: Any, matrix: Any) -> Tensor:
    return apply_op("ExpandDims", input=column, dim=-1) * matrix


def _through_logits(operation: Operation, d_loss: Any, d_backprop: Any) -> Tensor:
    """d_loss times the derivative that the op gave; where that was itself differentiated, softmax's too."""
    dx = _times_rows(d_loss, operation.outputs[1])
    if d_backprop is None or d_backprop.op.type == "ZerosLike":  # what `gradients` puts for an unused output
        return dx
    softmax = apply_op("Softmax", logits=operation.inputs[0])
    row = apply_op("ExpandDims", input=d_backprop, dim=1)
    column = apply_op("ExpandDims", input=softmax, dim=2)
    inner = apply_op("Squeeze", input=apply_op("BatchMatMulV2", "MatMul", x=row, y=column), squeeze_dims=[1])
    return dx + (d_backprop - inner) * softmax


@op("L2Loss(t: T) -> (output: T) where T: {half, bfloat16, float, double}")
class L2Loss(Op):
    """sum(t²) / 2"""

    infer = shapes.scalar
    flops = per_input(2)

    def kernel(node: Node, xp: Any, t: Any) -> Any:
        wide = t.astype(xp.float32) if t.dtype.itemsize == 2 else t
        return (xp.square(wide).sum() / wide.dtype.type(2)).astype(node["T"].as_numpy_dtype)

    def grad(op: Operation, dy: Any) -> list[Any]:
        return [op.inputs[0] * dy]
