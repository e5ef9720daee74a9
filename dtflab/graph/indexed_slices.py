"""IndexedSlices: the gradient of a gather, as rows and where they belong instead of a mostly zero array.

Stands for `python/framework/indexed_slices.py`. Left out: type specs, composite tensors.

Rule: an op that takes a tensor takes IndexedSlices too, and then gets the dense array (`UnsortedSegmentSum`,
since rows may repeat); what can keep them sparse looks for the class.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.base.nest import register_composite
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor, register_tensor_conversion_function
from dtflab.graph.dtypes import DType
from dtflab.graph.feeds import register_feed_expansion
from dtflab.graph.fetches import register_fetch_expansion
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.static_value import constant_value, constant_value_as_shape
from dtflab.graph.tensor_shape import TensorShape

_LARGE = 100_000_000  # elements


class IndexedSlices:
    """The slices `values[i]` of a larger tensor, of shape `dense_shape`, at its rows `indices[i]`."""

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self.values = values  # the slices, one per entry of `indices`
        self.indices = indices  # which row of the dense tensor each slice belongs to; rows may repeat
        self.dense_shape = dense_shape  # the shape of the dense tensor, or None if nobody needs it

    @property
    def shape(self) -> TensorShape:
        """The static shape of the dense tensor, as far as it is known."""
        return TensorShape(None) if self.dense_shape is None else constant_value_as_shape(self.dense_shape)

    def get_shape(self) -> TensorShape:
        """Same as `.shape`."""
        return self.shape

    @property
    def name(self) -> str:
        return self.values.name

    @property
    def device(self) -> str:
        return self.values.device

    @property
    def op(self) -> Operation:
        return self.values.op

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def graph(self) -> Graph:
        return self.values.graph

    def map(self, function: Callable[[Tensor], Tensor]) -> IndexedSlices:
        """IndexedSlices of `function(values)`, `function(indices)` and `function(dense_shape)`."""
        return IndexedSlices(*map(function, _components(self)))

    def consumers(self) -> list[Operation]:
        """The operations that take the values as an input."""
        return self.values.consumers()

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(apply_op("Neg", x=self.values), self.indices, self.dense_shape)

    def __str__(self) -> str:
        shape = "" if self.dense_shape is None else f", dense_shape={self.dense_shape}"
        return f"IndexedSlices(indices={self.indices}, values={self.values}{shape})"


class IndexedSlicesValue(NamedTuple):
    """The value of fetched IndexedSlices."""

    values: Any
    indices: Any
    dense_shape: Any


def _components(slices: IndexedSlices) -> list[Tensor]:
    """The tensors that a session fetches, or is fed, for `slices`."""
    parts = [slices.values, slices.indices]
    return parts if slices.dense_shape is None else [*parts, slices.dense_shape]


def _from_values(values: Sequence[Any]) -> IndexedSlicesValue:
    return IndexedSlicesValue(*values, *[None] * (3 - len(values)))


register_fetch_expansion(IndexedSlices, lambda slices: (_components(slices), _from_values))
register_feed_expansion(IndexedSlices, _components)
register_composite(IndexedSlices, _components, lambda _, parts: IndexedSlices(*parts))


def dense(value: Any) -> Any:
    """`value`, as a dense tensor if it is IndexedSlices."""
    if not isinstance(value, IndexedSlices):
        return value
    return _to_tensor(value, warn=False)


def _to_tensor(
    value: IndexedSlices, dtype: Any = None, name: str | None = None, as_ref: bool = False, warn: bool = True
) -> Tensor:
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible tensor conversion requested to `dtype` {dtypes.as_dtype(dtype).name} for "
            f"IndexedSlices ({value}) with dtype {value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(
            f"Tensor conversion requested for IndexedSlices for argument `value` without dense_shape: {value}"
        )
    shape = constant_value(value.dense_shape)
    if warn and shape is not None and np.prod(shape, dtype=np.int64) >= _LARGE:
        warnings.warn(
            "Converting sparse IndexedSlices to a dense Tensor with "
            f"{np.prod(shape, dtype=np.int64)} elements. This may consume a large amount of memory.",
            stacklevel=2,
        )
    rows = value.dense_shape[0]
    result: Tensor = apply_op(
        "UnsortedSegmentSum", name, data=value.values, segment_ids=value.indices, num_segments=rows
    )
    return result


register_tensor_conversion_function(IndexedSlices, _to_tensor)


def as_indexed_slices_list(values: Sequence[Any]) -> list[IndexedSlices]:
    """The values, tensors as slices of all their rows; with int64 indices if one of them has those."""
    found = [v if isinstance(v, IndexedSlices) else _all_rows(v) for v in values]
    if len({slices.indices.dtype for slices in found}) == 1:
        return found
    return [
        IndexedSlices(s.values, apply_op("Cast", None, x=s.indices, DstT=dtypes.int64), s.dense_shape)
        if s.indices.dtype == dtypes.int32
        else s
        for s in found
    ]


def _all_rows(tensor: Tensor) -> IndexedSlices:
    shape = apply_op("Shape", None, input=tensor)
    return IndexedSlices(tensor, apply_op("Range", "range", start=0, limit=shape[0], delta=1), shape)


def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """`value` as it is if it is a Tensor or IndexedSlices, else converted to a Tensor."""
    if not isinstance(value, Tensor | IndexedSlices):
        return convert_to_tensor(value, dtype, name)
    if dtype is not None and not dtypes.as_dtype(dtype).is_compatible_with(value.dtype):
        raise ValueError(
            f"Incompatible tensor conversion requested to `dtype` {dtypes.as_dtype(dtype).name} for `value` "
            f"({value}) with dtype {value.dtype.name}."
        )
    return value


def convert_n_to_tensor_or_indexed_slices(
    values: Iterable[Any], dtype: Any = None, name: str | None = None
) -> list[Any]:
    """The values as Tensors or IndexedSlices; None stays None."""
    return [
        None if v is None else convert_to_tensor_or_indexed_slices(v, dtype, name and f"{name}_{i}")
        for i, v in enumerate(values)
    ]
