"""Conditional accumulators in programs: `tf.ConditionalAccumulator`, `tf.SparseConditionalAccumulator`.

Stands for ConditionalAccumulatorBase and its subclasses in `python/ops/data_flow_ops.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import as_shape
from dtflab.ops.arrays import casting


class ConditionalAccumulatorBase:
    """Adds up gradients of the current step, and gives their mean once there are enough."""

    _FAMILY = "ResourceAccumulator"

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = dtypes.as_dtype(dtype)
        self._shape = as_shape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.split("/")[-1]

    @property
    def accumulator_ref(self) -> Tensor:
        """The handle."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The name of the operation that gives the handle, without scopes."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The dtype of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """An int32 scalar: how many gradients there are now."""
        name = f"{self._name}_NumAccumulated" if name is None else name
        return apply_op(f"{self._FAMILY}NumAccumulated", name, handle=self._accumulator_ref)

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """An operation that sets the accumulator's step; gradients of earlier steps are dropped from then on."""
        step = casting.cast(convert_to_tensor(new_global_step), dtypes.int64)
        return apply_op(f"{self._FAMILY}SetGlobalStep", name, handle=self._accumulator_ref, new_global_step=step)


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of dense gradients.

    >>> accumulator = tf.ConditionalAccumulator(tf.float32, shape=[3])
    >>> add = accumulator.apply_grad([1.0, 2.0, 3.0], local_step=0)
    >>> mean = accumulator.take_grad(num_required=2)  # waits until two were added, by whomever

    With a `shared_name` it is the same for all sessions of a cluster. `reduction_type` is "MEAN" or "SUM".
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        handle = apply_op(
            "ResourceConditionalAccumulator",
            name,
            dtype=dtype,
            shape=as_shape(shape),
            shared_name=shared_name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, handle)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """An operation that adds `grad`, unless `local_step` is less than the accumulator's step.

        ValueError if its shape can't be the accumulator's.
        """
        grad = convert_to_tensor(grad, self._dtype)
        grad.shape.assert_is_compatible_with(self._shape)
        step = casting.cast(convert_to_tensor(local_step), dtypes.int64)
        return apply_op(
            "ResourceAccumulatorApplyGradient", name, handle=self._accumulator_ref, local_step=step, gradient=grad
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The mean of all gradients, once there are `num_required`; then there are none, and the step is the next.

        InvalidArgumentError if `num_required` is not positive, CancelledError if the session is closed meanwhile.
        """
        mean: Tensor = apply_op(
            "ResourceAccumulatorTakeGradient",
            name,
            handle=self._accumulator_ref,
            num_required=num_required,
            dtype=self._dtype,
        )
        mean.set_shape(self._shape)
        return mean


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of gradients of rows: IndexedSlices, their indices in increasing order.

    Each row is averaged over those gradients that have it.
    """

    _FAMILY = "Accumulator"

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        handle = apply_op(
            "SparseConditionalAccumulator",
            name,
            dtype=dtype,
            shape=as_shape(shape),
            shared_name=shared_name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, handle)

    def apply_indexed_slices_grad(self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None) -> Operation:
        """An operation that adds `grad`, unless `local_step` is less than the accumulator's step."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """An operation that adds the rows `grad_values` at `grad_indices`, unless they are of an earlier step."""
        step = casting.cast(convert_to_tensor(local_step), dtypes.int64)
        return apply_op(
            "SparseAccumulatorApplyGradient",
            name,
            handle=self._accumulator_ref,
            local_step=step,
            gradient_indices=casting.cast(grad_indices, dtypes.int64),
            gradient_values=grad_values,
            gradient_shape=casting.cast([] if grad_shape is None else grad_shape, dtypes.int64),
            has_known_shape=grad_shape is not None,
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """Indices, values and dense shape of the mean of all gradients, once there are `num_required`.

        The first size of the shape is -1 if the accumulator was not told it.
        """
        return apply_op(
            "SparseAccumulatorTakeGradient",
            name,
            handle=self._accumulator_ref,
            num_required=num_required,
            dtype=self._dtype,
        )

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """`take_grad` as IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
