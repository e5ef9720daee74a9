"""The arguments that convolutions and pooling share: data_format, padding, and tuples of sizes.

Stands for `keras/utils/conv_utils.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def normalized_data_format(given: str | None) -> str:
    """`channels_last` (also for None) or `channels_first`."""
    found = (given or "channels_last").lower()
    if found not in ("channels_first", "channels_last"):
        raise ValueError(
            f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {given}'
        )
    return found


def of_op(data_format: str, ndim: int) -> str:
    """The name of a data format in ops: `NHWC`, `NCHW`, and for `ndim` 3 and 5 `NWC`, `NCDHW`, …"""
    spatial = {3: "W", 4: "HW", 5: "DHW"}[ndim]
    return f"N{spatial}C" if data_format == "channels_last" else f"NC{spatial}"


def normalized_padding(given: str, causal: bool = False) -> str:
    """`valid` or `same`, in lower case; also `causal` where it is allowed."""
    padding = given.lower() if isinstance(given, str) else given
    if padding not in (("valid", "same", "causal") if causal else ("valid", "same")):
        raise ValueError(
            'The `padding` argument must be a list/tuple or one of "valid", "same" (or "causal", only for `Conv1D). '
            f"Received: {given}"
        )
    return padding


def normalized_tuple(given: Any, n: int, name: str) -> tuple[int, ...]:
    """`n` sizes above 0, from one number or `n` of them. Raises ValueError for others."""
    text = f"The `{name}` argument must be a tuple of {n} integers. Received: {given}"
    if isinstance(given, int):
        sizes = (given,) * n
    else:
        try:
            sizes = tuple(int(size) for size in given)
        except (TypeError, ValueError):
            raise ValueError(text) from None
    if len(sizes) != n:
        raise ValueError(text)
    if wrong := {size for size in sizes if size <= 0}:
        raise ValueError(f"{text} including {wrong} that does not satisfy the requirement `> 0`.")
    return sizes


def convolved_size(size: int | None, kernel: int, padding: str, stride: int, dilation: int) -> int | None:
    """The number of outputs of a convolution along an axis of `size`."""
    if size is None:
        return None
    reach = (kernel - 1) * dilation if padding == "valid" else 0
    return (size - reach + stride - 1) // stride


def transposed_size(size: Any, kernel: int, padding: str, stride: int) -> Any:
    """The number of outputs of a transposed convolution along an axis of `size`, a number, a tensor or None."""
    if size is None:
        return None
    length = size * stride
    return length + max(kernel - stride, 0) if padding == "valid" else length


def all_sizes(batch: Any, spatial: Sequence[Any], channels: Any, data_format: str) -> list[Any]:
    """[batch, …, channels] or [batch, channels, …]"""
    return [batch, *spatial, channels] if data_format == "channels_last" else [batch, channels, *spatial]
