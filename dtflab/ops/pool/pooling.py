"""Pooling over two and three dimensions: the largest or the mean of what a window sees, and the gradients.

Stands for `core/kernels/{maxpooling_op,avgpooling_op,pooling_ops_3d}.cc`; the kernels are in `kernels.py`.
Left out: quantized values, the format NCHW_VECT_C.

Rule: the windows move over all dimensions of the array, and so each format is the same to a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base.errors import UnimplementedError
from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import windows
from dtflab.ops.array_module import scatterer
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_input
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.pool.kernels import from_largest, largest, mean, places_of_largest, spread, to_largest

# -- around the kernels ---------------------------------------------------------------------------------------


def _axes_of(node: Node, sizes: Sequence[int], ksize: Sequence[int], strides: Sequence[int]) -> list[windows.Axis]:
    """How a window of `node` moves over all dimensions but the batch; an OpError if it can't."""
    ksize, strides = [int(k) for k in ksize], [int(s) for s in strides]
    if len(sizes) != len(ksize):
        raise invalid(f"{node.op} takes {len(ksize)}-dimensional tensors, not {len(sizes)}-dimensional ones")
    for name, values in (("ksize", ksize), ("stride", strides)):
        if min(values) <= 0:
            text = ",".join(map(str, values))
            raise invalid(f"Sliding window {name} must be positive. The specified or inferred {name} is: {text}")
    if ksize[0] != 1 or strides[0] != 1:
        raise UnimplementedError.of("Pooling is not yet supported on the batch dimension.")
    explicit = windows.pairs(node.attrs.get("explicit_paddings") or [], len(sizes))
    dims = zip(sizes, ksize, strides, explicit)
    return [windows.axis(size, k, s, 1, node["padding"], pads) for size, k, s, pads in dims][1:]


def _axes(node: Node, sizes: Sequence[int], window: Sequence[Any]) -> list[windows.Axis]:
    """The axes of a window whose size and steps are inputs of the newer ops (…V2), attributes of the others."""
    return _axes_of(node, sizes, *(window or (node["ksize"], node["strides"])))


def _check(name: str, value: Any, batch: int, axes: Sequence[windows.Axis]) -> None:
    wanted = (batch, *windows.outs(axes))
    if value.shape != wanted:
        raise invalid(f"Expected {name} shape to be {shape_text(wanted)}, but got {shape_text(value)}")


def _output_shape(op: Operation) -> list[TensorShape]:
    """The static shape after pooling, of each output."""
    attrs = [op.get_attr(name) for name in ("ksize", "strides")] if "V2" not in op.type else None
    window = attrs or [folded_value(t) for t in op.inputs[-2:]]
    ndims = 5 if "3D" in op.type else 4
    shape = op.inputs[0].shape.with_rank(ndims)
    if any(values is None for values in window):
        return [TensorShape([None] * ndims)]
    explicit = windows.static_paddings(op, ndims)
    dims = zip(shape.as_list(), *window, explicit)
    sizes = [windows.static_size(size, int(k), int(s), 1, op.get_attr("padding"), pads) for size, k, s, pads in dims]
    return [TensorShape(sizes)] * len(op.outputs)


def _like(index: int) -> Callable[[Any], list[TensorShape]]:
    return lambda op: [op.inputs[index].shape.with_rank(5 if "3D" in op.type else 4)]


def _window(op: Operation, *names: str) -> dict[str, Any]:
    """The attributes of `op` that say how its window moves, for another op of the family."""
    size = ("ksize", "strides")
    values = op.inputs[-2:] if "V2" in op.type else [op.get_attr(name) for name in size]
    return dict(zip(size, values)) | {name: op.get_attr(name) for name in ("padding", *names)}


def _pass_flops(index: int) -> Callable[..., int]:
    """One operation for each element that a window of input or output `index` sees."""

    def flops(node: Node, ins: Any, outs: Any) -> int:
        return elements(([*ins, *outs])[index]) * math.prod(node.attrs.get("ksize", [1]))

    return flops


