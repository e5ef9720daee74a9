"""The functions of `tf.nn` that convolve, in TF1's forms, and those of the other windows.

Stands for their part of `python/ops/nn_ops.py` and `nn_impl.py`; pooling is in `pool/functions.py`.

Rule: strides and dilations may be one number, one per spatial dimension, or one per dimension of the array. Names of
nodes follow TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import windows
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.conv.atrous import checked_ways, with_space_to_batch
from dtflab.ops.math import functions as math
from dtflab.ops.messages import renamed

# ---- two dimensions ----


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """`filter` [height, width, channels, filters] moved over images [batch, height, width, channels].

    `padding` is "SAME", "VALID" or a pair of numbers per dimension. With `data_format` "NCHW" the channels are the
    second dimension of input and result. ValueError if the shapes do not fit.
    """
    filter = renamed("filters", filters, "filter", filter)
    ways = _ways(padding, strides, dilations, data_format or "NHWC", 2)
    return _forward("Conv2D", input, filter, name, {**ways, "use_cudnn_on_gpu": use_cudnn_on_gpu})


def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv2d` by its filter of shape `filter_sizes`."""
    given = {"input": input, "filter_sizes": filter_sizes, "out_backprop": out_backprop}
    ways = _attrs(list(strides), padding, data_format, dilations)
    return apply_op("Conv2DBackpropFilter", name, **given, **ways, use_cudnn_on_gpu=use_cudnn_on_gpu)


def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of `conv2d` by its input of shape `input_sizes`."""
    filter = renamed("filters", filters, "filter", filter)
    given = {"input_sizes": input_sizes, "filter": filter, "out_backprop": out_backprop}
    ways = _attrs(list(strides), padding, data_format, dilations)
    return apply_op("Conv2DBackpropInput", name, **given, **ways, use_cudnn_on_gpu=use_cudnn_on_gpu)


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of `conv2d`: from its output back to images of shape `output_shape`.

    `filter` is [height, width, output channels, input channels].
    """
    value = renamed("input", input, "value", value)
    filter = renamed("filters", filters, "filter", filter)
    with name_scope(name, "conv2d_transpose", [value, filter, output_shape]) as scope:
        return _transpose2d(value, filter, output_shape, strides, padding, data_format, dilations, scope)


def _transpose2d(
    input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any, data_format: Any, dilations: Any, name: Any
) -> Tensor:
    with name_scope(name, "conv2d_transpose") as scope:
        ways = _ways(padding, strides, dilations, data_format or "NHWC", 2)
        given = {"input_sizes": output_shape, "filter": filters, "out_backprop": input}
        return apply_op("Conv2DBackpropInput", scope, **given, **ways)


def _ways(padding: Any, strides: Any, dilations: Any, data_format: str | None, spatial: int) -> dict[str, Any]:
    """How a filter moves, as attributes of an op."""
    first = windows.is_first(data_format)
    kind, explicit = windows.converted_padding(padding) if spatial == 2 else (padding, [])
    found = {
        "strides": windows.per_dimension(strides, spatial, first, "strides"),
        "padding": kind,
        "data_format": data_format,
        "dilations": windows.per_dimension(dilations, spatial, first, "dilations"),
    }
    return found | {"explicit_paddings": explicit} if spatial == 2 else found


def _forward(op_type: str, input: Any, filter: Any, name: str | None, ways: dict[str, Any]) -> Tensor:
    """Conv2D or Conv3D; with more than one batch dimension on all of them at once."""
    inner = 3 if op_type == "Conv2D" else 4
    shape = getattr(input, "shape", None)
    ndims = getattr(shape, "ndims", None) if not isinstance(shape, tuple) else len(shape)
    if ndims is None or ndims <= inner + 1:
        return apply_op(op_type, name, input=input, filter=filter, **ways)
    return squeeze_batch_dims(input, lambda flat: apply_op(op_type, input=flat, filter=filter, **ways), inner, name)


def squeeze_batch_dims(inp: Any, op: Callable[[Tensor], Tensor], inner_rank: int, name: str | None = None) -> Tensor:
    """`op` on a batch with several batch dimensions, as if they were one."""
    with name_scope(name, "squeeze_batch_dims", [inp]):
        inp = convert_to_tensor(inp, name="input")
        inner, batch = _known_or_later(inp, slice(-inner_rank, None)), _known_or_later(inp, slice(-inner_rank))
        known = isinstance(inner, TensorShape)
        result = op(arrays.reshape(inp, [-1, *inner.as_list()] if known else arrays.concat(([-1], inner), axis=-1)))
        after = _known_or_later(result, slice(-inner_rank, None))
        out = arrays.reshape(result, arrays.concat((batch, after), axis=-1))
        out.set_shape(inp.shape[:-inner_rank].concatenate(out.shape[-inner_rank:]))
        return out


