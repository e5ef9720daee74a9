"""The ops that parse Examples: ParseExampleV2, and what older graphs have instead.

Stands for `core/kernels/example_parsing_ops.cc` and its part of `core/ops/parsing_ops.cc`, but for SequenceExamples
(`sequence_ops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.examples import columns
from dtflab.ops.examples.columns import Batch
from dtflab.ops.examples.functions import starts_unknown
from dtflab.ops.messages import check_rank, invalid, shape_text
from dtflab.protos.example_pb2 import Example

_FEATURE = "list({float, int64, string})"


# -- static shapes ------------------------------------------------------------------------------------


def sparse_shapes(batch: TensorShape, count: int, extra: int = 1) -> list[TensorShape]:
    """The shapes of `count` indices, `count` values, and `count` shapes."""
    rank = None if batch.ndims is None else batch.ndims + extra
    shapes = TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])
    return [shape for shape in shapes for _ in range(count)]


def dense_shapes(batch: TensorShape, shapes: Sequence[TensorShape]) -> list[TensorShape]:
    return [batch.concatenate(shape) for shape in shapes]


def split_shape(batch: TensorShape) -> TensorShape:
    """The shape of row splits: one more than the rows."""
    return TensorShape([batch[0] + 1 if batch.ndims else None])


def check_serialized(shape: TensorShape) -> TensorShape:
    """Return `shape`. Raises ValueError if it has more than one dimension."""
    if (shape.ndims or 0) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {shape.ndims}")
    return shape


# -- kernels ------------------------------------------------------------------------------------------


def keys_of(tensor: Any, what: str) -> list[str]:
    """A vector of keys as strings."""
    check_rank(tensor, 1, f"Expected {what} to be a vector, got shape: {{}}")
    return [key.decode() for key in tensor.tolist()]


def columns_of(triples: Sequence[Sequence[Any]], width: int) -> list[Any]:
    """Tuples as the op's outputs: all first items, then all second ones, …"""
    return [triple[i] for i in range(width) for triple in triples]


def outputs(
    batch: Batch, sparse: Any, sparse_types: Any, dense: Any, dense_types: Any, shapes: Any, defaults: Any
) -> list[Any]:
    """The outputs of the sparse and the dense features with the given keys."""
    of_sparse = [columns.sparse(batch, *each) for each in zip(sparse, sparse_types)]
    check_defaults(dense, shapes, defaults)
    of_dense = [columns.dense(batch, *each) for each in zip(dense, dense_types, shapes, defaults)]
    return columns_of(of_sparse, 3) + of_dense


def check_defaults(keys: Sequence[str], shapes: Sequence[TensorShape], defaults: Sequence[Any]) -> None:
    """Raise InvalidArgumentError unless each default has the shape of its feature, or is empty."""
    for i, (key, shape, default) in enumerate(zip(keys, shapes, defaults)):
        if starts_unknown(shape):
            if default.size != 1:
                raise invalid(
                    f"dense_shape[{i}] is a variable length shape: {shape_text(shape)}, therefore def_value[{i}] must "
                    f"contain a single element (the padding element).  But its shape is: {shape_text(default)}"
                )
        elif default.size and not shape.admits(default.shape):
            raise invalid(
                f"def_value[{i}].shape() == {shape_text(default)} is not compatible with dense_shapes_[{i}] == "
                f"{shape_text(shape)} (feature '{key}')"
            )


_SPARSE = "sparse_indices: {0} * int64, sparse_values: sparse_types, sparse_shapes: {0} * int64"
_SPARSE_TYPES = f"\n        sparse_types: {_FEATURE} >= 0"
_DENSE_TYPES = f"""
        Tdense: {_FEATURE} >= 0, dense_shapes: list(shape) >= 0"""


class _Parse(Op):
    """Base of ops that parse Examples."""

    rank: int | None = None  # of `serialized`
    keys: Callable[..., Any]  # of the node and the inputs after `serialized`: names, sparse and dense keys, defaults

    @classmethod
    def infer(cls, operation):
        batch = operation.inputs[0].shape.with_rank(cls.rank)
        sparse = sparse_shapes(batch, len(operation.get_attr("sparse_types")))
        return [*sparse, *dense_shapes(batch, operation.attrs["dense_shapes"])]

    @classmethod
    def kernel(cls, node, xp, serialized, *inputs):
        sparse_types, dense_types, shapes = node["sparse_types"], node["Tdense"], node["dense_shapes"]
        names, sparse, dense, defaults = cls.keys(node, *inputs)
        batch = Batch.parse(Example, serialized, names)
        return outputs(batch, sparse, sparse_types, dense, dense_types, shapes, defaults)


@op(f"""ParseExampleV2(serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string,
        dense_defaults: Tdense) -> ({_SPARSE.format("num_sparse")},
        dense_values: Tdense, ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types)
        num_sparse: int >= 0{_SPARSE_TYPES}
        ragged_value_types: {_FEATURE} >= 0, ragged_split_types: list({{int32, int64}}) >= 0{_DENSE_TYPES}""")
class ParseExampleV2(Op):
    def infer(operation):
        batch = check_serialized(operation.inputs[0].shape)
        ragged = len(operation.get_attr("ragged_value_types"))
        return [
            *sparse_shapes(batch, operation.get_attr("num_sparse")),
            *dense_shapes(batch, operation.attrs["dense_shapes"]),
            *[TensorShape([None])] * ragged,
            *[split_shape(batch)] * ragged,
        ]

    def kernel(node, xp, serialized, names, sparse_keys, dense_keys, ragged_keys, *defaults):
        types, shapes = (node["sparse_types"], node["Tdense"]), node["dense_shapes"]
        ragged_types = node["ragged_value_types"], node["ragged_split_types"]
        batch = Batch.parse(Example, serialized, names)
        sparse, dense = keys_of(sparse_keys, "sparse_keys"), keys_of(dense_keys, "dense_keys")
        ragged = zip(keys_of(ragged_keys, "ragged_keys"), *ragged_types)
        found = outputs(batch, sparse, types[0], dense, types[1], shapes, defaults)
        return found + columns_of([columns.ragged(batch, *each) for each in ragged], 2)


@op(f"""ParseExample(serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string,
        dense_defaults: Tdense) -> ({_SPARSE.format("Nsparse")}, dense_values: Tdense)
        Nsparse: int >= 0, Ndense: int >= 0{_SPARSE_TYPES}{_DENSE_TYPES}""")
class ParseExample(_Parse):
    """A batch; each key is an input of its own."""

    rank = 1

    def keys(node, names, *rest):
        sparse, both = node["Nsparse"], node["Nsparse"] + node["Ndense"]
        keys = [key.item().decode() for key in rest[:both]]
        return names, keys[:sparse], keys[sparse:], rest[both:]


@op(f"""ParseSingleExample(serialized: string, dense_defaults: Tdense) -> (
        {_SPARSE.format("num_sparse")}, dense_values: Tdense)
        num_sparse: int >= 0, sparse_keys: list(string) >= 0
        dense_keys: list(string) >= 0{_SPARSE_TYPES}{_DENSE_TYPES}""")
class ParseSingleExample(_Parse):
    """One example; the keys are attributes."""

    rank = 0

    def keys(node, *defaults):
        sparse, dense = ([key.decode() for key in node[attr]] for attr in ("sparse_keys", "dense_keys"))
        return np.array([], object), sparse, dense, defaults
