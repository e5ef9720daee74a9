"""The ops that parse Examples: ParseExampleV2, and what older graphs have instead.

Stands for `core/kernels/example_parsing_ops.cc` and its part of `core/ops/parsing_ops.cc`. SequenceExamples have a file
of their own, `sequence_example.py`; what is common is in `example_values.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.examples import example_values as values
from dtflab.ops.examples.example_values import Batch
from dtflab.ops.examples.features import starts_unknown
from dtflab.ops.messages import invalid, shape_text
from dtflab.protos.example_pb2 import Example

_FEATURE = "list({float, int64, string})"


# -- static shapes ------------------------------------------------------------------------------------


def sparse_shapes(batch: TensorShape, count: int, extra: int = 1) -> list[TensorShape]:
    """The shapes of `count` indices, of as many values, and of as many shapes."""
    rank = None if batch.ndims is None else batch.ndims + extra
    shapes = TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])
    return [shape for shape in shapes for _ in range(count)]


def dense_shapes(batch: TensorShape, shapes: Sequence[TensorShape]) -> list[TensorShape]:
    return [batch.concatenate(shape) for shape in shapes]


def split_shape(batch: TensorShape) -> TensorShape:
    """Of row splits: one more than there are rows."""
    return TensorShape([batch[0] + 1 if batch.ndims else None])


def check_serialized(shape: TensorShape) -> TensorShape:
    """`shape` unless it has more than one dimension."""
    if (shape.ndims or 0) > 1:
        raise ValueError(f"Shape must be at most rank 1 but is rank {shape.ndims}")
    return shape


# -- kernels ------------------------------------------------------------------------------------------


def keys_of(tensor: Any, what: str) -> list[str]:
    """A vector of keys as strings."""
    if tensor.ndim != 1:
        raise invalid(f"Expected {what} to be a vector, got shape: {shape_text(tensor)}")
    return [key.decode() for key in tensor.tolist()]


def columns_of(triples: Sequence[Sequence[Any]], width: int) -> list[Any]:
    """Tuples as the op's outputs: all first items, then all second ones, …"""
    return [triple[i] for i in range(width) for triple in triples]


def sparse_outputs(batch: Batch, keys: Sequence[str], types: Sequence[DType]) -> list[Any]:
    return columns_of([values.sparse(batch, key, dtype) for key, dtype in zip(keys, types)], 3)


def dense_outputs(
    batch: Batch, keys: Sequence[str], types: Sequence[DType], shapes: Sequence[TensorShape], defaults: Sequence[Any]
) -> list[Any]:
    check_defaults(keys, shapes, defaults)
    return [values.dense(batch, *each) for each in zip(keys, types, shapes, defaults)]


def check_defaults(keys: Sequence[str], shapes: Sequence[TensorShape], defaults: Sequence[Any]) -> None:
    """InvalidArgumentError unless a default has the shape of its feature, or none is given."""
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


@op(f"""ParseExampleV2(serialized: string, names: string, sparse_keys: string, dense_keys: string, ragged_keys: string,
        dense_defaults: Tdense) -> (
        sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64,
        dense_values: Tdense, ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types)
        Tdense: {_FEATURE} >= 0
        num_sparse: int >= 0
        sparse_types: {_FEATURE} >= 0
        ragged_value_types: {_FEATURE} >= 0
        ragged_split_types: list({{int32, int64}}) >= 0
        dense_shapes: list(shape) >= 0""")
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

    def bind(node, xp):
        types = node["sparse_types"], node["Tdense"], node["ragged_value_types"], node["ragged_split_types"]
        shapes = node["dense_shapes"]

        def parse(serialized, names, sparse_keys, dense_keys, ragged_keys, *defaults):
            batch = Batch.parse(Example, serialized, names)
            sparse, dense = keys_of(sparse_keys, "sparse_keys"), keys_of(dense_keys, "dense_keys")
            ragged = zip(keys_of(ragged_keys, "ragged_keys"), types[2], types[3])
            return [
                *sparse_outputs(batch, sparse, types[0]),
                *dense_outputs(batch, dense, types[1], shapes, defaults),
                *columns_of([values.ragged(batch, *each) for each in ragged], 2),
            ]

        return parse


@op(f"""ParseExample(serialized: string, names: string, sparse_keys: Nsparse * string, dense_keys: Ndense * string,
        dense_defaults: Tdense) -> (
        sparse_indices: Nsparse * int64, sparse_values: sparse_types, sparse_shapes: Nsparse * int64,
        dense_values: Tdense)
        Nsparse: int >= 0
        Ndense: int >= 0
        sparse_types: {_FEATURE} >= 0
        Tdense: {_FEATURE} >= 0
        dense_shapes: list(shape) >= 0""")
class ParseExample(Op):
    """A batch; each key is an input of its own."""

    def infer(operation):
        batch = operation.inputs[0].shape.with_rank(1)
        sparse = sparse_shapes(batch, operation.get_attr("Nsparse"))
        return [*sparse, *dense_shapes(batch, operation.attrs["dense_shapes"])]

    def bind(node, xp):
        sparse, dense = node["Nsparse"], node["Ndense"]

        def parse(serialized, names, *rest):
            batch = Batch.parse(Example, serialized, names)
            keys = [key.item().decode() for key in rest[: sparse + dense]]
            return [
                *sparse_outputs(batch, keys[:sparse], node["sparse_types"]),
                *dense_outputs(batch, keys[sparse:], node["Tdense"], node["dense_shapes"], rest[sparse + dense :]),
            ]

        return parse


@op(f"""ParseSingleExample(serialized: string, dense_defaults: Tdense) -> (
        sparse_indices: num_sparse * int64, sparse_values: sparse_types, sparse_shapes: num_sparse * int64,
        dense_values: Tdense)
        num_sparse: int >= 0
        sparse_keys: list(string) >= 0
        dense_keys: list(string) >= 0
        sparse_types: {_FEATURE} >= 0
        Tdense: {_FEATURE} >= 0
        dense_shapes: list(shape) >= 0""")
class ParseSingleExample(Op):
    """One example; the keys are attributes."""

    def infer(operation):
        batch = operation.inputs[0].shape.with_rank(0)
        sparse = sparse_shapes(batch, operation.get_attr("num_sparse"))
        return [*sparse, *dense_shapes(batch, operation.attrs["dense_shapes"])]

    def bind(node, xp):
        sparse = [key.decode() for key in node["sparse_keys"]]
        dense = [key.decode() for key in node["dense_keys"]]

        def parse(serialized, *defaults):
            batch = Batch.parse(Example, serialized, np.array([], object))
            return [
                *sparse_outputs(batch, sparse, node["sparse_types"]),
                *dense_outputs(batch, dense, node["Tdense"], node["dense_shapes"], defaults),
            ]

        return parse
