"""The functions of `tf.nn` that pool, in TF1's forms.

Stands for their part of `python/ops/nn_ops.py`.

Rule: window and strides may be one number, one per spatial dimension, or one per dimension of the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.conv.atrous import Inner, checked_ways, with_space_to_batch
from dtflab.ops.messages import renamed
from dtflab.ops.windows import converted_padding, is_first, per_dimension


def _window(ksize: Any, strides: Any, spatial: int, data_format: str | None) -> dict[str, Any]:
    given, first = {"ksize": ksize, "strides": strides}, is_first(data_format)
    return {name: per_dimension(values, spatial, first, name) for name, values in given.items()}


def _spatial_dimensions(input: Any, data_format: str | None) -> int:
    """How many dimensions a window moves over: what the rank of the input, or else the format, says."""
    if input.shape.ndims is None and data_format is None:
        raise ValueError("`input` must have a static shape or `data_format` must be given.")
    spatial = (input.shape.ndims if input.shape.ndims is not None else len(data_format or "")) - 2
    if not 1 <= spatial <= 3:
        text = f"Received: input.shape={input.shape} of rank {spatial + 2}."
        raise ValueError(f"`input.shape.rank` must be 3, 4 or 5. {text}")
    return spatial


def _one_dimension(op_type: str, input: Any, name: str, data_format: str, **attrs: Any) -> Tensor:
    """An op over images on sequences: as images of height 1."""
    height = 1 if data_format == "NWC" else 2
    value = arrays.expand_dims(input, height)
    argument = "value" if op_type == "AvgPool" else "input"
    result = apply_op(op_type, name, **{argument: value}, data_format="NHWC" if height == 1 else "NCHW", **attrs)
    return arrays.squeeze(result, height)


# ---- the mean ----


def avg_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The mean of each window of images [batch, height, width, channels]; padding does not count."""
    with name_scope(name, "AvgPool", [value]) as scope:
        value = renamed("input", input, "value", value)
        window = _window(ksize, strides, 2, data_format)
        return apply_op("AvgPool", scope, value=value, padding=padding, data_format=data_format or "NHWC", **window)


def avg_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The mean of each window over one, two or three dimensions, as `input` has them."""
    spatial = _spatial_dimensions(input, data_format)
    window = _window(ksize, strides, spatial, data_format)
    if spatial == 1:
        return avg_pool1d(input, **window, padding=padding, data_format=data_format, name=name)
    if spatial == 2:
        return apply_op("AvgPool", name, value=input, padding=padding, data_format=data_format, **window)
    return apply_op("AvgPool3D", name, input=input, padding=padding, data_format=data_format, **window)


def avg_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NWC", name: str | None = None
) -> Tensor:
    """The mean of each window of sequences [batch, width, channels]."""
    with name_scope(name, "AvgPool1D", [input]) as scope:
        window = {key: [1, *values] for key, values in _window(ksize, strides, 1, data_format).items()}
        return _one_dimension("AvgPool", input, scope, data_format or "NWC", padding=padding, **window)


def avg_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NDHWC", name: str | None = None
) -> Tensor:
    """The mean of each window of volumes [batch, depth, height, width, channels]."""
    with name_scope(name, "AvgPool3D", [input]) as scope:
        window = _window(ksize, strides, 3, data_format)
        return apply_op("AvgPool3D", scope, input=input, padding=padding, data_format=data_format or "NDHWC", **window)


# ---- the largest ----


def max_pool(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The largest of each window of images [batch, height, width, channels].

    `padding` is "SAME", "VALID" or a pair of numbers per dimension.
    """
    value = renamed("input", input, "value", value)
    with name_scope(name, "MaxPool", [value]) as scope:
        window = _window(ksize, strides, 2, data_format)
        if 0 in window["ksize"]:
            raise ValueError(f"`ksize` cannot be zero. Received: ksize={window['ksize']}")
        return _max_pool2d(value, window, padding, data_format or "NHWC", scope)


def max_pool2d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NHWC", name: str | None = None
) -> Tensor:
    """The largest of each window of images: `max_pool` under its newer name."""
    with name_scope(name, "MaxPool2d", [input]) as scope:
        return _max_pool2d(input, _window(ksize, strides, 2, data_format), padding, data_format or "NHWC", scope)


def _max_pool2d(value: Any, window: dict[str, Any], padding: Any, data_format: str, name: str | None) -> Tensor:
    kind, explicit = converted_padding(padding)
    ways = {"padding": kind, "explicit_paddings": explicit, "data_format": data_format}
    return apply_op("MaxPool", name, input=value, **window, **ways)


def max_pool_v2(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """The largest of each window over one, two or three dimensions, as `input` has them."""
    spatial = _spatial_dimensions(input, data_format)
    window = _window(ksize, strides, spatial, data_format)
    if isinstance(padding, list | tuple) and spatial == 3:
        text = f"Received: padding={padding}"
        raise ValueError(f"Explicit padding is not supported with an input tensor of rank 5. {text}")
    if spatial == 1:
        return max_pool1d(input, **window, padding=padding, data_format=data_format, name=name)
    if spatial == 2:
        return max_pool2d(input, **window, padding=padding, data_format=data_format, name=name)
    return apply_op("MaxPool3D", name, input=input, padding=padding, data_format=data_format, **window)


def max_pool1d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NWC", name: str | None = None
) -> Tensor:
    """The largest of each window of sequences [batch, width, channels]."""
    with name_scope(name, "MaxPool1d", [input]) as scope:
        window = {key: [1, *values] for key, values in _window(ksize, strides, 1, data_format).items()}
        kind, explicit = converted_padding(padding, 3)
        explicit = [0, 0, *explicit] if explicit else explicit
        ways = {"padding": kind, "explicit_paddings": explicit}
        return _one_dimension("MaxPool", input, scope, data_format or "NWC", **ways, **window)


