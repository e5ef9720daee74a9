"""Parts of variables: the Scatter and ScatterNd families, assignments to slices, gathers; for both kinds of variables.

Stands for `scatter_op.cc`, `scatter_nd_op.cc`, StridedSliceAssign of `strided_slice_op.cc` and the gathers of
`resource_variable_ops.cc` in `core/kernels`, with their gradients. Left out: scatters on string variables other than
ScatterUpdate.

Rule: Scatter writes whole rows, named by an index each. ScatterNd writes slices: the last axis of `indices` is a
position, and what stands there may be a slice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes, op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.node import Node
from dtflab.graph.op_registry import no_gradient, op
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import scatter, shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import StatefulOp, of_part, overwritten, updated
from dtflab.ops.handles import variable_of
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.strides import MASK_ATTRS, numpy_index
from dtflab.ops.variables.reference_ops import Change, ReferenceUpdate
from dtflab.ops.variables.resource_ops import ResourceUpdate


def _declared_shape(handle: Any) -> TensorShape:
    """The static shape of the variable that a handle names."""
    known = declared(handle)
    return TensorShape(None) if known is None else known[0]


# -- scatters: one op for each way of writing, for rows and for slices, through references and handles ------------

_UNDIFFERENTIABLE = "ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterNdUpdate ScatterNdAdd ScatterNdSub".split()
_ROWS = scatter.rows, scatter.check_static_rows
_SLICES = scatter.positions(scatter.check_variable), scatter.check_static_slices


def _register(interface: str, way: str, places: scatter.Places, fits: Callable[..., None]) -> None:
    """The op of that interface: it writes `updates` where `places` says, if the static shapes fit."""
    op_type = interface.partition("(")[0]
    base: type[ReferenceUpdate] = ResourceUpdate if op_type.startswith("Resource") else ReferenceUpdate

    def infer(operation: Any) -> list[TensorShape]:
        ref, indices, updates = operation.inputs
        fits(_declared_shape(ref) if base is ResourceUpdate else ref.shape, indices.shape, updates.shape)
        return [ref.shape] * len(operation.outputs)

    def change(node: Node, xp: Any) -> Change:
        return scatter.writer(way.lower(), xp, places)

    members = {
        "infer": infer,
        "change": staticmethod(change),
        "bytes": overwritten if way == "Update" else updated,
        "grad": no_gradient if op_type in _UNDIFFERENTIABLE else None,
    }
    op(interface)(type(op_type, (base,), members))


for _way in "Update Add Sub Mul Div Min Max".split():
    _locking = "true" if _way == "Update" else "false"
    _numbers = "type" if _way == "Update" else "numbertype"
    _ordered = "{half, bfloat16, float, double, int32, int64}" if _way in ("Min", "Max") else _numbers
    _rows = f"""Scatter{_way}(ref: Ref(T), indices: Tindices, updates: T) -> (output_ref: Ref(T))
        T: {_ordered}
        Tindices: {{int32, int64}}, use_locking: bool = {_locking}"""
    _rows_by_handle = f"""ResourceScatter{_way}(resource: resource, indices: Tindices, updates: dtype) -> ()
        dtype: {_numbers}
        Tindices: {{int32, int64}}"""
    _slices = f"""ScatterNd{_way}(ref: Ref(T), indices: Tindices, updates: T) -> (output_ref: Ref(T))
        T: {_numbers}
        Tindices: {{int32, int64}}, use_locking: bool = {_locking}
        bad_indices_policy: string = ''"""
    _slices_by_handle = f"""ResourceScatterNd{_way}(ref: resource, indices: Tindices, updates: T) -> ()
        T: type, Tindices: {{int32, int64}}, use_locking: bool = true, bad_indices_policy: string = ''"""
    for _interface in (_rows, _rows_by_handle):
        _register(_interface, _way, *_ROWS)
    for _interface in (_slices, _slices_by_handle) if _way not in ("Mul", "Div") else ():
        _register(_interface, _way, *_SLICES)


# -- assignments to slices: what `v[1:3].assign(x)` adds to the graph ---------------------------------------------


def _slice_writer(node: Node, xp: Any) -> Change:
    attrs = node.attrs

    def change(old: Any, out: Any, begin: Any, end: Any, strides: Any, value: Any) -> Any:
        new = old.copy() if out is None else out
        try:
            index = numpy_index(attrs, begin.tolist(), end.tolist(), strides.tolist(), new.shape)
        except ValueError as error:
            raise invalid(str(error)) from None
        _check_broadcast(np.shape(value), np.shape(old[index]))
        new[index] = value
        return new

    return change


def _check_broadcast(given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    try:
        fits = np.broadcast_shapes(given, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise invalid(f"Cannot broadcast input shape {shape_text(given)} into final shape {shape_text(wanted)}")


_SLICE = f"""
        T: type
        Index: {{int32, int64}}
        {MASK_ATTRS}"""


@op(
    "StridedSliceAssign(ref: Ref(T), begin: Index, end: Index, strides: Index, value: T) -> (output_ref: Ref(T))"
    + _SLICE
)
class StridedSliceAssign(ReferenceUpdate):
    """ref[begin:end:strides] = value"""

    bytes = overwritten
    infer = shapes.unchanged
    change = staticmethod(_slice_writer)


@op("ResourceStridedSliceAssign(ref: resource, begin: Index, end: Index, strides: Index, value: T) -> ()" + _SLICE)
class ResourceStridedSliceAssign(ResourceUpdate):
    """As StridedSliceAssign, for the variable behind a handle."""

    bytes = overwritten
    infer = shapes.none
    change = staticmethod(_slice_writer)


# -- gathers ------------------------------------------------------------------------------------------------------


def _variable_shape(handle: Any, out_type: Any = dtypes.int32) -> Any:
    """The shape of the variable behind a handle: a constant where it is known now."""
    known = _declared_shape(handle)
    if known.is_fully_defined():
        return constant(known.as_list(), out_type)
    return apply_op("VariableShape", input=handle, out_type=out_type)


@op("""ResourceGather(resource: resource, indices: Tindices) -> (output: dtype)
       batch_dims: int = 0, validate_indices: bool = true, dtype: type, Tindices: {int32, int64}""")
class ResourceGather(StatefulOp):
    """The rows of a variable at indices, read where it lives."""

    bytes = of_part

    def infer(operation):
        known, indices = _declared_shape(operation.inputs[0]), operation.inputs[1].shape
        if known.ndims is None or indices.ndims is None:
            return [TensorShape(None)]
        params, batch = known.with_rank_at_least(1), operation.get_attr("batch_dims")
        return [params[:batch].concatenate(indices[batch:]).concatenate(params[batch + 1 :])]

    def kernel(node, xp, ctx, handle, indices):
        batch = node["batch_dims"]
        params = variable_of(ctx, handle).read()
        scatter.check_range(indices, params.shape[batch])
        if batch == 0:
            return xp.take(params, indices, axis=0)
        rows = np.ogrid[tuple(slice(n) for n in params.shape[:batch])]
        places = [r.reshape(r.shape + (1,) * (indices.ndim - batch)) for r in rows]
        return params[(*places, indices)]

    def grad(operation, dy):
        """Rows of the variable, as many as there are indices."""
        handle, indices = operation.inputs
        params_shape = _variable_shape(handle)
        count = arrays.expand_dims(arrays.size(indices), 0)
        values = arrays.reshape(dy, arrays.concat([count, params_shape[1:]], 0))
        return [IndexedSlices(values, arrays.reshape(indices, count), params_shape), None]


@op("""ResourceGatherNd(resource: resource, indices: Tindices) -> (output: dtype)
       dtype: type, Tindices: {int32, int64}""")
class ResourceGatherNd(StatefulOp):
    """The slices of a variable at positions, read where it lives."""

    bytes = of_part

    def infer(operation):
        known, indices = declared(operation.inputs[0]), operation.inputs[1].shape
        if known is None or indices.ndims is None or indices[-1].value is None:
            return [TensorShape(None)]
        return [indices[:-1].concatenate(known[0][indices[-1].value :])]

    def bind(node, xp):
        gather = op_registry.get("GatherNd").bind(node.replace(attrs={"Tparams": node["dtype"]}), xp)
        return lambda ctx, handle, indices: gather(variable_of(ctx, handle).read(), indices)

    def grad(operation, dy):
        handle, indices = operation.inputs
        shape = _variable_shape(handle, indices.dtype)
        if indices.shape.ndims == 2 and indices.shape[-1].value == 1:
            return [IndexedSlices(dy, arrays.squeeze(indices, axis=-1), shape), None]
        return [indexing.scatter_nd(indices, dy, shape), None]