def _known_or_later(x: Tensor, part: slice) -> Any:
    """That part of the shape, which is static if it is all known."""
    known = x.shape[part]
    return known if known.is_fully_defined() else arrays.shape(x)[part]


# ---- one dimension: two, of which one has size 1 ----


_FORMATS_1D = {None: "NHWC", "NWC": "NHWC", "NHWC": "NHWC", "NCW": "NCHW", "NCHW": "NCHW"}


def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """`filters` [width, channels, filters] moved over sequences [batch, width, channels] ("NCW": channels second)."""
    value = renamed("input", input, "value", value)
    with name_scope(name, "conv1d", [value, filters]) as scope:
        if data_format not in _FORMATS_1D:
            raise ValueError(f"`data_format` must be 'NWC' or 'NCW'. Received: data_format={data_format}")
        data_format = _FORMATS_1D[data_format]
        ways = {**_ways_1d(stride, dilations, padding, data_format), "use_cudnn_on_gpu": use_cudnn_on_gpu}
        height = -2 if windows.is_first(data_format) else -3
        value, filters = arrays.expand_dims(value, height), arrays.expand_dims(filters, 0)
        return arrays.squeeze(_forward("Conv2D", value, filters, scope, ways), [height])


def _ways_1d(stride: Any, dilations: Any, padding: Any, data_format: str) -> dict[str, Any]:
    """How a filter moves over sequences, as attributes of an op over images of height 1."""
    first = windows.is_first(data_format)
    stride = [1, *windows.per_dimension(stride, 1, first, "stride")]
    dilations = [1, *windows.per_dimension(dilations, 1, first, "dilations")]
    return {"strides": stride, "dilations": dilations, "padding": padding, "data_format": data_format}


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `conv1d`: back to sequences of shape `output_shape`."""
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]) as scope:
        if data_format not in (None, "NWC", "NCW"):
            raise ValueError(f"`data_format` must be 'NWC' or 'NCW'. Received: data_format={data_format}")
        data_format = _FORMATS_1D[data_format]
        ways = _ways_1d(strides, dilations, padding, data_format)
        height = 2 if windows.is_first(data_format) else 1
        input, filters = arrays.expand_dims(input, height), arrays.expand_dims(filters, 0)
        shape = output_shape if isinstance(output_shape, Tensor) else list(output_shape)
        sizes = arrays.concat([shape[:height], [1], shape[height:]], 0)
        given = {"input_sizes": sizes, "filter": filters, "out_backprop": input}
        return arrays.squeeze(apply_op("Conv2DBackpropInput", scope, **given, **ways), height)


# ---- three dimensions ----


def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """`filter` [depth, height, width, channels, filters] moved over volumes [batch, depth, height, width, channels]."""
    filter = renamed("filters", filters, "filter", filter)
    return apply_op("Conv3D", name, input=input, filter=filter, **_volumes(strides, padding, data_format, dilations))


def _volumes(strides: Any, padding: Any, data_format: str, dilations: Any) -> dict[str, Any]:
    """How a filter moves over volumes, as attributes of an op."""
    return {"strides": list(strides), "padding": padding, "data_format": data_format, "dilations": list(dilations)}


def conv3d_backprop_filter_v2(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    dilations: Sequence[int] = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv3d` by its filter of shape `filter_sizes`."""
    given = {"input": input, "filter_sizes": filter_sizes, "out_backprop": out_backprop}
    return apply_op("Conv3DBackpropFilterV2", name, **given, **_volumes(strides, padding, data_format, dilations))


