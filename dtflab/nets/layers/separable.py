"""Separable convolutions: one filter per channel, and then a 1×1 convolution that mixes the channels.

Stands for the `SeparableConv…` classes of `python/layers/convolutional.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.nets.layers import data_format as formats
from dtflab.nets.layers.base import ZEROS, as_function
from dtflab.nets.layers.convolutional import ConvolutionBase
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.conv.functions import separable_conv2d as separable_convolution


class SeparableConv(ConvolutionBase):
    """activation(inputs * depthwise_kernel * pointwise_kernel + bias).

    Args:
      depth_multiplier: how many outputs the first convolution makes of a channel.
      depthwise_…, pointwise_…: of the two kernels; the other arguments are those of Conv2D.
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = 1, depth_multiplier: int = 1,
        activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
        pointwise_initializer: Any = None, bias_initializer: Any = ZEROS, depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None,
        depthwise_constraint: Any = None, pointwise_constraint: Any = None, bias_constraint: Any = None,
        trainable: bool = True, name: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        kwargs |= {"trainable": trainable, "name": name, "activity_regularizer": activity_regularizer}
        super().__init__(filters, kernel_size, strides, padding, data_format, dilation_rate, **kwargs)
        self._set_outputs(activation, use_bias, bias_initializer, bias_regularizer, bias_constraint)
        self.depth_multiplier = depth_multiplier
        self._depthwise = depthwise_initializer, depthwise_regularizer, depthwise_constraint
        self._pointwise = pointwise_initializer, pointwise_regularizer, pointwise_constraint

    def build(self, input_shape: Any) -> None:
        depth = self._depth(input_shape)
        self.depthwise_kernel = self._add(
            "depthwise_kernel", [*self.kernel_size, depth, self.depth_multiplier], *self._depthwise
        )
        self.pointwise_kernel = self._add(
            "pointwise_kernel", [1] * self.rank + [depth * self.depth_multiplier, self.filters], *self._pointwise
        )
        self._add_bias()
        super().build(input_shape)

    def _convolved(self, images: Any, depthwise: Any, pointwise: Any, strides: Any, rate: Any, padding: str) -> Any:
        steps, data_format = formats.all_sizes(1, strides, 1, self.data_format), formats.of_op(self.data_format, 4)
        return separable_convolution(
            images, depthwise, pointwise, steps, padding.upper(), rate=rate, data_format=data_format
        )


class SeparableConv1D(SeparableConv):
    __doc__ = SeparableConv.__doc__
    rank = 1

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        padding = self.padding
        if padding == "causal":
            inputs, padding = self._padded_before(inputs), "valid"
        height = self._spatial_axes[0]  # sequences as images, one pixel high
        images = arrays.expand_dims(inputs, height)
        depthwise = arrays.expand_dims(self.depthwise_kernel, 0)
        pointwise = arrays.expand_dims(self.pointwise_kernel, 0)
        outputs = self._convolved(images, depthwise, pointwise, self.strides * 2, (1, *self.dilation_rate), padding)
        return self._activated(arrays.squeeze(self._biased(outputs), [height]))


class SeparableConv2D(SeparableConv):
    __doc__ = SeparableConv.__doc__
    rank = 2

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        kernels = self.depthwise_kernel, self.pointwise_kernel
        outputs = self._convolved(inputs, *kernels, self.strides, self.dilation_rate, self.padding)
        return self._activated(self._biased(outputs))


separable_conv1d = as_function(SeparableConv1D, "separable_conv1d")
separable_conv2d = as_function(SeparableConv2D, "separable_conv2d")
