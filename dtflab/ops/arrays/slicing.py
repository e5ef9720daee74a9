"""Parts of arrays: slice, strided slice, and `tensor[…]`.

Stands for `core/kernels/slice_op.cc`, `strided_slice_op.cc`, `core/util/strided_slice_op.cc` and
`python/ops/tensor_getitem_override.py`. What assigns to slices of variables is in `slice_assign.py`.

Rule: a StridedSlice is NumPy's basic indexing in other words; one function turns its masks into that index,
for the shape rule, the kernel and the gradient alike.
"""

from __future__ import annotations

import builtins
import numbers
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value, folded_shape, folded_value
from dtflab.graph.tensor_shape import Dimension, TensorShape
from dtflab.ops.arrays import casting, constant as constants, identity as array, joining, repeating, reshaping, stacking
from dtflab.ops.costs import free, of_part
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import segments
from dtflab.ops.variables.scatter import blank


@op("""Slice(input: T, begin: Index, size: Index) -> (output: T)
       T: type
       Index: {int32, int64}""")
class Slice(Op):
    """`size[i]` elements from `begin[i]` on, along each axis i; a size of -1 is all that are left."""

    aliasing = True

    def infer(op):
        shape, begin, sizes = (
            op.inputs[0].shape,
            folded_value(op.inputs[1]),
            folded_shape(op.inputs[2]),
        )
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
                raise ValueError(
                    f"Expected begin[{axis}] in [0, {dim}] and size within it, but got {first}, size {size}"
                )
            result.append(size)
        return [TensorShape(result)]

    def bind(node, xp):
        def kernel(x, begin, size):
            begin, size = begin.tolist(), size.tolist()
            if not len(begin) == len(size) == x.ndim:
                raise invalid(
                    f"Expected begin and size arguments to be 1-D tensors of size {x.ndim}, "
                    f"but got shapes [{len(begin)}] and [{len(size)}] instead."
                )
            cut = []
            for axis, (b, s, dim) in enumerate(zip(begin, size, x.shape)):
                if not 0 <= b <= dim:
                    raise invalid(f"Expected begin[{axis}] in [0, {dim}], but got {b}")
                if not -1 <= s <= dim - b:
                    raise invalid(f"Expected size[{axis}] in [0, {dim - b}], but got {s}")
                cut.append(builtins.slice(b, None if s == -1 else b + s))
            return x[tuple(cut)]

        return kernel

    flops = free
    bytes = of_part

    def grad(op, dy):
        x, begin = op.inputs[:2]
        rank = array.rank(x)
        size = array.shape(op.outputs[0], out_type=begin.dtype)
        column = stacking.stack([rank, 1])
        before = reshaping.reshape(begin, column)
        after = reshaping.reshape(array.shape(x, out_type=begin.dtype) - size - begin, column)
        return [repeating.pad(dy, joining.concat([before, after], 1)), None, None]


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """`size[i]` elements from `begin[i]` on, along each axis i; a size of -1 is all that are left."""
    return apply_op("Slice", name, input=input_, begin=begin, size=size)


# -- strided slices ----------------------------------------------------------------------------------------

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
MASK_ATTRS = "\n".join(f"{mask}: int = 0" for mask in _MASKS)


_UNKNOWN = object()  # in an index: a slice whose bounds the graph alone does not tell