class _Max(Op):
    """The largest value in each window."""

    infer = _output_shape
    flops = _pass_flops(-1)

    def bind(node, xp):
        return lambda x, *window: largest(xp, x, _axes(node, x.shape, window))

    def grad(op, dy):
        back = "MaxPoolGradV2" if op.type == "MaxPoolV2" else f"{op.type}Grad"
        names = ["explicit_paddings", "data_format"] if op.type == "MaxPool" else ["data_format"]
        ends = {"orig_input": op.inputs[0], "orig_output": op.outputs[0]}
        return [apply_op(back, **ends, grad=dy, **_window(op, *names)), *[None] * (len(op.inputs) - 1)]


class _MaxGrad(Op):
    """The gradient of the largest: it goes where the value came from."""

    infer = _like(0)
    flops = _pass_flops(2)

    def bind(node, xp):
        def kernel(x, y, dy, *window):
            axes = _axes(node, x.shape, window)
            _check("orig_output", y, len(x), axes)
            _check("grad", dy, len(x), axes)
            return to_largest(xp, x, y, dy, axes)

        return kernel

    def grad(op, d):
        return _second_order(op, d, op.type.replace("Grad", "GradGrad"))


class _MaxGradGrad(Op):
    """The gradient of that gradient: what stands at the place of each largest value."""

    infer = _like(1)
    flops = _pass_flops(1)

    def bind(node, xp):
        def kernel(x, y, dx, *window):
            axes = _axes(node, x.shape, window)
            _check("orig_output", y, len(x), axes)
            if dx.shape != x.shape:
                raise invalid(f"Expected grad shape to be {shape_text(x)}, but got {shape_text(dx)}")
            return from_largest(xp, x, y, dx, axes)

        return kernel

    def grad(op, d):
        return _second_order(op, d, op.type.replace("GradGrad", "Grad"))


class _LastGrad(_MaxGradGrad):
    """The gradient of MaxPoolGradV2, which TensorFlow does not differentiate further."""

    grad = None


def _second_order(op: Operation, d: Any, back: str) -> list[Any]:
    """The gradient of a gradient of Max: zero for the values, which only say where."""
    x, y = op.inputs[:2]
    zeros = [arrays.zeros_like(t) for t in (x, y)]
    found = apply_op(back, orig_input=x, orig_output=y, grad=d, **_window(op, "data_format"))
    return [*zeros, found, *[None] * (len(op.inputs) - 3)]


class _Avg(Op):
    """The mean of each window."""

    infer = _output_shape
    flops = _pass_flops(-1)

    def bind(node, xp):
        return lambda x: mean(xp, x, _axes(node, x.shape, ()))

    def grad(op, dy):
        shape = arrays.shape(op.inputs[0])
        return [apply_op(f"{op.type}Grad", orig_input_shape=shape, grad=dy, **_window(op, "data_format"))]


class _AvgGrad(Op):
    """The gradient of the mean: an equal part of each output for all that its window sees."""

    flops = _pass_flops(1)

    def infer(op):
        return [folded_shape(op.inputs[0]).with_rank(5 if "3D" in op.type else 4)]

    def bind(node, xp):
        def kernel(sizes, dy):
            shape = tuple(int(n) for n in sizes)
            axes = _axes(node, shape, ())
            _check("grad", dy, shape[0], axes)
            return spread(xp, dy, axes)

        return kernel

    def grad(op, d):
        forward = op.type.removesuffix("Grad")
        given = {"value" if forward == "AvgPool" else "input": d}
        shape = apply_op("StopGradient", input=op.inputs[0])
        return [shape, apply_op(forward, **given, **_window(op, "data_format"))]


_SIZES = "ksize: list(int) >= 4\nstrides: list(int) >= 4\n"
_GIVEN = "padding: {'SAME', 'VALID'}\ndata_format: {'NHWC', 'NCHW'} = 'NHWC'\n"
_IMAGES = _SIZES + _GIVEN
_PADDED = _IMAGES.replace("'VALID'}", "'VALID', 'EXPLICIT'}\nexplicit_paddings: list(int) = []")
_VOLUMES = _IMAGES.replace("4", "5").replace("NHWC", "NDHWC").replace("NCHW", "NCDHW")
_PACKED = ("'NCHW'}", "'NCHW', 'NCHW_VECT_C'}")  # a format that TensorFlow's interface allows, but for GPUs only
_WINDOW = ", ksize: int32, strides: int32"
_ENDS = "orig_input: T, orig_output: T, grad: T"
_SHORT = "{half, bfloat16, float}"
_FLOAT = "T: {half, bfloat16, float, double}"
_FORWARD = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float"
_VOLUME_TYPES = f"T: {_SHORT} = float\nTInput: {_SHORT} = float"

