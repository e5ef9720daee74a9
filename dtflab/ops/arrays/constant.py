"""Values written in the graph or fed into it: constants, placeholders, fills, ranges.

Stands for `core/kernels/constant_op.cc`, `sequence_ops.cc` and the creating half of
`python/ops/array_ops.py`. Left out: ImmutableConst, sparse placeholders.

Rule: a shape that is known when the graph is built gives a `Const`, an unknown one a `Fill`, as in
TensorFlow.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.convert import register_tensor_conversion_function
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.static_value import folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.array_module import filled
from dtflab.ops.arrays.functions import _convert_range
from dtflab.ops.arrays.identity import PassOn
from dtflab.ops.costs import FreeOp
from dtflab.ops.messages import dtype_text, invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.type_sets import FLOAT, REAL_COMPLEX_BOOL


@op("Const() -> (output: dtype) where value: tensor, dtype: type")
class Const(FreeOp):
    """A value written in the graph; running it costs nothing."""

    grad = no_gradient

    def infer(op):
        return [TensorShape(op.attrs["value"].shape)]

    def bind(node, xp):
        value = node["value"] if node["dtype"] == dtypes.string else xp.asarray(node["value"])
        if value.ndim == 0 and value.dtype != object:
            value = value[()]  # arithmetic is faster with NumPy's scalars than with arrays of one element
        return lambda: value


class _Fed(FreeOp):
    """Base of the placeholders: the value comes from outside, or not at all."""

    def infer(op):
        return [op.attrs["shape"]]

    def kernel(node, xp):
        shape = node["shape"]
        where = f" and shape {shape_text(shape)}" if shape.ndims else ""
        raise invalid(
            f"You must feed a value for placeholder tensor '{node.name}' with dtype {dtype_text(node['dtype'])}{where}"
        )


# Old graphs have PlaceholderV2 for Placeholder.
for _name, _shape in {"Placeholder": "shape = unknown", "PlaceholderV2": "shape"}.items():
    op(f"{_name}() -> (output: dtype) where dtype: type, shape: {_shape}")(type(_name, (_Fed,), {}))


@op("PlaceholderWithDefault(input: dtype) -> (output: dtype) where dtype: type, shape: shape")
class PlaceholderWithDefault(PassOn):
    """A value that a step may be given; otherwise the input."""

    def infer(op):
        op.inputs[0].shape.assert_is_compatible_with(op.attrs["shape"])
        return [op.attrs["shape"]]


@op("ZerosLike(x: T) -> (y: T) where T: type")
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


@op(f"OnesLike(x: T) -> (y: T) where T: {REAL_COMPLEX_BOOL}")
class OnesLike(Op):
    """Ones in the shape of x."""

    infer = shapes.unchanged
    grad = no_gradient

    def bind(node, xp):
        return xp.ones_like


@op("Fill(dims: index_type, value: T) -> (output: T) where T: type, index_type: {int32, int64} = int32")
class Fill(Op):
    """An array of shape `dims`, all of it `value`."""

    def infer(op):
        dims = folded_value(op.inputs[0])
        if dims is not None and (dims < 0).any():
            raise ValueError("Fill dimensions must be >= 0")
        return [folded_shape(op.inputs[0])]

    def bind(node, xp):
        dtype = node["T"].as_numpy_dtype

        return lambda dims, value: filled(xp, dims.tolist(), value, dtype)

    def grad(op, dy):
        return [None, reduce.reduce_sum(dy)]


@op("""Range(start: Tidx, limit: Tidx, delta: Tidx) -> (output: Tidx)
       Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32""")
class Range(Op):
    """start, start + delta, … as long as it is before limit."""

    grad = no_gradient

    def infer(op):
        values = [folded_value(t) for t in op.inputs]
        if any(v is None for v in values):
            return [TensorShape([None])]
        return [TensorShape([_range_length(*_scalars(values, ValueError), error=ValueError)])]

    def kernel(node, xp, *given):
        dtype = node["Tidx"].as_numpy_dtype
        start, limit, delta = _scalars(given, invalid)
        n = _range_length(start, limit, delta, error=invalid)
        return (start[()] + xp.arange(n).astype(dtype) * delta[()]).astype(dtype)


def _scalars(given: Sequence[Any], error: Callable[[str], Exception]) -> list[Any]:
    """Start, limit and delta; a vector with one element passes for a scalar, as in TensorFlow."""
    for x, what in zip(given, ("start", "limit", "delta"), strict=True):
        if x.shape not in ((), (1,)):
            raise error(f"{what} must be a scalar, not shape {shape_text(x)}")
    return [x.reshape(()) for x in given]


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


register_tensor_conversion_function(builtins.range, _convert_range)


@op(f"LinSpace(start: T, stop: T, num: Tidx) -> (output: T) where T: {FLOAT}, Tidx: {{int32, int64}} = int32")
class LinSpace(Op):
    """`num` numbers in equal steps, both ends included."""

    grad = no_gradient

    def infer(op):
        num = folded_value(op.inputs[2])
        if num is not None and num <= 0:
            raise ValueError(f"Requires num > 0: {num}")
        return [TensorShape([None if num is None else int(num)])]

    def kernel(node, xp, start, stop, num):
        dtype = node["T"].as_numpy_dtype
        if num <= 0:
            raise invalid(f"Requires num > 0: {num}")
        step = (stop - start) / dtype(max(num - 1, 1))
        values = start + step * xp.arange(num).astype(dtype)
        values[-1] = stop if num > 1 else start
        return values
