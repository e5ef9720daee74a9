"""Initializers: functions from a shape to the initial value of a variable.

Stands for `python/ops/init_ops.py`. Left out: orthogonal convolutions.

Rule: an initializer is data; `get_config()` and `from_config()` are each other's inverse. Called, it adds the
same operations to the graph as TensorFlow's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.convert import constant
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Tensor
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.math import functions as math_functions
from dtflab.ops.sampling import functions as sampling


class Initializer:
    """`initializer(shape, dtype)` is the tensor to start with."""

    arguments: tuple[str, ...] = ("dtype",)
    dtype: DType = dtypes.float32

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = dtypes.as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The tensor, of the dtype of the initializer by default; `partition_info` says of which part it is."""
        return self._tensor(shape, self.dtype if dtype is None else dtype, partition_info)

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this initializer again."""
        return {a: self.dtype.name if a == "dtype" else getattr(self, a) for a in self.arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """The initializer with these arguments."""
        return cls(**config)


def _floating(dtype: Any) -> DType:
    dtype = dtypes.as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"Argument `dtype` is expected to be floating point. Received: {dtype}.")
    return dtype


class Zeros(Initializer):
    """Zeros."""

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        return arrays.zeros(shape, dtype)


class Ones(Initializer):
    """Ones."""

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        return arrays.ones(shape, dtype)


class Constant(Initializer):
    """One value, or as many as the shape has elements; the last one fills the rest."""

    arguments = ("value", "dtype")

    def __init__(self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise TypeError(
                f"Invalid type for initial value={value} of type: {type(value).__name__}. "
                "Expected Python scalar, list or tuple of values, or numpy.ndarray."
            )
        self.value = value
        self.dtype = dtypes.as_dtype(dtype)
        self._verify_shape = verify_shape

    def __call__(
        self, shape: Any, dtype: Any = None, partition_info: Any = None, verify_shape: bool | None = None
    ) -> Tensor:
        verify = self._verify_shape if verify_shape is None else verify_shape
        return constant(self.value, self.dtype if dtype is None else dtype, shape, verify_shape=verify)


class RandomUniform(Initializer):
    """Uniform numbers in [minval, maxval)."""

    arguments = ("minval", "maxval", "seed", "dtype")

    def __init__(
        self, minval: Any = 0.0, maxval: Any = None, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed
        self.dtype = dtypes.as_dtype(dtype)

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        return sampling.random_uniform(shape, self.minval, self.maxval, dtype, seed=self.seed)


class RandomNormal(Initializer):
    """Normal numbers."""

    arguments = ("mean", "stddev", "seed", "dtype")

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed
        self.dtype = _floating(dtype)

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        return sampling.random_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)


class TruncatedNormal(RandomNormal):
    """Normal numbers no further than two deviations from the mean: for weights."""

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        return sampling.truncated_normal(shape, self.mean, self.stddev, dtype, seed=self.seed)


class UniformUnitScaling(Initializer):
    """Uniform numbers that keep the scale of a layer's input: in ±factor·sqrt(3 / inputs)."""

    arguments = ("factor", "seed", "dtype")

    def __init__(self, factor: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.factor, self.seed = factor, seed
        self.dtype = _floating(dtype)

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        sizes = shape if info is None else info.full_shape
        inputs = max(math.prod(float(d) for d in sizes[:-1]), 1.0)
        limit = math.sqrt(3 / inputs) * self.factor
        return sampling.random_uniform(shape, -limit, limit, dtype, seed=self.seed)


_TRUNCATED_DEVIATION = 0.87962566103423978  # of the standard normal distribution, cut at ±2
_DISTRIBUTIONS = ("normal", "uniform", "truncated_normal", "untruncated_normal")


class VarianceScaling(Initializer):
    """Random numbers of variance scale / n for n inputs, outputs, or their mean per unit (`mode`)."""

    arguments = ("scale", "mode", "distribution", "seed", "dtype")

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"Argument `scale` must be a positive float. Received: {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"Argument `mode` should be one of ('fan_in', 'fan_out', 'fan_avg'). Received: {mode}")
        if distribution.lower() not in _DISTRIBUTIONS:
            raise ValueError(f"Argument `distribution` should be one of {_DISTRIBUTIONS}. Received: {distribution}")
        self.scale, self.mode, self.distribution, self.seed = scale, mode, distribution.lower(), seed
        self.dtype = _floating(dtype)

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        fan_in, fan_out = _fans(shape if info is None else info.full_shape)
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        scale = self.scale / max(1.0, count)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * scale)
            return sampling.random_uniform(shape, -limit, limit, dtype, seed=self.seed)
        if self.distribution == "untruncated_normal":
            return sampling.random_normal(shape, 0.0, math.sqrt(scale), dtype, seed=self.seed)
        stddev = math.sqrt(scale) / _TRUNCATED_DEVIATION
        return sampling.truncated_normal(shape, 0.0, stddev, dtype, seed=self.seed)


