"""Gradient descent: every variable moves against its gradient, by the learning rate.

Stands for `python/training/gradient_descent.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.ops import casting
from dtflab.train.optimizer import Optimizer


class GradientDescentOptimizer(Optimizer):
    """`var -= learning_rate * gradient`; the rate is a number, a tensor, or a function that gives one."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor: Any = None

    def _prepare(self) -> None:
        rate = self._call_if_callable(self._learning_rate)
        self._learning_rate_tensor = convert_to_tensor(rate, name="learning_rate")

    def _rate(self, dtype: Any) -> Tensor:
        rate: Tensor = casting.cast(self._learning_rate_tensor, dtype.base_dtype)
        return rate

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return apply_op(
            "ApplyGradientDescent",
            None,
            var=var,
            alpha=self._rate(var.dtype),
            delta=grad,
            use_locking=self._use_locking,
        ).op

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return apply_op(
            "ResourceApplyGradientDescent",
            None,
            var=handle.handle,
            alpha=self._rate(grad.dtype),
            delta=grad,
            use_locking=self._use_locking,
        )

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        step = grad.values * self._rate(var.dtype)
        delta = IndexedSlices(step, grad.indices, grad.dense_shape)
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        step = -grad * self._rate(grad.dtype)
        return apply_op("ResourceScatterAdd", None, resource=handle.handle, indices=indices, updates=step)
