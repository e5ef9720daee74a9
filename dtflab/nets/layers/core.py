"""Dense, Dropout and Flatten.

Stands for `python/layers/core.py`. Left out: ragged inputs.
"""

from __future__ import annotations

import math
from typing import Any

from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.tensor_shape import as_shape
from dtflab.nets.layers.activations import activation_of
from dtflab.nets.layers.base import ZEROS, Layer, as_function
from dtflab.nets.layers.data_format import normalized_data_format
from dtflab.nets.layers.input_spec import InputSpec
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import cond
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.nn import functions as nn


class Dense(Layer):
    """activation(inputs · kernel + bias): `kernel` is [last size of the inputs, units], `bias` is [units].

    Args:
      units: the number of outputs.
      activation: a function, or its name; None for none.
      use_bias: whether there is a bias.
      kernel_initializer, bias_initializer: by default the variable scope's, else Glorot's uniform, and zeros.
      kernel_regularizer, bias_regularizer: functions of the variable whose values become losses.
      activity_regularizer: a function of the outputs whose value, divided by the batch size, becomes a loss.
      kernel_constraint, bias_constraint: functions that optimizers apply to the variable after an update.
      trainable, name: see Layer.
    """

    def __init__(
        self, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = None,
        bias_initializer: Any = ZEROS, kernel_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None, bias_constraint: Any = None,
        trainable: bool = True, name: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = int(units)
        if self.units < 0:
            raise ValueError(
                f"Received an invalid value for `units`, expected a positive integer. Received: units={units}"
            )
        self.activation, self.use_bias = activation_of(activation), use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(min_ndim=2)
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        if self.dtype is not None and not (self.dtype.is_floating or self.dtype.is_complex):
            raise TypeError(
                f"A Dense layer can only be built with a floating-point dtype. Received: dtype={self.dtype!r}"
            )
        depth = as_shape(input_shape)[-1].value
        if depth is None:
            raise ValueError(
                "The last dimension of the inputs to a Dense layer should be defined. Found None. Full input shape "
                f"received: {input_shape}"
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: depth})
        self.kernel = self._add(
            "kernel", [depth, self.units], self.kernel_initializer, self.kernel_regularizer, self.kernel_constraint
        )
        if self.use_bias:
            shape = [self.units]
            self.bias = self._add("bias", shape, self.bias_initializer, self.bias_regularizer, self.bias_constraint)
        super().build(input_shape)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if self.dtype is not None and inputs.dtype.base_dtype != self.dtype:
            inputs = arrays.cast(inputs, self.dtype)
        ndims = inputs.shape.ndims
        if ndims in (2, None):
            outputs = linalg.matmul(inputs, self.kernel)
        else:
            outputs = linalg.tensordot(inputs, self.kernel, [[ndims - 1], [0]])
            outputs.set_shape(inputs.shape[:-1].concatenate(self.units))
        if self.use_bias:
            outputs = nn.bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)


class Dropout(Layer):
    """In training, each element is zero with probability `rate`, else divided by 1 - `rate`. Otherwise the identity.

    Args:
      rate: between 0 and 1, a number or a scalar tensor.
      noise_shape: the shape of the random decisions, which are broadcast along axes of size 1.
      seed: the op seed of the random numbers.
    """

    def __init__(
        self, rate: Any = 0.5, noise_shape: Any = None, seed: int | None = None, name: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        if isinstance(rate, int | float) and not 0 <= rate <= 1:
            raise ValueError(f"Invalid value {rate} received for `rate`, expected a value between 0 and 1.")
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False, **kwargs: Any) -> Any:
        if isinstance(self.rate, int | float) and self.rate == 0:
            return arrays.identity(inputs)
        return cond.smart_cond(
            training,
            lambda: nn.dropout(inputs, rate=self.rate, noise_shape=self._noise_shape(inputs), seed=self.seed),
            lambda: arrays.identity(inputs),
        )

    def _noise_shape(self, inputs: Any) -> Any:
        """`noise_shape` with the sizes of the inputs in place of None."""
        if self.noise_shape is None:
            return None
        sizes = arrays.shape(inputs)
        return convert_to_tensor([sizes[i] if size is None else size for i, size in enumerate(self.noise_shape)])


class Flatten(Layer):
    """All axes but the first as one. With `data_format="channels_first"` the channels are moved to the end first."""

    def __init__(self, data_format: str | None = None, name: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self.data_format = normalized_data_format(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        ndims = inputs.shape.ndims
        if self.data_format == "channels_first" and ndims and ndims > 1:
            inputs = arrays.transpose(inputs, [0, *range(2, ndims), 1])
        if ndims == 1:
            return arrays.expand_dims(inputs, axis=1)
        batch, others = inputs.shape[0].value, inputs.shape[1:]
        if others.is_fully_defined():
            flat: Any = constant([-1, math.prod(others.as_list())])
        elif batch is not None:
            flat = constant([batch, -1])
        else:
            flat = [arrays.shape(inputs)[0], -1]
        return arrays.reshape(inputs, flat)


dense = as_function(Dense, "dense")


def dropout(
    inputs: Any, rate: Any = 0.5, noise_shape: Any = None, seed: Any = None, training: Any = False, name: Any = None
) -> Any:
    """The outputs of a new `Dropout` for `inputs`; `training` is a bool or a scalar tensor."""
    return Dropout(rate, noise_shape=noise_shape, seed=seed, name=name)(inputs, training=training)


def flatten(inputs: Any, name: Any = None, data_format: str = "channels_last") -> Any:
    """[batch, …] as [batch, all the rest]."""
    return Flatten(data_format, name=name)(inputs)
