"""Pooling, and the gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples

_IMAGES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 4, 2), {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}),
    ((1, 5, 3, 2), {"ksize": [1, 3, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}),
    ((1, 6, 5, 1), {"ksize": [1, 2, 3, 1], "strides": [1, 3, 1, 1], "padding": "VALID"}),
    ((1, 5, 5, 1), {"ksize": [1, 1, 2, 1], "strides": [1, 3, 3, 1], "padding": "SAME"}),
    ((0, 4, 4, 2), {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}),
]
_VOLUMES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((1, 4, 4, 2, 2), {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}),
    ((2, 3, 5, 3, 1), {"ksize": [1, 2, 3, 1, 1], "strides": [1, 1, 2, 2, 1], "padding": "SAME"}),
]


def _pooled(x: np.ndarray, attrs: dict[str, Any]) -> np.ndarray:
    """The largest of each window, found one by one."""
    starts, sizes = [], []
    for size, k, stride in zip(x.shape, attrs["ksize"], attrs["strides"], strict=True):
        same = attrs["padding"] == "SAME"
        count = -(-size // stride) if same else (size - k) // stride + 1
        starts.append(max((count - 1) * stride + k - size, 0) // 2 if same else 0)
        sizes.append(count)
    y = np.empty(sizes, x.dtype)
    for at in np.ndindex(*sizes):
        corner = [i * s - before for i, s, before in zip(at, attrs["strides"], starts, strict=True)]
        y[at] = x[tuple(slice(max(c, 0), c + k) for c, k in zip(corner, attrs["ksize"], strict=True))].max()
    return y


def _apart(v: Values, *shape: int) -> np.ndarray:
    """Values of which no two are equal, or nearly, as far as the type goes."""
    size = int(np.prod(shape))
    order = v.random.permutation(size).reshape(shape)
    return (order % 100 if v.dtype.size == 1 else order * 0.25 if v.dtype.is_floating else order).astype(
        v.dtype.as_numpy_dtype
    )


def _ways(v: Values) -> Any:
    return _VOLUMES if "3D" in v.op else _IMAGES


def _window(v: Values, attrs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The window as inputs and as attributes: the newer ops have it among their inputs."""
    if not v.op.endswith("V2"):
        return [], attrs
    return [np.array(attrs[n], np.int32) for n in ("ksize", "strides")], {"padding": attrs["padding"]}


@examples("MaxPool", "MaxPoolV2", "MaxPool3D")
def max_pool(v: Values) -> list[Example]:
    found = []
    for shape, attrs in _ways(v):
        inputs, rest = _window(v, attrs)
        found.append(v(_apart(v, *shape), *inputs, **rest))
    if v.op == "MaxPool":
        found.append(
            v(_apart(v, 1, 3, 2, 4), ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID", gradient=False)
        )
        pads = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 1, 1, 0, 0]}
        found.append(v(_apart(v, 1, 4, 3, 2), ksize=[1, 2, 2, 1], strides=[1, 1, 2, 1], **pads, gradient=False))
    return found


@examples("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def max_pool_grad(v: Values) -> list[Example]:
    found = []
    for shape, attrs in _ways(v):
        inputs, rest = _window(v, attrs)
        x = _apart(v, *shape) if v.op != "MaxPoolGrad" else v.array(*shape)  # with equal values, the first
        y = _pooled(x, attrs)
        d = v.array(*(x if "GradGrad" in v.op else y).shape)
        types = {"TInput": v.dtype} if v.op == "MaxPool3DGrad" else {}
        found.append(v(x, y, d, *inputs, **rest, **types, smooth=False))
    return found


@examples("AvgPool", "AvgPool3D")
def avg_pool(v: Values) -> list[Example]:
    return [v(v.array(*shape), **attrs) for shape, attrs in _ways(v)]


@examples("AvgPoolGrad", "AvgPool3DGrad")
def avg_pool_grad(v: Values) -> list[Example]:
    return [
        v(np.array(shape, np.int32), v.array(*_pooled(np.zeros(shape), attrs).shape), **attrs)
        for shape, attrs in _ways(v)
    ]


@examples("MaxPoolWithArgmax", "MaxPoolGradWithArgmax")
def with_argmax(v: Values) -> list[Example]:
    found = []
    for shape, attrs in _IMAGES[:3]:
        for with_batch in (False, True):
            more = {**attrs, "include_batch_in_index": with_batch, "Targmax": dtypes.int64}
            x = _apart(v, *shape)
            if v.op == "MaxPoolWithArgmax":
                found.append(v(x, **more))
                continue
            y = _pooled(x, attrs)
            limit = x.size if with_batch else x.size // len(x)
            found.append(v(x, v.array(*y.shape), v.index(limit, *y.shape, dtype=np.int64), **more))
    return found


@examples("FractionalMaxPool", "FractionalAvgPool")
def fractional(v: Values) -> list[Example]:
    found = []
    for n, (pseudo_random, overlapping) in enumerate([(False, False), (True, False), (False, True), (True, True)]):
        ways = {"pseudo_random": pseudo_random, "overlapping": overlapping, "deterministic": True}
        ratio = [1.0, 1.4142, 1.73, 1.0]
        found.append(v(_apart(v, 2, 12, 9, 2), pooling_ratio=ratio, seed=5, seed2=n + 1, **ways))
    return found


@examples("FractionalMaxPoolGrad", "FractionalAvgPoolGrad")
def fractional_grad(v: Values) -> list[Example]:
    rows, columns = np.array([0, 1, 3, 5], np.int64), np.array([0, 2, 3], np.int64)
    found = []
    for overlapping in (False, True):
        x, y = _apart(v, 2, 5, 3, 2), np.empty((2, 3, 2, 2), v.dtype.as_numpy_dtype)
        for _, i, j, _ in np.ndindex(*y.shape):
            ends = rows[i + 1] + overlapping, columns[j + 1] + overlapping
            y[:, i, j] = x[:, rows[i] : ends[0], columns[j] : ends[1]].max(axis=(1, 2))
        first = [x, y] if v.op == "FractionalMaxPoolGrad" else [np.array(x.shape, np.int64)]
        found.append(v(*first, v.array(*y.shape), rows, columns, overlapping=overlapping))
    return found
