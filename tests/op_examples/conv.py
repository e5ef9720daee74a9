"""Convolutions: Conv2D, Conv3D, depthwise ones, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import SOME_ROUNDINGS, Example, Values, examples

# Sizes, filter, and how it moves: chosen so that padding, tails that no window sees, and empty results occur.
_PLAIN = {"strides": [1, 1, 1, 1], "padding": "SAME"}
_WAYS_2D: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 5, 4, 2), (3, 2, 2, 3), _PLAIN),
    ((1, 3, 3, 1), (2, 2, 1, 1), {"strides": [1, 1, 1, 1], "padding": "VALID"}),
    ((2, 6, 5, 2), (3, 2, 2, 3), {"strides": [1, 2, 3, 1], "padding": "VALID"}),
    ((1, 6, 7, 2), (2, 3, 2, 2), {"strides": [1, 3, 2, 1], "padding": "SAME"}),
    ((1, 4, 4, 2), (1, 1, 2, 3), {"strides": [1, 2, 2, 1], "padding": "VALID"}),
    ((1, 7, 6, 1), (2, 3, 1, 2), {"strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 3, 2, 1]}),
    ((1, 5, 5, 2), (3, 2, 2, 1), {**_PLAIN, "dilations": [1, 2, 2, 1]}),
    (
        (1, 3, 4, 2), (2, 2, 2, 2),
        {"strides": [1, 2, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 3, 1, 0, 2, 0, 0]},
    ),
    ((0, 4, 4, 2), (3, 3, 2, 2), _PLAIN),  # oneDNN says (0, 4, 4, 2) whatever the filter
    ((2, 2, 3, 4), (3, 2, 2, 3), {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NCHW"}),
]  # fmt: skip
_WAYS_3D: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((1, 3, 4, 3, 2), (2, 2, 3, 2, 2), {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}),
    ((2, 3, 5, 4, 1), (2, 1, 2, 1, 3), {"strides": [1, 1, 2, 3, 1], "padding": "VALID"}),
    ((1, 1, 4, 3, 2), (2, 2, 1, 2, 1), {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}),
]


def _outputs(x: np.ndarray, w: np.ndarray, attrs: dict[str, Any], depth: int) -> tuple[int, ...]:
    """The shape of the convolution's result, counted by hand."""
    first = attrs.get("data_format", "N").startswith("NC")
    spatial = slice(2, None) if first else slice(1, -1)
    paddings = attrs.get("explicit_paddings", [0] * 2 * x.ndim)
    sizes = []
    for axis in range(x.ndim)[spatial]:
        k = w.shape[axis - (2 if first else 1)]
        reach = (k - 1) * attrs.get("dilations", [1] * x.ndim)[axis]
        room = x.shape[axis] + sum(paddings[2 * axis : 2 * axis + 2])
        starts = room if attrs["padding"] == "SAME" else max(room - reach, 0)
        sizes.append(len(range(0, starts, attrs["strides"][axis])))
    return (len(x), depth, *sizes) if first else (len(x), *sizes, depth)


def _needs_onednn(attrs: dict[str, Any]) -> bool:
    """Whether TensorFlow has it on a CPU only where oneDNN does the work."""
    return attrs.get("data_format", "N").startswith("NC") or "dilations" in attrs


def _family(v: Values, ways: Any, depth_of: Any, name: str) -> list[Example]:
    found = []
    for x_shape, w_shape, attrs in ways:
        if v.dtype != dtypes.float32 and _needs_onednn(attrs):
            continue  # tests/ops/oracle/test_convolutions.py has the others
        x, w = v.within(-1, 1, *x_shape), v.within(-1, 1, *w_shape)
        if v.dtype.is_integer:
            x, w = v.array(*x_shape), v.array(*w_shape)
        shape = _outputs(x, w, attrs, depth_of(w))
        dy = v.array(*shape) if v.dtype.is_integer else v.within(-1, 1, *shape)
        if name.endswith("Input"):
            found.append(v(np.array(x_shape, np.int32), w, dy, **attrs))
        elif name.endswith("Filter"):
            found.append(v(x, np.array(w_shape, np.int32), dy, **attrs))
        else:
            found.append(v(x, w, **attrs))
    return found


@examples("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", roundings=SOME_ROUNDINGS)
def conv2d(v: Values) -> list[Example]:
    found = _family(v, _WAYS_2D, lambda w: w.shape[-1], v.op)
    if v.op == "Conv2D" and v.dtype == dtypes.float64:
        found.append(v(v.within(-1, 1, 1, 3, 3, 4), v.within(-1, 1, 2, 2, 2, 6), gradient=False, **_PLAIN))
    return found


@examples("Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2", roundings=SOME_ROUNDINGS)
def conv3d(v: Values) -> list[Example]:
    return _family(v, _WAYS_3D, lambda w: w.shape[-1], v.op.removesuffix("V2"))


@examples(
    "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropInput",
    "DepthwiseConv2dNativeBackpropFilter",
    roundings=SOME_ROUNDINGS,
)
def depthwise(v: Values) -> list[Example]:
    """Not dilated: oneDNN fails, and TensorFlow's own kernels go on as if they were not."""
    ways = [
        (x, w, way) for x, w, way in _WAYS_2D if x[0] and len(set(way["strides"][1:3])) == 1 and "dilations" not in way
    ]
    return _family(v, ways, lambda w: w.shape[-2] * w.shape[-1], v.op)
