"""Windows with holes: what dilates by moving pixels into the batch, and depthwise layers, which may.

Stands for `with_space_to_batch` and what uses it in `python/ops/nn_ops.py` and `nn_impl.py`: a window that looks at
every n-th pixel only is a plain window over each of the n² images that are made of every n-th pixel.

Rule: if all rates are 1, nothing is moved. Names of nodes follow TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import constant_value
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.messages import renamed
from dtflab.ops.windows import convolutions, depthwise, pools
from dtflab.ops.windows.convolutions import converted_padding, is_first

Inner = Callable[[Tensor, int, Any], Tensor]  # (tensor, spatial dimensions, padding) → tensor


def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: Any,
    op: Inner,
    filter_shape: Any = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """`op(input, number of spatial dimensions, padding)` with a window that looks at each n-th pixel only.

    `dilation_rate` has a number per spatial dimension; `filter_shape` is needed for the padding "SAME". ValueError if
    these do not fit.
    """
    input = convert_to_tensor(input, name="input")
    return _Moving(input, dilation_rate, padding, op, filter_shape, spatial_dims, data_format)()


class _Moving:
    """One call of `with_space_to_batch`."""

    def __init__(
        self, input: Tensor, rate: Any, padding: Any, op: Inner, filter_shape: Any, dims: Any, data_format: str | None
    ) -> None:
        self.input = input
        self.rate = convert_to_tensor(rate, "int32", name="dilation_rate")
        if self.rate.shape.ndims not in (None, 1) or not self.rate.shape.is_fully_defined():
            raise ValueError(f"`dilation_rate` must be a vector of known size. Received: dilation_rate={self.rate}")
        self.count = int(self.rate.shape[0])
        self.dims = self._checked(dims, is_first(data_format))
        self.known_rate = constant_value(self.rate)
        if self.known_rate is not None and (self.known_rate < 1).any():
            raise ValueError(f"`dilation_rate` must be positive. Received: dilation_rate={self.known_rate}")
        self.padding, self.op, self.filter_shape, self.data_format = padding, op, filter_shape, data_format

    def _checked(self, dims: Any, first: bool) -> list[int]:
        """The spatial dimensions: those given, if they make sense, or those of the format."""
        start = 2 if first else 1
        given = list(range(start, self.count + start) if dims is None else dims)
        found = sorted({int(d) for d in given})
        if found != given or found[0] < 1:
            raise ValueError(
                "`spatial_dims` must be a monotonically increasing sequence of positive integers. "
                f"Received: spatial_dims={given}"
            )
        rank = found[-1] if first else found[-1] + 1
        if self.input.shape.ndims is not None and self.input.shape.ndims < rank:
            raise ValueError(
                f"`input.shape.rank` must be at least {rank}. "
                f"Received: input.shape={self.input.shape} with rank {self.input.shape.ndims}"
            )
        return found

    def __call__(self) -> Tensor:
        if self.known_rate is not None and (self.known_rate == 1).all():
            return self.op(self.input, self.count, self.padding)
        base = self._base_paddings()
        paddings, crops = arrays.required_space_to_batch_paddings(
            input_shape=self._spatial_shape(), base_paddings=base, block_shape=self.rate
        )
        rate, paddings, crops = (
            _for_all(t, fill, self.dims) for t, fill in ((self.rate, 1), (paddings, 0), (crops, 0))
        )
        moved = arrays.space_to_batch_nd(self.input, rate, paddings)
        result = self.op(moved, self.count, "VALID")
        return arrays.batch_to_space_nd(result, rate, crops)

    def _base_paddings(self) -> Any:
        """What the window wants around the image."""
        padding, explicit = converted_padding(self.padding)
        if padding == "VALID":
            return np.zeros([self.count, 2], np.int32)
        if padding == "EXPLICIT":
            pairs = np.array(explicit).reshape(self.count + 2, 2)
            return pairs[2:] if is_first(self.data_format) else pairs[1:-1]
        if padding != "SAME":
            raise ValueError(f"`padding` must be one of 'SAME' or 'VALID'. Received: padding={padding}")
        if self.filter_shape is None:
            raise ValueError(
                "`filter_shape` must be specified for `padding='SAME'`. "
                f"Received: filter_shape={self.filter_shape} and padding={padding}"
            )
        shape = convert_to_tensor(self.filter_shape, name="filter_shape")
        known = constant_value(shape)
        rate = self.rate if self.known_rate is None else self.known_rate
        more = ((shape if known is None else known)[: self.count] - 1) * rate
        before = more // 2
        after = more - before
        return arrays.stack([[before[i], after[i]] for i in range(self.count)])

    def _spatial_shape(self) -> Any:
        shape = self.input.shape
        sizes = [None] if shape.ndims is None else [shape.as_list()[i] for i in self.dims]
        if None not in sizes:
            return sizes
        dynamic = arrays.shape(self.input)
        return arrays.stack([dynamic[i] for i in self.dims])


def _for_all(some: Tensor, fill: int, dims: Sequence[int]) -> Any:
    """`some`, which has a row per spatial dimension, with rows of `fill` for the dimensions before and between them."""
    known = constant_value(some)
    rows: Any = some if known is None else known
    parts, before, i = [], 0, 0
    while i < len(dims):
        start = i
        if dims[start] > 1:
            shape: Any = [dims[start] - 1 - before, *some.shape.as_list()[1:]]
            parts.append(np.full(shape, fill, some.dtype.as_numpy_dtype))
        while i + 1 < len(dims) and dims[i + 1] == dims[i] + 1:
            i += 1
        parts.append(rows[start : i + 1])
        before = dims[i]
        i += 1
    return arrays.concat(parts, 0) if known is None else np.concatenate(parts)


def _checked_ways(spatial: int, strides: Any, rates: Any) -> tuple[Any, Any]:
    """Strides and rates as arrays; ValueError unless there is one per dimension, and one of the two is all ones."""
    found = []
    for name, values in (("dilation_rate", rates), ("strides", strides)):
        values = [1] * spatial if values is None else values
        if len(values) != spatial:
            raise ValueError(f"`len({name})` should be {spatial}. Received: {name}={values} of length {len(values)}")
        found.append(np.array(values, np.int32))
        if (found[-1] < 1).any():
            raise ValueError(f"all values of `{name}` must be positive. Received: {name}={found[-1]}")
    rate, stride = found
    if (stride > 1).any() and (rate > 1).any():
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
            f"Received: strides={stride} and dilation_rate={rate}"
        )
    return stride, rate


# -- convolutions ---------------------------------------------------------------------------------------------


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
    inner = slice(2, None) if is_first(data_format) else slice(1, -1)
    stride, rate = _checked_ways(spatial, strides[inner], rates[inner])

    def plain(moved: Tensor, _: int, padding: Any) -> Tensor:
        if spatial == 1:
            return convolutions.conv1d(moved, filter, stride[0], padding, data_format=data_format, name=name)
        conv = convolutions.conv2d if spatial == 2 else convolutions.conv3d
        ways = convolutions.per_dimension(stride.tolist(), spatial, is_first(data_format), "strides")
        form = data_format or ("NHWC" if spatial == 2 else "NDHWC")
        return conv(moved, filter, ways, padding, data_format=form, name=name)

    return with_space_to_batch(input, rate, padding, plain, filter.shape, data_format=data_format)


def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any, name: str | None = None) -> Tensor:
    """`filters` [height, width, channels, filters], `rate` pixels apart, moved over images."""
    return convolutions.convolution(value, filters, padding, dilation_rate=np.broadcast_to(rate, (2,)), name=name)


def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """The transpose of `atrous_conv2d`: back to images of shape `output_shape`."""
    with name_scope(name, "atrous_conv2d_transpose", [value, filters, output_shape]):
        value, filters = convert_to_tensor(value, name="value"), convert_to_tensor(filters, name="filters")
        if rate < 1:
            raise ValueError(f"`rate` cannot be less than one. Received: rate={rate}")
        if rate == 1:
            return convolutions.conv2d_transpose(value, filters, output_shape, [1, 1, 1, 1], padding)
        if padding not in ("SAME", "VALID"):
            raise ValueError(f"`padding` must be either 'VALID' or 'SAME'. Received: padding={padding}")
        convert_to_tensor(output_shape, name="output_shape").shape.assert_is_compatible_with([4])
        around, batch_sizes, extra = _transposed_sizes(filters, output_shape, rate, padding)
        moved = arrays.space_to_batch(value, [[0, n] for n in extra], rate)
        back = convolutions.conv2d_backprop_input(batch_sizes, filters, moved, [1, 1, 1, 1], "VALID")
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
        return depthwise.depthwise_conv2d_native(moved, filter, strides, padding, data_format, name=name)

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
        return convolutions.conv2d(each, pointwise_filter, [1, 1, 1, 1], "VALID", data_format=data_format, name=scope)


# -- pooling --------------------------------------------------------------------------------------------------

_POOLS: dict[tuple[str, int], Callable[..., Tensor]] = {
    ("MAX", 1): pools.max_pool, ("MAX", 2): pools.max_pool, ("MAX", 3): pools.max_pool3d,
    ("AVG", 1): pools.avg_pool, ("AVG", 2): pools.avg_pool, ("AVG", 3): pools.avg_pool3d,
}  # fmt: skip


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
            raise ValueError(
                "`len(window_shape)` must be 1, 2, or 3. "
                f"Received: window_shape={window_shape} of length {len(window_shape)}"
            )
        input.shape.with_rank(spatial + 2)
        stride, rate = _checked_ways(spatial, strides, rates)
        _check_pool(window_shape, pooling_type, padding, stride, rate)
        first = is_first(data_format)
        one = _pooled(_POOLS[pooling_type, spatial], list(window_shape), stride.tolist(), data_format, scope)
        dims = range(2 if first else 1, spatial + (2 if first else 1))
        return with_space_to_batch(input, rate, padding, one, window_shape, dims)


def _check_pool(window: Any, kind: str, padding: Any, stride: Any, rate: Any) -> None:
    if padding == "SAME" and (rate > 1).any():
        raise ValueError(
            "pooling with 'SAME' padding is not implemented for `dilation_rate` > 1. "
            f"Received: padding={padding} and dilation_rate={rate}"
        )
    if (stride > np.array(window)).any():
        raise ValueError(
            "`strides` > `window_shape` not supported due to inconsistency between CPU and GPU implementations. "
            f"Received: strides={stride} and window_shape={window}"
        )
    if (kind, len(window)) not in _POOLS:
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
