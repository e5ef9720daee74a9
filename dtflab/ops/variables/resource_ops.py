"""Resource variables: handles, and the ops that read and write what a handle names.

Stands for `resource_variable_ops.cc` in `core/ops` and `core/kernels`, and the gradients of
`python/ops/resource_variable_ops.py`. Left out: variables of variant dtype.

Rule: the variable (a Cell) is created by its first assignment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.dtypes import DType
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.cell import RUN_INITIALIZER, Cell
from dtflab.ops.costs import FreeOp, StatefulOp, overwritten
from dtflab.ops.handles import VARIABLE_TYPE, ResourceHandle, kinds, variable_of
from dtflab.ops.messages import dtype_text, invalid, shape_text
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER
from dtflab.ops.variables.reference_ops import Change, ReferenceUpdate, counter, same_shape


class ResourceUpdate(ReferenceUpdate):
    """Base of the ops that change a part or all of the variable that a handle names."""

    stateful = needs_ctx = True

    @classmethod
    def bind(cls, node: Node, xp: Any) -> Callable[..., None]:
        change = cls.change(node, xp)

        def update(ctx: Any, handle: ResourceHandle, *given: Any) -> None:
            variable_of(ctx, handle).update(lambda old, out: change(old, out, *given))

        return update


def _declared_shape(handle: Tensor, dtype: DType) -> TensorShape:
    known = declared(handle)
    if known is None:
        return TensorShape(None)
    if known[1] != dtype:
        raise ValueError("Trying to read variable with wrong dtype. " + _expected(known[1], dtype))
    return known[0]


def _expected(expected: DType, got: DType) -> str:
    return f"Expected {dtype_text(expected)} got {dtype_text(got)}"


# -- handles ------------------------------------------------------------------------------------------


def _handle_maker(container: bytes, name: bytes) -> Callable[[Any], ResourceHandle]:
    where, what = container.decode() or DEFAULT_CONTAINER, name.decode()
    return lambda ctx: ResourceHandle(ctx.device, where, what, VARIABLE_TYPE)


@op("""VarHandleOp() -> (resource: resource)
       container: string = '', shared_name: string = '', debug_name: string = '', dtype: type, shape: shape
       allowed_devices: list(string) = []""")
class VarHandleOp(StatefulOp):
    infer = shapes.scalar

    def bind(node, xp):
        return _handle_maker(node["container"], node["shared_name"])


@op("""_VarHandlesOp() -> (resources: N * resource)
       containers: list(string), shared_names: list(string), N: int >= 0, dtypes: list(type), shapes: list(shape)""")
class VarHandlesOp(StatefulOp):
    """Several handles at once: what TensorFlow's grappler makes of them."""

    infer = shapes.scalar

    def bind(node, xp):
        makers = [_handle_maker(c, n) for c, n in zip(node["containers"], node["shared_names"])]
        return lambda ctx: [make(ctx) for make in makers]


@op("VarIsInitializedOp(resource: resource) -> (is_initialized: bool)")
class VarIsInitializedOp(StatefulOp):
    grad = no_gradient
    infer = shapes.scalar

    def kernel(node, xp, ctx, handle):
        try:
            return np.bool_(variable_of(ctx, handle).initialized)
        except errors.NotFoundError:
            return np.False_


@op("DestroyResourceOp(resource: resource) -> () where ignore_lookup_error: bool = true")
class DestroyResourceOp(StatefulOp):
    infer = shapes.none

    def kernel(node, xp, ctx, handle):
        try:
            ctx.resources.delete(handle.container, handle.name, kinds.get(handle.type_name, Cell))
        except errors.NotFoundError:
            if not node["ignore_lookup_error"]:
                raise


@op("DisableCopyOnRead(resource: resource) -> ()")
class DisableCopyOnRead(FreeOp):
    """Says that reads need not copy; here they never do."""

    stateful = True
    infer = shapes.none

    def bind(node, xp):
        return lambda handle: None


# -- reading ------------------------------------------------------------------------------------------


