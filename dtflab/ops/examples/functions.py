"""Examples and SequenceExamples → dicts of tensors, as descriptions of their features say; tensors as strings.

Stands for `python/ops/parsing_ops.py` and `parsing_config.py`. Left out: ragged features.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, name_scope
from dtflab.graph.tensor_shape import TensorShape, as_shape
from dtflab.ops.arrays.functions import identity, rank, reshape
from dtflab.ops.assertions.functions import Assert
from dtflab.ops.math.functions import equal
from dtflab.ops.sparse.functions import sparse_merge
from dtflab.ops.sparse.sparse_tensor import SparseTensor

Specs = Mapping[str, Any]

# -- descriptions of features ---------------------------------------------------------------------------


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


# -- examples -------------------------------------------------------------------------------------------


def parse_example(
    serialized: Any, features: Specs, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Parse a vector of serialized `tf.train.Example`s (or one, a scalar) into a dict of tensors.

    `features` describes them by key: a FixedLenFeature becomes a tensor of shape [batch, …], a FixedLenSequenceFeature
    one of shape [batch, longest, …], a VarLenFeature or SparseFeature a SparseTensor. Errors show `example_names`. A
    run raises InvalidArgumentError for a feature that is missing or has other values.
    """
    if not features:
        raise ValueError(f"Argument `features` cannot be None or falsy. Got {features}")
    kinds = VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature
    described = Features(_as_sequences(features), kinds)
    with name_scope(name, "ParseExample", [serialized, example_names]):
        serialized = convert_to_tensor(serialized, name="serialized")
        inputs = {"serialized": serialized, "names": _names(example_names), **_arguments("", described)}
        inputs |= {"dense_defaults": described.default_tensors(), "num_sparse": len(described.sparse)}
        no_ragged: dict[str, Any] = {"ragged_value_types": [], "ragged_split_types": []}
        *sparse, dense, _, _ = apply_op("ParseExampleV2", name, **inputs, **no_ragged)
    return _merged(features, _by_key(described, sparse, dense))


def _names(names: Any) -> Any:
    return [] if names is None else names


def _arguments(kind: str, described: Features) -> dict[str, Any]:
    """The arguments for features of a `kind`: "", "context_" or "feature_list_"."""
    return {
        f"{kind}sparse_keys": [*described.sparse],
        f"{kind}dense_keys": [*described.dense],
        f"{kind}ragged_keys": [],
        f"{kind}sparse_types": [*described.sparse.values()],
        f"{kind}dense_shapes": [*described.shapes.values()],
    }


def _as_sequences(features: Specs) -> Specs:
    """The features; the shape of a sequence gets a first dimension of unknown size."""
    known = dict(features)
    for key, feature in features.items():
        if isinstance(feature, FixedLenSequenceFeature):
            if not feature.allow_missing:
                raise ValueError("Unsupported: FixedLenSequenceFeature requires allow_missing to be True.")
            known[key] = feature._replace(shape=[None, *feature.shape])
    return known


def _by_key(described: Features, sparse: Any, dense: Any) -> dict[str, Any]:
    """The outputs of an op; `sparse` are the lists of indices, of values and of shapes."""
    tensors = [SparseTensor(*parts) for parts in zip(*sparse)]
    return dict(zip((*described.sparse, *described.dense), (*tensors, *dense)))


def _merged(features: Specs, tensors: dict[str, Any]) -> dict[str, Any]:
    """The tensors, with each SparseFeature in place of its parts."""
    found = dict(tensors)
    for key, feature in sorted(features.items()):
        if isinstance(feature, SparseFeature):
            ids: Any = [tensors[index_key] for index_key in index_keys(feature)]
            ids = ids[0] if isinstance(feature.index_key, str) else ids
            values, is_sorted = tensors[feature.value_key], feature.already_sorted
            found[key] = sparse_merge(ids, values, vocab_size=feature.size, already_sorted=is_sorted)
    return {key: found[key] for key in found if key in features}


