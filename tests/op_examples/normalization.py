"""Batch normalization in one op, local response normalization, grey-scale dilation."""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples

_F = np.float32


def _vector(v: Values, n: int = 3) -> np.ndarray:
    return v.random.uniform(0.5, 2, n).astype(_F)


@examples("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(v: Values) -> list[Example]:
    """Examples with U float32; in float64, which finite differences want, the op does not exist."""
    types = {} if v.op == "FusedBatchNorm" else {"U": dtypes.float32}
    none = np.zeros(0, _F)
    x = v.array(2, 3, 2, 3)
    found = [
        v(x, _vector(v), _vector(v), none, none, **types),
        v(x, _vector(v), _vector(v), _vector(v), _vector(v), is_training=False, epsilon=0.5, **types),
        v(x, _vector(v), _vector(v), _vector(v), _vector(v), exponential_avg_factor=0.25, **types),
        v(v.array(1, 1, 1, 3), _vector(v), _vector(v), none, none, **types),
    ]
    if v.op == "FusedBatchNormV3":
        cube = v.array(2, 2, 1, 2, 3)
        found.append(v(cube, _vector(v), _vector(v), none, none, data_format="NDHWC", **types))
    return found


@examples("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def fused_batch_norm_grad(v: Values) -> list[Example]:
    types = {} if v.op == "FusedBatchNormGrad" else {"U": dtypes.float32}
    spaces = [np.zeros(0, _F)] if v.op == "FusedBatchNormGradV3" else []
    found = []
    for training in (True, False):
        x = v.array(2, 3, 2, 3)
        ways: dict[str, Any] = {"is_training": training, "epsilon": 0.25, **types}
        found.append(v(v.array(2, 3, 2, 3), x, _vector(v), _vector(v), _vector(v), *spaces, **ways))
    return found


@examples("LRN", "LRNGrad")
def lrn(v: Values) -> list[Example]:
    found = []
    for attrs in ({}, {"depth_radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75}):
        x = v.array(1, 2, 3, 6)
        inputs = [x] if v.op == "LRN" else [v.array(*x.shape), x, v.array(*x.shape)]
        found.append(v(*inputs, **attrs))
    return found


@examples("Dilation2D", "Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def dilation2d(v: Values) -> list[Example]:
    ways: list[dict[str, Any]] = [
        {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"},
        {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": "VALID"},
    ]
    found = []
    for attrs, sizes in zip(ways, [(5, 6), (2, 2)], strict=True):
        order = v.random.permutation(60).reshape(1, 5, 6, 2)
        x = (order if v.dtype.is_integer else order + 0.25).astype(v.dtype.as_numpy_dtype)
        w = v.array(2, 3, 2, low=0)
        dy = [] if v.op == "Dilation2D" else [np.rint(v.array(1, *sizes, 2)).astype(x.dtype)]  # sums without rounding
        found.append(v(x, w, *dy, **attrs))
    return found
