"""Assignments to slices of variables: what `v[1:3].assign(x)` adds to the graph.

Stands for StridedSliceAssign and ResourceStridedSliceAssign in `core/kernels/strided_slice_op.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, elements, op
from dtflab.ops.arrays.slicing import MASK_ATTRS, numpy_index
from dtflab.ops.costs import overwritten
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.variables.handle_ops import find


def _writer(node: Any) -> Callable[..., None]:
    attrs = node.attrs

    def write(cell: Any, begin: Any, end: Any, strides: Any, value: Any) -> None:
        def compute(old: Any, out: Any) -> Any:
            new = old.copy() if out is None else out
            try:
                index = numpy_index(attrs, begin.tolist(), end.tolist(), strides.tolist(), new.shape)
            except ValueError as error:
                raise invalid(str(error)) from None
            _check(np.shape(value), np.shape(old[index]))
            new[index] = value
            return new

        cell.update(compute)

    return write


def _check(given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    try:
        fits = np.broadcast_shapes(given, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise invalid(f"Cannot broadcast input shape {shape_text(given)} into final shape {shape_text(wanted)}")


_ATTRS = f"""
        T: type
        Index: {{int32, int64}}
        {MASK_ATTRS}"""


@op(
    "StridedSliceAssign(ref: Ref(T), begin: Index, end: Index, strides: Index, value: T) -> (output_ref: Ref(T))"
    + _ATTRS
)
class StridedSliceAssign(Op):
    """ref[begin:end:strides] = value"""

    def infer(op):
        return [op.inputs[0].shape]

    def bind(node, xp):
        write = _writer(node)

        def kernel(cell, *where_and_value):
            write(cell, *where_and_value)
            return cell

        return kernel

    bytes = overwritten

    def flops(node, ins, outs):
        return elements(ins[4])


@op("ResourceStridedSliceAssign(ref: resource, begin: Index, end: Index, strides: Index, value: T) -> ()" + _ATTRS)
class ResourceStridedSliceAssign(Op):
    """The same for the variable behind a handle."""

    stateful = True
    needs_ctx = True

    def infer(op):
        return []

    def bind(node, xp):
        write = _writer(node)
        return lambda ctx, handle, *where_and_value: write(find(ctx, handle), *where_and_value)

    bytes = overwritten

    def flops(node, ins, outs):
        return elements(ins[4])
