"""Reference variables: VariableV2 and the ops that write through the reference it gives out.

Stands for `state_ops.cc`, `kernels/variable_ops.h`, `assign_op.h`, `dense_update_ops.cc`, `scatter_op.cc` and
`python/ops/state_ops.py`. Left out: scatters on string variables other than ScatterUpdate.

Rule: a reference edge carries the variable's Cell. An op that takes `Ref(T)` writes into the cell and hands
the same cell on, so whoever reads later sees the new value; `use_locking` changes nothing, cells always lock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free, overwritten, updated
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.variables import scatter
from dtflab.ops.variables.cell import Cell, ReferenceCell


class _Variable(Op):
    stateful = True
    needs_ctx = True
    flops = bytes = staticmethod(free)

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        return [operation.attrs["shape"]]

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[[Any], Cell]:
        name = node["shared_name"].decode() or node.name
        container, dtype, shape = node["container"].decode(), node["dtype"], static_tuple(node["shape"])

        def make() -> Cell:
            cell = ReferenceCell(name, dtype, shape)
            if 0 in shape:  # what has no elements needs no value
                cell.assign(scatter.blank(xp, shape, dtype.as_numpy_dtype))
            return cell

        def find(ctx: Any) -> Cell:
            cell: Cell = ctx.resources.lookup_or_create(container, name, ReferenceCell, make)
            if cell.dtype is not dtype:
                raise errors.InternalError.of(f"Output 0 of type {dtype.name}_ref is wanted, but {name} is {cell!r}")
            return cell

        return find


def static_tuple(shape: TensorShape) -> tuple[int, ...]:
    """A declared shape as a tuple; what is unknown counts as a scalar until a value is assigned."""
    return tuple(int(d) for d in shape) if shape.is_fully_defined() else ()


@op("""VariableV2() -> (ref: Ref(dtype))
       shape: shape
       dtype: type
       container: string = ''
       shared_name: string = ''""")
class VariableV2(_Variable):
    pass


@op("""Variable() -> (ref: Ref(dtype))
       shape: shape
       dtype: type
       container: string = ''
       shared_name: string = ''""")
class VariableV1(_Variable):
    """The op of TensorFlow before 0.10, whose scalar shape also meant «unknown»."""

    def infer(operation):
        shape = operation.attrs["shape"]
        return [shape if shape.ndims else TensorShape(None)]


def variable_op_v2(
    shape: Any, dtype: Any, name: str = "Variable", container: str = "", shared_name: str = ""
) -> Tensor:
    """The reference of a variable, bare: without initializer and collections."""
    return apply_op("VariableV2", name, shape=shape, dtype=dtype, container=container, shared_name=shared_name)


def variable_op(
    shape: Any, dtype: Any, name: str = "Variable", set_shape: bool = True, container: str = "", shared_name: str = ""
) -> Tensor:
    """The same by TensorFlow's older op; its shape is unknown unless `set_shape`."""
    shape = TensorShape(shape if set_shape else None)
    ref = apply_op("Variable", name, shape=shape, dtype=dtype, container=container, shared_name=shared_name)
    if set_shape:
        ref.set_shape(shape)
    return ref


# -- assignments --------------------------------------------------------------------------------------


@op("""Assign(ref: Ref(T), value: T) -> (output_ref: Ref(T))
       T: type
       validate_shape: bool = true
       use_locking: bool = true""")
class Assign(Op):
    allows_uninitialized_input = True
    flops = free
    bytes = overwritten
    grad = no_gradient

    def infer(operation):
        if operation.get_attr("validate_shape"):
            return shapes.merged(operation)
        return [operation.inputs[1].shape]

    def bind(node, xp):
        if not node["validate_shape"]:
            return _assign

        def assign_same_shape(cell, value):
            old = cell.value
            shape = cell.shape if old is None else old.shape
            if value.shape != shape:
                raise invalid(
                    "Assign requires shapes of both tensors to match. "
                    f"lhs shape= {shape_text(shape)} rhs shape= {shape_text(value.shape)}"
                )
            cell.assign(value)
            return cell

        return assign_same_shape


def _assign(cell: Cell, value: Any) -> Cell:
    cell.assign(value)
    return cell


class _DenseUpdate(Op):
    """`ref = ref op value`, without broadcasting."""

    bytes = staticmethod(updated)
    infer = staticmethod(shapes.merged)
    grad = staticmethod(no_gradient)
    ufunc = ""

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Cell, Any], Cell]:
        ufunc = getattr(xp, cls.ufunc)

        def update(cell: Cell, value: Any) -> Cell:
            def compute(old: Any, out: Any) -> Any:
                if old.shape != value.shape:
                    raise errors.InvalidArgumentError.of("Parameters and update must be the same size")
                return ufunc(old, value, out=out) if out is not None else ufunc(old, value)

            cell.update(compute)
            return cell

        return update


_NUMBER = """
       T: numbertype
       use_locking: bool = false"""


@op("AssignAdd(ref: Ref(T), value: T) -> (output_ref: Ref(T))" + _NUMBER)
class AssignAdd(_DenseUpdate):
    ufunc = "add"


@op("AssignSub(ref: Ref(T), value: T) -> (output_ref: Ref(T))" + _NUMBER)
class AssignSub(_DenseUpdate):
    ufunc = "subtract"


