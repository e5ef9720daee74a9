"""Along one axis: where the extreme is, and running sums and products.

Stands for `core/kernels/argmax_op.cc`, `scan_ops.cc` and their parts of `python/ops/math_ops.py`.
Left out: CumulativeLogsumexp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.gradient_rules import no_slope
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce.functions import cumprod, cumsum
from dtflab.ops.type_sets import NUMBER, REAL_QUANTIZED_BOOL


class _ArgExtreme(Op):
    """What ArgMax and ArgMin share."""

    grad = no_slope

    def infer(op):
        shape, axis = op.inputs[0].shape, folded_value(op.inputs[1])
        if shape.ndims is None:
            return [TensorShape(None)]
        if shape.ndims <= 1:
            return [TensorShape([])]
        if axis is None:
            return [TensorShape([None] * (shape.ndims - 1))]
        if not -shape.ndims <= axis < shape.ndims:
            raise ValueError(f"Dimension ({int(axis)}) must be in the range [{-shape.ndims}, {shape.ndims})")
        dims = shape.as_list()
        del dims[int(axis)]
        return [TensorShape(dims)]

    def flops(node, ins, outs):
        return elements(ins[0])


def _arg_extreme(function: str) -> Callable[[Any, Any], Callable[..., Any]]:
    def bind(node: Any, xp: Any) -> Callable[..., Any]:
        find = getattr(xp, function)
        dtype, floating = node["output_type"].as_numpy_dtype, node["T"].is_floating  # bfloat16's kind is not "f"

        def kernel(x: Any, axis: Any) -> Any:
            axis, ndim = int(axis), np.ndim(x)
            if not -ndim <= axis < ndim:
                raise invalid(f"Expected dimension in the range [{-ndim}, {ndim}), but got {axis}")
            if x.shape[axis] == 0:
                raise invalid(f"Reduction axis {axis % ndim} is empty in shape {shape_text(x)}")
            if floating and xp.isnan(x).any():  # as Eigen: NaN loses to any number, all NaN gives 0
                x = xp.where(xp.isnan(x), x.dtype.type(-np.inf if function == "argmax" else np.inf), x)
            return find(x, axis).astype(dtype)

        return kernel

    return bind


@op(f"""ArgMax(input: T, dimension: Tidx) -> (output: output_type)
        T: {REAL_QUANTIZED_BOOL}
        Tidx: {{int16, int32, int64}} = int32
        output_type: {{int16, uint16, int32, int64}} = int64""")
class ArgMax(_ArgExtreme):
    """The index of the (first) largest element along an axis."""

    bind = _arg_extreme("argmax")


@op(f"""ArgMin(input: T, dimension: Tidx) -> (output: output_type)
        T: {REAL_QUANTIZED_BOOL}
        Tidx: {{int32, int64}} = int32
        output_type: {{int32, int64}} = int64""")
class ArgMin(_ArgExtreme):
    """The index of the (first) smallest element along an axis."""

    bind = _arg_extreme("argmin")


# -- running sums and products ---------------------------------------------------------------------------

_SCAN = (
    "(x: T, axis: Tidx) -> (out: T)\nexclusive: bool = false\nreverse: bool = false\n"
    f"T: {NUMBER}\nTidx: {{int32, int64}} = int32"
)


def _scan(ufunc_name: str, start: int) -> Callable[[Any, Any], Callable[..., Any]]:
    def bind(node: Any, xp: Any) -> Callable[..., Any]:
        dtype = node["T"].as_numpy_dtype
        accumulate = getattr(xp, ufunc_name).accumulate
        step = -1 if node["reverse"] else 1

        def kernel(x: Any, axis: Any) -> Any:
            if not -np.ndim(x) <= axis < np.ndim(x):
                raise invalid(f"ScanOp: Expected scan axis in the range [{-np.ndim(x)}, {np.ndim(x)}), but got {axis}")
            along_last = xp.moveaxis(x, int(axis), -1)[..., ::step]
            out = xp.empty_like(along_last)
            if node["exclusive"]:
                out[..., :1] = start
                along_last, target = along_last[..., :-1], out[..., 1:]
            else:
                target = out
            target[...] = accumulate(along_last, -1, dtype)
            return xp.moveaxis(out[..., ::step], -1, int(axis))

        return kernel

    return bind


@op("Cumsum" + _SCAN)
class Cumsum(Op):
    """Running sums along an axis."""

    infer = shapes.unchanged
    bind = _scan("add", 0)

    def grad(op, dy):
        exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
        return [cumsum(dy, op.inputs[1], exclusive=exclusive, reverse=not reverse), None]


@op("Cumprod" + _SCAN)
class Cumprod(Op):
    """Running products along an axis."""

    infer = shapes.unchanged
    bind = _scan("multiply", 1)

    def grad(op, dy):
        x, axis = op.inputs
        exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")
        product = cumprod(x, axis, exclusive=exclusive, reverse=reverse)
        out = cumsum(product * dy, axis, exclusive=exclusive, reverse=not reverse)
        return [math.div_no_nan(out, x), None]
