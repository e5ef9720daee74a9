"""TensorArrays on a device: the ops that make one, write, read, stack, unstack, join and cut.

Stands for `core/kernels/tensor_array_ops.cc`, their part of `core/ops/data_flow_ops.cc` and
`python/ops/tensor_array_grad.py`. Left out: the older families, whose handles are strings.

Rules: an array lives as long as its step, on the device of the op that made it. An op names it by a handle, and waits
for those before it by the «flow», a number without meaning that goes from op to op. The gradient of a write is a read
from the array of the gradients, and the other way round; each call of `gradients` has one of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import errors
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import array, shapes
from dtflab.ops.control_flow import free
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.resource import ResourceHandle
from dtflab.ops.scatter import blank
from dtflab.ops.tensor_array_state import TensorArrayState

_TYPE = "tensorflow::TensorArray"
_ARRAYS, _GRADIENTS = "_tensor_arrays", "_tensor_array_grads"
_FLOW = np.float32(0)
_numbers = itertools.count()  # one name is one array, also in a loop that makes many


# -- which array --------------------------------------------------------------------------------------


def _made(ctx: Any, kind: str, name: str, make: Callable[[], TensorArrayState]) -> tuple[ResourceHandle, Any]:
    """The handle of an array, which is made unless there is one of that name, and a flow to begin with."""
    handle = ResourceHandle(ctx.device, str(ctx.step.step_id), kind + name, _TYPE)
    key = handle.name, ctx.device
    if key not in ctx.step.temporaries:
        ctx.step.temporaries[key] = make()
    return handle, _FLOW


def _find(ctx: Any, handle: ResourceHandle) -> TensorArrayState:
    """The array that `handle` names; NotFoundError if it is another step's, or another device's."""
    try:
        found: TensorArrayState = ctx.step.temporaries[handle.name, ctx.device]
    except KeyError:
        raise errors.NotFoundError(
            None,
            None,
            f"There is no TensorArray {handle.name} on {ctx.device} in this step: it was made on {handle.device}, and "
            "lives only there and only as long as its step. Use it in the step that makes it, on that device.",
        ) from None
    return found


def _index(index: Any) -> int:
    if np.ndim(index):
        raise invalid(f"TensorArray index must be scalar, but had shape: {shape_text(index)}")
    return int(index)


def _indices(indices: Any) -> list[int]:
    if np.ndim(indices) != 1:
        raise invalid(f"Expected indices to be a vector, but received shape: {shape_text(indices)}")
    found: list[int] = indices.tolist()
    return found


def _zeros(node: Any, xp: Any) -> Callable[[tuple[int, ...]], Any]:
    dtype = node["dtype"].as_numpy_dtype
    return lambda shape: blank(xp, shape, dtype)


# -- static shapes ------------------------------------------------------------------------------------


def _check_handle(operation: Any, *ranks: int | None) -> TensorShape:
    """The element shape that the handle tells; ValueError unless the inputs after it have these ranks."""
    operation.inputs[0].shape.assert_is_compatible_with(TensorShape([2]))
    for tensor, rank in zip(operation.inputs[1:], ranks, strict=True):
        if rank is not None:
            tensor.shape.with_rank(rank)
    known = declared(operation.inputs[0])
    return TensorShape(None) if known is None else known[0]


def _handle_and_flow(operation: Any) -> list[TensorShape]:
    return [TensorShape([2]), TensorShape([])]


# -- making -------------------------------------------------------------------------------------------


@op("""TensorArrayV3(size: int32) -> (handle: resource, flow: float)
       dtype: type
       element_shape: shape = unknown
       dynamic_size: bool = false
       clear_after_read: bool = true
       identical_element_shapes: bool = false
       tensor_array_name: string = ''""")
class TensorArrayV3(Op):
    """A new array of `size` elements that are not written yet."""

    stateful = True
    needs_ctx = True
    flops = free
    grad = no_gradient

    def infer(operation):
        operation.inputs[0].shape.with_rank(0)
        return _handle_and_flow(operation)

    def bind(node, xp):
        title = node["tensor_array_name"].decode() or node.name
        settings = [
            node[attr] for attr in ("element_shape", "identical_element_shapes", "dynamic_size", "clear_after_read")
        ]

        def make(ctx, size):
            if np.ndim(size):
                raise invalid(f"TensorArray size must be scalar, but had shape: {shape_text(size)}")
            if size < 0:
                raise invalid("Size should be >= 0.")
            name = f"{title}_{next(_numbers)}"
            return _made(ctx, _ARRAYS, name, lambda: TensorArrayState(name, node["dtype"], int(size), *settings))

        return make


def _gradient_maker(node: Any, xp: Any) -> Callable[..., Any]:
    source = node["source"].decode()

    def make(ctx: Any, handle: ResourceHandle, flow: Any, before: Any = ()) -> Any:
        if not handle.name.startswith(_ARRAYS):
            raise invalid(f"Wrong input container. {handle.name}")
        forward = _find(ctx, handle)
        name = f"{forward.name}@{source}"
        forward.begin_gradients()
        return _made(ctx, _GRADIENTS, name, lambda: forward.gradients(name, tuple(map(int, before))))

    return make


@op("""TensorArrayGradV3(handle: resource, flow_in: float) -> (grad_handle: resource, flow_out: float)
       source: string""")
class TensorArrayGradV3(Op):
    """The array of the gradients that the call `source` of `gradients` has for an array."""

    stateful = True
    needs_ctx = True
    flops = free
    grad = no_gradient
    bind = _gradient_maker

    def infer(operation):
        _check_handle(operation, 0)
        return _handle_and_flow(operation)


@op("""TensorArrayGradWithShape(handle: resource, flow_in: float, shape_to_prepend: int32)
                                -> (grad_handle: resource, flow_out: float)
       source: string""")
class TensorArrayGradWithShape(Op):
    """The same, for gradients that have dimensions more than the elements."""

    stateful = True
    needs_ctx = True
    flops = free
    grad = no_gradient
    bind = _gradient_maker

    def infer(operation):
        _check_handle(operation, 0, 1)
        return _handle_and_flow(operation)


# -- one element --------------------------------------------------------------------------------------


@op("""TensorArrayWriteV3(handle: resource, index: int32, value: T, flow_in: float) -> (flow_out: float)
       T: type""")
class TensorArrayWriteV3(Op):
    stateful = True
    needs_ctx = True
    flops = free

    def infer(operation):
        _check_handle(operation, 0, None, 0).assert_is_compatible_with(operation.inputs[2].shape)
        return [TensorShape([])]

    def bind(node, xp):
        def write(ctx, handle, index, value, flow):
            place, found = _index(index), _find(ctx, handle)
            found.must_be(node["T"], "is trying to write")
            found.write(place, value)
            return flow

        return write

    def grad(operation, flow):
        gradients, flow = _gradients_of_written(operation, flow)
        return [None, None, gradients.read(operation.inputs[1]), flow]


@op("""TensorArrayReadV3(handle: resource, index: int32, flow_in: float) -> (value: dtype)
       dtype: type""")
class TensorArrayReadV3(Op):
    stateful = True
    needs_ctx = True
    aliasing = True
    flops = free

    def infer(operation):
        return [_check_handle(operation, 0, 0)]

    def bind(node, xp):
        zeros = _zeros(node, xp)

        def read(ctx, handle, index, flow):
            place, found = _index(index), _find(ctx, handle)
            found.must_be(node["dtype"], "requested")
            return found.read(place, zeros)

        return read

    def grad(operation, dy):
        written = _gradients_of_read(operation, dy, operation.inputs[2]).write(operation.inputs[1], dy)
        return [None, None, written.flow]


# -- many at once -------------------------------------------------------------------------------------


@op("""TensorArrayGatherV3(handle: resource, indices: int32, flow_in: float) -> (value: dtype)
       dtype: type
       element_shape: shape = unknown""")
class TensorArrayGatherV3(Op):
    """The elements at `indices`, one below the other."""

    stateful = True
    needs_ctx = True
    flops = free

    def infer(operation):
        known = _check_handle(operation, 1, 0)
        if declared(operation.inputs[0]) is None:
            known = operation.attrs["element_shape"]
        return [operation.inputs[1].shape.with_rank(1).concatenate(known)]

    def bind(node, xp):
        shape, zeros, dtype = node["element_shape"], _zeros(node, xp), node["dtype"].as_numpy_dtype

        def gather(ctx, handle, indices, flow):
            found = _find(ctx, handle)
            found.must_be(node["dtype"], "requested")
            found.narrow(shape)
            places = _indices(indices)
            if not places:
                return zeros((0, *_known(shape, "element shape", "packing")))
            values = [found.read(place, zeros) for place in places]
            _check_like_first(values, shape)
            if not values[0].ndim and dtype is not object:  # three times as fast as `stack`
                return xp.array(values, dtype)
            return xp.stack(values)

        return gather

    def grad(operation, dy):
        written = _gradients_of_read(operation, dy, operation.inputs[2]).scatter(operation.inputs[1], dy)
        return [None, None, written.flow]


def _known(shape: TensorShape, what: str, doing: str) -> list[Any]:
    if not shape.is_fully_defined():
        raise errors.UnimplementedError(
            None,
            None,
            f"TensorArray has size zero, but {what} {shape_text(shape)} is not fully defined. "
            f"Currently only static shapes are supported when {doing} zero-size TensorArrays.",
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
class TensorArrayScatterV3(Op):
    """Row i of the value becomes the element `indices[i]`."""

    stateful = True
    needs_ctx = True
    flops = free

    def infer(operation):
        known, value = _check_handle(operation, 1, None, 0), operation.inputs[2].shape.with_rank_at_least(1)
        value[:1].assert_is_compatible_with(operation.inputs[1].shape)
        known.assert_is_compatible_with(value[1:])
        return [TensorShape([])]

    def bind(node, xp):
        def scatter(ctx, handle, indices, value, flow):
            found = _find(ctx, handle)
            found.must_be(node["T"], "is trying to write")
            places = _check_scatter(found, _indices(indices), value)
            for i in reversed(range(len(places))):
                found.write(places[i], value[i, ...])
            return flow

        return scatter

    def grad(operation, flow):
        gradients, flow = _gradients_of_written(operation, flow)
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
       dtype: type
       element_shape_except0: shape = unknown""")
