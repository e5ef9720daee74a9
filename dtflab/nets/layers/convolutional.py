"""Convolutions, plain and transposed, over one, two and three dimensions; the separable ones are in `separable.py`.

Stands for `python/layers/convolutional.py`. Left out: groups, more than one batch dimension.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.tensor_shape import as_shape
from dtflab.nets.layers import data_format as formats
from dtflab.nets.layers.activations import activation_of
from dtflab.nets.layers.base import ZEROS, Layer, as_function
from dtflab.nets.layers.input_spec import InputSpec
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import stack
from dtflab.ops.conv import functions as conv
from dtflab.ops.nn.functions import bias_add


class ConvolutionBase(Layer):
    """The base class of convolutions: sizes, formats, a bias and an activation."""

    rank: int  # over how many dimensions the windows move

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any, padding: str, data_format: str, dilation: Any, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if filters is not None and filters <= 0:
            raise ValueError(
                f"Invalid value for argument `filters`. Expected a strictly positive value. Received filters={filters}."
            )
        self.filters = filters
        self.kernel_size = formats.normalized_tuple(kernel_size, self.rank, "kernel_size")
        self.strides = formats.normalized_tuple(strides, self.rank, "strides")
        self.dilation_rate = formats.normalized_tuple(dilation, self.rank, "dilation_rate")
        self.padding = formats.normalized_padding(padding, causal=self.rank == 1)
        self.data_format = formats.normalized_data_format(data_format)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                "`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: "
                f"strides={self.strides} and dilation_rate={self.dilation_rate}"
            )
        self.input_spec = InputSpec(min_ndim=self.rank + 2)
        self.bias: Any = None

    def _set_outputs(
        self, activation: Any, use_bias: bool, initializer: Any, regularizer: Any, constraint: Any
    ) -> None:
        """Set the activation and the bias; the last three arguments are the bias's."""
        self.activation, self.use_bias = activation_of(activation), use_bias
        self.bias_initializer, self.bias_regularizer, self.bias_constraint = initializer, regularizer, constraint

    @property
    def _channel_axis(self) -> int:
        return -1 if self.data_format == "channels_last" else 1

    @property
    def _spatial_axes(self) -> range:
        return range(1, self.rank + 1) if self.data_format == "channels_last" else range(2, self.rank + 2)

    def _depth(self, input_shape: Any) -> int:
        """The number of channels of the inputs; later inputs must have the same number."""
        depth: Any = as_shape(input_shape)[self._channel_axis].value
        if depth is None:
            raise ValueError(
                "The channel dimension of the inputs should be defined. The input_shape received is "
                f"{input_shape}, where axis {self._channel_axis} (0-based) is the channel dimension, which found to "
                "be `None`."
            )
        self.input_spec = InputSpec(min_ndim=self.rank + 2, axes={self._channel_axis: depth})
        return int(depth)

    def _add_bias(self) -> None:
        if self.use_bias:
            shape = [self.filters]
            self.bias = self._add("bias", shape, self.bias_initializer, self.bias_regularizer, self.bias_constraint)

    def _biased(self, outputs: Any) -> Any:
        return bias_add(outputs, self.bias, formats.of_op(self.data_format, 4)) if self.use_bias else outputs

    def _activated(self, outputs: Any) -> Any:
        return outputs if self.activation is None else self.activation(outputs)

    def _padded_before(self, inputs: Any) -> Any:
        """Sequences with zeros in front, so that an output depends only on earlier inputs."""
        before = self.dilation_rate[0] * (self.kernel_size[0] - 1)
        return arrays.pad(inputs, formats.all_sizes([0, 0], [[before, 0]], [0, 0], self.data_format))


