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
from dtflab.ops.windows import converted_padding, is_first

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
    input, first = convert_to_tensor(input, name="input"), is_first(data_format)
    rate = convert_to_tensor(dilation_rate, "int32", name="dilation_rate")
    if rate.shape.ndims not in (None, 1) or not rate.shape.is_fully_defined():
        raise ValueError(f"`dilation_rate` must be a vector of known size. Received: dilation_rate={rate}")
    count, known = int(rate.shape[0]), constant_value(rate)
    dims = _checked_dims(input, spatial_dims, count, first)
    if known is not None and (known < 1).any():
        raise ValueError(f"`dilation_rate` must be positive. Received: dilation_rate={known}")
    if known is not None and (known == 1).all():
        return op(input, count, padding)
    base = _base_paddings(padding, count, rate if known is None else known, filter_shape, first)
    paddings, crops = arrays.required_space_to_batch_paddings(_sizes(input, dims), rate, base)
    rate, paddings, crops = (_for_all(t, fill, dims) for t, fill in ((rate, 1), (paddings, 0), (crops, 0)))
    moved = arrays.space_to_batch_nd(input, rate, paddings)
    return arrays.batch_to_space_nd(op(moved, count, "VALID"), rate, crops)


def _checked_dims(input: Tensor, dims: Any, count: int, first: bool) -> list[int]:
    """The spatial dimensions: those given, if they make sense, or those of the format."""
    start = 2 if first else 1
    given = list(range(start, count + start) if dims is None else dims)
    found = sorted({int(d) for d in given})
    if found != given or found[0] < 1:
        text = "must be a monotonically increasing sequence of positive integers."
        raise ValueError(f"`spatial_dims` {text} Received: spatial_dims={given}")
    rank = found[-1] if first else found[-1] + 1
    if input.shape.ndims is not None and input.shape.ndims < rank:
        text = f"Received: input.shape={input.shape} with rank {input.shape.ndims}"
        raise ValueError(f"`input.shape.rank` must be at least {rank}. {text}")
    return found


def _base_paddings(padding: Any, count: int, rate: Any, filter_shape: Any, first: bool) -> Any:
    """The padding around the image that the window needs."""
    padding, explicit = converted_padding(padding)
    if padding == "VALID":
        return np.zeros([count, 2], np.int32)
    if padding == "EXPLICIT":
        pairs = np.array(explicit).reshape(count + 2, 2)
        return pairs[2:] if first else pairs[1:-1]
    if padding != "SAME":
        raise ValueError(f"`padding` must be one of 'SAME' or 'VALID'. Received: padding={padding}")
    if filter_shape is None:
        text = f"Received: filter_shape={filter_shape} and padding={padding}"
        raise ValueError(f"`filter_shape` must be specified for `padding='SAME'`. {text}")
    shape = convert_to_tensor(filter_shape, name="filter_shape")
    known = constant_value(shape)
    more = ((shape if known is None else known)[:count] - 1) * rate
    before = more // 2
    after = more - before
    return arrays.stack([[before[i], after[i]] for i in range(count)])


def _sizes(input: Tensor, dims: Sequence[int]) -> Any:
    """The sizes along these dimensions: a list if they are known, else a tensor."""
    sizes = [None] if input.shape.ndims is None else [input.shape.as_list()[i] for i in dims]
    if None not in sizes:
        return sizes
    dynamic = arrays.shape(input)
    return arrays.stack([dynamic[i] for i in dims])


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
        before, i = dims[i], i + 1
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
        text = f"Received: strides={stride} and dilation_rate={rate}"
        raise ValueError(f"`strides > 1` not supported in conjunction with `dilation_rate > 1`. {text}")
    return stride, rate