class TensorArrayConcatV3(Op):
    """All elements, joined along their first dimension, and how long each of them was there."""

    stateful = True
    needs_ctx = True
    flops = free

    def infer(operation):
        _check_handle(operation, 0)
        return [TensorShape(None), TensorShape([None])]

    def bind(node, xp):
        shape, zeros = node["element_shape_except0"], _zeros(node, xp)

        def concat(ctx, handle, flow):
            found = _find(ctx, handle)
            found.must_be(node["dtype"], "requested")
            values = [found.read(place, zeros) for place in range(found.size_to_concat)]
            if not values:
                return zeros((0, *_known(shape, "element_shape_except0", "concatenating"))), np.zeros(0, np.int64)
            _check_to_join(values, shape)
            return xp.concatenate(values), np.array([len(value) for value in values], np.int64)

        return concat

    def grad(operation, dy, _):
        flow, lengths = operation.inputs[1], operation.outputs[1]
        return [None, _gradients_of_read(operation, dy, flow).split(dy, lengths).flow]


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


@op("""TensorArraySplitV3(handle: resource, value: T, lengths: int64, flow_in: float) -> (flow_out: float)
       T: type""")
class TensorArraySplitV3(Op):
    """The value, cut along its first dimension into pieces of these lengths, which become the elements."""

    stateful = True
    needs_ctx = True
    flops = free

    def infer(operation):
        _check_handle(operation, None, 1, 0)
        return [TensorShape([])]

    def bind(node, xp):
        def split(ctx, handle, value, lengths, flow):
            found = _find(ctx, handle)
            _check_split(found, value, lengths)
            found.must_be(node["T"], "is trying to write")
            ends = np.cumsum(lengths).tolist()
            if not found.is_grad:
                found.marked_size = len(ends)
            for i in reversed(range(len(ends))):
                found.write(i, value[ends[i] - int(lengths[i]) : ends[i]])
            return flow

        return split

    def grad(operation, flow):
        gradients, flow = _gradients_of_written(operation, flow)
        return [None, gradients.concat(), None, flow]


