"""The ops that parse SequenceExamples: a context of features, and lists of features, one for each step.

Stands for the second half of `core/kernels/example_parsing_ops.cc`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.examples import columns, example_ops as examples
from dtflab.ops.examples.columns import Batch
from dtflab.ops.examples.example_ops import columns_of, dense_shapes, outputs, sparse_shapes
from dtflab.ops.messages import invalid
from dtflab.protos.example_pb2 import SequenceExample

_FEATURE = "list({float, int64, string})"
_SPLIT = "list({int32, int64})"
_TYPES = f"""
        context_sparse_types: {_FEATURE} >= 0 = [], Tcontext_dense: {_FEATURE} >= 0 = []
        feature_list_dense_types: {_FEATURE} >= 0 = [], context_dense_shapes: list(shape) >= 0 = []
        feature_list_sparse_types: {_FEATURE} >= 0 = [], feature_list_dense_shapes: list(shape) >= 0 = []"""
_CONTEXT = (
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, "
    "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense"
)
_LISTS = (
    "feature_list_sparse_indices: Nfeature_list_sparse * int64, feature_list_sparse_values: feature_list_sparse_types, "
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, feature_list_dense_values: feature_list_dense_types"
)
_LENGTHS = "feature_list_dense_lengths: Nfeature_list_dense * int64"


def _text(keys: Iterable[bytes]) -> list[str]:
    return [key.decode() for key in keys]


def _list_shapes(operation: Any, batch: TensorShape) -> list[TensorShape]:
    """The shapes of the sparse and the dense lists; a list is one more dimension, of unknown size."""
    dense = dense_shapes(batch.concatenate([None]), operation.attrs["feature_list_dense_shapes"])
    return [*sparse_shapes(batch, operation.get_attr("Nfeature_list_sparse"), extra=2), *dense]


def _context_shapes(operation: Any, batch: TensorShape) -> list[TensorShape]:
    sparse = sparse_shapes(batch, operation.get_attr("Ncontext_sparse"))
    return [*sparse, *dense_shapes(batch, operation.attrs["context_dense_shapes"])]


def _context(
    node: Node, batch: Batch, sparse: Sequence[str], dense: Sequence[str], defaults: Sequence[Any]
) -> list[Any]:
    types, shapes = (node["context_sparse_types"], node["Tcontext_dense"]), node["context_dense_shapes"]
    return outputs(batch, sparse, types[0], dense, types[1], shapes, defaults)


def _lists(
    node: Node, batch: Batch, sparse: Sequence[str], dense: Sequence[str], may_be_missing: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """The outputs of the sparse and the dense lists, and the lengths of the dense ones."""
    of_sparse = [columns.sparse_steps(batch, key, t) for key, t in zip(sparse, node["feature_list_sparse_types"])]
    specs = zip(dense, node["feature_list_dense_types"], node["feature_list_dense_shapes"], may_be_missing)
    of_dense = [columns.dense_steps(batch, *spec) for spec in specs]
    return columns_of(of_sparse, 3) + columns_of(of_dense, 1), [lengths for _, lengths in of_dense]


@op(f"""ParseSequenceExampleV2(serialized: string, debug_name: string,
        context_sparse_keys: string, context_dense_keys: string, context_ragged_keys: string,
        feature_list_sparse_keys: string, feature_list_dense_keys: string, feature_list_ragged_keys: string,
        feature_list_dense_missing_assumed_empty: bool,
        context_dense_defaults: Tcontext_dense) -> ({_CONTEXT},
        context_ragged_values: context_ragged_value_types, context_ragged_row_splits: context_ragged_split_types,
        {_LISTS}, {_LENGTHS}, feature_list_ragged_values: feature_list_ragged_value_types,
        feature_list_ragged_outer_splits: feature_list_ragged_split_types,
        feature_list_ragged_inner_splits: feature_list_ragged_split_types)
        Ncontext_sparse: int >= 0 = 0, context_ragged_value_types: {_FEATURE} >= 0 = []
        context_ragged_split_types: {_SPLIT} >= 0 = [], Nfeature_list_sparse: int >= 0 = 0
        Nfeature_list_dense: int >= 0 = 0, feature_list_ragged_value_types: {_FEATURE} >= 0 = []
        feature_list_ragged_split_types: {_SPLIT} >= 0 = []{_TYPES}""")
class ParseSequenceExampleV2(Op):
    def infer(operation):
        batch = examples.check_serialized(operation.inputs[0].shape)
        once, listed = (len(operation.get_attr(f"{w}_ragged_value_types")) for w in ("context", "feature_list"))
        vector, rows = TensorShape([None]), examples.split_shape(batch)
        lengths = [batch] * operation.get_attr("Nfeature_list_dense")
        context = [*_context_shapes(operation, batch), *[vector] * once, *[rows] * once]
        lists = [*_list_shapes(operation, batch), *lengths, *[vector] * listed, *[rows] * listed, *[vector] * listed]
        return context + lists

    def kernel(node, xp, serialized, names, *rest):
        once = node["context_ragged_value_types"], node["context_ragged_split_types"]
        listed = node["feature_list_ragged_value_types"], node["feature_list_ragged_split_types"]
        batch = Batch.parse(SequenceExample, serialized, names)
        keys = [examples.keys_of(vector, "keys") for vector in rest[:6]]
        lists, lengths = _lists(node, batch, keys[3], keys[4], rest[6].tolist())
        return [
            *_context(node, batch, keys[0], keys[1], rest[7:]),
            *columns_of([columns.ragged(batch, *each) for each in zip(keys[2], *once)], 2),
            *lists,
            *lengths,
            *columns_of([columns.ragged_steps(batch, *each) for each in zip(keys[5], *listed)], 3),
        ]


class _Parse(Op):
    """Base of the older ops, without ragged features."""

    rank: int  # of `serialized`
    keys: Callable[..., Any]  # of the node and the inputs after `serialized`: names, keys, defaults, optional keys

    @classmethod
    def infer(cls, operation):
        batch = operation.inputs[0].shape.with_rank(cls.rank)
        lengths = [batch] * operation.get_attr("Nfeature_list_dense") if cls.rank else []
        return [*_context_shapes(operation, batch), *_list_shapes(operation, batch), *lengths]

    @classmethod
    def kernel(cls, node, xp, serialized, *inputs):
        if serialized.ndim and not cls.rank:
            raise invalid("Expected serialized to be a scalar")
        names, keys, defaults, assumed_empty = cls.keys(node, *inputs)
        batch = Batch.parse(SequenceExample, serialized, names)
        lists, lengths = _lists(node, batch, *keys[2:], [key in assumed_empty for key in keys[3]])
        return [*_context(node, batch, *keys[:2], defaults), *lists, *(lengths if cls.rank else [])]


_PARTS = ("context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense")


@op(f"""ParseSequenceExample(serialized: string, debug_name: string,
        context_dense_defaults: Tcontext_dense) -> ({_CONTEXT}, {_LISTS}, {_LENGTHS})
        feature_list_dense_missing_assumed_empty: list(string) >= 0, context_sparse_keys: list(string) >= 0
        context_dense_keys: list(string) >= 0, feature_list_sparse_keys: list(string) >= 0
        feature_list_dense_keys: list(string) >= 0, Ncontext_sparse: int >= 0 = 0, Ncontext_dense: int >= 0 = 0
        Nfeature_list_sparse: int >= 0 = 0, Nfeature_list_dense: int >= 0 = 0{_TYPES}""")
class ParseSequenceExample(_Parse):
    """A batch; the keys are attributes."""

    rank = 1

    def keys(node, names, *defaults):
        assumed_empty = _text(node["feature_list_dense_missing_assumed_empty"])
        return names, [_text(node[f"{what}_keys"]) for what in _PARTS], defaults, assumed_empty


@op(f"""ParseSingleSequenceExample(serialized: string, feature_list_dense_missing_assumed_empty: string,
        context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string,
        feature_list_sparse_keys: Nfeature_list_sparse * string, feature_list_dense_keys: Nfeature_list_dense * string,
        context_dense_defaults: Tcontext_dense, debug_name: string) -> ({_CONTEXT}, {_LISTS})
        Ncontext_sparse: int >= 0 = 0, Ncontext_dense: int >= 0 = 0, Nfeature_list_sparse: int >= 0 = 0
        Nfeature_list_dense: int >= 0 = 0{_TYPES}""")
class ParseSingleSequenceExample(_Parse):
    """One message; each key is an input of its own."""

    rank = 0

    def keys(node, assumed_empty, *rest):
        given = iter(rest[:-1])
        keys = [[next(given).item().decode() for _ in range(node[f"N{what}"])] for what in _PARTS]
        return rest[-1], keys, list(given), _text(assumed_empty.tolist())
