"""Examples and SequenceExamples → dicts of tensors.

Stands for `python/ops/parsing_ops.py`. Left out: ragged features. The ops are in `example.py` and
`sequence_example.py`, the descriptions of features in `features.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, name_scope
from dtflab.ops.arrays.functions import identity, rank
from dtflab.ops.assertions.functions import Assert
from dtflab.ops.examples.features import (
    Features,
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
    index_keys,
)
from dtflab.ops.math.functions import equal
from dtflab.ops.sparse.functions import sparse_merge
from dtflab.ops.sparse.sparse_tensor import SparseTensor

Specs = Mapping[str, Any]


def parse_example(
    serialized: Any, features: Specs, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Parse a vector of serialized `tf.train.Example`s (or one, a scalar) into a dict of tensors.

    `features` says what is in them, by key: a FixedLenFeature becomes a tensor of shape [batch, …], a
    FixedLenSequenceFeature one of shape [batch, longest, …], a VarLenFeature or SparseFeature a SparseTensor.
    `example_names` are shown in errors. InvalidArgumentError for a feature that lacks or has other values.
    """
    if not features:
        raise ValueError(f"Argument `features` cannot be None or falsy. Got {features}")
    described = Features(
        _as_sequences(features), (VarLenFeature, SparseFeature, FixedLenFeature, FixedLenSequenceFeature)
    )
    with name_scope(name, "ParseExample", [serialized, example_names]):
        serialized = convert_to_tensor(serialized, name="serialized")
        *sparse, dense, _, _ = apply_op(
            "ParseExampleV2", name, serialized=serialized, names=_names(example_names),
            sparse_keys=[*described.sparse], dense_keys=[*described.dense], ragged_keys=[],
            dense_defaults=described.default_tensors(), num_sparse=len(described.sparse),
            sparse_types=[*described.sparse.values()], ragged_value_types=[], ragged_split_types=[],
            dense_shapes=[*described.shapes.values()],
        )  # fmt: skip
    return _merged(features, _by_key(described, sparse, dense))


def _names(names: Any) -> Any:
    return [] if names is None else names


def _as_sequences(features: Specs) -> Specs:
    """The features, with a first dimension of unknown size where there are as many values as there are."""
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
    """The tensors, with SparseFeatures put together and without their parts."""
    found = dict(tensors)
    for key, feature in sorted(features.items()):
        if isinstance(feature, SparseFeature):
            ids = [tensors[index_key] for index_key in index_keys(feature)]
            found[key] = sparse_merge(
                ids[0] if isinstance(feature.index_key, str) else ids, tensors[feature.value_key],
                vocab_size=feature.size, already_sorted=feature.already_sorted,
            )  # fmt: skip
    return {key: found[key] for key in found if key in features}


def parse_single_example(
    serialized: Any, features: Specs, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Parse one serialized `tf.train.Example`, a scalar, into a dict of tensors without a batch dimension.

    The rest is as in `parse_example`; a FixedLenSequenceFeature is as long as it is.
    """
    if features is None:
        raise ValueError("Invalid argument: features cannot be None.")
    if not features:
        raise ValueError("Invalid argument: features cannot be empty.")
    with name_scope(name, "ParseSingleExample", [serialized, example_names]):
        serialized = _as_scalar(convert_to_tensor(serialized, name="serialized"))
        return parse_example(serialized, features, name, example_names)


def _as_scalar(serialized: Tensor) -> Tensor:
    """The tensor, which is or will be checked to be a scalar."""
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
    return (
        Features(context, (VarLenFeature, FixedLenFeature)),
        Features(sequence, (VarLenFeature, FixedLenSequenceFeature)),
    )


def _parse_sequences(
    serialized: Any, names: Any, context: Features, lists: Features, name: str | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    for key, value in lists.defaults.items():
        if value is not None:
            raise ValueError(f"Value feature_list.dense_defaults[{key}] must be None")
    with name_scope(name, "ParseSequenceExample", [serialized]):
        outputs = apply_op(
            "ParseSequenceExampleV2", name, serialized=convert_to_tensor(serialized, name="serialized"),
            debug_name=_names(names), context_sparse_keys=[*context.sparse], context_dense_keys=[*context.dense],
            context_ragged_keys=[], feature_list_sparse_keys=[*lists.sparse], feature_list_dense_keys=[*lists.dense],
            feature_list_ragged_keys=[],
            feature_list_dense_missing_assumed_empty=[key in lists.defaults for key in lists.dense],
            context_dense_defaults=context.default_tensors(), Ncontext_sparse=len(context.sparse),
            Nfeature_list_sparse=len(lists.sparse), Nfeature_list_dense=len(lists.dense),
            context_sparse_types=[*context.sparse.values()], context_dense_shapes=[*context.shapes.values()],
            feature_list_sparse_types=[*lists.sparse.values()], feature_list_dense_types=[*lists.dense.values()],
            feature_list_dense_shapes=[*lists.shapes.values()],
        )  # fmt: skip
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
