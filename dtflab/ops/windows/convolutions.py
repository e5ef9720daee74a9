"""The functions of `tf.nn` that convolve, in TF1's forms.

Stands for their part of `python/ops/nn_ops.py` and `nn_impl.py`; the ops are in `conv.py` and `depthwise.py`. What
dilates by moving pixels into the batch is in `atrous.py`.

Rule: strides and dilations may be one number, one per spatial dimension, or one per dimension of the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.messages import renamed


def per_dimension(value: Any, spatial: int, channels_first: bool, name: str) -> list[Any]:
    """`value` as a list with a number for each dimension of a batch; 1 for the batch and the channels."""
    if value is None:
        return [1] * (spatial + 2)
    values = list(value) if isinstance(value, Iterable) else [value]
    if len(values) == spatial + 2:
        return values
    if len(values) not in (1, spatial):
        raise ValueError(
            f"{name} should be of length 1, {spatial} or {spatial + 2}. "
            f"Received: {name}={values} of length {len(values)}"
        )
    values = values * spatial if len(values) == 1 else values
    return [1, 1, *values] if channels_first else [1, *values, 1]


def converted_padding(padding: Any, expected_length: int = 4) -> tuple[Any, list[int]]:
    """`padding` and `explicit_paddings` of an op: a list of pairs, one per dimension, means EXPLICIT."""
    if padding == "EXPLICIT":
        raise ValueError(
            "'EXPLICIT' is not a valid value for `padding`. To use explicit padding, `padding` must be a list."
        )
    if not isinstance(padding, list | tuple):
        return padding, []
    for i, pair in enumerate(padding):
        start = "When `padding` is a list, each element of `padding` must be a list/tuple of size 2. "
        if not isinstance(pair, list | tuple):
            raise ValueError(f"{start}Received: padding={padding} with element at index {i} of type {type(pair)}")
        if len(pair) != 2:
            raise ValueError(f"{start}Received: padding={padding} with element at index {i} of size {len(pair)}")
    if len(padding) != expected_length:
        raise ValueError(
            f"When padding is a list, it must be of size {expected_length}. "
            f"Received: padding={padding} of size {len(padding)}"
        )
    return "EXPLICIT", [n for pair in padding for n in pair]


def is_first(data_format: str | None) -> bool:
    """True if the format has the channels behind the batch."""
    return data_format is not None and data_format.startswith("NC")


def _ways(padding: Any, strides: Any, dilations: Any, data_format: str | None, spatial: int) -> dict[str, Any]:
    """How a filter moves, as attributes of an op."""
    first = is_first(data_format)
    kind, explicit = converted_padding(padding) if spatial == 2 else (padding, [])
    found = {
        "strides": per_dimension(strides, spatial, first, "strides"),
        "padding": kind,
        "data_format": data_format,
        "dilations": per_dimension(dilations, spatial, first, "dilations"),
    }
    return found | {"explicit_paddings": explicit} if spatial == 2 else found


def squeeze_batch_dims(inp: Any, op: Callable[[Tensor], Tensor], inner_rank: int, name: str | None = None) -> Tensor:
    """`op` on a batch with several batch dimensions, as if they were one."""
    with name_scope(name, "squeeze_batch_dims", [inp]):
        inp = convert_to_tensor(inp, name="input")
        inner: Any = inp.shape[-inner_rank:]
        inner = inner if inner.is_fully_defined() else arrays.shape(inp)[-inner_rank:]
        batch: Any = inp.shape[:-inner_rank]
        batch = batch if batch.is_fully_defined() else arrays.shape(inp)[:-inner_rank]
        if isinstance(inner, TensorShape):
            flat = arrays.reshape(inp, [-1, *inner.as_list()])
        else:
            flat = arrays.reshape(inp, arrays.concat(([-1], inner), axis=-1))
        result = op(flat)
        after: Any = result.shape[-inner_rank:]
        after = after if after.is_fully_defined() else arrays.shape(result)[-inner_rank:]
        out = arrays.reshape(result, arrays.concat((batch, after), axis=-1))
        out.set_shape(inp.shape[:-inner_rank].concatenate(out.shape[-inner_rank:]))
        return out


def _forward(op_type: str, input: Any, filter: Any, name: str | None, ways: dict[str, Any]) -> Tensor:
    """Conv2D or Conv3D; with more than one batch dimension on all of them at once."""
    inner = 3 if op_type == "Conv2D" else 4
    shape = getattr(input, "shape", None)
    ndims = getattr(shape, "ndims", None) if not isinstance(shape, tuple) else len(shape)
    if ndims is None or ndims <= inner + 1:
        return apply_op(op_type, name, input=input, filter=filter, **ways)
    return squeeze_batch_dims(input, lambda flat: apply_op(op_type, input=flat, filter=filter, **ways), inner, name)


# -- two dimensions -------------------------------------------------------------------------------------------


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
    padding, explicit = converted_padding(padding)
    return apply_op(
        "Conv2DBackpropFilter", name, input=input, filter_sizes=filter_sizes, out_backprop=out_backprop,
        strides=list(strides), padding=padding, explicit_paddings=explicit, use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format, dilations=list(dilations),
    )  # fmt: skip


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
    padding, explicit = converted_padding(padding)
    return apply_op(
        "Conv2DBackpropInput", name, input_sizes=input_sizes, filter=filter, out_backprop=out_backprop,
        strides=list(strides), padding=padding, explicit_paddings=explicit, use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format, dilations=list(dilations),
    )  # fmt: skip


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


# -- one dimension: two, of which one has size 1 --------------------------------------------------------------

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
        first = is_first(data_format)
        ways = {
            "strides": [1, *per_dimension(stride, 1, first, "stride")],
            "dilations": [1, *per_dimension(dilations, 1, first, "dilations")],
            "padding": padding,
            "data_format": data_format,
            "use_cudnn_on_gpu": use_cudnn_on_gpu,
        }
        height = -2 if first else -3
        value, filters = arrays.expand_dims(value, height), arrays.expand_dims(filters, 0)
        return arrays.squeeze(_forward("Conv2D", value, filters, scope, ways), [height])


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
        first = is_first(data_format)
        height = 2 if first else 1
        ways = {
            "strides": [1, *per_dimension(strides, 1, first, "stride")],
            "dilations": [1, *per_dimension(dilations, 1, first, "dilations")],
        }
        input, filters = arrays.expand_dims(input, height), arrays.expand_dims(filters, 0)
        shape = output_shape if isinstance(output_shape, Tensor) else list(output_shape)
        sizes = arrays.concat([shape[:height], [1], shape[height:]], 0)
        result = apply_op(
            "Conv2DBackpropInput", scope, input_sizes=sizes, filter=filters, out_backprop=input,
            padding=padding, data_format=data_format, **ways,
        )  # fmt: skip
        return arrays.squeeze(result, height)


# -- three dimensions -----------------------------------------------------------------------------------------


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
    return apply_op(
        "Conv3D", name, input=input, filter=renamed("filters", filters, "filter", filter), strides=list(strides),
        padding=padding, data_format=data_format, dilations=list(dilations),
    )  # fmt: skip


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
    return apply_op(
        "Conv3DBackpropFilterV2", name, input=input, filter_sizes=filter_sizes, out_backprop=out_backprop,
        strides=list(strides), padding=padding, data_format=data_format, dilations=list(dilations),
    )  # fmt: skip


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
            raise ValueError(
                f"`output_shape` must be a tensor or sized collection. Received: output_shape={output_shape}"
            )
        if not 1 <= spatial <= 3:
            raise ValueError(
                f"`output_shape` must be of length 3, 4 or 5. "
                f"Received: output_shape={output_shape} of length {spatial + 2}."
            )
        more = {"padding": padding, "data_format": data_format, "dilations": dilations, "name": scope}
        if spatial == 1:
            return conv1d_transpose(input, filters, output_shape, strides, **more)
        if spatial == 2:
            return _transpose2d(input, filters, output_shape, strides, **more)
        return conv3d_transpose(input, filters, output_shape, strides, **more)


# -- any number of dimensions ---------------------------------------------------------------------------------


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
    if not isinstance(filter, Tensor):
        with name_scope("convolution_internal"):
            filter = convert_to_tensor(filter, name="filters")
    if not isinstance(input, Tensor):
        with name_scope("convolution_internal"):
            input = convert_to_tensor(input, name="input")
    spatial = _spatial_dimensions(input.shape, filter.shape)
    first = is_first(data_format)
    rates = per_dimension(rates, spatial, first, "dilations")
    strides = per_dimension(strides, spatial, first, "strides")
    with name_scope(name, "convolution", [input, filter]) as scope:
        if any(rate != 1 for rate in rates):
            from dtflab.ops.windows import atrous

            return atrous.dilated(input, filter, padding, strides, rates, scope, data_format, spatial)
        if spatial == 1:
            return conv1d(input, filter, strides, padding, data_format=data_format, dilations=rates, name=scope)
        ways = {"strides": strides, "padding": padding, "data_format": data_format, "dilations": rates}
        return _forward(f"Conv{spatial}D", input, filter, scope, ways)


def _spatial_dimensions(input_shape: TensorShape, filter_shape: TensorShape) -> int:
    if filter_shape.ndims:
        spatial = filter_shape.ndims - 2
    elif input_shape.ndims:
        spatial = input_shape.ndims - 2
    else:
        raise ValueError("The rank of `input` or of `filter` must be known: they say over how many dimensions to go.")
    if spatial not in (1, 2, 3):
        raise ValueError(f"`num_spatial_dims` must be 1, 2, or 3. Received: num_spatial_dims={spatial}.")
    return spatial
