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
from dtflab.graph.static_value import constant_value
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.conv.windows import converted_padding, is_first

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


def checked_ways(spatial: int, strides: Any, rates: Any) -> tuple[Any, Any]:
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


# -- pooling --------------------------------------------------------------------------------------------------
