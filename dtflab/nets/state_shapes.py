"""Shapes of states and outputs: a batch size before the size that a cell defines.

Stands for `_concat` and `_zero_state_tensors` of `rnn_cell_impl.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import constant
from dtflab.graph.operation import Tensor
from dtflab.graph.static_value import get_static_value
from dtflab.graph.tensor_shape import TensorShape, as_shape
from dtflab.ops.arrays import functions as arrays


def batch_shape(batch: Any, size: Any) -> Tensor:
    """The shape [batch, size] as a tensor; both are numbers, shapes or tensors, and known."""
    parts = _as_vector(batch), _as_vector(size)
    if None in (parts[0], parts[1]):
        raise ValueError(f"Prefix or suffix can't be None. Received prefix = {batch} and suffix = {size}")
    return arrays.concat(parts, 0)


def known_batch_shape(batch: Any, size: Any) -> TensorShape:
    """The shape [batch, size], as far as it is known while the graph is built."""
    return _known(batch).concatenate(_known(size))


def set_batch_shape(tensor: Tensor, batch: Any, size: Any) -> None:
    """Set the known part of a tensor's shape [batch, size]."""
    for part in (batch, size):
        _as_vector(part)  # TensorFlow makes these unused nodes here, which count for the names of others
    tensor.set_shape(known_batch_shape(batch, size))


def zeros_of(batch: Any, size: Any, dtype: Any) -> Tensor:
    """Zeros of [batch, size]."""
    zeros = arrays.zeros(batch_shape(batch, size), dtype)
    set_batch_shape(zeros, batch, size)
    return zeros


def _as_vector(part: Any) -> Any:
    if not isinstance(part, Tensor):
        shape = shape_of_size(part)
        return constant(shape.as_list(), dtypes.int32) if shape.is_fully_defined() else None
    if part.shape.ndims not in (0, 1):
        raise ValueError(f"A batch size must be a scalar or a vector, but is: {part}")
    return arrays.expand_dims(part, 0) if part.shape.ndims == 0 else part


def _known(part: Any) -> TensorShape:
    if not isinstance(part, Tensor):
        return shape_of_size(part)
    value = get_static_value(part)
    if value is not None:
        return as_shape(value.reshape(-1).tolist())
    return as_shape([None] if part.shape.ndims == 0 else None)


def shape_of_size(part: Any) -> TensorShape:
    """The size that a cell defines, an int or a shape, as a shape."""
    return as_shape([part]) if isinstance(part, int) else as_shape(part)