def numpy_index(attrs: Any, begin: Any, end: Any, strides: Any, shape: Any) -> tuple[Any, ...]:
    """The masks and bounds as NumPy's index; a bound may be None, and so may sizes in `shape`.

    ValueError for a single index outside `shape`, or too many of them.
    """
    begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_mask = (attrs[m] for m in _MASKS)
    if ellipsis_mask & (ellipsis_mask - 1):
        raise ValueError("Multiple ellipses in slice spec not allowed")
    not_axes = ellipsis_mask | new_axis_mask
    count = sum(not not_axes >> i & 1 for i in range(len(begin)))  # axes of the input that the entries stand for
    if count > len(shape):
        raise ValueError(f"Index out of range using input dim {len(shape)}; input has only {len(shape)} dims")
    index: list[Any] = []
    axis = 0
    for i, (b, e, s) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.append(Ellipsis)
            axis += len(shape) - count
            continue
        if new_axis_mask & bit:
            index.append(None)
            continue
        if s == 0:
            raise ValueError(f"strides[{i}] must be non-zero")
        if shrink_mask & bit:
            index.append(_single(b, s, axis, shape[axis]))
        else:
            b, e = _UNKNOWN if b is None else b, _UNKNOWN if e is None else e
            index.append(_range(None if begin_mask & bit else b, None if end_mask & bit else e, s))
        axis += 1
    return tuple(index) if ellipsis_mask else (*index, Ellipsis)


def _single(begin: int | None, stride: int | None, axis: int, size: int | None) -> int:
    if stride is not None and stride < 0:
        raise ValueError("only stride 1 allowed on non-range indexing.")
    if begin is not None and size is not None and not -size <= begin < size:
        raise ValueError(f"slice index {begin} of dimension {axis} out of bounds.")
    return begin or 0


def _range(begin: Any, end: Any, stride: int | None) -> Any:
    return _UNKNOWN if _UNKNOWN in (begin, end) or stride is None else builtins.slice(begin, end, stride)


def _slice_shape(shape: TensorShape, index: tuple[Any, ...]) -> TensorShape:
    """The static shape of x[index] for an x of static shape `shape`."""
    dims = shape.as_list()
    hidden = len(dims) - sum(part is not None and part is not Ellipsis for part in index)
    result: list[int | None] = []
    for part in index:
        if part is None:
            result.append(1)
        elif part is Ellipsis:
            result += dims[:hidden]
            dims = dims[hidden:]
        else:
            size = dims.pop(0)
            if not isinstance(part, int):
                result.append(_slice_size(size, part))
    return TensorShape(result)


def _slice_size(size: int | None, part: Any) -> int | None:
    if part is _UNKNOWN:
        return None
    if size is not None:
        return len(range(*part.indices(size)))
    start, stop = part.start, part.stop
    if start is not None and stop is not None and (start < 0) == (stop < 0) and (stop - start) * part.step <= 0:
        return 0
    return None


@op(f"""StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> (output: T)
        T: type
        Index: {{int16, int32, int64}}
        {MASK_ATTRS}""")
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
        shape: Any = array.shape(x, out_type=op.inputs[1].dtype)
        static = constant_value(shape)
        masks = {mask: op.get_attr(mask) for mask in _MASKS}
        begin, end, strides = bounds
        dx = apply_op(
            "StridedSliceGrad",
            shape=shape if static is None else static,
            begin=begin,
            end=end,
            strides=strides,
            dy=dy,
            **masks,
        )
        return [dx, None, None, None]


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """input_[begin:end:strides]; bit i of a mask says that it holds for entry i of the bounds.

    A slice of the variable `var` has a method `assign(value)`, which writes that part of the variable.
    """
    if strides is None:
        strides = constants.ones_like(begin)
    where = {
        "begin": begin, "end": end, "strides": strides, "begin_mask": begin_mask, "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask, "new_axis_mask": new_axis_mask, "shrink_axis_mask": shrink_axis_mask,
    }  # fmt: skip
    result: Tensor = apply_op("StridedSlice", name, input=input_, **where)
    if var is not None:
        default = f"{name}_assign"
        result.assign = lambda value, name=None: var._strided_slice_assign(value, name or default, where)
    return result


@op(f"""StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index, dy: T) -> (output: T)
        T: type
        Index: {{int32, int64}}
        {MASK_ATTRS}""")