def _reader(dtype: DType) -> Callable[[Any, ResourceHandle], Any]:
    def read(ctx: Any, handle: ResourceHandle) -> Any:
        try:
            cell = variable_of(ctx, handle)
            value = cell.read()
        except (errors.NotFoundError, errors.FailedPreconditionError) as error:
            status = error.message.removesuffix(f". {RUN_INITIALIZER}")
            raise errors.FailedPreconditionError.of(
                f"Could not find variable {handle.name}. This could mean that the variable has been deleted. "
                "In TF1, it can also mean the variable is uninitialized. Debug info: "
                f"container={handle.container}, status error message={status}. {RUN_INITIALIZER}"
            ) from None
        if cell.dtype is not dtype:
            raise invalid("Trying to read variable with wrong dtype. " + _expected(dtype, cell.dtype))
        return value

    return read


@op("ReadVariableOp(resource: resource) -> (value: dtype) where dtype: type")
class ReadVariableOp(StatefulOp):
    def infer(operation):
        return [_declared_shape(operation.inputs[0], operation.get_attr("dtype"))]

    def bind(node, xp):
        return _reader(node["dtype"])

    def grad(operation, dy):
        return [dy]


@op("_ReadVariablesOp(resources: N * resource) -> (values: dtypes) where N: int >= 0, dtypes: list(type) >= 1")
class ReadVariablesOp(StatefulOp):
    """Several reads at once: what TensorFlow's grappler makes of them."""

    def infer(operation):
        return [_declared_shape(h, d) for h, d in zip(operation.inputs, operation.get_attr("dtypes"))]

    def bind(node, xp):
        readers = [_reader(dtype) for dtype in node["dtypes"]]
        return lambda ctx, *handles: [read(ctx, h) for read, h in zip(readers, handles)]


@op("VariableShape(input: resource) -> (output: out_type) where out_type: {int32, int64} = int32")
class VariableShape(StatefulOp):
    grad = no_gradient

    def infer(operation):
        known = declared(operation.inputs[0])
        return [TensorShape([known[0].ndims if known else None])]

    def bind(node, xp):
        kind = node["out_type"].as_numpy_dtype
        return lambda ctx, handle: np.array(variable_of(ctx, handle).read().shape, kind)


# -- writing ------------------------------------------------------------------------------------------


def _assign_shape(operation: Any) -> list[TensorShape]:
    dtype = operation.inputs[1].dtype.base_dtype
    _declared_shape(operation.inputs[0], dtype).merge_with(operation.inputs[1].shape)
    return []


@op("AssignVariableOp(resource: resource, value: dtype) -> () where dtype: type, validate_shape: bool = false")
class AssignVariableOp(StatefulOp):
    infer = _assign_shape
    bytes = overwritten

    def kernel(node, xp, ctx, handle, value):
        dtype, validate = node["dtype"], node["validate_shape"]
        cell = ctx.resources.lookup_or_create(
            handle.container, handle.name, Cell, lambda: Cell(handle.name, dtype, value.shape)
        )
        if cell.dtype is not dtype:
            raise invalid("Trying to assign variable with wrong dtype. " + _expected(cell.dtype, dtype))
        old = cell.value
        if validate and old is not None and old.shape != value.shape:
            raise invalid(
                "Trying to assign to variable with tensor with wrong shape. "
                f"Expected {shape_text(old.shape)} got {shape_text(value.shape)}"
            )
        cell.assign(value)


def _unequal(old: Any, value: Any) -> str:
    return (
        f"Cannot update variable with shape {shape_text(old.shape)} using a Tensor "
        f"with shape {shape_text(value.shape)}, shapes must be equal."
    )


@op(*(f"Assign{how}VariableOp(resource: resource, value: dtype) -> () where dtype: type" for how in ("Add", "Sub")))
class AssignAddOrSubVariableOp(ResourceUpdate):
    infer = _assign_shape

    def change(node: Node, xp: Any) -> Change:
        return same_shape("add" if node.op == "AssignAddVariableOp" else "subtract", xp, _unequal)


@op("ResourceCountUpTo(resource: resource) -> (output: T) where limit: int, T: {int32, int64}")
class ResourceCountUpTo(Op):
    stateful = needs_ctx = True
    infer = shapes.scalar

    def bind(node, xp):
        count = counter(node["limit"])
        return lambda ctx, handle: count(variable_of(ctx, handle))
