"""The structure of a data set's elements: tensors, sparse tensors, data sets, in tuples and dicts.

Stands for `python/data/util/structure.py` and `nest.py`. Left out: ragged tensors, optionals, tensor arrays.

Rules: a list is not a structure here but a tensor. Between two ops an element is flat, one tensor per component: a
sparse tensor travels as its three parts, serialized, so that any op can make batches of them; a data set as a variant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.sparse.functions import serialize_many_sparse, serialize_sparse
from dtflab.ops.sparse.sparse_tensor import SparseTensor, SparseTensorValue

Component = tuple[dtypes.DType, TensorShape]


@dataclasses.dataclass(frozen=True)
class TensorStructure:
    """A tensor of this dtype and static shape."""

    dtype: dtypes.DType
    shape: TensorShape

    kind: ClassVar[type] = Tensor

    @property
    def component(self) -> Component:
        """The dtype and shape in which it travels."""
        return self.dtype, self.shape

    def to_component(self, value: Any) -> Tensor:
        return convert_to_tensor(value, self.dtype)

    def from_component(self, tensor: Tensor) -> Any:
        tensor.set_shape(self.shape)
        return tensor

    def to_slices(self, value: Any) -> Tensor:
        """The component of a batch of these."""
        return self.to_component(value)

    def with_shape(self, shape: TensorShape) -> Any:
        return dataclasses.replace(self, shape=shape)


@dataclasses.dataclass(frozen=True)
class SparseTensorStructure(TensorStructure):
    """A sparse tensor."""

    kind: ClassVar[type] = SparseTensor

    @property
    def component(self) -> Component:
        return dtypes.string, TensorShape([3])

    def to_component(self, value: Any) -> Tensor:
        return serialize_sparse(value)

    def from_component(self, tensor: Tensor) -> Any:
        indices, values, shape = apply_op("DeserializeSparse", serialized_sparse=tensor, dtype=self.dtype)
        indices.set_shape([None, self.shape.ndims])
        shape.set_shape([self.shape.ndims])
        return SparseTensor(indices, values, shape)

    def to_slices(self, value: Any) -> Tensor:
        return serialize_many_sparse(value)


@dataclasses.dataclass(frozen=True)
class DatasetStructure:
    """A data set whose elements have the structure `element`."""

    dataset: ClassVar[Callable[[Tensor, Any], Any]]  # the class Dataset, which enters itself
    element: Any
    shape = TensorShape([])

    @property
    def component(self) -> Component:
        return dtypes.variant, TensorShape([])

    @property
    def dtype(self) -> Any:
        """The nested data set's stand-in among the types."""
        return self

    @property
    def kind(self) -> Any:
        return DatasetStructure

    def to_component(self, value: Any) -> Tensor:
        variant: Tensor = value._variant_tensor
        return variant

    def from_component(self, tensor: Tensor) -> Any:
        return type(self).dataset(tensor, self.element)

    def with_shape(self, shape: TensorShape) -> Any:
        raise TypeError("A data set of data sets can't be batched or sliced. Use flat_map to get the inner elements.")


# -- structures of values ---------------------------------------------------------------------------------------------


