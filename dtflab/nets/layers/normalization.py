"""BatchNormalization: outputs with mean 0 and variance 1, over a batch in training, by moving averages otherwise.

Stands for `python/layers/normalization.py`. Left out: renorm, virtual batches, adjustments, masks.

Rule: the moving averages are updated by operations on which the outputs do not depend. They are in UPDATE_OPS, and a
training step must depend on them: `with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.scopes import colocate_with, name_scope
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import as_shape
from dtflab.nets.layers import data_format as formats
from dtflab.nets.layers.base import ZEROS, Layer
from dtflab.nets.layers.input_spec import InputSpec
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.cond import smart_cond
from dtflab.ops.nn import moments
from dtflab.ops.nn.functions import fused_batch_norm
from dtflab.ops.variables import functions as variables, initializers
from dtflab.ops.variables.policies import VariableAggregation, VariableSynchronization

_ONES = initializers.Ones()


class BatchNormalization(Layer):
    """gamma · (inputs - mean) / sqrt(variance + epsilon) + beta, for each channel.

    Args:
      axis: the axis of the channels, or several.
      momentum: the moving averages become momentum · old + (1 - momentum) · that of the batch.
      epsilon: added to the variance.
      center, scale: whether there is a beta, and a gamma.
      the initializers, regularizers, constraints, trainable, name: as for Dense.
      fused: whether a single op may be used, for images; None uses it where it can.
    """

    def __init__(
        self, axis: Any = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
        beta_initializer: Any = ZEROS, gamma_initializer: Any = _ONES, moving_mean_initializer: Any = ZEROS,
        moving_variance_initializer: Any = _ONES, beta_regularizer: Any = None, gamma_regularizer: Any = None,
        beta_constraint: Any = None, gamma_constraint: Any = None, renorm: bool = False, renorm_clipping: Any = None,
        renorm_momentum: float = 0.99, fused: bool | None = None, trainable: bool = True,
        virtual_batch_size: int | None = None, adjustment: Any = None, name: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, **kwargs)
        absent = {"renorm": renorm, "virtual_batch_size": virtual_batch_size, "adjustment": adjustment}
        for what, wanted in absent.items():
            if wanted:
                raise NotImplementedError(
                    f"Batch normalization with `{what}` is not in dtflab; leave the argument out."
                )
        if not isinstance(axis, int | list | tuple):
            raise TypeError(f"Expected an int or a list/tuple of ints for the argument 'axis', but received: {axis!r}")
        self.axis = [axis] if isinstance(axis, int) else list(axis)
        self.momentum, self.epsilon, self.center, self.scale = momentum, epsilon, center, scale
        self._gamma_options = gamma_initializer, gamma_regularizer, gamma_constraint
        self._beta_options = beta_initializer, beta_regularizer, beta_constraint
        self._initial_averages = moving_mean_initializer, moving_variance_initializer
        self.fused = True if fused is None else fused
        self.gamma: Any = None
        self.beta: Any = None

    # -- variables

    def build(self, input_shape: Any) -> None:
        shape = as_shape(input_shape)
        rank = len(shape)
        self.axis = _checked_axes(self.axis, rank)
        sizes = {axis: shape[axis].value for axis in self.axis}
        if None in sizes.values():
            raise ValueError(
                f"Input has undefined `axis` dimension. Received input with shape {shape} and axis={tuple(self.axis)}"
            )
        self.fused = self.fused and self._can_be_fused(rank)
        self.input_spec = InputSpec(ndim=rank, axes=sizes)
        self._shape = list(sizes.values()) if len(sizes) == 1 else [sizes.get(axis, 1) for axis in range(rank)]
        self.gamma = self._parameter("gamma", *self._gamma_options) if self.scale else None
        self.beta = self._parameter("beta", *self._beta_options) if self.center else None
        partitioner = self._scope.partitioner
        self._scope.set_partitioner(None)
        try:
            self.moving_mean = self._average("moving_mean", self._initial_averages[0])
            self.moving_variance = self._average("moving_variance", self._initial_averages[1])
        finally:
            self._scope.set_partitioner(partitioner)
        super().build(input_shape)

    def _can_be_fused(self, rank: int) -> bool:
        """The op takes images and volumes whose channels are first or last, in at most 32 bits."""
        small = self.dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32)
        return rank in (4, 5) and len(self.axis) < 2 and small and self.axis[0] in (1, rank - 1)

    @property
    def _parameter_dtype(self) -> Any:
        return dtypes.float32 if self.dtype in (dtypes.float16, dtypes.bfloat16) else self.dtype

    def _parameter(self, name: str, initializer: Any, regularizer: Any, constraint: Any) -> Any:
        return self.add_weight(
            name, self._shape, self._parameter_dtype, initializer, regularizer, trainable=True, constraint=constraint
        )

    def _average(self, name: str, initializer: Any) -> Any:
        options: dict[str, Any] = {"trainable": False, "synchronization": VariableSynchronization.ON_READ}
        options |= {"aggregation": VariableAggregation.MEAN}
        return self.add_weight(name, self._shape, self._parameter_dtype, initializer, **options)

    # -- a call

    def call(self, inputs: Any, training: Any = False, **kwargs: Any) -> Any:
        return self._fused(inputs, training) if self.fused else self._in_steps(inputs, training)

    def _fused(self, inputs: Any, training: Any) -> Any:
        data_format = formats.of_op("channels_first" if self.axis[0] == 1 else "channels_last", inputs.shape.ndims)
        beta = self.beta if self.center else constant(0.0, self._parameter_dtype, self._shape)
        gamma = self.gamma if self.scale else constant(1.0, self._parameter_dtype, self._shape)

        def normalized(is_training: bool) -> Any:
            averages = self.moving_mean, self.moving_variance
            return fused_batch_norm(inputs, gamma, beta, *averages, self.epsilon, data_format, is_training)

        output, mean, variance = smart_cond(training, lambda: normalized(True), lambda: normalized(False))
        known = _known(training)
        if known is None:
            momentum = smart_cond(training, lambda: self.momentum, lambda: 1.0)
        elif known:
            momentum = convert_to_tensor(self.momentum)
        else:
            return output
        self.add_update([_moved(self.moving_mean, mean, momentum), _moved(self.moving_variance, variance, momentum)])
        return output

    def _in_steps(self, inputs: Any, training: Any) -> Any:
        given = inputs.dtype.base_dtype
        if given in (dtypes.float16, dtypes.bfloat16):
            inputs = arrays.cast(inputs, dtypes.float32)
        scale, offset = self._spread(self.gamma, inputs), self._spread(self.beta, inputs)
        if _known(training) is False:
            mean, variance = self.moving_mean, self.moving_variance
        else:
            mean, variance = self._batch_moments(inputs, training)
        mean, variance, offset, scale = (
            value if value is None else arrays.cast(value, inputs.dtype) for value in (mean, variance, offset, scale)
        )
        outputs = moments.batch_normalization(
            inputs, self._spread(mean, inputs), self._spread(variance, inputs), offset, scale, self.epsilon
        )
        outputs = arrays.cast(outputs, given)
        outputs.set_shape(inputs.shape)
        return outputs

    def _batch_moments(self, inputs: Any, training: Any) -> tuple[Any, Any]:
        """Mean and variance of the batch (if this is training), by which the averages will be moved."""
        others = [axis for axis in range(len(inputs.shape)) if axis not in self.axis]
        found = moments.moments(inputs, others, keep_dims=len(self.axis) > 1)
        averages = self.moving_mean, self.moving_variance
        used = [_chosen(training, new, average) for new, average in zip(found, averages)]
        for average, value in zip(averages, used):
            self.add_update(self._moved_in_training(training, average, value))
        return used[0], used[1]

    def _moved_in_training(self, training: Any, average: Any, value: Any) -> Any:
        return smart_cond(training, lambda: _moved(average, value, self.momentum), lambda: average)

    def _spread(self, value: Any, inputs: Any) -> Any:
        """A vector of channels in a shape that broadcasts with the inputs, whose channels may not be last."""
        rank = len(inputs.shape)
        if value is None or len(value.shape) == rank or self.axis == [rank - 1]:
            return value
        sizes = enumerate(inputs.shape.as_list())
        return arrays.reshape(value, [size if axis in self.axis else 1 for axis, size in sizes])


def _chosen(training: Any, of_batch: Any, average: Any) -> Any:
    return smart_cond(training, lambda: of_batch, lambda: convert_to_tensor(average))


def _known(training: Any) -> bool | None:
    """The static value of `training`; None if only a step knows it."""
    if isinstance(training, bool | int):
        return bool(training)
    value = folded_value(convert_to_tensor(training))
    return None if value is None else bool(value)


def _moved(average: Any, value: Any, momentum: Any) -> Any:
    """average - (average - value) · (1 - momentum), stored."""
    with name_scope("AssignMovingAvg") as scope, colocate_with(average):
        decay = convert_to_tensor(1.0 - momentum, name="decay")
        if decay.dtype != average.dtype.base_dtype:
            decay = arrays.cast(decay, average.dtype.base_dtype)
        change = (average - arrays.cast(value, average.dtype.base_dtype)) * decay
        return variables.assign_sub(average, change, name=scope)


def _checked_axes(axes: list[int], rank: int) -> list[int]:
    positive = [axis + rank if axis < 0 else axis for axis in axes]
    if any(not 0 <= axis < rank for axis in positive):
        raise ValueError(f"Invalid value for `axis` argument: {axes}. The inputs have {rank} dimensions.")
    if len(set(positive)) != len(positive):
        raise ValueError(f"Duplicate axis: {tuple(axes)}")
    return positive


def batch_normalization(
    inputs: Any, axis: Any = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True,
    scale: bool = True, beta_initializer: Any = ZEROS, gamma_initializer: Any = _ONES,
    moving_mean_initializer: Any = ZEROS, moving_variance_initializer: Any = _ONES, beta_regularizer: Any = None,
    gamma_regularizer: Any = None, beta_constraint: Any = None, gamma_constraint: Any = None, training: Any = False,
    trainable: bool = True, name: Any = None, reuse: bool | None = None, renorm: bool = False,
    renorm_clipping: Any = None, renorm_momentum: float = 0.99, fused: bool | None = None,
    virtual_batch_size: int | None = None, adjustment: Any = None,
) -> Any:  # fmt: skip
    """The outputs of a new `BatchNormalization` for `inputs`; `training` is a bool or a scalar tensor.

    A training step must depend on the operations in UPDATE_OPS.
    """
    initial = beta_initializer, gamma_initializer, moving_mean_initializer, moving_variance_initializer
    limits = beta_regularizer, gamma_regularizer, beta_constraint, gamma_constraint
    others = renorm, renorm_clipping, renorm_momentum, fused, trainable, virtual_batch_size, adjustment, name
    layer = BatchNormalization(
        axis, momentum, epsilon, center, scale, *initial, *limits, *others, _scope=name, _reuse=reuse
    )
    return layer(inputs, training=training)
