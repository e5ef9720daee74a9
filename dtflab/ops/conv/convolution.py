"""Convolutions over two and three dimensions, and their gradients.

Stands for `core/kernels/conv_ops*.cc`, `conv_grad_*_ops*.cc` and their parts of `common_shape_fns.cc` and `nn_grad.py`;
the kernels are in `kernels.py`, the functions of `tf.nn` in `functions.py`. Left out: strides over images or
channels, as in TensorFlow.

Rule: channels are the last dimension inside. Other formats are transposed, and run on every device, though TensorFlow's
CPU kernels refuse some of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import errors
from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_shape
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import windows
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.blas import Shard, alone
from dtflab.ops.conv import kernels
from dtflab.ops.messages import invalid

# -- around the kernels ---------------------------------------------------------------------------------------


# -- the ops --------------------------------------------------------------------------------------------------


def _bind_forward(node: Node, xp: Any, shard: Shard = alone) -> Callable[..., Any]:
    def kernel(x: Any, w: Any) -> Any:
        kernels.check_ranks(node, x, w)
        x, w = kernels.channels_last(xp, node, x), kernels.wide(w)
        axes = kernels.axes_of(node, x.shape[1:-1], w.shape[:-2])
        groups = kernels.groups_of(x.shape[-1], *w.shape[-2:])
        found = kernels.by_groups(xp, lambda x, w: kernels.convolve(xp, shard, x, w, axes), groups, x, w)
        return kernels.as_asked(xp, node, found)

    return kernel


def _bind_input(node: Node, xp: Any, shard: Shard = alone) -> Callable[..., Any]:
    def kernel(sizes: Any, w: Any, dy: Any) -> Any:
        kernels.check_ranks(node, dy, w)
        shape = kernels.sizes_of(node, sizes, dy, w)
        dy, w = kernels.channels_last(xp, node, dy), kernels.wide(w)
        axes = kernels.axes_of(node, windows.spatial(node, shape), w.shape[:-2])
        depth = shape[1 if windows.is_channels_first(node) else -1]
        kernels.check_gradient(dy, shape[0], axes, w.shape[-1])
        groups = kernels.groups_of(depth, *w.shape[-2:])
        found = kernels.by_groups(xp, lambda dy, w: kernels.convolve_back(xp, shard, dy, w, axes), groups, dy, w)
        return kernels.as_asked(xp, node, found)

    return kernel


def _bind_filter(node: Node, xp: Any, shard: Shard = alone) -> Callable[..., Any]:
    def kernel(x: Any, sizes: Any, dy: Any) -> Any:
        shape = tuple(int(n) for n in sizes)
        if len(shape) != len(node["strides"]):
            raise invalid(f"filter_sizes must hold {len(node['strides'])} values, not {len(shape)}")
        kernels.check_ranks(node, x, dy)
        x, dy = kernels.channels_last(xp, node, x), kernels.channels_last(xp, node, dy)
        axes = kernels.axes_of(node, x.shape[1:-1], shape[:-2])
        kernels.check_gradient(dy, len(x), axes, shape[-1])
        groups = kernels.groups_of(x.shape[-1], *shape[-2:])
        found = kernels.by_groups(xp, lambda x, dy: kernels.correlate(xp, shard, x, dy, axes), groups, x, dy)
        return found.astype(node["T"].as_numpy_dtype, copy=False)

    return kernel


def _products(outputs: int, filter_shape: Sequence[Any]) -> int:
    """A multiplication and an addition for each output and each weight of its filter.

    It is asked before the outputs are there.
    """
    return 2 * outputs * math.prod(int(n) for n in filter_shape[:-1])


def check_attrs(op: Operation, ndims: int) -> None:
    """ValueError unless strides and dilations name each dimension."""
    where = "Conv2D on data format " + op.get_attr("data_format").decode() if ndims == 4 else "Conv3D"
    texts = {"dilations": f"Conv{ndims - 2}D requires the dilation", "strides": f"{where} requires the stride"}
    for name, text in texts.items():
        if len(op.get_attr(name)) != ndims:
            raise ValueError(f"{text} attribute to contain {ndims} values, but got: {len(op.get_attr(name))}")


def output_sizes(op: Operation, sizes: Sequence[Any], window: Sequence[Any], paddings: Any) -> list[int | None]:
    """The spatial sizes of a convolution's output."""
    ways = (windows.spatial(op, values) for values in (op.get_attr("strides"), op.get_attr("dilations"), paddings))
    dims, padding = zip(sizes, window, *ways), op.get_attr("padding")
    return [windows.static_size(*each, padding=padding, explicit=explicit) for *each, explicit in dims]


