"""TensorArrays and the tensors that have their elements as rows: the ops that stack, unstack, join and cut.

Stands for the part of `core/kernels/tensor_array_ops.cc` and its neighbours (see `tensor_array.py`) that touches many
elements at once. Left out: the older families, whose handles are strings.

Rule: cutting gives views of the whole; only stacking and joining copy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.op_registry import Op, op
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.costs import StatefulOp, of_part
from dtflab.ops.lists.state import TensorArrayState
from dtflab.ops.lists.tensor_array_ops import check_handle, find, gradients_of_read, gradients_of_written, zeros_of
from dtflab.ops.messages import check_rank, invalid, shape_text


def _indices(indices: Any) -> list[int]:
    check_rank(indices, 1, "Expected indices to be a vector, but received shape: {}")
    return indices.tolist()


@op("""TensorArrayGatherV3(handle: resource, indices: int32, flow_in: float) -> (value: dtype)
       dtype: type, element_shape: shape = unknown""")
class TensorArrayGatherV3(StatefulOp):
    """The elements at `indices`, one below the other."""

    bytes = of_part

    def infer(operation):
        known = check_handle(operation, 1, 0)
        if declared(operation.inputs[0]) is None:
            known = operation.attrs["element_shape"]
        return [operation.inputs[1].shape.with_rank(1).concatenate(known)]

    def bind(node, xp):
        shape, zeros, dtype = node["element_shape"], zeros_of(node, xp), node["dtype"].as_numpy_dtype

        def gather(ctx, handle, indices, flow):
            found = find(ctx, handle, node["dtype"], "requested")
            found.narrow(shape)
            places = _indices(indices)
            if not places:
                return zeros((0, *_known(shape, "element shape", "packing")))
            values = [found.read(place, zeros) for place in places]
            _check_like_first(values, shape)
            is_vector = not values[0].ndim and dtype is not object
            return xp.array(values, dtype) if is_vector else xp.stack(values)  # the first is three times as fast

        return gather

    def grad(operation, dy):
        written = gradients_of_read(operation, dy, operation.inputs[2]).scatter(operation.inputs[1], dy)
        return [None, None, written.flow]


def _known(shape: TensorShape, what: str, doing: str) -> list[Any]:
    if not shape.is_fully_defined():
        raise errors.UnimplementedError.of(
            f"TensorArray has size zero, but {what} {shape_text(shape)} is not fully defined. "
            f"Currently only static shapes are supported when {doing} zero-size TensorArrays."
        )
    return shape.as_list()


def _check_like_first(values: list[Any], shape: TensorShape) -> None:
    first = values[0].shape
    if not shape.is_compatible_with(first):
        raise invalid(
            f"TensorArray was passed element_shape {shape_text(shape)} which does not match the Tensor at index 0: "
            f"{shape_text(first)}"
        )
    for i, value in enumerate(values):
        if value.shape != first:
            raise invalid(
                f"TensorArray has inconsistent shapes.  Index 0 has shape: {shape_text(first)} but index {i} has "
                f"shape: {shape_text(value)}"
            )


@op("""TensorArrayScatterV3(handle: resource, indices: int32, value: T, flow_in: float) -> (flow_out: float)
       T: type""")
class TensorArrayScatterV3(StatefulOp):
    """Row i of the value becomes the element `indices[i]`."""

    bytes = Op.bytes

    def infer(operation):
        known, value = check_handle(operation, 1, None, 0), operation.inputs[2].shape.with_rank_at_least(1)
        value[:1].assert_is_compatible_with(operation.inputs[1].shape)
        known.assert_is_compatible_with(value[1:])
        return [TensorShape([])]

    def kernel(node, xp, ctx, handle, indices, value, flow):
        found = find(ctx, handle, node["T"], "is trying to write")
        places = _check_scatter(found, _indices(indices), value)
        for i in reversed(range(len(places))):
            found.write(places[i], value[i, ...])
        return flow

    def grad(operation, flow):
        gradients, flow = gradients_of_written(operation, flow)
        return [None, None, gradients.gather(operation.inputs[1]), flow]


def _check_scatter(found: TensorArrayState, places: list[int], value: Any) -> list[int]:
    if not value.ndim:
        raise invalid("Input value for unpack must be at least a vector but received shape: []")
    if len(places) != len(value):
        raise invalid(f"Expected len(indices) == values.shape[0], but saw: {len(places)} vs. {len(value)}")
    last = max(places, default=-1)
    if last >= found.size and not found.dynamic_size:
        raise invalid(f"Max scatter index must be < array size ({last} vs. {found.size})")
    return places


@op("""TensorArrayConcatV3(handle: resource, flow_in: float) -> (value: dtype, lengths: int64)
       dtype: type, element_shape_except0: shape = unknown""")
class TensorArrayConcatV3(StatefulOp):
    """All elements, joined along their first dimension, and how long each of them was there."""

    bytes = of_part

    def infer(operation):
        check_handle(operation, 0)
        return [TensorShape(None), TensorShape([None])]

    def bind(node, xp):
        shape, zeros = node["element_shape_except0"], zeros_of(node, xp)

        def concat(ctx, handle, flow):
            found = find(ctx, handle, node["dtype"], "requested")
            values = [found.read(place, zeros) for place in range(found.size_to_concat)]
            if not values:
                return zeros((0, *_known(shape, "element_shape_except0", "concatenating"))), np.zeros(0, np.int64)
            _check_to_join(values, shape)
            return xp.concatenate(values), np.array([len(value) for value in values], np.int64)

        return concat

    def grad(operation, dy, _):
        flow, lengths = operation.inputs[1], operation.outputs[1]
        return [None, gradients_of_read(operation, dy, flow).split(dy, lengths).flow]


def _check_to_join(values: list[Any], shape: TensorShape) -> None:
    for i, value in enumerate(values):
        if not value.ndim:
            raise invalid(
                f"Concat saw a scalar shape at index {i} but requires at least vectors.  Did you mean to call pack?"
            )
        first, rest = values[0].shape[1:], value.shape[1:]
        if not shape.is_compatible_with(first):
            raise invalid(
                f"TensorArray was passed element_shape_except0 {shape_text(shape)} but index 0 has (excepting "
                f"dimension 0) shape: {shape_text(first)} which does not match."
            )
        if rest != first:
            raise invalid(
                "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: "
                f"{shape_text(first)} but index {i} has (excepting dimension 0) shape: {shape_text(rest)}"
            )


@op("TensorArraySplitV3(handle: resource, value: T, lengths: int64, flow_in: float) -> (flow_out: float) where T: type")
class TensorArraySplitV3(StatefulOp):
    """The value, cut along its first dimension into pieces of these lengths, which become the elements."""

    bytes = Op.bytes

    def infer(operation):
        check_handle(operation, None, 1, 0)
        return [TensorShape([])]

    def kernel(node, xp, ctx, handle, value, lengths, flow):
        found = find(ctx, handle)
        _check_split(found, value, lengths)
        found.must_be(node["T"], "is trying to write")
        ends = np.cumsum(lengths).tolist()
        if not found.is_grad:
            found.marked_size = len(ends)
        for i in reversed(range(len(ends))):
            found.write(i, value[ends[i] - int(lengths[i]) : ends[i]])
        return flow

    def grad(operation, flow):
        gradients, flow = gradients_of_written(operation, flow)
        return [None, gradients.concat(), None, flow]


def _check_split(found: TensorArrayState, value: Any, lengths: Any) -> None:
    check_rank(lengths, 1, "Expected lengths to be a vector, received shape: {}")
    if not value.ndim:
        raise invalid("Expected value to be at least a vector, but received shape: []")
    total, count = int(lengths.sum()), len(lengths)
    if total != len(value):
        raise invalid(
            "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
            f"{total} and value's shape is: {shape_text(value)} "
        )
    size = max(found.size, count) if found.dynamic_size else found.size
    if size != count:
        raise invalid(
            f"TensorArray's size is not equal to the size of lengths ({size} vs. {count}), and the TensorArray is not "
            "marked as dynamically resizeable"
        )
