"""Along one axis: where the extreme is, and running sums and products.

Stands for `core/kernels/argmax_op.cc`, `scan_ops.cc` and their parts of `python/ops/math_ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import of_first
from dtflab.ops.gradient_rules import no_slope
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce.functions import cumprod, cumsum, cumulative_logsumexp
from dtflab.ops.type_sets import FLOAT, NUMBER, REAL_QUANTIZED_BOOL


class _ArgExtreme(Op):
    """Base of ArgMax and ArgMin."""

    grad = no_slope
    flops = of_first

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


def _arg_extreme(function: str) -> Callable[[Any, Any], Callable[..., Any]]:
    def bind(node: Node, xp: Any) -> Callable[..., Any]:
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
        T: {REAL_QUANTIZED_BOOL}, Tidx: {{int16, int32, int64}} = int32
        output_type: {{int16, uint16, int32, int64}} = int64""")
class ArgMax(_ArgExtreme):
    """The index of the (first) largest element along an axis."""

    bind = _arg_extreme("argmax")


@op(f"""ArgMin(input: T, dimension: Tidx) -> (output: output_type)
        T: {REAL_QUANTIZED_BOOL}, Tidx: {{int32, int64}} = int32, output_type: {{int32, int64}} = int64""")
class ArgMin(_ArgExtreme):
    """The index of the (first) smallest element along an axis."""

    bind = _arg_extreme("argmin")


# -- running sums and products ---------------------------------------------------------------------------

Accumulate = Callable[[Any, Any, Any], Any]  # (xp, x, dtype) -> the scan of x along its last axis


def _scan(accumulate: Accumulate, start: float) -> Callable[[Any, Any], Callable[..., Any]]:
    """The kernel of a scan; the exclusive one begins with `start`."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        dtype, exclusive, step = node["T"].as_numpy_dtype, node["exclusive"], -1 if node["reverse"] else 1

        def kernel(x: Any, axis: Any) -> Any:
            if not -np.ndim(x) <= axis < np.ndim(x):
                raise invalid(f"ScanOp: Expected scan axis in the range [{-np.ndim(x)}, {np.ndim(x)}), but got {axis}")
            last = xp.moveaxis(x, int(axis), -1)[..., ::step]
            out = target = xp.empty_like(last)
            if exclusive:
                out[..., :1] = start
                last, target = last[..., :-1], out[..., 1:]
            target[...] = accumulate(xp, last, dtype)
            return xp.moveaxis(out[..., ::step], -1, int(axis))

        return kernel

    return bind


def _log_sums(xp: Any, x: Any, dtype: Any) -> Any:
    """CuPy's ufunc can't accumulate, so there the steps double."""
    x = x.astype(np.float32) if x.dtype.itemsize == 2 else x
    if xp is np:
        return np.logaddexp.accumulate(x, -1)
    width = 1
    while width < x.shape[-1]:
        x = xp.concatenate([x[..., :width], xp.logaddexp(x[..., width:], x[..., :-width])], -1)
        width *= 2
    return x


def _modes(op: Operation) -> dict[str, Any]:
    """How the gradient scans back: the other way round."""
    return {"exclusive": op.get_attr("exclusive"), "reverse": not op.get_attr("reverse")}


def _cumsum_grad(op: Operation, dy: Any) -> list[Any]:
    return [cumsum(dy, op.inputs[1], **_modes(op)), None]


def _cumprod_grad(op: Operation, dy: Any) -> list[Any]:
    x, axis = op.inputs
    product = cumprod(x, axis, op.get_attr("exclusive"), op.get_attr("reverse"))
    return [math.div_no_nan(cumsum(product * dy, axis, **_modes(op)), x), None]


def _log_sums_grad(op: Operation, dy: Any) -> list[Any]:
    (x, axis), y = op.inputs, op.outputs[0]

    def part(signed: Any, is_here: Callable[..., Any]) -> Any:
        logs = indexing.where_v2(is_here(dy, 0), math.log(signed), dy.dtype.min)
        return math.exp(cumulative_logsumexp(logs - y, axis, **_modes(op)) + x)

    return [part(dy, math.greater) - part(-dy, math.less), None]


_SCANS = {
    "Cumsum": (NUMBER, _scan(lambda xp, x, dtype: xp.add.accumulate(x, -1, dtype), 0), _cumsum_grad),
    "Cumprod": (NUMBER, _scan(lambda xp, x, dtype: xp.multiply.accumulate(x, -1, dtype), 1), _cumprod_grad),
    "CumulativeLogsumexp": (FLOAT, _scan(_log_sums, -np.inf), _log_sums_grad),
}

for _name, (_types, _rule, _grad) in _SCANS.items():
    _interface = f"""{_name}(x: T, axis: Tidx) -> (out: T)
                     exclusive: bool = false, reverse: bool = false, T: {_types}, Tidx: {{int32, int64}} = int32"""
    op(_interface)(type(_name, (Op,), {"infer": shapes.unchanged, "bind": _rule, "grad": _grad}))