def check_depths(depth: int | None, per_filter: int | None, filters: int | None) -> None:
    """ValueError unless the filters fit the channels, once or in several groups."""
    if depth is None or per_filter is None:
        return
    if not per_filter or depth % per_filter:
        raise ValueError(f"Depth of input ({depth}) is not a multiple of input depth of filter ({per_filter})")
    groups = depth // per_filter
    if filters is not None and groups and filters % groups:
        raise ValueError(f"Depth of output ({filters}) is not a multiple of the number of groups ({groups})")


def _output_shape(op: Operation) -> list[TensorShape]:
    ndims = 5 if "3D" in op.type else 4
    x, w = (t.shape.with_rank(ndims) for t in op.inputs[:2])
    check_attrs(op, ndims)
    sizes, filter_sizes = x.as_list(), w.as_list()
    check_depths(sizes[1 if windows.is_channels_first(op) else -1], *filter_sizes[-2:])
    spatial = output_sizes(op, windows.spatial(op, sizes), filter_sizes, windows.static_paddings(op, ndims))
    return [windows.with_channels(op, sizes[0], spatial, filter_sizes[-1])]


def _input_shape(op: Operation) -> list[TensorShape]:
    """The shape in `input_sizes`; of images the number is that of the gradients."""
    ndims = 5 if "3D" in op.type else 4
    shape = folded_shape(op.inputs[0])
    if ndims == 5:
        return [shape.with_rank(ndims)]
    windows.static_paddings(op, ndims)
    if shape.ndims not in (None, 2, 4):
        raise ValueError(f"{op.type} requires input_sizes to contain 4 values or 2 values, but got: {shape.ndims}")
    batch, depth = op.inputs[2].shape.with_rank(4)[0], op.inputs[1].shape.with_rank(4)[2]
    if shape.ndims == 2:
        return [windows.with_channels(op, batch, shape.as_list(), depth)]
    return [TensorShape([batch, *shape.with_rank(4)[1:]])]


def ways(op: Operation, *names: str) -> dict[str, Any]:
    """The named attributes of `op`, and how its window moves, for another op of the family."""
    return {name: op.get_attr(name) for name in (*names, "strides", "padding", "data_format", "dilations")}


_2D = ("use_cudnn_on_gpu", "explicit_paddings")
_ATTRS_2D = """
    strides: list(int), use_cudnn_on_gpu: bool = true, padding: {'SAME', 'VALID', 'EXPLICIT'}
    explicit_paddings: list(int) = [], data_format: {'NHWC', 'NCHW'} = 'NHWC', dilations: list(int) = [1, 1, 1, 1]"""
_ATTRS_3D = """
    strides: list(int) >= 5, padding: {'SAME', 'VALID'}, data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'
    dilations: list(int) = [1, 1, 1, 1, 1]"""
_FLOAT = "T: {half, bfloat16, float, double}"


