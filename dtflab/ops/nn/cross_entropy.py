"""The functions of `tf.nn` for softmax and the cross entropies.

Stands for `softmax`, `softmax_cross_entropy_with_logits` and their kin in `nn_ops.py` and `nn_impl.py`.
Left out: the dynamic check of label shapes, for logits that are not a matrix and of unknown shape.

Rule: the chain of shape operations around an op is TensorFlow's, one by one. It looks long for a matrix, but
the same program must give the same graph.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, renamed
from dtflab.ops.nn import functions as nn

# -- softmax ------------------------------------------------------------------------------------------


def softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis`, the last one by default (`dim` is its old name)."""
    return _along(logits, "Softmax", renamed("axis", axis, "dim", dim), name)


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """x - log(sum(exp(x))) along `axis`, the last one by default (`dim` is its old name)."""
    return _along(logits, "LogSoftmax", renamed("axis", axis, "dim", dim), name)


def _along(logits: Any, op_type: str, axis: Any, name: str | None) -> Tensor:
    """The op works on the last dimension: another one changes places with it before and after."""
    axis = -1 if axis is None else axis
    logits = convert_to_tensor(logits)
    shape = logits.shape
    if axis == -1 or (shape.ndims is not None and axis == shape.ndims - 1):
        return apply_op(op_type, name, logits=logits)
    value = constant_value(axis) if isinstance(axis, Tensor) else axis
    if value is not None and shape.ndims is not None and not -shape.ndims <= value < shape.ndims:
        where = f"where {shape.ndims} is the number of dimensions in the input. Received: dim={value}"
        raise invalid(f"`dim` must be in the range [{-shape.ndims}, {shape.ndims}) {where}")
    rank = arrays.rank(logits)
    if isinstance(axis, Tensor):
        axis = indexing.where(math.less(axis, 0), axis + rank, axis)
    elif axis < 0:
        axis = axis + rank
    input_rank = arrays.rank(logits)
    axis = axis % shape.ndims
    swapped = _swap_last(logits, axis, math.subtract(input_rank, 1))
    result = _swap_last(apply_op(op_type, logits=swapped), axis, math.subtract(input_rank, 1), name)
    result.set_shape(shape)
    return result


def _swap_last(tensor: Tensor, axis: Any, last: Tensor, name: str | None = "transpose") -> Tensor:
    order = [arrays.range(axis), [last], arrays.range(axis + 1, last), [axis]]
    return arrays.transpose(tensor, arrays.concat(order, 0), name=name)


# -- cross entropies ----------------------------------------------------------------------------------