class Conv(ConvolutionBase):
    """activation(inputs * kernel + bias), where * is a convolution.

    Args:
      filters: the number of output channels.
      kernel_size, strides, dilation_rate: a number, or one for each dimension.
      padding: "valid" or "same"; for sequences also "causal".
      data_format: "channels_last" or "channels_first".
      activation, use_bias, the initializers, regularizers and constraints, trainable, name: as for Dense.
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = ZEROS, kernel_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        kwargs |= {"trainable": trainable, "name": name, "activity_regularizer": activity_regularizer}
        super().__init__(filters, kernel_size, strides, padding, data_format, dilation_rate, **kwargs)
        self._set_outputs(activation, use_bias, bias_initializer, bias_regularizer, bias_constraint)
        self.kernel_initializer, self.kernel_regularizer = kernel_initializer, kernel_regularizer
        self.kernel_constraint = kernel_constraint
        self.kernel: Any = None

    def build(self, input_shape: Any) -> None:
        depth = self._depth(input_shape)
        self._check_sizes(input_shape)
        self._add_kernel([*self.kernel_size, depth, self.filters])
        self._add_bias()
        super().build(input_shape)

    def _add_kernel(self, shape: list[int]) -> None:
        self.kernel = self._add(
            "kernel", shape, self.kernel_initializer, self.kernel_regularizer, self.kernel_constraint
        )

    def _check_sizes(self, input_shape: Any) -> None:
        sizes = [as_shape(input_shape)[axis].value for axis in self._spatial_axes]
        outputs = self._output_sizes(sizes)
        if any(size is not None and size <= 0 for size in outputs):
            raise ValueError(
                f"One of the dimensions in the output is <= 0 due to downsampling in {self.name}. Consider increasing "
                f"the input size. Received input shape {input_shape} which would produce output shape with a zero or "
                "negative value in a dimension."
            )

    def _output_sizes(self, sizes: list[Any]) -> list[int | None]:
        each = zip(sizes, self.kernel_size, self.strides, self.dilation_rate)
        return [formats.convolved_size(size, k, self.padding, stride, rate) for size, k, stride, rate in each]

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        shape, padding = inputs.shape, self.padding
        if padding == "causal":
            inputs, padding = self._padded_before(inputs), "valid"
        windows: dict[str, Any] = {"strides": list(self.strides), "dilations": list(self.dilation_rate)}
        windows |= {"data_format": formats.of_op(self.data_format, self.rank + 2)}
        outputs = conv.convolution(inputs, self.kernel, padding.upper(), name=type(self).__name__, **windows)
        if shape.ndims is not None:
            sizes = self._output_sizes([shape[axis].value for axis in self._spatial_axes])
            outputs.set_shape(formats.all_sizes(shape[0].value, sizes, self.filters, self.data_format))
        return self._activated(self._biased(outputs))


class Conv1D(Conv):
    __doc__ = Conv.__doc__
    rank = 1

    def _biased(self, outputs: Any) -> Any:
        if self.data_format == "channels_last" or not self.use_bias:
            return super()._biased(outputs)
        return outputs + arrays.reshape(self.bias, (1, self.filters, 1))


class Conv2D(Conv):
    __doc__ = Conv.__doc__
    rank = 2


class Conv3D(Conv):
    __doc__ = Conv.__doc__
    rank = 3


class ConvTranspose(Conv):
    """The transpose of a convolution: from [batch, …, channels] to the largest images that a convolution maps to those.

    The kernel is [sizes …, filters, input channels]; for the arguments see Conv2D.
    """

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = ZEROS, kernel_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        weights = kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer
        more = *weights, kernel_constraint, bias_constraint, trainable, name
        super().__init__(filters, kernel_size, strides, padding, data_format, 1, activation, use_bias, *more, **kwargs)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def build(self, input_shape: Any) -> None:
        self._add_kernel([*self.kernel_size, self.filters, self._depth(input_shape)])
        self._add_bias()
        self.built = True

    def _output_sizes(self, sizes: list[Any]) -> list[Any]:
        each = zip(sizes, self.kernel_size, self.strides)
        return [formats.transposed_size(size, k, self.padding, stride) for size, k, stride in each]

    def _input_sizes(self, inputs: Any) -> tuple[Any, list[Any]]:
        """Batch size and sizes of the inputs, numbers as far as they may be used."""
        shape = arrays.shape(inputs)
        return shape[0], [shape[axis] for axis in self._spatial_axes]

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        batch, sizes = self._input_sizes(inputs)
        shape = formats.all_sizes(batch, self._output_sizes(sizes), self.filters, self.data_format)
        transpose = conv.conv2d_transpose if self.rank == 2 else conv.conv3d_transpose
        strides = formats.all_sizes(1, self.strides, 1, self.data_format)
        data_format = formats.of_op(self.data_format, self.rank + 2)
        outputs = transpose(inputs, self.kernel, stack(shape), strides, self.padding.upper(), data_format)
        if inputs.shape.ndims is not None:
            known = self._output_sizes([inputs.shape[axis].value for axis in self._spatial_axes])
            outputs.set_shape(formats.all_sizes(inputs.shape[0].value, known, self.filters, self.data_format))
        return self._activated(self._biased(outputs))


class Conv2DTranspose(ConvTranspose):
    __doc__ = ConvTranspose.__doc__
    rank = 2

    def _input_sizes(self, inputs: Any) -> tuple[Any, list[Any]]:
        shape = arrays.shape(inputs)
        batch, known = shape[0], inputs.shape.as_list() if inputs.shape.ndims else {}
        return batch, [shape[axis] if known[axis] is None else known[axis] for axis in self._spatial_axes]


class Conv3DTranspose(ConvTranspose):
    __doc__ = ConvTranspose.__doc__
    rank = 3


conv1d = as_function(Conv1D, "conv1d")
conv2d = as_function(Conv2D, "conv2d")
conv3d = as_function(Conv3D, "conv3d")
conv2d_transpose = as_function(Conv2DTranspose, "conv2d_transpose")
conv3d_transpose = as_function(Conv3DTranspose, "conv3d_transpose")