def conv3d_transpose(
    value: Any,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of `conv3d`: back to volumes of shape `output_shape`."""
    filter = renamed("filters", filters, "filter", filter)
    value = renamed("input", input, "value", value)
    with name_scope(name, "conv3d_transpose", [value, filter, output_shape]) as scope:
        ways = _ways(padding, strides, dilations, data_format or "NDHWC", 3)
        given = {"input_sizes": output_shape, "filter": filter, "out_backprop": value}
        return apply_op("Conv3DBackpropInputV2", scope, **given, **ways)


# ---- any number of dimensions ----


def convolution(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """A convolution over one, two or three dimensions, as `filter` has dimensions.

    Dilated ones move pixels into the batch, and then strides must be 1.
    """
    filter = renamed("filters", filters, "filter", filter)
    rates = renamed("dilations", dilations, "dilation_rate", dilation_rate)
    filter, input = _converted(filter, "filters"), _converted(input, "input")
    spatial = _spatial_dimensions(input.shape, filter.shape)
    first = windows.is_first(data_format)
    rates = windows.per_dimension(rates, spatial, first, "dilations")
    strides = windows.per_dimension(strides, spatial, first, "strides")
    with name_scope(name, "convolution", [input, filter]) as scope:
        if any(rate != 1 for rate in rates):
            return dilated(input, filter, padding, strides, rates, scope, data_format, spatial)
        if spatial == 1:
            return conv1d(input, filter, strides, padding, data_format=data_format, dilations=rates, name=scope)
        ways = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": rates}
        return _forward(f"Conv{spatial}D", input, filter, scope, ways)


def _converted(x: Any, name: str) -> Tensor:
    if isinstance(x, Tensor):
        return x
    with name_scope("convolution_internal"):
        return convert_to_tensor(x, name=name)


def _spatial_dimensions(input_shape: TensorShape, filter_shape: TensorShape) -> int:
    ndims = filter_shape.ndims or input_shape.ndims
    if not ndims:
        raise ValueError("The rank of `input` or of `filter` must be known: they determine the number of dimensions.")
    spatial = ndims - 2
    if spatial not in (1, 2, 3):
        raise ValueError(f"`num_spatial_dims` must be 1, 2, or 3. Received: num_spatial_dims={spatial}.")
    return spatial


def dilated(
    input: Tensor,
    filter: Tensor,
    padding: Any,
    strides: Any,
    rates: Any,
    name: str,
    data_format: str | None,
    spatial: int,
) -> Tensor:
    """The convolution of `tf.nn.convolution` if not all rates are 1; there is one per dimension of the array."""
    inner = slice(2, None) if windows.is_first(data_format) else slice(1, -1)
    stride, rate = checked_ways(spatial, strides[inner], rates[inner])

    def plain(moved: Tensor, _: int, padding: Any) -> Tensor:
        if spatial == 1:
            return conv1d(moved, filter, stride[0], padding, data_format=data_format, name=name)
        conv = conv2d if spatial == 2 else conv3d
        ways = windows.per_dimension(stride.tolist(), spatial, windows.is_first(data_format), "strides")
        form = data_format or ("NHWC" if spatial == 2 else "NDHWC")
        return conv(moved, filter, ways, padding, data_format=form, name=name)

    return with_space_to_batch(input, rate, padding, plain, filter.shape, data_format=data_format)


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of a convolution over one, two or three dimensions, as `output_shape` has entries."""
    with name_scope(name, "conv_transpose", [input, filters, output_shape]) as scope:
        if isinstance(output_shape, Tensor):
            spatial = int(output_shape.shape[0]) - 2
        elif isinstance(output_shape, Sized):
            spatial = len(output_shape) - 2
        else:
            text = f"Received: output_shape={output_shape}"
            raise ValueError(f"`output_shape` must be a tensor or sized collection. {text}")
        if not 1 <= spatial <= 3:
            text = f"Received: output_shape={output_shape} of length {spatial + 2}."
            raise ValueError(f"`output_shape` must be of length 3, 4 or 5. {text}")
        more = {"padding": padding, "data_format": data_format, "dilations": dilations, "name": scope}
        if spatial == 1:
            return conv1d_transpose(input, filters, output_shape, strides, **more)
        if spatial == 2:
            return _transpose2d(input, filters, output_shape, strides, **more)
        return conv3d_transpose(input, filters, output_shape, strides, **more)


# ---- two dimensions with holes ----


def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any, name: str | None = None) -> Tensor:
    """`filters` [height, width, channels, filters], `rate` pixels apart, moved over images."""
    return convolution(value, filters, padding, dilation_rate=np.broadcast_to(rate, (2,)), name=name)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """The transpose of `atrous_conv2d`: back to images of shape `output_shape`."""
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]):
        value, filters = convert_to_tensor(value, name="value"), convert_to_tensor(filters, name="filters")
        if rate < 1:
            raise ValueError(f"`rate` cannot be less than one. Received: rate={rate}")
        if rate == 1:
            return conv2d_transpose(value, filters, output_shape, [1, 1, 1, 1], padding)
        if padding not in ("SAME", "VALID"):
            raise ValueError(f"`padding` must be either 'VALID' or 'SAME'. Received: padding={padding}")
        convert_to_tensor(output_shape, name="output_shape").shape.assert_is_compatible_with([4])
        around, batch_sizes, extra = _transposed_sizes(filters, output_shape, rate, padding)
        moved = arrays.space_to_batch(value, [[0, n] for n in extra], rate)
        back = conv2d_backprop_input(batch_sizes, filters, moved, [1, 1, 1, 1], "VALID")
        crops = [[before, after + more] for (before, after), more in zip(around, extra, strict=True)]
        return arrays.batch_to_space(back, crops, rate)