def _fans(shape: Sequence[Any]) -> tuple[int, int]:
    """How many inputs and outputs a unit has, given the shape of the weights."""
    if len(shape) < 2:
        size = int(shape[0]) if len(shape) else 1
        return size, size
    receptive_field = math.prod(int(d) for d in shape[:-2])
    return int(shape[-2]) * receptive_field, int(shape[-1]) * receptive_field


class GlorotUniform(VarianceScaling):
    """Uniform numbers in ±sqrt(6 / (inputs + outputs)), also called Xavier's."""

    arguments = ("seed", "dtype")

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed)


class GlorotNormal(VarianceScaling):
    """Truncated normal numbers of deviation sqrt(2 / (inputs + outputs))."""

    arguments = ("seed", "dtype")

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed)


class Orthogonal(Initializer):
    """A matrix (the last axis, and all others) with orthonormal columns, or rows if there are fewer, times `gain`."""

    arguments = ("gain", "seed", "dtype")

    def __init__(self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        self.gain, self.seed = gain, seed
        self.dtype = _floating(dtype)

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        if len(shape) < 2:
            raise _not_a_matrix(shape)
        rows, cols = math.prod(int(d) for d in shape[:-1]), int(shape[-1])
        sizes = (max(rows, cols), min(rows, cols))
        normal = sampling.random_normal(sizes, dtype=dtype, seed=self.seed)
        q, r = linalg.qr(normal)
        q *= math_functions.sign(arrays.diag_part(r))  # so that all orthogonal matrices are equally likely
        if rows < cols:
            q = arrays.matrix_transpose(q)
        return self.gain * arrays.reshape(q, shape)


def _not_a_matrix(shape: Any) -> ValueError:
    return ValueError(
        "The tensor to initialize, specified by argument `shape` must be at least two-dimensional. "
        f"Received shape={shape}"
    )


class Identity(Initializer):
    """The identity matrix, times `gain`."""

    arguments = ("gain", "dtype")

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = _floating(dtype)

    def _tensor(self, shape: Any, dtype: Any, info: Any) -> Tensor:
        full_shape = shape if info is None else info.full_shape
        if len(full_shape) != 2:
            raise _not_a_matrix(shape)
        rows, cols = (int(d) for d in full_shape)
        matrix = linalg.eye(rows, cols, dtype=dtype)
        if info is not None:
            matrix = indexing.slice(matrix, info.var_offset, shape)
        return self.gain * matrix


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of deviation sqrt(1 / inputs)."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers in ±sqrt(3 / inputs)."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def he_normal(seed: int | None = None) -> VarianceScaling:
    """Truncated normal numbers of deviation sqrt(2 / inputs): for Relu layers."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """Uniform numbers in ±sqrt(6 / inputs)."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


# The names that programs use.
zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
uniform_unit_scaling_initializer = UniformUnitScaling
variance_scaling_initializer = VarianceScaling
glorot_uniform_initializer = GlorotUniform
glorot_normal_initializer = GlorotNormal
orthogonal_initializer = Orthogonal