def parse_single_example(
    serialized: Any, features: Specs, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Parse one serialized `tf.train.Example`, a scalar, into a dict of tensors without a batch dimension.

    As `parse_example` otherwise; a FixedLenSequenceFeature has the length of its list.
    """
    if not features:
        raise ValueError(f"Invalid argument: features cannot be {'None' if features is None else 'empty'}.")
    with name_scope(name, "ParseSingleExample", [serialized, example_names]):
        serialized = _as_scalar(convert_to_tensor(serialized, name="serialized"))
        return parse_example(serialized, features, name, example_names)


def _as_scalar(serialized: Tensor) -> Tensor:
    """The tensor, if its static shape is a scalar's; else with a check when it runs."""
    if serialized.shape.ndims == 0:
        return serialized
    if serialized.shape.ndims is not None:
        raise ValueError("Input serialized must be a scalar")
    is_scalar = equal(rank(serialized), 0)
    check = Assert(is_scalar, ["Input serialized must be a scalar"], name="SerializedIsScalar")
    with colocate_with(serialized), control_dependencies([check]):
        checked = identity(serialized, name="serializedDependencies")
    checked.set_shape([])
    return checked


# -- sequences ------------------------------------------------------------------------------------------


def parse_sequence_example(
    serialized: Any,
    context_features: Specs | None = None,
    sequence_features: Specs | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parse a vector of serialized `tf.train.SequenceExample`s: (context, lists, lengths of the dense lists).

    `context_features` are FixedLenFeatures and VarLenFeatures. Of `sequence_features` a FixedLenSequenceFeature becomes
    a tensor of shape [batch, longest, …], a VarLenFeature a SparseTensor of [batch, longest, most values].
    """
    if not (context_features or sequence_features):
        raise ValueError(
            "Both `context_features` and `sequence_features` argument are None, but at least one should have values."
        )
    context, lists = _described(context_features, sequence_features)
    with name_scope(name, "ParseSequenceExample", [serialized, example_names]):
        return _parse_sequences(serialized, example_names, context, lists, name)


def _described(context: Specs | None, sequence: Specs | None) -> tuple[Features, Features]:
    lists = Features(sequence, (VarLenFeature, FixedLenSequenceFeature))
    return Features(context, (VarLenFeature, FixedLenFeature)), lists


def _parse_sequences(
    serialized: Any, names: Any, context: Features, lists: Features, name: str | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    for key, value in lists.defaults.items():
        if value is not None:
            raise ValueError(f"Value feature_list.dense_defaults[{key}] must be None")
    with name_scope(name, "ParseSequenceExample", [serialized]):
        outputs = apply_op(
            "ParseSequenceExampleV2",
            name,
            serialized=convert_to_tensor(serialized, name="serialized"),
            debug_name=_names(names),
            **_arguments("context_", context),
            **_arguments("feature_list_", lists),
            context_dense_defaults=context.default_tensors(),
            feature_list_dense_missing_assumed_empty=[key in lists.defaults for key in lists.dense],
            feature_list_dense_types=[*lists.dense.values()],
            Ncontext_sparse=len(context.sparse),
            Nfeature_list_sparse=len(lists.sparse),
            Nfeature_list_dense=len(lists.dense),
        )
        once = _by_key(context, outputs[:3], outputs[3])
        listed = _by_key(lists, outputs[6:9], outputs[9])
        return once, listed, dict(zip(lists.dense, outputs[10]))


def parse_single_sequence_example(
    serialized: Any,
    context_features: Specs | None = None,
    sequence_features: Specs | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse one serialized `tf.train.SequenceExample`, a scalar: (context, lists), without a batch dimension."""
    if not (context_features or sequence_features):
        raise ValueError("Both context_features and sequence_features are None, but at least one should have values.")
    context, lists = _described(context_features, sequence_features)
    with name_scope(name, "ParseSingleSequenceExample", [serialized, example_name]):
        with name_scope(name, "ParseSingleExample", [serialized, example_name]):
            serialized = _as_scalar(convert_to_tensor(serialized, name="serialized"))
        return _parse_sequences(serialized, example_name, context, lists, name)[:2]


# -- tensors as strings ---------------------------------------------------------------------------------


def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """The tensor as a serialized TensorProto, a string scalar."""
    return apply_op("SerializeTensor", name, tensor=tensor)


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """The tensor of dtype `out_type` in a serialized TensorProto; its shape is known when it runs."""
    return apply_op("ParseTensor", name, serialized=serialized, out_type=out_type)


def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """`tf.train.Example`s in JSON as serialized ones."""
    return apply_op("DecodeJSONExample", name, json_examples=json_examples)
