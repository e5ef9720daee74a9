"""TensorArrays on a device: the ops that make one, write and read an element, ask how many there are.

Stands for `core/kernels/tensor_array_ops.cc`, their part of `core/ops/data_flow_ops.cc` and
`python/ops/tensor_array_grad.py`. Left out: the older families, whose handles are strings; what
touches many elements at once is in `tensor_array_row_ops.py`.

Rules: an array lives as long as its step, on the device of the op that made it. An op names it by a handle, and waits
for those before it by the flow, a number without meaning that goes from op to op. The gradient of a write is a read
from the array of the gradients, and the other way round; each call of `gradients` has one of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.dtypes import DType
from dtflab.graph.node import Node
from dtflab.graph.op_registry import no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import StatefulOp
from dtflab.ops.handles import ResourceHandle, found_in_step, handle_in_step
from dtflab.ops.lists.state import TensorArrayState
from dtflab.ops.lists.tensor_array import TensorArray
from dtflab.ops.messages import check_rank, invalid
from dtflab.ops.scatter import blank

_TYPE = "tensorflow::TensorArray"
_ARRAYS, _GRADIENTS = "_tensor_arrays", "_tensor_array_grads"
_numbers = itertools.count()  # one name is one array, also in a loop that makes many


def find(ctx: Any, handle: ResourceHandle, dtype: DType | None = None, doing: str = "") -> TensorArrayState:
    """The array that `handle` names; NotFoundError if it is another step's, or another device's.

    Raises InvalidArgumentError if its elements are not of `dtype`; `doing` says what the op wants to do.
    """
    found = found_in_step(ctx, handle, "TensorArray", TensorArrayState)
    if dtype is not None:
        found.must_be(dtype, doing)
    return found


def _index(index: Any) -> int:
    check_rank(index, 0, "TensorArray index must be scalar, but had shape: {}")
    return int(index)


def zeros_of(node: Node, xp: Any) -> Callable[[tuple[int, ...]], Any]:
    dtype = node["dtype"].as_numpy_dtype
    return lambda shape: blank(xp, shape, dtype)


# -- static shapes ------------------------------------------------------------------------------------


def check_handle(operation: Any, *ranks: int | None) -> TensorShape:
    """The element shape that the graph knows of the handle; ValueError unless the inputs after it have these ranks."""
    operation.inputs[0].shape.assert_is_compatible_with(TensorShape([2]))
    for tensor, rank in zip(operation.inputs[1:], ranks, strict=True):
        if rank is not None:
            tensor.shape.with_rank(rank)
    known = declared(operation.inputs[0])
    return TensorShape(None) if known is None else known[0]


class _Maker(StatefulOp):
    """Base of the ops that give the handle of an array, and a flow to begin with."""

    grad = no_gradient

    def infer(operation: Any) -> list[TensorShape]:
        if len(operation.inputs) > 1:  # a handle, a flow and perhaps a shape
            check_handle(operation, *range(len(operation.inputs) - 1))
        else:
            operation.inputs[0].shape.with_rank(0)
        return [TensorShape([2]), TensorShape([])]


# -- making -------------------------------------------------------------------------------------------


@op("""TensorArrayV3(size: int32) -> (handle: resource, flow: float)
       dtype: type, element_shape: shape = unknown, dynamic_size: bool = false, clear_after_read: bool = true
       identical_element_shapes: bool = false, tensor_array_name: string = ''""")
class TensorArrayV3(_Maker):
    """A new array of `size` elements that are not written yet."""

    def bind(node, xp):
        title = node["tensor_array_name"].decode() or node.name
        attrs = ("element_shape", "identical_element_shapes", "dynamic_size", "clear_after_read")
        settings = [node[attr] for attr in attrs]

        def make(ctx, size):
            check_rank(size, 0, "TensorArray size must be scalar, but had shape: {}")
            if size < 0:
                raise invalid("Size should be >= 0.")
            name = f"{title}_{next(_numbers)}"
            array = TensorArrayState(name, node["dtype"], int(size), *settings)
            return handle_in_step(ctx, _ARRAYS + name, _TYPE, lambda: array), np.float32(0)

        return make


_GRADIENT = "(grad_handle: resource, flow_out: float)\nsource: string"


@op(
    f"TensorArrayGradV3(handle: resource, flow_in: float) -> {_GRADIENT}",
    f"TensorArrayGradWithShape(handle: resource, flow_in: float, shape_to_prepend: int32) -> {_GRADIENT}",
)
class TensorArrayGrad(_Maker):
    """The array of the gradients that the call `source` of `gradients` has for an array.

    Those of TensorArrayGradWithShape have more dimensions than the elements.
    """

    def kernel(node: Node, xp: Any, ctx: Any, handle: ResourceHandle, flow: Any, before: Any = ()) -> Any:
        source = node["source"].decode()
        if not handle.name.startswith(_ARRAYS):
            raise invalid(f"Wrong input container. {handle.name}")
        forward = find(ctx, handle)
        name = f"{forward.name}@{source}"
        forward.begin_gradients()
        gradients = lambda: forward.gradients(name, tuple(map(int, before)))  # noqa: E731
        return handle_in_step(ctx, _GRADIENTS + name, _TYPE, gradients), np.float32(0)


# -- one element --------------------------------------------------------------------------------------


@op("TensorArrayWriteV3(handle: resource, index: int32, value: T, flow_in: float) -> (flow_out: float) where T: type")
class TensorArrayWriteV3(StatefulOp):
    def infer(operation):
        check_handle(operation, 0, None, 0).assert_is_compatible_with(operation.inputs[2].shape)
        return [TensorShape([])]

    def kernel(node, xp, ctx, handle, index, value, flow):
        place = _index(index)
        find(ctx, handle, node["T"], "is trying to write").write(place, value)
        return flow

    def grad(operation, flow):
        gradients, flow = gradients_of_written(operation, flow)
        return [None, None, gradients.read(operation.inputs[1]), flow]


@op("TensorArrayReadV3(handle: resource, index: int32, flow_in: float) -> (value: dtype) where dtype: type")
class TensorArrayReadV3(StatefulOp):
    aliasing = True

    def infer(operation):
        return [check_handle(operation, 0, 0)]

    def bind(node, xp):
        zeros = zeros_of(node, xp)

        def read(ctx, handle, index, flow):
            place = _index(index)
            return find(ctx, handle, node["dtype"], "requested").read(place, zeros)

        return read

    def grad(operation, dy):
        written = gradients_of_read(operation, dy, operation.inputs[2]).write(operation.inputs[1], dy)
        return [None, None, written.flow]


# -- the array itself ---------------------------------------------------------------------------------


@op("TensorArraySizeV3(handle: resource, flow_in: float) -> (size: int32)")
class TensorArraySizeV3(StatefulOp):
    grad = no_gradient

    def infer(operation):
        check_handle(operation, 0)
        return [TensorShape([])]

    def bind(node, xp):
        return lambda ctx, handle, flow: np.int32(find(ctx, handle).size)


@op("TensorArrayCloseV3(handle: resource) -> ()")
class TensorArrayCloseV3(StatefulOp):
    infer = shapes.none
    grad = no_gradient

    def bind(node, xp):
        return lambda ctx, handle: find(ctx, handle).close()


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
    dtype, handle = operation.get_attr(dtype_attr), operation.inputs[0]
    return TensorArray(dtype, handle=handle, flow=flow, colocate_with_first_write_call=False).grad(source, flow)


def gradients_of_read(operation: Operation, dy: Tensor, flow: Tensor) -> Any:
    """Where the gradient of what was read is written: after all that was written before the read."""
    return _gradient_array(operation, "dtype", _source_of(dy.name), flow)


def gradients_of_written(operation: Operation, flow: Tensor) -> tuple[Any, Tensor]:
    """Where the gradient of what was written is read, and the flow for those before.

    The array of the gradients takes over sizes and shapes, so it is made after the write.
    """
    source = _source_of(flow.name)
    with control_dependencies([arrays.identity(operation.outputs[0], "flow_out")]):
        flow = arrays.identity(flow, "write_barrier")
    return _gradient_array(operation, "T", source, flow), flow
