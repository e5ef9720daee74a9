"""Values that stand in the graph or are fed into it: constants, placeholders, fills, ranges.

Stands for `core/kernels/constant_op.cc`, `sequence_ops.cc` and the creating half of
`python/ops/array_ops.py`. Left out: ImmutableConst, sparse placeholders.

Rule: a shape that is known when the graph is built gives a `Const`, an unknown one a `Fill`, as in
TensorFlow.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor, register_tensor_conversion_function
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import casting, identity as array, joining, repeating, reshaping, slicing
from dtflab.ops.costs import free
from dtflab.ops.math import binary as math, logic
from dtflab.ops.messages import dtype_text, invalid, shape_text
from dtflab.ops.reduce import reduction
from dtflab.ops.type_sets import FLOAT, REAL_COMPLEX_BOOL


@op("""Const() -> (output: dtype)
       value: tensor
       dtype: type""")
class Const(Op):
    """A value written in the graph; running it costs nothing."""

    grad = no_gradient

    def infer(op):
        return [TensorShape(op.attrs["value"].shape)]

    def bind(node, xp):
        value = node["value"] if node["dtype"] == dtypes.string else xp.asarray(node["value"])
        if value.ndim == 0 and value.dtype != object:
            value = value[()]  # arithmetic is faster with NumPy's scalars than with arrays of one element
        return lambda: value

    flops = bytes = free


class _Fed(Op):
    """What the placeholders share: the value comes from outside, or not at all."""

    flops = bytes = staticmethod(free)

    def infer(op):
        return [op.attrs["shape"]]

    def bind(node, xp):
        def kernel():
            shape = node["shape"]
            where = f" and shape {shape_text(shape)}" if shape.ndims else ""
            raise invalid(
                f"You must feed a value for placeholder tensor '{node.name}' with dtype "
                f"{dtype_text(node['dtype'])}{where}"
            )

        return kernel


@op("""Placeholder() -> (output: dtype)
       dtype: type
       shape: shape = unknown""")
class Placeholder(_Fed):
    """A value that each step is given."""


@op("""PlaceholderV2() -> (output: dtype)
       dtype: type
       shape: shape""")
class PlaceholderV2(_Fed):
    """What old graphs have for Placeholder."""


@op("""PlaceholderWithDefault(input: dtype) -> (output: dtype)
       dtype: type
       shape: shape""")
class PlaceholderWithDefault(Op):
    """A value that a step may be given; otherwise the input."""

    aliasing = True
    flops = bytes = free

    def infer(op):
        op.inputs[0].shape.assert_is_compatible_with(op.attrs["shape"])
        return [op.attrs["shape"]]

    def bind(node, xp):
        return lambda x: x

    def grad(op, dy):
        return [dy]


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that every `session.run` which needs it must feed."""
    return apply_op("Placeholder", name, dtype=dtype, shape=shape)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that has the value of `input` where it is not fed."""
    return apply_op("PlaceholderWithDefault", name, input=input, shape=TensorShape(shape))


@op("""ZerosLike(x: T) -> (y: T)
       T: type""")
class ZerosLike(Op):
    """Zeros in the shape of x."""

    infer = shapes.unchanged
    grad = no_gradient

    def bind(node, xp):
        if node["T"] == dtypes.string:
            return lambda x: np.full(np.shape(x), b"", object)
        if node["T"] == dtypes.variant:
            return lambda x: x.zeros_like(xp)
        return xp.zeros_like


@op(f"""OnesLike(x: T) -> (y: T)
        T: {REAL_COMPLEX_BOOL}""")
class OnesLike(Op):
    """Ones in the shape of x."""

    infer = shapes.unchanged
    grad = no_gradient

    def bind(node, xp):
        return xp.ones_like


@op("""Fill(dims: index_type, value: T) -> (output: T)
       T: type
       index_type: {int32, int64} = int32""")
class Fill(Op):
    """An array of shape `dims`, all of it `value`."""

    def infer(op):
        dims = folded_value(op.inputs[0])
        if dims is not None and (dims < 0).any():
            raise ValueError("Fill dimensions must be >= 0")
        return [folded_shape(op.inputs[0])]

    def bind(node, xp):
        dtype = node["T"].as_numpy_dtype

        def kernel(dims, value):
            out = xp.empty(dims.tolist(), dtype)
            out.fill(value)  # `xp.full` takes twice as long for a small array
            return out

        return kernel

    def grad(op, dy):
        return [None, reduction.reduce_sum(dy)]


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` filled with the scalar `value`."""
    return apply_op("Fill", name, dims=dims, value=value)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """All zeros (False, or empty strings)."""
    return _filled("zeros", shape, dtypes.as_dtype(dtype).base_dtype, name)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """All ones (or True)."""
    return _filled("ones", shape, dtypes.as_dtype(dtype).base_dtype, name)