def _need_both_by_name(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    """Check that both are given by name: programs written before 1.0 pass (logits, labels) by position.

    Raises ValueError with TensorFlow 1.15's text otherwise.
    """
    if sentinel is not None:
        raise ValueError(f"Only call `{function}` with named arguments (labels=..., logits=..., ...)")
    if labels is None or logits is None:
        raise ValueError("Both labels and logits must be provided.")


def softmax_cross_entropy_with_logits(
    _sentinel: None = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """The loss of each example for a distribution over classes; no gradient flows into `labels`.

    Raises ValueError unless both `labels` and `logits` are given, by name.
    """
    dim = renamed("axis", axis, "dim", dim if axis is None else None)
    _need_both_by_name("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = arrays.stop_gradient(labels, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels, logits, axis=dim, name=scope)


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """The loss of each example for a distribution over classes; the gradient flows into `labels` too."""
    axis = renamed("axis", axis, "dim", dim)
    axis = -1 if axis is None else axis
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits, labels = convert_to_tensor(logits, name="logits"), convert_to_tensor(labels, name="labels")
        short = logits.dtype in (dtypes.float16, dtypes.bfloat16)
        precise = arrays.cast(logits, dtypes.float32) if short else logits
        labels = arrays.cast(labels, precise.dtype)
        rank = arrays.rank(precise)
        if axis != -1:
            precise, labels = _move_to_end(precise, axis, rank), _move_to_end(labels, axis, rank)
        shape = arrays.shape(precise)
        matrices = {"features": _as_matrix(precise), "labels": _as_matrix(labels)}
        cost, _ = apply_op("SoftmaxCrossEntropyWithLogits", scope, **matrices)
        cost = arrays.reshape(cost, indexing.slice(shape, [0], [math.subtract(rank, 1)]))
        if logits.shape.ndims is not None:
            sizes = logits.shape.as_list()
            del sizes[axis]
            cost.set_shape(sizes)
        return arrays.cast(cost, logits.dtype) if short else cost


def _move_to_end(tensor: Tensor, axis: int, rank: Tensor) -> Tensor:
    return arrays.transpose(tensor, arrays.concat([arrays.range(axis), arrays.range(axis + 1, rank), [axis]], 0))


def _as_matrix(logits: Tensor) -> Tensor:
    """All dimensions but the last made into one."""
    rank = arrays.rank(logits)
    last = indexing.slice(arrays.shape(logits), [math.subtract(rank, 1)], [1])
    matrix = arrays.reshape(logits, arrays.concat([[-1], last], 0))
    if logits.shape.ndims is not None:
        rows = logits.shape[:-1].num_elements()
        if rows is not None:
            matrix.set_shape([rows, logits.shape[-1]])
    return matrix


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: None = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The loss of each example for labels that are class numbers.

    Raises ValueError unless both `labels` and `logits` are given, by name.
    """
    _need_both_by_name("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        precise = arrays.cast(logits, dtypes.float32) if logits.dtype == dtypes.float16 else logits
        labels_shape, labels_tensor_shape = labels.shape, arrays.shape(labels)
        _check_sparse_shapes(labels_shape, logits.shape)
        if logits.shape.ndims == 2:
            cost = _sparse_cross_entropy(precise, labels, name)
        else:
            classes = arrays.shape(logits)[arrays.rank(logits) - 1]
            precise, labels = arrays.reshape(precise, [-1, classes]), arrays.reshape(labels, [-1])
            cost = _sparse_cross_entropy(precise, labels, name)
            cost = arrays.reshape(cost, labels_tensor_shape)
            cost.set_shape(labels_shape)
        return arrays.cast(cost, dtypes.float16) if logits.dtype == dtypes.float16 else cost


def _sparse_cross_entropy(logits: Tensor, labels: Tensor, name: str | None) -> Tensor:
    return apply_op("SparseSoftmaxCrossEntropyWithLogits", name, features=logits, labels=labels)[0]


def _check_sparse_shapes(labels: TensorShape, logits: TensorShape) -> None:
    if logits.ndims == 0:
        raise ValueError("`logits` cannot be a scalar.")
    if logits.ndims is not None and labels.ndims not in (None, logits.ndims - 1):
        text = f"labels.shape={labels} of rank {labels.ndims} and logits.shape={logits} of rank {logits.ndims}"
        raise ValueError(f"`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: {text}")
    if not (labels.is_fully_defined() and logits.ndims is not None and logits[:-1].is_fully_defined()):
        return
    if labels != logits[:-1]:
        text = f"Received: labels.shape={labels} and logits.shape={logits}"
        raise ValueError(f"`labels.shape` must equal `logits.shape` except for the last dimension. {text}")


def _both(logits: Any, labels: Any) -> tuple[Tensor, Tensor]:
    """The tensors; ValueError if their shapes do not fit."""
    logits, labels = convert_to_tensor(logits, name="logits"), convert_to_tensor(labels, name="labels")
    if not labels.shape.is_compatible_with(logits.shape):
        text = f"({logits.shape} vs {labels.shape})"
        raise ValueError(f"`logits` and `labels` must have the same shape, received {text}.")
    return logits, labels


def sigmoid_cross_entropy_with_logits(
    _sentinel: None = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The loss of each of many yes-or-no questions: max(x, 0) - x·z + log(1 + exp(-|x|)).

    Raises ValueError unless both `labels` and `logits` are given, by name.
    """
    _need_both_by_name("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits, labels = _both(logits, labels)
        zeros = arrays.zeros_like(logits, dtype=logits.dtype)
        positive = math.greater_equal(logits, zeros)
        relu_logits = indexing.where(positive, logits, zeros)
        neg_abs_logits = indexing.where(positive, -logits, logits)
        return math.add(relu_logits - logits * labels, math.log1p(math.exp(neg_abs_logits)), name=scope)


def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: str | None = None, targets: Any = None
) -> Tensor:
    """The loss of yes-or-no questions where a missed yes counts `pos_weight` times; `targets` is the labels' old name.

    (1 - z)·x + (1 + (q - 1)·z)·(log(1 + exp(-|x|)) + max(-x, 0))
    """
    labels = renamed("labels", labels, "targets", targets)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits, labels = _both(logits, labels)
        weight = 1 + (pos_weight - 1) * labels
        no = (1 - labels) * logits
        yes = math.log1p(math.exp(-math.abs(logits))) + nn.relu(-logits)
        return math.add(no, weight * yes, name=scope)
