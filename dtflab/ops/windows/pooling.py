"""Pooling over two and three dimensions: the largest or the mean of what a window sees, and the gradients.

Stands for `core/kernels/{maxpooling_op,avgpooling_op,pooling_ops_3d}.cc`; the kernels are in `pooling_kernels.py`, the
functions of `tf.nn` in `pools.py`. Left out: quantized values, the format NCHW_VECT_C.

Rule: the windows move over all dimensions of the array, and so each format is the same to a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base.errors import UnimplementedError
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.static_value import folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import scatterer
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.blas import Shard, alone
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.windows import windows
from dtflab.ops.windows.pooling_kernels import from_largest, largest, mean, places_of_largest, spread, to_largest
from dtflab.ops.windows.windows import Axis

Kernel = Callable[..., Any]
_2D = "{'NHWC', 'NCHW'} = 'NHWC'"
_2D_INPUT = "{'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"
_3D = "{'NDHWC', 'NCDHW'} = 'NDHWC'"
_FLOAT = "{half, bfloat16, float, double}"
_FORWARD = "{half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float"


# -- around the kernels ---------------------------------------------------------------------------------------


def _axes_of(node: Any, sizes: Sequence[int], ksize: Sequence[int], strides: Sequence[int]) -> list[Axis]:
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


def _axes(node: Any, sizes: Sequence[int], window: Sequence[Any]) -> list[Axis]:
    """The same; size and steps of the window are inputs of the newer ops (…V2), attributes of the others."""
    return _axes_of(node, sizes, *(window or (node["ksize"], node["strides"])))


def _check(name: str, value: Any, batch: int, axes: Sequence[Axis]) -> None:
    wanted = (batch, *windows.outs(axes))
    if value.shape != wanted:
        raise invalid(f"Expected {name} shape to be {shape_text(wanted)}, but got {shape_text(value)}")


def _output_shape(op: Any) -> list[TensorShape]:
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


def _window(op: Any, *names: str) -> dict[str, Any]:
    """Those attributes of `op` that say how its window moves, for another op of the family."""
    size = ("ksize", "strides")
    values = op.inputs[-2:] if "V2" in op.type else [op.get_attr(name) for name in size]
    return dict(zip(size, values)) | {name: op.get_attr(name) for name in ("padding", *names)}


def _pass_flops(index: int) -> Callable[..., int]:
    """One operation for each element that a window of input or output `index` sees."""

    def flops(node: Any, ins: Any, outs: Any) -> int:
        return elements(([*ins, *outs])[index]) * math.prod(node.attrs.get("ksize", [1]))

    return flops


class _Pooling(Op):
    """What the ops share."""

    shards = True


class _Max(_Pooling):
    """The largest value in each window."""

    infer = _output_shape
    flops = _pass_flops(-1)

    def bind(node: Any, xp: Any, shard: Shard = alone) -> Kernel:
        return lambda x, *window: largest(xp, shard, x, _axes(node, x.shape, window))


class _MaxGrad(_Pooling):
    """Its gradient."""

    infer = _like(0)
    flops = _pass_flops(2)

    def bind(node: Any, xp: Any, shard: Shard = alone) -> Kernel:
        def kernel(x: Any, y: Any, dy: Any, *window: Any) -> Any:
            axes = _axes(node, x.shape, window)
            _check("orig_output", y, len(x), axes)
            _check("grad", dy, len(x), axes)
            return to_largest(xp, shard, x, y, dy, axes)

        return kernel


class _MaxGradGrad(_Pooling):
    """The gradient of that."""

    infer = _like(1)
    flops = _pass_flops(1)

    def bind(node: Any, xp: Any, shard: Shard = alone) -> Kernel:
        def kernel(x: Any, y: Any, dx: Any, *window: Any) -> Any:
            axes = _axes(node, x.shape, window)
            _check("orig_output", y, len(x), axes)
            if dx.shape != x.shape:
                raise invalid(f"Expected grad shape to be {shape_text(x)}, but got {shape_text(dx)}")
            return from_largest(xp, shard, x, y, dx, axes)

        return kernel


def _second_order(back: str) -> Callable[[Any, Any], list[Any]]:
    """The gradient of a gradient of Max: nothing for the values, which only say where."""

    def grad(op: Any, d: Any) -> list[Any]:
        x, y = op.inputs[:2]
        zeros = [arrays.zeros_like(t) for t in (x, y)]
        rest: list[Any] = [None] * (len(op.inputs) - 3)
        return [*zeros, apply_op(back, orig_input=x, orig_output=y, grad=d, **_window(op, "data_format")), *rest]

    return grad


@op(f"""MaxPool(input: T) -> (output: T)
        T: {_FORWARD}
        ksize: list(int) >= 4
        strides: list(int) >= 4
        padding: {{'SAME', 'VALID', 'EXPLICIT'}}
        explicit_paddings: list(int) = []
        data_format: {_2D_INPUT}""")
class MaxPool(_Max):
    def grad(op, dy):
        window = _window(op, "explicit_paddings", "data_format")
        return [apply_op("MaxPoolGrad", orig_input=op.inputs[0], orig_output=op.outputs[0], grad=dy, **window)]


@op(f"""MaxPoolV2(input: T, ksize: int32, strides: int32) -> (output: T)
        T: {_FORWARD}
        padding: {{'SAME', 'VALID'}}
        data_format: {_2D_INPUT}""")
class MaxPoolV2(_Max):
    def grad(op, dy):
        ends = {"orig_input": op.inputs[0], "orig_output": op.outputs[0]}
        return [apply_op("MaxPoolGradV2", **ends, grad=dy, **_window(op, "data_format")), None, None]


@op(f"""MaxPoolGrad(orig_input: T, orig_output: T, grad: T) -> (output: T)
        ksize: list(int) >= 4
        strides: list(int) >= 4
        padding: {{'SAME', 'VALID', 'EXPLICIT'}}
        explicit_paddings: list(int) = []
        data_format: {_2D}
        T: realnumbertype = float""")
class MaxPoolGrad(_MaxGrad):
    grad = _second_order("MaxPoolGradGrad")


@op(f"""MaxPoolGradV2(orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32) -> (output: T)
        padding: {{'SAME', 'VALID'}}
        data_format: {_2D}
        T: realnumbertype = float""")
class MaxPoolGradV2(_MaxGrad):
    grad = _second_order("MaxPoolGradGradV2")


@op(f"""MaxPoolGradGrad(orig_input: T, orig_output: T, grad: T) -> (output: T)
        ksize: list(int) >= 4
        strides: list(int) >= 4
        padding: {{'SAME', 'VALID'}}
        data_format: {_2D}
        T: realnumbertype""")
class MaxPoolGradGrad(_MaxGradGrad):
    grad = _second_order("MaxPoolGrad")


@op(f"""MaxPoolGradGradV2(orig_input: T, orig_output: T, grad: T, ksize: int32, strides: int32) -> (output: T)
        padding: {{'SAME', 'VALID'}}
        data_format: {_2D}
        T: realnumbertype""")
class MaxPoolGradGradV2(_MaxGradGrad):
    grad = None


@op(f"""MaxPool3D(input: T) -> (output: T)
        ksize: list(int) >= 5
        strides: list(int) >= 5
        padding: {{'SAME', 'VALID'}}
        data_format: {_3D}
        T: {{half, bfloat16, float}}""")
class MaxPool3D(_Max):
    def grad(op, dy):
        ends = {"orig_input": op.inputs[0], "orig_output": op.outputs[0]}
        return [apply_op("MaxPool3DGrad", **ends, grad=dy, **_window(op, "data_format"))]


@op(f"""MaxPool3DGrad(orig_input: TInput, orig_output: TInput, grad: T) -> (output: T)
        ksize: list(int) >= 5
        strides: list(int) >= 5
        padding: {{'SAME', 'VALID'}}
        data_format: {_3D}
        T: {{half, bfloat16, float}} = float
        TInput: {{half, bfloat16, float}} = float""")
class MaxPool3DGrad(_MaxGrad):
    grad = _second_order("MaxPool3DGradGrad")


@op(f"""MaxPool3DGradGrad(orig_input: T, orig_output: T, grad: T) -> (output: T)
        ksize: list(int) >= 5
        strides: list(int) >= 5
        padding: {{'SAME', 'VALID'}}
        data_format: {_3D}
        T: realnumbertype""")
class MaxPool3DGradGrad(_MaxGradGrad):
    grad = _second_order("MaxPool3DGrad")


# -- means ----------------------------------------------------------------------------------------------------


class _Avg(_Pooling):
    """The mean of each window."""

    infer = _output_shape
    flops = _pass_flops(-1)

    def bind(node: Any, xp: Any, shard: Shard = alone) -> Kernel:
        return lambda x: mean(xp, shard, x, _axes(node, x.shape, ()))

    def grad(op: Any, dy: Any) -> list[Any]:
        shape = arrays.shape(op.inputs[0])
        return [apply_op(op.type + "Grad", orig_input_shape=shape, grad=dy, **_window(op, "data_format"))]


class _AvgGrad(_Pooling):
    """Its gradient."""

    flops = _pass_flops(1)

    def infer(op: Any) -> list[TensorShape]:
        return [folded_shape(op.inputs[0]).with_rank(5 if "3D" in op.type else 4)]

    def bind(node: Any, xp: Any, shard: Shard = alone) -> Kernel:
        def kernel(sizes: Any, dy: Any) -> Any:
            shape = tuple(int(n) for n in sizes)
            axes = _axes(node, shape, ())
            _check("grad", dy, shape[0], axes)
            return spread(xp, shard, dy, axes)

        return kernel

    def grad(op: Any, d: Any) -> list[Any]:
        forward = op.type.removesuffix("Grad")
        given = {"value" if forward == "AvgPool" else "input": d}
        shape = apply_op("StopGradient", input=op.inputs[0])
        return [shape, apply_op(forward, **given, **_window(op, "data_format"))]


@op(f"""AvgPool(value: T) -> (output: T)
        ksize: list(int) >= 4
        strides: list(int) >= 4
        padding: {{'SAME', 'VALID'}}
        data_format: {_2D}
        T: {_FLOAT}""")
class AvgPool(_Avg):
    """Over images."""


@op(f"""AvgPoolGrad(orig_input_shape: int32, grad: T) -> (output: T)
        ksize: list(int) >= 4
        strides: list(int) >= 4
        padding: {{'SAME', 'VALID'}}
        data_format: {_2D}
        T: {_FLOAT}""")
class AvgPoolGrad(_AvgGrad):
    """Over images."""


@op(f"""AvgPool3D(input: T) -> (output: T)
        ksize: list(int) >= 5
        strides: list(int) >= 5
        padding: {{'SAME', 'VALID'}}
        data_format: {_3D}
        T: {_FLOAT}""")
class AvgPool3D(_Avg):
    """Over volumes."""


@op(f"""AvgPool3DGrad(orig_input_shape: int32, grad: T) -> (output: T)
        ksize: list(int) >= 5
        strides: list(int) >= 5
        padding: {{'SAME', 'VALID'}}
        data_format: {_3D}
        T: {_FLOAT}""")
class AvgPool3DGrad(_AvgGrad):
    """Over volumes."""


# -- the largest, and where it was ----------------------------------------------------------------------------

_ARGMAX = """
    ksize: list(int) >= 4
    strides: list(int) >= 4"""


@op(f"""MaxPoolWithArgmax(input: T) -> (output: T, argmax: Targmax){_ARGMAX}
        Targmax: {{int32, int64}} = int64
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


@op(f"""MaxPoolGradWithArgmax(input: T, grad: T, argmax: Targmax) -> (output: T){_ARGMAX}
        padding: {{'SAME', 'VALID'}}
        include_batch_in_index: bool = false
        Targmax: {{int32, int64}}
        T: realnumbertype""")
class MaxPoolGradWithArgmax(Op):
    """Its gradient: each output's at the place that was noted."""

    grad = None
    infer = _like(0)

    def flops(node, ins, outs):
        return elements(ins[1])

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