for _base, _name, _inputs, _attrs in [
    (_Max, "MaxPool", "input: T", _PADDED.replace(*_PACKED) + _FORWARD),
    (_Max, "MaxPoolV2", f"input: T{_WINDOW}", _GIVEN.replace(*_PACKED) + _FORWARD),
    (_Max, "MaxPool3D", "input: T", f"{_VOLUMES}T: {_SHORT}"),
    (_MaxGrad, "MaxPoolGrad", _ENDS, f"{_PADDED}T: realnumbertype = float"),
    (_MaxGrad, "MaxPoolGradV2", _ENDS + _WINDOW, f"{_GIVEN}T: realnumbertype = float"),
    (_MaxGrad, "MaxPool3DGrad", "orig_input: TInput, orig_output: TInput, grad: T", _VOLUMES + _VOLUME_TYPES),
    (_MaxGradGrad, "MaxPoolGradGrad", _ENDS, f"{_IMAGES}T: realnumbertype"),
    (_LastGrad, "MaxPoolGradGradV2", _ENDS + _WINDOW, f"{_GIVEN}T: realnumbertype"),
    (_MaxGradGrad, "MaxPool3DGradGrad", _ENDS, f"{_VOLUMES}T: realnumbertype"),
    (_Avg, "AvgPool", "value: T", _IMAGES + _FLOAT),
    (_Avg, "AvgPool3D", "input: T", _VOLUMES + _FLOAT),
    (_AvgGrad, "AvgPoolGrad", "orig_input_shape: int32, grad: T", _IMAGES + _FLOAT),
    (_AvgGrad, "AvgPool3DGrad", "orig_input_shape: int32, grad: T", _VOLUMES + _FLOAT),
]:
    op(f"{_name}({_inputs}) -> (output: T) where {_attrs}")(type(_name, (_base,), {"__doc__": _base.__doc__}))


# -- the largest, and where it was ----------------------------------------------------------------------------


@op(f"""MaxPoolWithArgmax(input: T) -> (output: T, argmax: Targmax)
        {_SIZES}        Targmax: {{int32, int64}} = int64
        padding: {{'SAME', 'VALID'}}
        include_batch_in_index: bool = false
        T: realnumbertype""")
class MaxPoolWithArgmax(Op):
    """The largest value in each window, and its number in the flat image."""

    infer = _output_shape
    flops = _pass_flops(0)

    def bind(node, xp):
        dtype, with_batch = node["Targmax"].as_numpy_dtype, node["include_batch_in_index"]
        return lambda x: places_of_largest(xp, x, _axes(node, x.shape, ()), with_batch, dtype)

    def grad(op, dy, d_argmax):
        given = {"input": op.inputs[0], "grad": dy, "argmax": op.outputs[1]}
        return [apply_op("MaxPoolGradWithArgmax", **given, **_window(op, "include_batch_in_index"))]


@op(f"""MaxPoolGradWithArgmax(input: T, grad: T, argmax: Targmax) -> (output: T)
        {_SIZES}        padding: {{'SAME', 'VALID'}}
        include_batch_in_index: bool = false
        Targmax: {{int32, int64}}
        T: realnumbertype""")
class MaxPoolGradWithArgmax(Op):
    """The gradient of MaxPoolWithArgmax: each output's goes to the place that was noted."""

    grad = None
    infer = _like(0)
    flops = per_input(1, index=1)

    def bind(node, xp):
        add = scatterer(xp, "add")

        def kernel(x, dy, places):
            if dy.shape != places.shape or len(dy) != len(x):
                raise invalid(f"grad and argmax must have one shape: {shape_text(dy)}, {shape_text(places)}")
            if not node["include_batch_in_index"]:
                image = x.size // max(len(x), 1)
                places = places + image * xp.arange(len(x), dtype=places.dtype).reshape(-1, 1, 1, 1)
            if places.size and not (places.min() >= 0 and places.max() < x.size):
                raise invalid(f"Invalid output or argmax index for an input of shape {shape_text(x)}")
            dx = xp.zeros(x.size, dy.dtype)
            add(dx, places.reshape(-1), dy.reshape(-1))
            return dx.reshape(x.shape)

        return kernel