def _check_split(found: TensorArrayState, value: Any, lengths: Any) -> None:
    if np.ndim(lengths) != 1:
        raise invalid(f"Expected lengths to be a vector, received shape: {shape_text(lengths)}")
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


# -- the array itself ---------------------------------------------------------------------------------


@op("TensorArraySizeV3(handle: resource, flow_in: float) -> (size: int32)")
class TensorArraySizeV3(Op):
    stateful = True
    needs_ctx = True
    flops = free
    grad = no_gradient

    def infer(operation):
        _check_handle(operation, 0)
        return [TensorShape([])]

    def bind(node, xp):
        return lambda ctx, handle, flow: np.int32(_find(ctx, handle).size)


@op("TensorArrayCloseV3(handle: resource) -> ()")
class TensorArrayCloseV3(Op):
    stateful = True
    needs_ctx = True
    infer = shapes.none
    flops = free
    grad = no_gradient

    def bind(node, xp):
        return lambda ctx, handle: _find(ctx, handle).close()


# -- gradients ----------------------------------------------------------------------------------------


def _source_of(name: str) -> str:
    """Which call of `gradients` made the tensor of that name: the path to its scope."""
    parts = name.split("/")
    scopes = [i for i, part in enumerate(parts) if part.startswith("gradients")]
    if not scopes:
        raise ValueError(
            f"Expected op/tensor name to start with gradients (excluding scope), got: {name}. This means that a "
            "tf.gradients op with this op in its dependency path has a custom name that does not start with "
            "'gradients'. Please make sure all calls to tf.gradients that have non-empty `name` arguments use names "
            "that start with 'gradients'."
        )
    return "/".join(parts[: scopes[-1] + 1])


def _gradient_array(operation: Operation, dtype_attr: str, source: str, flow: Tensor) -> Any:
    from dtflab.ops.tensor_arrays import TensorArray

    forward = TensorArray(
        operation.get_attr(dtype_attr), handle=operation.inputs[0], flow=flow, colocate_with_first_write_call=False
    )
    return forward.grad(source, flow)


def _gradients_of_read(operation: Operation, dy: Tensor, flow: Tensor) -> Any:
    """Where the gradient of what was read is written: after all that was written before the read."""
    return _gradient_array(operation, "dtype", _source_of(dy.name), flow)


def _gradients_of_written(operation: Operation, flow: Tensor) -> tuple[Any, Tensor]:
    """Where the gradient of what was written is read, and the flow for those before.

    The array of the gradients takes over sizes and shapes, so it is made after the write.
    """
    source = _source_of(flow.name)
    with control_dependencies([array.identity(operation.outputs[0], "flow_out")]):
        flow = array.identity(flow, "write_barrier")
    return _gradient_array(operation, "T", source, flow), flow
