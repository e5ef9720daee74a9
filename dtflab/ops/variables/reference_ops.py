"""Reference variables: VariableV2 and the ops that write through the reference it gives out.

Stands for `state_ops.cc`, `kernels/variable_ops.h`, `assign_op.h` and `dense_update_ops.cc`. Left out: the refusal of
DestroyTemporaryVariable to copy what another op still holds; cells copy as they need to (see `ops/cell.py`).

Rule: a reference edge carries the variable's Cell. An op that takes `Ref(T)` writes into the cell and hands
the same cell on, so that later readers see the new value; `use_locking` changes nothing, cells always lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.cell import Cell, ReferenceCell
from dtflab.ops.costs import FreeOp, StatefulOp, free, overwritten, updated
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.scatter import blank

Change = Callable[..., Any]


class ReferenceUpdate(Op):
    """Base of the ops that change a part or all of a variable and hand its reference on."""

    bytes = updated

    @staticmethod
    def change(node: Node, xp: Any) -> Change:
        """A function (old, out, *other inputs) → new, written into the array `out` unless that is None."""
        raise NotImplementedError

    @classmethod
    def bind(cls, node: Node, xp: Any) -> Callable[..., Cell]:
        change = cls.change(node, xp)

        def update(cell: Cell, *given: Any) -> Cell:
            cell.update(lambda old, out: change(old, out, *given))
            return cell

        return update

    def flops(node: Node, ins: Any, outs: Any) -> int:
        return elements(ins[-1])


# -- variables ----------------------------------------------------------------------------------------


_VARIABLE = """{}() -> (ref: Ref(dtype))
       shape: shape, dtype: type, container: string = '', shared_name: string = ''"""


@op(_VARIABLE.format("VariableV2"))
class VariableV2(StatefulOp):
    infer = shapes.declared

    def bind(node: Node, xp: Any) -> Callable[[Any], Cell]:
        name = node["shared_name"].decode() or node.name
        container, dtype, declared = node["container"].decode(), node["dtype"], node["shape"]
        # A variable of unknown shape counts as a scalar until a value is assigned.
        shape = tuple(declared.as_list()) if declared.is_fully_defined() else ()

        def make() -> Cell:
            cell = ReferenceCell(name, dtype, shape)
            if 0 in shape:  # what has no elements needs no value
                cell.assign(blank(xp, shape, dtype.as_numpy_dtype))
            return cell

        def find(ctx: Any) -> Cell:
            cell: Cell = ctx.resources.lookup_or_create(container, name, ReferenceCell, make)
            if cell.dtype is not dtype:
                raise errors.InternalError.of(f"Output 0 of type {dtype.name}_ref is wanted, but {name} is {cell!r}")
            return cell

        return find


@op(_VARIABLE.format("Variable"))
class VariableV1(VariableV2):
    """The op of TensorFlow before 0.10, whose scalar shape also meant that the shape is unknown."""

    def infer(operation):
        shape = operation.attrs["shape"]
        return [shape if shape.ndims else TensorShape(None)]


@op("TemporaryVariable() -> (ref: Ref(dtype)) where shape: shape, dtype: type, var_name: string = ''")
class TemporaryVariable(StatefulOp):
    """A variable of zeros that lives as long as the step; its name is free again in each iteration of a loop."""

    infer = shapes.declared

    def kernel(node, xp, ctx):
        name, shape, dtype = node["var_name"].decode() or node.name, node["shape"], node["dtype"]
        if not shape.is_fully_defined():
            raise invalid(f"Shape {shape_text(shape)} is not fully defined")
        sizes = tuple(shape.as_list())
        cell = ReferenceCell(name, dtype, sizes)
        cell.memory = ctx.resources.memory
        cell.assign(blank(xp, sizes, dtype.as_numpy_dtype))
        key = name, ctx.frame_iter
        if ctx.step.temporaries.setdefault(key, cell) is not cell:
            raise errors.AlreadyExistsError.of(f"This step has a temporary variable {name!r} already.")
        return cell


@op("DestroyTemporaryVariable(ref: Ref(T)) -> (value: T) where T: type, var_name: string")
class DestroyTemporaryVariable(FreeOp):
    """The value of a variable, and the end of the temporary variable `var_name`."""

    needs_ctx = True
    infer = shapes.unchanged

    def bind(node, xp):
        name = node["var_name"].decode()
        if not name:
            raise invalid("Missing var_name attribute")

        def destroy(ctx, cell):
            value = cell.read()
            if ctx.step.temporaries.pop((name, ctx.frame_iter), None) is None:
                raise errors.NotFoundError.of(f"Temporary variable {name!r} of this step does not exist.")
            return value

        return destroy


@op("IsVariableInitialized(ref: Ref(dtype)) -> (is_initialized: bool) where dtype: type")
class IsVariableInitialized(FreeOp):
    allows_uninitialized_input = True
    infer = shapes.scalar

    def bind(node, xp):
        return lambda cell: np.bool_(cell.initialized)


# -- assignments --------------------------------------------------------------------------------------


@op("""Assign(ref: Ref(T), value: T) -> (output_ref: Ref(T))
       T: type, validate_shape: bool = true, use_locking: bool = true""")
class Assign(Op):
    allows_uninitialized_input = True
    flops = free
    bytes = overwritten
    grad = no_gradient

    def infer(operation):
        if operation.get_attr("validate_shape"):
            return shapes.merged(operation)
        return [operation.inputs[1].shape]

    def kernel(node, xp, cell, value):
        shape = cell.shape if cell.value is None else cell.value.shape
        if node["validate_shape"] and value.shape != shape:
            raise invalid(
                "Assign requires shapes of both tensors to match. "
                f"lhs shape= {shape_text(shape)} rhs shape= {shape_text(value.shape)}"
            )
        cell.assign(value)
        return cell


def same_shape(ufunc_name: str, xp: Any, refused: Callable[[Any, Any], str]) -> Change:
    """old = ufunc(old, value) without broadcasting; `refused(old, value)` is the error for another shape."""
    ufunc = getattr(xp, ufunc_name)

    def change(old: Any, out: Any, value: Any) -> Any:
        if old.shape != value.shape:
            raise invalid(refused(old, value))
        return ufunc(old, value, out=out) if out is not None else ufunc(old, value)

    return change


_NUMBER = """
       T: numbertype, use_locking: bool = false"""


@op(*(f"Assign{how}(ref: Ref(T), value: T) -> (output_ref: Ref(T)){_NUMBER}" for how in ("Add", "Sub")))
class AssignAddOrSub(ReferenceUpdate):
    infer = shapes.merged
    grad = no_gradient

    def change(node: Node, xp: Any) -> Change:
        ufunc = "add" if node.op == "AssignAdd" else "subtract"
        return same_shape(ufunc, xp, lambda old, value: "Parameters and update must be the same size")


@op("CountUpTo(ref: Ref(T)) -> (output: T) where limit: int, T: {int32, int64}")
class CountUpTo(Op):
    def infer(operation):
        return [operation.inputs[0].shape.with_rank(0)]

    def bind(node, xp):
        return counter(node["limit"])


def counter(limit: int) -> Callable[[Cell], Any]:
    """A kernel that adds 1 to a variable and gives its value before, until that is `limit`."""

    def count(cell: Cell) -> Any:
        before = None

        def compute(old: Any, out: Any) -> Any:
            nonlocal before
            if old >= limit:
                raise errors.OutOfRangeError.of(f"Reached limit of {limit}")
            before = old.copy()
            return old + old.dtype.type(1)

        cell.update(compute)
        return before

    return count