def _transposed_sizes(filters: Tensor, output_shape: Any, rate: int, padding: str) -> tuple[Any, list[Any], list[Any]]:
    """The padding around the images, the shape of the moved ones, and what they need to be divisible by `rate`."""
    shape: Any = filters.shape.as_list() if filters.shape.is_fully_defined() else arrays.shape(filters)
    around = []
    for i in range(2):
        more = (shape[i] - 1) * rate if padding == "SAME" else 0
        around.append((more // 2, more - more // 2))
    whole = [output_shape[1 + i] + before + after for i, (before, after) in enumerate(around)]
    extra = [(rate - n % rate) % rate for n in whole]
    sizes = [(n + more) // rate for n, more in zip(whole, extra, strict=True)]
    return around, [rate * rate * output_shape[0], *sizes, output_shape[3]], extra


# ---- depthwise convolutions ----


def _attrs(strides: Any, padding: Any, data_format: str | None, dilations: Any) -> dict[str, Any]:
    padding, explicit = windows.converted_padding(padding)
    ways = {"strides": strides, "padding": padding, "explicit_paddings": explicit}
    return {**ways, "data_format": data_format, "dilations": list(dilations)}


def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """`filter` [height, width, channels, n] moved over images, n for each channel: […, channels · n]."""
    attrs = _attrs(strides, padding, data_format, dilations)
    return apply_op("DepthwiseConv2dNative", name, input=input, filter=filter, **attrs)


def depthwise_conv2d_native_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d_native` by its input of shape `input_sizes`."""
    given = {"input_sizes": input_sizes, "filter": filter, "out_backprop": out_backprop}
    attrs = _attrs(strides, padding, data_format, dilations)
    return apply_op("DepthwiseConv2dNativeBackpropInput", name, **given, **attrs)


def depthwise_conv2d_native_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d_native` by its filter of shape `filter_sizes`."""
    given = {"input": input, "filter_sizes": filter_sizes, "out_backprop": out_backprop}
    attrs = _attrs(strides, padding, data_format, dilations)
    return apply_op("DepthwiseConv2dNativeBackpropFilter", name, **given, **attrs)


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """`filter` [height, width, channels, n] moved over images, n for each channel; `rate` spreads it."""
    rate = renamed("dilations", dilations, "rate", rate)
    with name_scope(name, "depthwise", [input, filter]) as scope:
        input, filter = convert_to_tensor(input, name="tensor_in"), convert_to_tensor(filter, name="filter_in")
        return _depthwise(input, filter, strides, padding, rate, data_format, scope)


def _depthwise(
    input: Tensor, filter: Tensor, strides: Any, padding: Any, rate: Any, data_format: str | None, name: str
) -> Tensor:
    def plain(moved: Tensor, _: int, padding: Any) -> Tensor:
        return depthwise_conv2d_native(moved, filter, strides, padding, data_format, name=name)

    shape = arrays.shape(filter)
    return with_space_to_batch(input, [1, 1] if rate is None else rate, padding, plain, shape, data_format=data_format)


def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A depthwise convolution, and then one by `pointwise_filter` [1, 1, channels · n, filters] that mixes channels."""
    rate = renamed("dilations", dilations, "rate", rate)
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        input = convert_to_tensor(input, name="tensor_in")
        depthwise_filter = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise_filter = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        for dim in pointwise_filter.shape.with_rank(4)[:2]:
            dim.assert_is_compatible_with(1)
        each = _depthwise(input, depthwise_filter, strides, padding, rate, data_format, "depthwise")
        return conv2d(each, pointwise_filter, [1, 1, 1, 1], "VALID", data_format=data_format, name=scope)


# ---- dilation and patches ----


def dilation2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The largest of pixel plus `filter` [height, width, channels] in each window of images."""
    filter = renamed("filters", filters, "filter", filter)
    rates = renamed("dilations", dilations, "rates", rates)
    return apply_op("Dilation2D", name, input=input, filter=filter, strides=strides, rates=rates, padding=padding)


def erosion2d(value: Any, kernel: Any, strides: Any, rates: Any, padding: Any, name: str | None = None) -> Tensor:
    """The smallest of pixel minus `kernel`, turned round, in each window: the dilation of what is dark."""
    with name_scope(name, "erosion2d", [value, kernel]) as scope:
        dark = math.negative(convert_to_tensor(value))
        turned = arrays.reverse(kernel, [0, 1])
        return math.negative(dilation2d(dark, turned, strides, rates, padding, name=scope))


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """The windows of `images` [batch, height, width, depth], each as one pixel with rows * columns * depth channels.

    `ksizes` (or `sizes`), `strides` and `rates` (how far apart the pixels of a window are) have one number per
    dimension, 1 for batch and depth; `padding` is "SAME" or "VALID".
    """
    sizes = renamed("sizes", sizes, "ksizes", ksizes)
    return extract_patches(images, sizes, strides, rates, padding, name)


def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: Any, name: str | None = None) -> Tensor:
    """The windows of `images`; see `extract_image_patches`."""
    ways = {"ksizes": sizes, "strides": strides, "rates": rates, "padding": padding}
    return apply_op("ExtractImagePatches", name, images=images, **ways)