def map_leaves(function: Callable[[Any], Any], structure: Any) -> Any:
    """`function` of each leaf, in a structure alike; lists are leaves."""
    if isinstance(structure, SparseTensorValue):
        return function(structure)
    if isinstance(structure, Mapping):
        kind: Any = type(structure)
        by_key = {key: map_leaves(function, structure[key]) for key in sorted(structure)}
        return kind((key, by_key[key]) for key in structure)
    if isinstance(structure, tuple):
        items = [map_leaves(function, item) for item in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    return function(structure)


def leaves_up_to(shallow: Any, deep: Any) -> Iterator[Any]:
    """The parts of `deep` at the leaves of `shallow`; ValueError if `deep` is nested in another way."""
    if not isinstance(shallow, Mapping | tuple):
        yield deep
        return
    keys = sorted(shallow) if isinstance(shallow, Mapping) else range(len(shallow))
    if not isinstance(deep, Mapping | tuple | list) or len(deep) != len(shallow):
        raise ValueError(f"The two structures don't have the same nested structure: {shallow} and {deep}.")
    for key in keys:
        yield from leaves_up_to(shallow[key], deep[key])


def normalized(element: Any) -> Any:
    """An element with tensors, sparse tensors and data sets as its leaves."""
    count = 0

    def leaf(value: Any) -> Any:
        nonlocal count
        count += 1
        if isinstance(value, SparseTensorValue):
            return SparseTensor.from_value(value)
        if isinstance(value, SparseTensor) or hasattr(value, "_variant_tensor"):
            return value
        return convert_to_tensor(value, name=f"component_{count - 1}")

    return map_leaves(leaf, element)


def structure_of(element: Any) -> Any:
    """The structure of a normalized element."""

    def leaf(value: Any) -> Any:
        if hasattr(value, "_variant_tensor"):
            return DatasetStructure(value._structure)
        kind = SparseTensorStructure if isinstance(value, SparseTensor) else TensorStructure
        return kind(value.dtype.base_dtype, value.shape)

    return map_leaves(leaf, element)


def components(structure: Any) -> list[Component]:
    """The dtype and shape of each component."""
    return [leaf.component for leaf in nest.flatten(structure)]


def signature(structure: Any) -> dict[str, Any]:
    """The attributes that most ops declare: `output_types` and `output_shapes`."""
    flat = components(structure)
    return {"output_types": [dtype for dtype, _ in flat], "output_shapes": [shape for _, shape in flat]}


def to_components(structure: Any, element: Any) -> list[Tensor]:
    """The tensors in which a normalized element travels."""
    pairs = zip(nest.flatten(structure), nest.flatten(element), strict=True)
    return [leaf.to_component(value) for leaf, value in pairs]


def from_components(structure: Any, tensors: Sequence[Tensor]) -> Any:
    """The element out of its tensors."""
    pairs = zip(nest.flatten(structure), tensors, strict=True)
    return nest.pack_sequence_as(structure, [leaf.from_component(tensor) for leaf, tensor in pairs])


def reshaped(structure: Any, change: Callable[[TensorShape], TensorShape]) -> Any:
    """The structure with other shapes."""
    return nest.map_structure(lambda leaf: leaf.with_shape(change(leaf.shape)), structure)


def from_types(types: Any, shapes: Any = None, classes: Any = None) -> Any:
    """The structure that a program describes by dtypes, shapes and classes."""
    types = map_leaves(lambda t: t if isinstance(t, DatasetStructure) else dtypes.as_dtype(t), types)
    flat = nest.flatten(types)
    all_shapes = [None] * len(flat) if shapes is None else leaves_up_to(types, shapes)
    all_classes = [Tensor] * len(flat) if classes is None else leaves_up_to(types, classes)
    made = [_leaf(t, TensorShape(s), c) for t, s, c in zip(flat, all_shapes, all_classes, strict=True)]
    return nest.pack_sequence_as(types, made)


def _leaf(dtype: Any, shape: TensorShape, kind: Any) -> Any:
    if isinstance(dtype, DatasetStructure):
        return dtype
    return (SparseTensorStructure if kind is SparseTensor else TensorStructure)(dtype, shape)


def types_of(structure: Any) -> Any:
    return nest.map_structure(lambda leaf: leaf.dtype, structure)


def shapes_of(structure: Any) -> Any:
    return nest.map_structure(lambda leaf: leaf.shape, structure)


def classes_of(structure: Any) -> Any:
    return nest.map_structure(lambda leaf: leaf.kind, structure)


class HasElements:
    """A data set or an iterator: its elements have one structure."""

    _structure: Any

    @property
    def output_types(self) -> Any:
        """The dtype of each component, nested as an element is."""
        return types_of(self._structure)

    @property
    def output_shapes(self) -> Any:
        """The static shape of each component."""
        return shapes_of(self._structure)

    @property
    def output_classes(self) -> Any:
        """The Python class of each component: Tensor, SparseTensor, …"""
        return classes_of(self._structure)
