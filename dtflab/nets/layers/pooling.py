"""Pooling: the largest or the mean of each window.

Stands for `python/layers/pooling.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.nets.layers import data_format as formats
from dtflab.nets.layers.base import Layer, as_function
from dtflab.nets.layers.input_spec import InputSpec
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.pool import functions as pool


class Pooling(Layer):
    """The largest (or the mean) of each window of `pool_size`, one every `strides`.

    Args:
      pool_size, strides: a number, or one for each dimension.
      padding: "valid" or "same".
      data_format: "channels_last" or "channels_first".
    """

    rank: int  # over how many dimensions the windows move
    _pool: Callable[..., Any]

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        if strides is None:
            raise ValueError("Argument `strides` must not be None.")
        self.pool_size = formats.normalized_tuple(pool_size, self.rank, "pool_size")
        self.strides = formats.normalized_tuple(strides, self.rank, "strides")
        self.padding = formats.normalized_padding(padding)
        self.data_format = formats.normalized_data_format(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self.rank == 1:
            axis = 2 if self.data_format == "channels_last" else 3  # sequences as images, one pixel wide
            images = arrays.expand_dims(inputs, axis)
            return arrays.squeeze(self._pooled(images, (*self.pool_size, 1), (*self.strides, 1)), axis)
        if self.rank == 2 or self.data_format == "channels_last":
            return self._pooled(inputs, self.pool_size, self.strides)
        turned = arrays.transpose(inputs, (0, 2, 3, 4, 1))
        outputs = self._pool(turned, (1, *self.pool_size, 1), (1, *self.strides, 1), padding=self.padding.upper())
        return arrays.transpose(outputs, (0, 4, 1, 2, 3))

    def _pooled(self, inputs: Any, pool_size: Any, strides: Any) -> Any:
        windows, steps = (formats.all_sizes(1, sizes, 1, self.data_format) for sizes in (pool_size, strides))
        data_format = formats.of_op(self.data_format, len(pool_size) + 2)
        return self._pool(inputs, windows, steps, padding=self.padding.upper(), data_format=data_format)


class MaxPooling1D(Pooling):
    __doc__ = Pooling.__doc__
    rank, _pool = 1, staticmethod(pool.max_pool)


class MaxPooling2D(Pooling):
    __doc__ = Pooling.__doc__
    rank, _pool = 2, staticmethod(pool.max_pool)


class MaxPooling3D(Pooling):
    __doc__ = Pooling.__doc__
    rank, _pool = 3, staticmethod(pool.max_pool3d)


class AveragePooling1D(Pooling):
    __doc__ = Pooling.__doc__
    rank, _pool = 1, staticmethod(pool.avg_pool)


class AveragePooling2D(Pooling):
    __doc__ = Pooling.__doc__
    rank, _pool = 2, staticmethod(pool.avg_pool)


class AveragePooling3D(Pooling):
    __doc__ = Pooling.__doc__
    rank, _pool = 3, staticmethod(pool.avg_pool3d)


max_pooling1d = as_function(MaxPooling1D, "max_pooling1d", reusable=False)
max_pooling2d = as_function(MaxPooling2D, "max_pooling2d", reusable=False)
max_pooling3d = as_function(MaxPooling3D, "max_pooling3d", reusable=False)
average_pooling1d = as_function(AveragePooling1D, "average_pooling1d", reusable=False)
average_pooling2d = as_function(AveragePooling2D, "average_pooling2d", reusable=False)
average_pooling3d = as_function(AveragePooling3D, "average_pooling3d", reusable=False)
