"""Functions that make arrays, and give the elements of arrays another shape, order or dtype.

Stand for their parts of `python/ops/array_ops.py`, `array_ops_stack.py` and `math_ops.py`.

Rule: what is known when the graph is built becomes a constant instead of an op, as in TensorFlow.
"""

from __future__ import annotations

import builtins
import numbers
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.base.naming import Function, named
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor, register_tensor_conversion_function
from dtflab.graph.indexed_slices import IndexedSlices, dense
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import Dimension, TensorShape, broadcast_shape
from dtflab.ops.messages import renamed
from dtflab.ops.sparse.sparse_tensor import SparseTensor, is_sparse


def described(function: Function, op_name: str, summary: str) -> Function:
    """The function of an op, named as in `squared_difference` for SquaredDifference, with a docstring."""
    return named(function, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op_name).lower(), summary)


# -- what is written in the graph or fed into it ----------------------------------------------------------


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that must be fed by every `session.run` that needs it."""
    return apply_op("Placeholder", name, dtype=dtype, shape=shape)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that has the value of `input` where it is not fed."""
    return apply_op("PlaceholderWithDefault", name, input=input, shape=TensorShape(shape))


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` filled with the scalar `value`."""
    return apply_op("Fill", name, dims=dims, value=value)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """All zeros, False or empty strings."""
    return _filled("zeros", shape, dtypes.as_dtype(dtype).base_dtype, name)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """All ones, or True."""
    return _filled("ones", shape, dtypes.as_dtype(dtype).base_dtype, name)


def _filled(what: str, shape: Any, dtype: dtypes.DType, name: str | None) -> Tensor:
    value: Any = 0 if what == "zeros" else 1
    if dtype == dtypes.bool:
        value = bool(value)
    elif dtype == dtypes.string:
        value = ""
    with name_scope(name, what, [shape]) as scope:
        if not isinstance(shape, Tensor):
            try:
                if np.prod(shape) < 1000 and np.ndim(shape):
                    return constant(value, dtype, shape, name=scope)
            except (TypeError, NotImplementedError):
                pass  # a tensor, or a size that is not known, is among the sizes
            shape = _shape_tensor(shape)
        if not shape.shape.ndims:
            shape = reshape(shape, [-1])
        return fill(shape, constant(value, dtype), name=scope)


def _shape_tensor(shape: Any) -> Tensor:
    try:
        return convert_to_tensor(TensorShape(shape))
    except (TypeError, ValueError):
        return convert_to_tensor(shape, dtypes.int32)


def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Zeros in the shape, and unless told otherwise the dtype, of `tensor`."""
    with name_scope(name, "zeros_like", [tensor]) as scope:
        if not isinstance(tensor, Tensor):
            tensor = convert_to_tensor(tensor, name="tensor")
        dtype = tensor.dtype if dtype is None else dtypes.as_dtype(dtype)
        if optimize and tensor.shape.is_fully_defined() and tensor.dtype != dtypes.variant:
            return zeros(tensor.shape, dtype, name=scope)
        if dtype != tensor.dtype and dtype != dtypes.variant:
            return zeros(shape_internal(tensor, optimize=optimize), dtype, name=scope)
        return apply_op("ZerosLike", scope, x=tensor)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones in the shape, and unless told otherwise the dtype, of `tensor`."""
    with name_scope(name, "ones_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        shape = shape_internal(tensor, optimize=optimize)
        result = ones(shape, tensor.dtype if dtype is None else dtype, name=scope)
        result.set_shape(tensor.shape)
        return result


_RANGE_TYPES = [dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """The numbers from `start` (or 0) up to `limit`, which is excluded, in steps of `delta`."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        given = {"start": start, "limit": limit, "delta": delta}
        for what, x in given.items():
            given[what] = x if isinstance(x, Tensor) else convert_to_tensor(x, dtype, name=what)
        if dtype is None:
            dtype = max((t.dtype.base_dtype for t in given.values()), key=_RANGE_TYPES.index)
        return apply_op("Range", scope, **{what: cast(t, dtype) for what, t in given.items()})


def _convert_range(value: builtins.range, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Tensor:
    return range(value.start, value.stop, value.step, dtype=dtype, name=name or "range")


register_tensor_conversion_function(builtins.range, _convert_range)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` numbers from `start` to `stop` in equal steps, along a new axis where these are arrays."""
    with name_scope(name, "linspace", [start, stop]):
        start = convert_to_tensor(start, name="start")
        stop = convert_to_tensor(stop, start.dtype, name="stop")
        count = convert_to_int_tensor(num, name="num")
        cast(count, start.dtype)  # TensorFlow makes this node and does not use it
        common = broadcast_dynamic_shape(shape(start), shape(stop))
        first, last = broadcast_to(start, common), broadcast_to(stop, common)
        first, last = expand_dims(first, axis), expand_dims(last, axis)
        sizes = shape(first)
        ndims = shape(sizes)[0]
        where_axis = _select(axis >= 0, axis, ndims + axis)
        fill_count = apply_op("Maximum", x=count - 2, y=0)
        steps = apply_op("Maximum", x=count - 1, y=1)
        delta = (last - first) / cast(steps, last.dtype)
        first, last = cast(first, delta.dtype), cast(last, delta.dtype)
        end = _select(count >= 0, steps, -1)
        inner = cast(range(1, end, dtype=dtypes.int64), delta.dtype)
        inner_shape = _select(apply_op("Equal", x=where_axis, y=range(ndims)), fill_count, 1)
        inner = first + delta * reshape(inner, inner_shape)
        joined = concat((first, inner, last), axis=where_axis)
        begin = zeros_like(sizes)
        whole = (sizes[0:where_axis], reshape(count, [1]), sizes[where_axis + 1 :])
        return apply_op("Slice", input=joined, begin=begin, size=concat(whole, axis=0))


def _select(condition: Any, x: Any, y: Any) -> Any:
    return apply_op("SelectV2", condition=condition, t=x, e=y)


# -- passing on, and shapes ------------------------------------------------------------------------------


def identity(input: Any, name: str | None = None) -> Any:
    """A new tensor (or IndexedSlices, SparseTensor) with the value of `input`."""
    if isinstance(input, IndexedSlices | SparseTensor):
        return input.map(identity)
    return apply_op("Identity", name, input=input)


def identity_n(input: Any, name: str | None = None) -> list[Tensor]:
    """New tensors with the values of all of `input`."""
    return apply_op("IdentityN", name, input=input)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """`input`, through which no gradient flows."""
    return apply_op("StopGradient", name, input=input)


def guarantee_const(input: Any, name: str | None = None) -> Tensor:
    """`input`, of which the program says that it never changes."""
    return apply_op("GuaranteeConst", name, input=input)


def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Tensor:
    """`input`; a gradient through it raises LookupError with `message`."""
    return apply_op("PreventGradient", name, input=input, message=message)


def shape(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The shape of `input` as a vector: a constant where it is known now."""
    return shape_internal(input, name, out_type=dtypes.int32 if out_type is None else out_type)


