"""Parts of arrays: slice, strided slice, and `tensor[…]`.

Stands for `core/kernels/slice_op.cc`, `strided_slice_op.cc`, `core/util/strided_slice_op.cc` and
`python/ops/tensor_getitem_override.py`. Assigning to slices of variables is in `scatter_ops.py`.

Rule: a StridedSlice is NumPy's basic indexing in other words; one function turns its masks into that index,
for the shape rule, the kernel and the gradient alike.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.static_value import constant_value, folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import free, of_part
from dtflab.ops.indexing.functions import strided_slice
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.scatter import blank
from dtflab.ops.strides import MASK_ATTRS, MASKS, _slice_shape, numpy_index


@op("Slice(input: T, begin: Index, size: Index) -> (output: T) where T: type, Index: {int32, int64}")
class Slice(Op):
    """`size[i]` elements from `begin[i]` on, along each axis i; a size of -1 is all that are left."""

    aliasing = True

    def infer(op):
        shape, begin, sizes = (op.inputs[0].shape, folded_value(op.inputs[1]), folded_shape(op.inputs[2]))
        ndims = shape.ndims if shape.ndims is not None else sizes.ndims
        if ndims is None:
            ndims = op.inputs[1].shape.with_rank(1)[0].value
        if ndims is None:
            return [TensorShape(None)]
        dims, sizes = shape.with_rank(ndims).as_list(), sizes.with_rank(ndims).as_list()
        static = folded_value(op.inputs[2])
        result = []
        for axis, (dim, size) in enumerate(zip(dims, sizes)):
            first = None if begin is None else int(begin[axis])
            if size is None and static is not None and dim is not None and first is not None:
                size = dim - first
            if None not in (dim, first, size) and not 0 <= first <= first + size <= dim:
                text = f"but got {first}, size {size}"
                raise ValueError(f"Expected begin[{axis}] in [0, {dim}] and size within it, {text}")
            result.append(size)
        return [TensorShape(result)]

    def kernel(node, xp, x, begin, size):
        begin, size = begin.tolist(), size.tolist()
        if not len(begin) == len(size) == x.ndim:
            text = f"but got shapes [{len(begin)}] and [{len(size)}] instead."
            raise invalid(f"Expected begin and size arguments to be 1-D tensors of size {x.ndim}, {text}")
        cut = []
        for axis, (b, s, dim) in enumerate(zip(begin, size, x.shape)):
            if not 0 <= b <= dim:
                raise invalid(f"Expected begin[{axis}] in [0, {dim}], but got {b}")
            if not -1 <= s <= dim - b:
                raise invalid(f"Expected size[{axis}] in [0, {dim - b}], but got {s}")
            cut.append(builtins.slice(b, None if s == -1 else b + s))
        return x[tuple(cut)]

    flops = free
    bytes = of_part

    def grad(op, dy):
        x, begin = op.inputs[:2]
        rank = arrays.rank(x)
        size = arrays.shape(op.outputs[0], out_type=begin.dtype)
        column = arrays.stack([rank, 1])
        before = arrays.reshape(begin, column)
        after = arrays.reshape(arrays.shape(x, out_type=begin.dtype) - size - begin, column)
        return [arrays.pad(dy, arrays.concat([before, after], 1)), None, None]


# -- strided slices ----------------------------------------------------------------------------------------


@op(f"""StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> (output: T)
        T: type, Index: {{int16, int32, int64}}, {MASK_ATTRS}""")
class StridedSlice(Op):
    """x[begin:end:strides], with masks for what a bound alone can't say."""

    aliasing = True

    def infer(op):
        x = op.inputs[0].shape
        for tensor in op.inputs[1:]:
            tensor.shape.assert_has_rank(1)
        count = next((n for t in op.inputs[1:] if (n := t.shape.with_rank(1)[0].value) is not None), None)
        if x.ndims is None or count is None:
            return [TensorShape(None)]
        values = [folded_value(t) for t in op.inputs[1:]]
        bounds = ([None] * count if v is None else v.tolist() for v in values)
        return [_slice_shape(x, numpy_index(op.attrs, *bounds, x.as_list()))]

    def bind(node, xp):
        attrs = node.attrs

        def kernel(x, begin, end, strides):
            try:
                return x[numpy_index(attrs, begin.tolist(), end.tolist(), strides.tolist(), np.shape(x))]
            except ValueError as error:
                raise invalid(str(error)) from None

        return kernel

    flops = free
    bytes = of_part

    def grad(op, dy):
        x, *bounds = op.inputs
        bounds = [b if (v := constant_value(b)) is None else v for b in bounds]
        shape: Any = arrays.shape(x, out_type=op.inputs[1].dtype)
        static = constant_value(shape)
        masks = {mask: op.get_attr(mask) for mask in MASKS}
        given = dict(zip(("begin", "end", "strides"), bounds), shape=shape if static is None else static)
        return [apply_op("StridedSliceGrad", **given, dy=dy, **masks), None, None, None]


@op(f"""StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index, dy: T) -> (output: T)
        T: type, Index: {{int32, int64}}, {MASK_ATTRS}""")
class StridedSliceGrad(Op):
    """Zeros of the given shape, with dy where a strided slice was taken."""

    infer = shapes.given(0)

    def bind(node, xp):
        attrs, dtype = node.attrs, node["T"].as_numpy_dtype

        def kernel(shape, begin, end, strides, dy):
            out = blank(xp, shape.tolist(), dtype)
            try:
                out[numpy_index(attrs, begin.tolist(), end.tolist(), strides.tolist(), out.shape)] = dy
            except ValueError as error:
                raise invalid(f"{error} (dy has shape {shape_text(dy)})") from None
            return out

        return kernel

    flops = free

    def grad(op, ddx):
        begin, end, strides = op.inputs[1:4]
        masks = {mask: op.get_attr(mask) for mask in MASKS}
        return [None, None, None, None, strided_slice(ddx, begin, end, strides, **masks)]
