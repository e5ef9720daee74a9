"""What to parse out of an Example: a description of each feature, and all of them as arguments of the ops.

Stands for `python/ops/parsing_config.py`. Left out: RaggedFeature.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_shape import TensorShape, as_shape
from dtflab.ops.arrays.functions import reshape


class VarLenFeature(NamedTuple):
    """Any number of values of `dtype`, as a SparseTensor."""

    dtype: Any


class SparseFeature(NamedTuple):
    """A SparseTensor of which the indices are one feature (or a list of them) and the values another.

    `size` is the size of the dimension, or a list of sizes. `already_sorted` says that no indices are out of order.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class FixedLenFeature(NamedTuple):
    """Values of `dtype` that fill `shape`. A missing feature has `default_value`, or is an error if that is None."""

    shape: Any
    dtype: Any
    default_value: Any = None


class FixedLenSequenceFeature(NamedTuple):
    """A list of values of `dtype` and `shape`; in a batch shorter lists are padded with `default_value`.

    With `allow_missing`, a missing list counts as empty.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class Features:
    """Descriptions by key, sorted into the lists that the parsing ops take. Raises ValueError for a bad one."""

    def __init__(self, features: Mapping[str, Any] | None, kinds: tuple[type, ...]) -> None:
        self.sparse: dict[str, DType] = {}
        self.dense: dict[str, DType] = {}
        self.shapes: dict[str, TensorShape] = {}
        self.defaults: dict[str, Any] = {}
        for key, feature in sorted((features or {}).items()):
            if not isinstance(feature, kinds):
                raise ValueError(f"Unsupported {type(feature).__name__} {feature} for key '{key}'")
            self._add(key, feature)
        both = self.dense.keys() & self.sparse.keys()
        if both:
            raise ValueError(
                f"Dense and sparse keys must not intersect; dense_keys: {[*self.dense]}, "
                f"sparse_keys: {[*self.sparse]}, intersection: {both}"
            )

    def __len__(self) -> int:
        return len(self.sparse) + len(self.dense)

    def _add(self, key: str, feature: Any) -> None:
        for part in ("index_key", "value_key"):
            if not getattr(feature, part, True):
                raise ValueError(f"Missing {part} for SparseFeature {feature}.")
        if not feature.dtype:
            raise ValueError(f"Missing type for feature {key}. Received feature={feature}")
        if isinstance(feature, VarLenFeature):
            self._add_sparse(key, feature.dtype)
        elif isinstance(feature, SparseFeature):
            for index_key in sorted(index_keys(feature)):
                self._add_sparse(index_key, dtypes.int64)
            self._add_sparse(feature.value_key, feature.dtype)
        else:
            self._add_dense(key, feature)

    def _add_sparse(self, key: str, dtype: Any) -> None:
        known = self.sparse.setdefault(key, dtypes.as_dtype(dtype))
        if known != dtype:
            raise ValueError(f"Conflicting type {known} vs {dtype} for feature {key}.")

    def _add_dense(self, key: str, feature: Any) -> None:
        if feature.shape is None:
            raise ValueError(f"Missing shape for feature {key}. Received feature={feature}.")
        shape = as_shape(feature.shape)
        if isinstance(feature, FixedLenFeature):
            if starts_unknown(shape):
                raise ValueError(
                    f"First dimension of shape for feature {key} unknown. Consider using FixedLenSequenceFeature. "
                    f"Received feature={feature}."
                )
            if not shape.is_fully_defined():
                raise ValueError(
                    f"All dimensions of shape for feature {key} need to be known but received {feature.shape!s}."
                )
        self.dense[key], self.shapes[key] = dtypes.as_dtype(feature.dtype), shape
        if feature.default_value is not None or getattr(feature, "allow_missing", False):
            self.defaults[key] = feature.default_value

    def default_tensors(self) -> list[Tensor]:
        """A default for each dense key: empty if the feature must be there."""
        return [self._default(key, shape, self.dense[key]) for key, shape in self.shapes.items()]

    def _default(self, key: str, shape: TensorShape, dtype: DType) -> Tensor:
        value, name = self.defaults.get(key), re.sub(r"[^A-Za-z0-9_.\-/]", "_", key)
        if starts_unknown(shape):  # the default is padding
            if value is None:
                return convert_to_tensor("" if dtype == dtypes.string else 0, dtype)
            return reshape(convert_to_tensor(value, dtype, f"padding_{name}"), [])
        if value is None:
            return constant([], dtype)
        if isinstance(value, Tensor):
            return value
        return reshape(convert_to_tensor(value, dtype, f"key_{name}"), shape)


def starts_unknown(shape: TensorShape) -> bool:
    """True if there may be any number of values: the first dimension is of unknown size."""
    return bool(shape.ndims) and shape.as_list()[0] is None


def index_keys(feature: SparseFeature) -> list[str]:
    return [feature.index_key] if isinstance(feature.index_key, str) else list(feature.index_key)