@op("""IsVariableInitialized(ref: Ref(dtype)) -> (is_initialized: bool)
       dtype: type""")
class IsVariableInitialized(Op):
    allows_uninitialized_input = True
    infer = shapes.scalar
    flops = bytes = free

    def bind(node, xp):
        return lambda cell: np.bool_(cell.initialized)


@op("""CountUpTo(ref: Ref(T)) -> (output: T)
       limit: int
       T: {int32, int64}""")
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


# -- scatters -----------------------------------------------------------------------------------------


def _scatter_shape(operation: Any) -> list[TensorShape]:
    ref, indices, updates = (t.shape for t in operation.inputs)
    scatter.check_static(ref, indices, updates)
    return [ref]


class _Scatter(Op):
    infer = staticmethod(_scatter_shape)
    bytes = staticmethod(updated)
    how = ""

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Cell, Any, Any], Cell]:
        write = scatter.writer(cls.how, xp)

        def update(cell: Cell, indices: Any, updates: Any) -> Cell:
            cell.update(lambda old, out: write(old, out, indices, updates))
            return cell

        return update

    @staticmethod
    def flops(node: Any, ins: Any, outs: Any) -> int:
        return elements(ins[2])


_SCATTER = "(ref: Ref(T), indices: Tindices, updates: T) -> (output_ref: Ref(T))"
_INDICES = """
       Tindices: {int32, int64}
       use_locking: bool = """


@op(f"""ScatterUpdate{_SCATTER}
       T: type{_INDICES}true""")
class ScatterUpdate(_Scatter):
    how = "update"
    bytes = overwritten


@op(f"""ScatterAdd{_SCATTER}
       T: numbertype{_INDICES}false""")
class ScatterAdd(_Scatter):
    how = "add"
    grad = no_gradient


@op(f"""ScatterSub{_SCATTER}
       T: numbertype{_INDICES}false""")
class ScatterSub(_Scatter):
    how = "sub"
    grad = no_gradient


@op(f"""ScatterMul{_SCATTER}
       T: numbertype{_INDICES}false""")
class ScatterMul(_Scatter):
    how = "mul"
    grad = no_gradient


@op(f"""ScatterDiv{_SCATTER}
       T: numbertype{_INDICES}false""")
class ScatterDiv(_Scatter):
    how = "div"
    grad = no_gradient


@op(f"""ScatterMin{_SCATTER}
       T: {{half, bfloat16, float, double, int32, int64}}{_INDICES}false""")
class ScatterMin(_Scatter):
    how = "min"


@op(f"""ScatterMax{_SCATTER}
       T: {{half, bfloat16, float, double, int32, int64}}{_INDICES}false""")
class ScatterMax(_Scatter):
    how = "max"


# -- functions ----------------------------------------------------------------------------------------


def is_ref(variable: Any) -> bool:
    """True for a reference variable or a tensor that is a reference."""
    return bool(variable.dtype._is_ref_dtype)


def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Any:
    """Give a variable a new value; the result holds that value once it is assigned."""
    if is_ref(ref):
        return apply_op("Assign", name, ref=ref, value=value, validate_shape=validate_shape, use_locking=use_locking)
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Add `value`, of the same shape, to a variable; the result holds the sum."""
    if is_ref(ref):
        return apply_op("AssignAdd", name, ref=ref, value=value, use_locking=use_locking)
    return ref.assign_add(value)


def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtract `value`, of the same shape, from a variable; the result holds the difference."""
    if is_ref(ref):
        return apply_op("AssignSub", name, ref=ref, value=value, use_locking=use_locking)
    return ref.assign_sub(value)


def is_variable_initialized(variable: Any, name: str | None = None) -> Tensor:
    """A bool scalar: whether the variable has a value."""
    if is_ref(variable):
        return apply_op("IsVariableInitialized", name, ref=variable)
    return variable.is_initialized(name=name)


def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """The variable's value before adding 1 to it; OutOfRangeError once it has reached `limit`."""
    if is_ref(ref):
        return apply_op("CountUpTo", name, ref=ref, limit=limit)
    return apply_op("ResourceCountUpTo", name, resource=ref.handle, limit=limit, T=ref.dtype)


def _scatter(how: str, default_locking: bool) -> Callable[..., Any]:
    def function(
        ref: Any, indices: Any, updates: Any, use_locking: bool = default_locking, name: str | None = None
    ) -> Any:
        if is_ref(ref):
            return apply_op(f"Scatter{how}", name, ref=ref, indices=indices, updates=updates, use_locking=use_locking)
        updates = convert_to_tensor(updates, ref.dtype)
        done = apply_op(f"ResourceScatter{how}", name, resource=ref.handle, indices=indices, updates=updates)
        return ref._lazy_read(done)

    function.__name__ = f"scatter_{how.lower()}"
    function.__doc__ = f"Update ({how.lower()}) the rows `indices` of a variable by `updates`."
    return function


scatter_update = _scatter("Update", True)
scatter_add = _scatter("Add", False)
scatter_sub = _scatter("Sub", False)
scatter_mul = _scatter("Mul", False)
scatter_div = _scatter("Div", False)
scatter_min = _scatter("Min", False)
scatter_max = _scatter("Max", False)

SCATTERS = (
    scatter_update, scatter_add, scatter_sub, scatter_mul, scatter_div, scatter_min, scatter_max,
)  # fmt: skip