def max_pool3d(
    input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = "NDHWC", name: str | None = None
) -> Tensor:
    """The largest of each window of volumes [batch, depth, height, width, channels]."""
    with name_scope(name, "MaxPool3D", [input]) as scope:
        window = _window(ksize, strides, 3, data_format)
        return apply_op("MaxPool3D", scope, input=input, padding=padding, data_format=data_format or "NDHWC", **window)


def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> Any:
    """The largest of each window, and its number in the flat image (or in the flat batch), as `Targmax` (int64)."""
    if data_format != "NHWC":
        text = f"Received: data_format={data_format}"
        raise ValueError(f"`data_format` values other  than 'NHWC' are not supported. {text}")
    dtype = renamed("output_dtype", output_dtype, "Targmax", Targmax)
    window = {"ksize": ksize, "strides": strides, "padding": padding, "include_batch_in_index": include_batch_in_index}
    dtype = dtypes.int64 if dtype is None else dtype
    return apply_op("MaxPoolWithArgmax", name, input=convert_to_tensor(input), **window, Targmax=dtype)


# ---- with holes ----


_Pools = list[Callable[..., Tensor]]  # over one, two, three dimensions
_POOLS: dict[str, _Pools] = {"MAX": [max_pool, max_pool, max_pool3d], "AVG": [avg_pool, avg_pool, avg_pool3d]}


def pool(
    input: Any,
    window_shape: Sequence[int],
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """The largest ("MAX") or the mean ("AVG") of each window, over one, two or three dimensions.

    The strides are 1 unless given; with a `dilation_rate` they must be.
    """
    rates = renamed("dilations", dilations, "dilation_rate", dilation_rate)
    with name_scope(name, f"{pooling_type.lower()}_pool", [input]) as scope:
        input, spatial = convert_to_tensor(input, name="input"), len(window_shape)
        if not 1 <= spatial <= 3:
            text = f"Received: window_shape={window_shape} of length {len(window_shape)}"
            raise ValueError(f"`len(window_shape)` must be 1, 2, or 3. {text}")
        input.shape.with_rank(spatial + 2)
        stride, rate = checked_ways(spatial, strides, rates)
        _check_pool(window_shape, pooling_type, padding, stride, rate)
        first = is_first(data_format)
        one = _pooled(_POOLS[pooling_type][spatial - 1], list(window_shape), stride.tolist(), data_format, scope)
        dims = range(2 if first else 1, spatial + (2 if first else 1))
        return with_space_to_batch(input, rate, padding, one, window_shape, dims)


def _check_pool(window: Any, kind: str, padding: Any, stride: Any, rate: Any) -> None:
    if padding == "SAME" and (rate > 1).any():
        text = f"Received: padding={padding} and dilation_rate={rate}"
        raise ValueError(f"pooling with 'SAME' padding is not implemented for `dilation_rate` > 1. {text}")
    if (stride > np.array(window)).any():
        text = "not supported due to inconsistency between CPU and GPU implementations."
        raise ValueError(f"`strides` > `window_shape` {text} Received: strides={stride} and window_shape={window}")
    if kind not in _POOLS:
        raise ValueError(f"{len(window)}-D {kind} pooling is not supported.")


def _pooled(function: Any, window: list[int], stride: list[int], data_format: str | None, name: str) -> Inner:
    """One plain pooling; sequences are images of height 1."""
    first = is_first(data_format)
    window, stride = ([1, 1, *values] if first else [1, *values, 1] for values in (window, stride))

    def op(moved: Tensor, spatial: int, padding: Any) -> Tensor:
        if spatial > 1:
            return function(moved, window, stride, padding, data_format=data_format, name=name)
        if data_format not in (None, "NWC", "NCW"):
            raise ValueError(f"data_format must be either 'NWC' or 'NCW'. Received: data_format={data_format}")
        height = 2 if first else 1
        images = arrays.expand_dims(moved, height)
        form = "NCHW" if first else "NHWC"
        pooled = function(images, [1, *window], [1, *stride], padding, data_format=form, name=name)
        return arrays.squeeze(pooled, [height])

    return op


# ---- windows in random order ----


def fractional_max_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Any:
    """The largest of each random window of images, and where the windows start in both dimensions.

    `pooling_ratio` has four numbers, of which the first and the last are 1. `deterministic` keeps the first windows.
    """
    ways = (pseudo_random, overlapping, deterministic, seed, seed2)
    return _fractional("FractionalMaxPool", name, value, pooling_ratio, *ways)


def fractional_avg_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Any:
    """Pool with the mean of each window; otherwise like `fractional_max_pool`."""
    ways = (pseudo_random, overlapping, deterministic, seed, seed2)
    return _fractional("FractionalAvgPool", name, value, pooling_ratio, *ways)


def _fractional(op_type: str, name: str | None, value: Any, ratio: Any, *ways: Any) -> Any:
    attrs = dict(zip(("pseudo_random", "overlapping", "deterministic", "seed", "seed2"), ways, strict=True))
    return apply_op(op_type, name, value=value, pooling_ratio=list(ratio), **attrs)