class _Forward(Op):
    """Each output is the product of a filter with what it sees of the input."""

    blas = shards = True
    bind = _bind_forward
    infer = _output_shape

    def flops(node: Node, ins: Any, outs: Any) -> int:
        try:
            kernels.check_ranks(node, *ins)
            axes = kernels.axes_of(node, windows.spatial(node, ins[0].shape), ins[1].shape[:-2])
        except errors.OpError:
            return 0  # the kernel will say what is wrong
        return _products(ins[0].shape[0] * math.prod(windows.outs(axes)) * ins[1].shape[-1], ins[1].shape)

    def grad(op: Operation, dy: Any) -> list[Any]:
        back, attrs = _family(op)
        x_shape, w_shape = arrays.shape_n(op.inputs)
        return [
            apply_op(back[0], input_sizes=x_shape, filter=op.inputs[1], out_backprop=dy, **attrs),
            apply_op(back[1], input=op.inputs[0], filter_sizes=w_shape, out_backprop=dy, **attrs),
        ]


def _family(op: Operation) -> tuple[tuple[str, str, str], dict[str, Any]]:
    """The names of the ops back to the input, back to the filter and forward, and their common attributes."""
    if "Depthwise" in op.type:
        forward = "DepthwiseConv2dNative"
        return (f"{forward}BackpropInput", f"{forward}BackpropFilter", forward), ways(op, "explicit_paddings")
    if "2D" in op.type:
        return ("Conv2DBackpropInput", "Conv2DBackpropFilter", "Conv2D"), ways(op, *_2D)
    return ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", "Conv3D"), ways(op)


class BackToInput(Op):
    """The gradient of a convolution by its input."""

    blas = shards = True
    bind = _bind_input
    infer = _input_shape

    def flops(node: Node, ins: Any, outs: Any) -> int:
        return _products(elements(ins[2]), ins[1].shape)

    def grad(op: Operation, d: Any) -> list[Any]:
        (_, to_filter, forward), attrs = _family(op)
        _, w, dy = op.inputs
        return [
            None,
            apply_op(to_filter, input=d, filter_sizes=arrays.shape(w), out_backprop=dy, **attrs),
            apply_op(forward, input=d, filter=w, **attrs),
        ]


class BackToFilter(Op):
    """The gradient of a convolution by its filter."""

    blas = shards = True
    bind = _bind_filter

    def infer(op: Operation) -> list[TensorShape]:
        return [windows.given_shape(op, 1)]

    def flops(node: Node, ins: Any, outs: Any) -> int:
        return _products(elements(ins[2]), outs[0].shape if outs else ins[1])

    def grad(op: Operation, d: Any) -> list[Any]:
        (to_input, _, forward), attrs = _family(op)
        x, _, dy = op.inputs
        return [
            apply_op(to_input, input_sizes=arrays.shape(x), filter=d, out_backprop=dy, **attrs),
            None,
            apply_op(forward, input=x, filter=d, **attrs),
        ]


@op(f"Conv2D(input: T, filter: T) -> (output: T) where T: {{half, bfloat16, float, double, int32}}{_ATTRS_2D}")
class Conv2D(_Forward):
    """Filters that move over images."""


@op(f"""Conv2DBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> (output: T)
        T: {{half, bfloat16, float, double, int32}}{_ATTRS_2D}""")
class Conv2DBackpropInput(BackToInput):
    """Conv2D's gradient by the images."""


@op(f"""Conv2DBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> (output: T)
        {_FLOAT}{_ATTRS_2D}""")
class Conv2DBackpropFilter(BackToFilter):
    """Conv2D's gradient by the filters."""


@op(f"""Conv3D(input: T, filter: T) -> (output: T)
        {_FLOAT}{_ATTRS_3D}""")
class Conv3D(_Forward):
    """Filters that move over volumes."""


@op(f"""Conv3DBackpropInputV2(input_sizes: Tshape, filter: T, out_backprop: T) -> (output: T)
        {_FLOAT}{_ATTRS_3D}
        Tshape: {{int32, int64}} = int32""")
class Conv3DBackpropInputV2(BackToInput):
    """Conv3D's gradient by the volumes."""


@op(f"""Conv3DBackpropFilterV2(input: T, filter_sizes: int32, out_backprop: T) -> (output: T)
        {_FLOAT}{_ATTRS_3D}""")
class Conv3DBackpropFilterV2(BackToFilter):
    """Conv3D's gradient by the filters."""