class StridedSliceGrad(Op):
    """Zeros of the given shape, with dy where a strided slice was taken."""

    def infer(op):
        return [folded_shape(op.inputs[0])]

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
        masks = {mask: op.get_attr(mask) for mask in _MASKS}
        return [None, None, None, None, strided_slice(ddx, begin, end, strides, **masks)]


# -- tensor[…] ---------------------------------------------------------------------------------------------

_INDEX_DTYPES = (dtypes.int16, dtypes.int32, dtypes.int64)
_INDEX_ERROR = (
    "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors "
    "are valid indices"
)


def _check_index(index: Any) -> None:
    if isinstance(index, numbers.Integral | Dimension):
        return
    dtype = getattr(index, "dtype", None)
    ok = dtype is not None and dtypes.as_dtype(dtype).base_dtype in _INDEX_DTYPES
    if not ok or (index.shape and len(index.shape) == 1):
        raise TypeError(f"{_INDEX_ERROR}, got {index!r}")


def getitem(tensor: Any, key: Any, var: Any = None) -> Tensor:
    """`tensor[key]`: ints, slices, `...`, `tf.newaxis`, scalar tensors, or one boolean mask."""
    tensor = convert_to_tensor(tensor)
    if isinstance(key, bool) or (isinstance(key, Tensor | np.ndarray) and key.dtype == np.bool_):
        return segments.boolean_mask(tensor, key)
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks: dict[str, Any] = dict.fromkeys(_MASKS, 0)
    for i, part in enumerate(key if isinstance(key, list | tuple) else [key]):
        bounds, where = _bounds(part)
        for mask in where:
            masks[mask] |= 1 << i
        for bound, values in zip(bounds, (begin, end, strides)):
            values.append(bound)
    with name_scope(None, "strided_slice", [tensor, *begin, *end, *strides]) as scope:
        if not begin:
            empty = constant([], dtypes.int32)
            return strided_slice(tensor, empty, empty, empty, var=var, name=scope, **masks)
        packed = [stacking.stack(values) for values in (begin, end, strides)]
        if any(p.dtype == dtypes.int64 for p in packed):
            packed = [p if p.dtype == dtypes.int64 else casting.cast(p, dtypes.int64) for p in packed]
        first, last, step = packed
        return strided_slice(tensor, first, last, step, var=var, name=scope, **masks)


def _bounds(part: Any) -> tuple[tuple[Any, Any, Any], list[str]]:
    """One entry of a key as (begin, end, stride), and the masks that it sets."""
    if isinstance(part, builtins.slice):
        return _slice_bounds(part)
    if part is Ellipsis:
        return (0, 0, 1), ["ellipsis_mask"]
    if part is None:
        return (0, 0, 1), ["new_axis_mask"]
    _check_index(part)
    stride: Any = 1
    end = part + 1
    if isinstance(part, Tensor) and part.dtype.base_dtype in (dtypes.int16, dtypes.int64):
        stride = constant(1, part.dtype.base_dtype)
    return (part, end, stride), ["shrink_axis_mask"]


def _slice_bounds(part: builtins.slice) -> tuple[tuple[Any, Any, Any], list[str]]:
    dtype = None  # of the tensors among the bounds: then what is left out has it too
    for bound in (part.start, part.stop, part.step):
        if isinstance(bound, Tensor) and bound.dtype.base_dtype in _INDEX_DTYPES:
            base = bound.dtype.base_dtype
            dtype = base if dtype is None or base.size > dtype.size else dtype
    masks = []
    bounds = []
    for bound, mask, missing in (
        (part.start, "begin_mask", 0), (part.stop, "end_mask", 0), (part.step, "", 1),
    ):  # fmt: skip
        if bound is not None and not (isinstance(bound, Dimension) and bound.value is None):
            _check_index(bound)
            bounds.append(bound)
            continue
        bounds.append(missing if dtype is None else constant(missing, dtype))
        if mask:
            masks.append(mask)
    return (bounds[0], bounds[1], bounds[2]), masks


Tensor.override_operator("__getitem__", getitem)
