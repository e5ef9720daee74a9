"""Windows that move over an array: where they stand, and what they see.

Convolutions and pooling share them. Stands for `GetWindowedOutputSizeVerbose` in `core/framework/kernel_shape_util.cc`
and for the checks of `common_shape_fns.cc`. Left out: the format NCHW_VECT_C.

Rule: a kernel walks over the positions *in* the window, and does for each one operation on whole arrays, on those
places that are really there: so padding takes no memory. Only for a product of matrices are the windows laid out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dtflab.base.errors import UnimplementedError
from dtflab.graph.node import Node
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_shape
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import strided
from dtflab.ops.messages import invalid

Places = tuple[slice, ...]
_FIRST = (b"NCHW", b"NCDHW")


class Axis(NamedTuple):
    """One dimension over which a window moves: sizes, steps, and the padding before it and behind it."""

    size: int
    window: int
    stride: int
    dilation: int
    before: int
    after: int
    out: int

    def reach(self, k: int) -> tuple[slice, slice]:
        """Where element `k` of the window meets the array, and the outputs of these windows: padding is left out."""
        offset = k * self.dilation - self.before
        first = max(0, -(offset // self.stride))
        last = min(self.out, (self.size - 1 - offset) // self.stride + 1)
        if last <= first:
            return slice(0, 0), slice(0, 0)
        start = first * self.stride + offset
        return slice(start, start + (last - first - 1) * self.stride + 1, self.stride), slice(first, last)

    def turned(self) -> Axis:
        """The way back, where the stride is 1: a window over the outputs that ends where this one begins."""
        reach = (self.window - 1) * self.dilation
        before, after = reach - self.before, reach - self.after
        return self._replace(size=self.out, out=self.size, before=before, after=after)


def axis(size: int, window: int, stride: int, dilation: int, padding: bytes, explicit: Sequence[int] = (0, 0)) -> Axis:
    """The dimension of a kernel's input; InvalidArgumentError if the window does not fit into it."""
    effective = (window - 1) * dilation + 1
    if padding == b"SAME":
        out = -(-size // stride)
        total = max((out - 1) * stride + effective - size, 0)
        before, after = total // 2, total - total // 2
    else:
        before, after = explicit if padding == b"EXPLICIT" else (0, 0)
        out = (size + before + after - effective + stride) // stride
    if out < 0:
        text = f"[input_size: {size}, effective_filter_size: {effective}, stride: {stride}]"
        raise invalid(f"Computed output size would be negative: {out} {text}")
    return Axis(size, window, stride, dilation, before, after, out)


def outs(axes: Sequence[Axis]) -> tuple[int, ...]:
    """How many windows there are along each dimension."""
    return tuple(a.out for a in axes)


def positions(axes: Sequence[Axis]) -> Iterator[tuple[tuple[int, ...], Places, Places]]:
    """For each element of a window: its place there, what it sees of the input, and for which outputs."""
    for place in itertools.product(*(range(a.window) for a in axes)):
        pairs = [a.reach(k) for a, k in zip(axes, place)]
        yield place, tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)


def patches(xp: Any, x: Any, axes: Sequence[Axis]) -> Any:
    """All windows of `x` [batch, sizes, channels], side by side: [batch, outs, windows, channels], a view."""
    if any(a.before or a.after for a in axes):
        padded = xp.zeros((len(x), *(a.before + a.size + a.after for a in axes), x.shape[-1]), x.dtype)
        padded[(slice(None), *(slice(a.before, a.before + a.size) for a in axes))] = x
        x = padded
    batch, *steps, channel = x.strides
    between = [step * a.stride for step, a in zip(steps, axes)]
    within = [step * a.dilation for step, a in zip(steps, axes)]
    shape = (len(x), *outs(axes), *(a.window for a in axes), x.shape[-1])
    return strided(xp, x, shape, (batch, *between, *within, channel))


def masked(chosen: Any, values: Any) -> Any:
    """The values where `chosen`, else 0: by their bits, four times as fast as `where`; infinities leave no NaN."""
    return (values.view(f"i{values.itemsize}") & -chosen.view("i1")).view(values.dtype)


# -- attributes of a node -------------------------------------------------------------------------------------


def is_channels_first(node: Node | Operation) -> bool:
    """True if `data_format` puts the channels behind the batch."""
    return node.attrs.get("data_format") in _FIRST


def spatial(node: Node | Operation, values: Sequence[Any]) -> list[Any]:
    """The values, of one per dimension, that are neither for the batch nor for the channels."""
    return list(values[2:] if is_channels_first(node) else values[1:-1])


def pairs(values: Sequence[int], ndims: int) -> list[tuple[int, int]]:
    """`explicit_paddings` as two numbers per dimension."""
    return list(zip(values[::2], values[1::2])) if values else [(0, 0)] * ndims