def _filled(what: str, shape: Any, dtype: DType, name: str | None) -> Tensor:
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
            shape = reshaping.reshape(shape, [-1])
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
            return zeros(array.shape_internal(tensor, optimize=optimize), dtype, name=scope)
        return apply_op("ZerosLike", scope, x=tensor)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True) -> Tensor:
    """Ones in the shape, and unless told otherwise the dtype, of `tensor`."""
    with name_scope(name, "ones_like", [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        shape = array.shape_internal(tensor, optimize=optimize)
        result = ones(shape, tensor.dtype if dtype is None else dtype, name=scope)
        result.set_shape(tensor.shape)
        return result


@op("""Range(start: Tidx, limit: Tidx, delta: Tidx) -> (output: Tidx)
       Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32""")
class Range(Op):
    """start, start + delta, … as long as it is before limit."""

    grad = no_gradient

    def infer(op):
        values = [folded_value(t) for t in op.inputs]
        if any(v is None for v in values):
            return [TensorShape([None])]
        return [TensorShape([_range_length(*values, error=ValueError)])]

    def bind(node, xp):
        dtype = node["Tidx"].as_numpy_dtype

        def kernel(*given):
            start, limit, delta = (_only(x, what) for x, what in zip(given, ("start", "limit", "delta"), strict=True))
            n = _range_length(start, limit, delta, error=invalid)
            return (start[()] + xp.arange(n).astype(dtype) * delta[()]).astype(dtype)

        return kernel


def _only(x: Any, what: str) -> Any:
    """The scalar; a vector with one element passes for it, as in TensorFlow."""
    if x.shape not in ((), (1,)):
        raise invalid(f"{what} must be a scalar, not shape {shape_text(x)}")
    return x.reshape(())


def _range_length(start: Any, limit: Any, delta: Any, error: Callable[[str], Exception]) -> int:
    if delta == 0:
        raise error(f"Requires delta != 0: {delta}")
    if delta > 0 and start > limit:
        raise error(f"Requires start <= limit when delta > 0: {start}/{limit}")
    if delta < 0 and start < limit:
        raise error(f"Requires start >= limit when delta < 0: {start}/{limit}")
    if start.dtype.kind in "iu":
        return max(0, -((int(start) - int(limit)) // int(delta)))
    return int(np.ceil(abs((limit - start) / delta)))  # rounded in the dtype of the range, as in TensorFlow


_RANGE_TYPES = [dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """The numbers from `start` (or 0) up to but without `limit`, in steps of `delta`."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        start = start if isinstance(start, Tensor) else convert_to_tensor(start, dtype, name="start")
        limit = limit if isinstance(limit, Tensor) else convert_to_tensor(limit, dtype, name="limit")
        delta = delta if isinstance(delta, Tensor) else convert_to_tensor(delta, dtype, name="delta")
        if dtype is None:
            dtype = max((t.dtype.base_dtype for t in (start, limit, delta)), key=_RANGE_TYPES.index)
        start, limit, delta = (casting.cast(t, dtype) for t in (start, limit, delta))
        return apply_op("Range", scope, start=start, limit=limit, delta=delta)


def _convert_range(value: builtins.range, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Tensor:
    return range(value.start, value.stop, value.step, dtype=dtype, name=name or "range")


register_tensor_conversion_function(builtins.range, _convert_range)


@op(f"""LinSpace(start: T, stop: T, num: Tidx) -> (output: T)
        T: {FLOAT}
        Tidx: {{int32, int64}} = int32""")
class LinSpace(Op):
    """`num` numbers in equal steps, both ends included."""

    grad = no_gradient

    def infer(op):
        num = folded_value(op.inputs[2])
        if num is not None and num <= 0:
            raise ValueError(f"Requires num > 0: {num}")
        return [TensorShape([None if num is None else int(num)])]

    def bind(node, xp):
        dtype = node["T"].as_numpy_dtype

        def kernel(start, stop, num):
            if num <= 0:
                raise invalid(f"Requires num > 0: {num}")
            step = (stop - start) / dtype(max(num - 1, 1))
            values = start + step * xp.arange(num).astype(dtype)
            values[-1] = stop if num > 1 else start
            return values

        return kernel


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` numbers from `start` to `stop` in equal steps, along a new axis where these are arrays."""
    with name_scope(name, "linspace", [start, stop]):
        start = convert_to_tensor(start, name="start")
        stop = convert_to_tensor(stop, start.dtype, name="stop")
        count = array.convert_to_int_tensor(num, name="num")
        casting.cast(count, start.dtype)  # TensorFlow makes this node and does not use it
        shape = repeating.broadcast_dynamic_shape(array.shape(start), array.shape(stop))
        first, last = repeating.broadcast_to(start, shape), repeating.broadcast_to(stop, shape)
        first, last = reshaping.expand_dims(first, axis), reshaping.expand_dims(last, axis)
        shape = array.shape(first)
        ndims = array.shape(shape)[0]
        where_axis = logic.where_v2(axis >= 0, axis, ndims + axis)
        fill_count = math.maximum(count - 2, 0)
        steps = math.maximum(count - 1, 1)
        delta = (last - first) / casting.cast(steps, last.dtype)
        first, last = casting.cast(first, delta.dtype), casting.cast(last, delta.dtype)
        end = logic.where_v2(count >= 0, steps, -1)
        inner = casting.cast(range(1, end, dtype=dtypes.int64), delta.dtype)
        inner_shape = logic.where_v2(logic.equal(where_axis, range(ndims)), fill_count, 1)
        inner = first + delta * reshaping.reshape(inner, inner_shape)
        joined = joining.concat((first, inner, last), axis=where_axis)
        begin = zeros_like(shape)
        size = (shape[0:where_axis], reshaping.reshape(count, [1]), shape[where_axis + 1 :])
        return slicing.slice(joined, begin, joining.concat(size, axis=0))