def shape_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = None) -> Tensor:
    """The shape of a tensor, as an op with `optimize=False`; without `out_type` the constant has a longer name."""
    with name_scope(name, "Shape", [input]) as scope:
        if is_sparse(input):
            return apply_op("Cast", None, x=input.dense_shape, DstT=out_type or dtypes.int32)
        input = convert_to_tensor(input)
        if optimize and input.shape.is_fully_defined():
            if out_type is None:
                return convert_to_tensor(input.shape)
            return constant(input.shape.as_list(), out_type, name=scope)
        return apply_op("Shape", scope, input=input, out_type=out_type or dtypes.int32)


def shape_n(input: Sequence[Any], out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors."""
    return apply_op("ShapeN", name, input=input, out_type=out_type)


def size(input: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The number of elements of `input`: a constant where it is known now."""
    out_type = dtypes.int32 if out_type is None else out_type
    with name_scope(name, "Size", [input]) as scope:
        if is_sparse(input):
            sizes = apply_op("Cast", None, x=input.dense_shape, DstT=out_type)
            return apply_op("Prod", scope, input=sizes, reduction_indices=0)
        input = convert_to_tensor(input)
        if input.shape.is_fully_defined():
            return constant(input.shape.num_elements(), out_type, name=scope)
        if input.shape.ndims and 0 in input.shape.as_list():
            return constant(0, out_type, name=scope)
        return apply_op("Size", scope, input=input, out_type=out_type)


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of `input`: a constant where it is known now."""
    with name_scope(name, "Rank", [input]) as scope:
        if is_sparse(input):
            return apply_op("Size", scope, input=input.dense_shape)
        input = convert_to_tensor(input)
        if input.shape.ndims is not None:
            return constant(input.shape.ndims, dtypes.int32, name=scope)
        return apply_op("Rank", scope, input=input)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x`, with the static shape `shape`; the step fails if the value has another shape."""
    return apply_op("EnsureShape", name, input=x, shape=shape)


def convert_to_int_tensor(value: Any, name: str, dtype: Any = dtypes.int32) -> Tensor:
    """`value` as an integer tensor of `dtype`."""
    tensor = convert_to_tensor(value, name=name, preferred_dtype=dtype)
    if not tensor.dtype.is_integer:
        received = f"Received `tensor` = {tensor} of dtype: {tensor.dtype}"
        raise TypeError(f"Argument `tensor` (name: {name}) must be of type integer. {received}")
    return apply_op("Cast", x=tensor, DstT=dtype)  # even where it changes nothing, as in TensorFlow


# -- dtypes ----------------------------------------------------------------------------------------------


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """`x` in another dtype; IndexedSlices and SparseTensors stay sparse."""
    dtype = dtypes.as_dtype(dtype).base_dtype
    if (isinstance(x, Tensor) or hasattr(x, "handle")) and x.dtype == dtype:  # a resource variable is read later
        return x
    with name_scope(name, "Cast", [x]) as scope:
        if isinstance(x, IndexedSlices):
            return IndexedSlices(cast(x.values, dtype, name=scope), x.indices, x.dense_shape)
        if isinstance(x, SparseTensor):
            return SparseTensor(x.indices, cast(x.values, dtype, name=scope), x.dense_shape)
        x = convert_to_tensor(x, name="x")
        if x.dtype == dtype:
            return x
        return apply_op("Cast", scope, x=x, DstT=dtype)


def _to(dtype: dtypes.DType, name: str) -> Callable[..., Any]:
    def function(x: Any, name: str = name) -> Any:
        return cast(x, dtype, name=name)

    return described(function, name, f"`x` as {dtype.name}.")


to_float = _to(dtypes.float32, "ToFloat")
to_double = _to(dtypes.float64, "ToDouble")
to_int32 = _to(dtypes.int32, "ToInt32")
to_int64 = _to(dtypes.int64, "ToInt64")
to_bfloat16 = _to(dtypes.bfloat16, "ToBFloat16")
to_complex64 = _to(dtypes.complex64, "ToComplex64")
to_complex128 = _to(dtypes.complex128, "ToComplex128")


def bitcast(input: Any, type: Any, name: str | None = None) -> Tensor:
    """The bits of `input`, read as numbers of dtype `type`.

    If these are smaller, there is a new last dimension for the parts; if they are larger, the last one has the parts.
    """
    return apply_op("Bitcast", name, input=input, type=type)


# -- the same elements in another shape or order ---------------------------------------------------------


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The elements of `tensor` in the given shape; one size may be -1."""
    return apply_op("Reshape", name, tensor=tensor, shape=shape)


def reshape_to_input(op: Operation, dy: Any) -> Tensor:
    """`dy` in the shape of the op's first input."""
    return reshape(dense(dy), shape(op.inputs[0]))


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """`input` with a new axis of size 1 before `axis`."""
    axis = renamed("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return apply_op("ExpandDims", name, input=input, dim=axis)


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """`input` without its axes of size 1 (or those in `axis`)."""
    axis = renamed("axis", axis, "squeeze_dims", squeeze_dims)
    return apply_op("Squeeze", name, input=input, squeeze_dims=[axis] if np.isscalar(axis) else axis)


def transpose(a: Any, perm: Any = None, name: str | None = "transpose", conjugate: bool = False) -> Tensor:
    """`a` with its axes in the order `perm`, by default reversed."""
    with name_scope(name, "transpose", [a]) as scope:
        if not isinstance(a, Tensor):
            a = convert_to_tensor(a, name="a")
        op_type = "ConjugateTranspose" if conjugate and a.dtype.is_complex else "Transpose"
        if perm is None and a.shape.ndims is None:
            perm = apply_op("Range", start=apply_op("Rank", input=a) - 1, limit=-1, delta=-1)
        elif perm is None:
            perm = np.arange(a.shape.ndims - 1, -1, -1, dtype=np.int32)
        return apply_op(op_type, scope, x=a, perm=perm)


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """`a` with its last two axes exchanged."""
    with name_scope(name, None, [a]):
        a = convert_to_tensor(a, name="a")
        count: Any = a.shape.ndims
        if count is None:
            count = rank(a)
            perm: Any = concat((apply_op("Range", start=0, limit=count - 2, delta=1), [count - 1, count - 2]), 0)
        elif count < 2:
            text = f"Received `a` = {a} with shape: {a.shape}"
            raise ValueError(f"Argument `a` should be a (batch) matrix with rank >= 2. {text}")
        else:
            perm = [*builtins.range(count - 2), count - 1, count - 2]
        return transpose(a, perm=perm, conjugate=conjugate)


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation that undoes `x`."""
    return apply_op("InvertPermutation", name, x=x)


# -- several arrays to one, and back ---------------------------------------------------------------------


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """The values side by side along a new axis."""
    if axis == 0:
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError, NotImplementedError):
            pass  # then the values one by one
    ndims = convert_to_tensor(values[0], name=name).shape.ndims
    if ndims is not None and not -ndims - 1 <= axis <= ndims:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-ndims - 1}, {ndims + 1})")
    return apply_op("Pack", name, values=values, axis=axis)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """The values side by side along a new first axis; their shapes must be known now, else ValueError."""
    with name_scope(name):
        shape = TensorShape([len(values)]).concatenate(convert_to_tensor(values[0]).shape)
        return apply_op("ParallelConcat", values=[expand_dims(v, 0) for v in values], shape=shape)


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """The slices of `value` along `axis`, one by one."""
    if num is None:
        value = convert_to_tensor(value)
        ndims = value.shape.ndims
        if ndims is not None:
            if not -ndims <= axis < ndims:
                raise ValueError(f"Argument `axis` = {axis} not in range [{-ndims}, {ndims})")
            num = value.shape[axis].value
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {value.shape}")
    return apply_op("Unpack", name, value=value, num=num, axis=axis)


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """The values one after the other along `axis`."""
    if not isinstance(values, list | tuple):
        values = [values]
    if len(values) > 1:
        return apply_op("ConcatV2", name, values=values, axis=axis)
    with name_scope(name):
        convert_to_tensor(axis, dtypes.int32, name="concat_dim").shape.assert_has_rank(0)
        return identity(values[0], name=name)


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """`value` in parts along `axis`: that many equal ones, or of these sizes."""
    if isinstance(num_or_size_splits, numbers.Integral | Dimension):
        return apply_op("Split", name, split_dim=axis, value=value, num_split=int(num_or_size_splits))
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes.shape.ndims == 0:
        text = f"Argument provided: {num_or_size_splits}"
        raise ValueError(f"Rank-0 tensors are not supported as the num_or_size_splits argument to split. {text}")
    if num is None:
        num = sizes.shape[0].value if sizes.shape.ndims else None
    if num is None:
        raise ValueError(f"Cannot infer argument `num` from shape {num_or_size_splits}")
    return apply_op("SplitV", name, value=value, size_splits=sizes, split_dim=axis, num_split=num)


# -- larger arrays ---------------------------------------------------------------------------------------


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated along its axes of size 1 (and new ones before them) to fill `shape`."""
    return apply_op("BroadcastTo", name, input=input, shape=shape)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape, as a tensor, to which arrays of two shapes broadcast."""
    return apply_op("BroadcastArgs", s0=shape_x, s1=shape_y)


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The static shape to which arrays of two static shapes broadcast."""
    return broadcast_shape(shape_x, shape_y)


def broadcast_gradient_args(s0: Any, s1: Any, name: str | None = None) -> list[Tensor]:
    """For two shapes that broadcast, the axes along which each is repeated."""
    return apply_op("BroadcastGradientArgs", name, s0=s0, s1=s1)


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """`input` written `multiples[i]` times along axis i."""
    return apply_op("Tile", name, input=input, multiples=multiples)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """`tensor` with `paddings[i]` = (before, after) elements added along axis i.

    `mode` REFLECT or SYMMETRIC mirrors what is inside, without or with the edge.
    """
    if mode.upper() in ("REFLECT", "SYMMETRIC"):
        return apply_op("MirrorPad", name, input=tensor, paddings=paddings, mode=mode.upper())
    if mode.upper() != "CONSTANT":
        modes = "'CONSTANT', 'REFLECT', or 'SYMMETRIC'"
        raise ValueError(f"Value of argument `mode` expected to be one of {modes}. Received `mode` = {mode!r}.")
    if not isinstance(constant_values, Tensor) and np.ndim(constant_values) == 0 and constant_values == 0:
        return apply_op("Pad", name, input=tensor, paddings=paddings)
    return apply_op("PadV2", name, input=tensor, paddings=paddings, constant_values=constant_values)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """`tensor` reversed along the given axes."""
    return apply_op("ReverseV2", name, tensor=tensor, axis=axis)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = "meshgrid") -> list[Tensor]:
    """For N vectors N tensors of rank N: the coordinates of all points of the grid that they span.

    With "xy" the first two axes are exchanged, as in a picture; with "ij" axis i belongs to vector i; else ValueError.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    with name_scope(name, "meshgrid", list(args)):
        ndim = len(args)
        if not ndim:
            return []
        output = [_along(i, ndim, x) for i, x in enumerate(args)]
        sizes = [size(x) for x in args]
        dtype = convert_to_tensor(args[0]).dtype.base_dtype
        if indexing == "xy" and ndim > 1:
            output[0] = reshape(output[0], (1, -1) + (1,) * (ndim - 2))
            output[1] = reshape(output[1], (-1, 1) + (1,) * (ndim - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        whole = ones(sizes, dtype)
        return [x * whole for x in output]


def _along(axis: int, ndim: int, x: Any) -> Any:
    """A vector as a tensor of rank `ndim`, along `axis`."""
    return reshape(stack(x), (1,) * axis + (-1,) + (1,) * (ndim - axis - 1))


# -- diagonals -------------------------------------------------------------------------------------------


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """The tensor of twice the rank with `diagonal` on its diagonal."""
    return apply_op("Diag", name, diagonal=diagonal)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of a tensor of even rank."""
    return apply_op("DiagPart", name, input=input)


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """The innermost matrices of `input`, zero but for a number of diagonals below and above the main one.

    A negative number keeps that whole triangle. InvalidArgumentError for more than there are.
    """
    return apply_op("MatrixBandPart", name, input=input, num_lower=num_lower, num_upper=num_upper)


# -- blocks of images ------------------------------------------------------------------------------------


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Blocks of shape `block_shape`, out of the axes after the first, as further elements of the batch.

    First `paddings`, [axes, 2], adds zeros before and after; then each axis must be a multiple of its block.
    """
    return apply_op("SpaceToBatchND", name, input=input, block_shape=block_shape, paddings=paddings)


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of `space_to_batch_nd`: then `crops`, [axes, 2], cuts off elements before and after."""
    return apply_op("BatchToSpaceND", name, input=input, block_shape=block_shape, crops=crops)


def space_to_batch(
    input: Any, paddings: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """`space_to_batch_nd` for images [batch, height, width, depth] and square blocks."""
    return _square_blocks(space_to_batch_nd, input, paddings, block_size, block_shape, name)


def batch_to_space(input: Any, crops: Any, block_size: Any, name: str | None = None, block_shape: Any = None) -> Tensor:
    """The inverse of `space_to_batch`."""
    return _square_blocks(batch_to_space_nd, input, crops, block_size, block_shape, name)


def _square_blocks(move: Callable[..., Tensor], input: Any, around: Any, size: Any, shape: Any, name: Any) -> Tensor:
    size = renamed("block_shape", shape, "block_size", size)
    result = move(input, np.array([size, size], np.int64), around, name)
    result.set_shape(result.shape.with_rank(4))
    return result


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: Any = "NHWC") -> Tensor:
    """Each block of pixels of an image as one pixel with `block_size`² times as many channels."""
    return apply_op("SpaceToDepth", name, input=input, block_size=block_size, data_format=data_format)


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: Any = "NHWC") -> Tensor:
    """The inverse of `space_to_depth`."""
    return apply_op("DepthToSpace", name, input=input, block_size=block_size, data_format=data_format)


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(paddings, crops) for `space_to_batch_nd` and back, int32 [axes, 2]: so that blocks divide the padded axes.

    `base_paddings` are wanted anyway. Both are constants where all is known now.
    """
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes: Any = convert_to_tensor(input_shape, dtypes.int32, name="input_shape")
        block: Any = convert_to_tensor(block_shape, dtypes.int32, name="block_shape")
        block.shape.assert_is_fully_defined()
        count = block.shape.with_rank(1)[0].value
        if count == 0:
            return zeros([0, 2], dtypes.int32), zeros([0, 2], dtypes.int32)
        sizes.shape.assert_is_compatible_with([count])
        base = _base_paddings(base_paddings, count)
        known = [constant_value(t) for t in (sizes, block, base)]
        if all(value is not None for value in known):
            sizes, block, base = known
        before, after = base[:, 0], base[:, 1]
        more = (block - (sizes + before + after) % block) % block
        after = after + more
        paddings = stack([[before[i], after[i]] for i in builtins.range(count)], name="paddings")
        return paddings, stack([[0, more[i]] for i in builtins.range(count)], name="crops")


def _base_paddings(base_paddings: Any, count: int) -> Any:
    if base_paddings is None:
        return zeros([count, 2], dtypes.int32)
    base = convert_to_tensor(base_paddings, dtypes.int32, name="base_paddings")
    base.shape.assert_is_compatible_with([count, 2])
    return base