def check_not_over_batch_and_depth(node: Node) -> None:
    """The error of a kernel that would have to stride over images or channels."""
    for name, error in {"strides": UnimplementedError.of, "dilations": invalid}.items():
        values = node.attrs.get(name)
        if values and math.prod(values) != math.prod(spatial(node, values)):
            raise error(f"Current implementation does not yet support {name} in the batch and depth dimensions.")


# -- static shapes --------------------------------------------------------------------------------------------


def static_size(
    size: int | None, window: int | None, stride: int, dilation: int, padding: bytes, explicit: Sequence[int] = (0, 0)
) -> int | None:
    """The number of windows, as the shape rules say it; None where it is not known yet."""
    if stride <= 0:
        raise ValueError(f"Stride must be > 0, but got {stride}")
    if dilation < 1:
        raise ValueError(f"Dilation rate must be >= 1, but got {dilation}")
    if size is None or (window is None and padding != b"SAME"):
        return None
    if padding == b"SAME":
        return -(-size // stride)
    before, after = explicit if padding == b"EXPLICIT" else (0, 0)
    effective, room = ((window or 1) - 1) * dilation + 1, size + before + after
    if effective > room:
        raise ValueError(f"Negative dimension size caused by subtracting {effective} from {room}")
    return (room - effective + stride) // stride


def static_paddings(op: Operation, ndims: int) -> list[tuple[int, int]]:
    """`explicit_paddings`, checked: two numbers per dimension, none for batch and channels."""
    values = op.attrs.get("explicit_paddings") or []
    if op.get_attr("padding") != b"EXPLICIT":
        if values:
            raise ValueError("explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT")
        return pairs([], ndims)
    if len(values) != 2 * ndims:
        raise ValueError(f"explicit_paddings attribute must contain {2 * ndims} values, but got: {len(values)}")
    if any(v < 0 for v in values):
        raise ValueError("All elements of explicit_paddings must be nonnegative")
    found = pairs(values, ndims)
    if sum(values) != sum(before + after for before, after in spatial(op, found)):
        raise ValueError("Nonzero explicit padding in the batch or depth dimensions is not supported")
    return found


def given_shape(op: Operation, index: int) -> TensorShape:
    """The shape that input `index` holds, of as many dimensions as there are strides."""
    ndims = len(op.get_attr("strides"))
    static_paddings(op, ndims)
    return folded_shape(op.inputs[index]).with_rank(ndims)


def with_channels(op: Operation, batch: Any, sizes: Sequence[Any], channels: Any) -> TensorShape:
    """The shape with these parts in the order that `data_format` asks for."""
    return TensorShape([batch, channels, *sizes] if is_channels_first(op) else [batch, *sizes, channels])


def per_dimension(value: Any, spatial: int, channels_first: bool, name: str) -> list[Any]:
    """`value` as a list with a number for each dimension of a batch; 1 for the batch and the channels."""
    if value is None:
        return [1] * (spatial + 2)
    values = list(value) if isinstance(value, Iterable) else [value]
    if len(values) == spatial + 2:
        return values
    if len(values) not in (1, spatial):
        text = f"Received: {name}={values} of length {len(values)}"
        raise ValueError(f"{name} should be of length 1, {spatial} or {spatial + 2}. {text}")
    values = values * spatial if len(values) == 1 else values
    return [1, 1, *values] if channels_first else [1, *values, 1]


def converted_padding(padding: Any, expected_length: int = 4) -> tuple[Any, list[int]]:
    """`padding` and `explicit_paddings` of an op: a list of pairs, one per dimension, means EXPLICIT."""
    if padding == "EXPLICIT":
        text = "To use explicit padding, `padding` must be a list."
        raise ValueError(f"'EXPLICIT' is not a valid value for `padding`. {text}")
    if not isinstance(padding, list | tuple):
        return padding, []
    for i, pair in enumerate(padding):
        is_list = isinstance(pair, list | tuple)
        if not is_list or len(pair) != 2:
            start = "When `padding` is a list, each element of `padding` must be a list/tuple of size 2."
            found = f"size {len(pair)}" if is_list else f"type {type(pair)}"
            raise ValueError(f"{start} Received: padding={padding} with element at index {i} of {found}")
    if len(padding) != expected_length:
        found = f"Received: padding={padding} of size {len(padding)}"
        raise ValueError(f"When padding is a list, it must be of size {expected_length}. {found}")
    return "EXPLICIT", [n for pair in padding for n in pair]


def is_first(data_format: str | None) -> bool:
    """True if the format has the channels behind the batch."""
    return data_format is not None and data_format.startswith("NC")
