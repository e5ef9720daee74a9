"""Gradient descent: every variable moves against its gradient, by the learning rate.

Stands for `python/training/gradient_descent.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.ops.arrays import functions as arrays
from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class GradientDescentOptimizer(OneOpOptimizer):
    """`var -= learning_rate * gradient`; the rate is a number, a tensor, or a function that gives one."""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._learning_rate_tensor: Any = None

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._setting(self._learning_rate, "learning_rate")

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "GradientDescent", self._cast(var, alpha=self._learning_rate_tensor)

    # Rows need no separate op, and repeated rows need not be summed first.

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        step = grad.values * arrays.cast(self._learning_rate_tensor, var.dtype.base_dtype)
        delta = IndexedSlices(step, grad.indices, grad.dense_shape)
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        step = -grad * arrays.cast(self._learning_rate_tensor, handle.dtype.base_dtype)
        return apply_op("ResourceScatterAdd", None, resource=handle.handle, indices=indices, updates=step)
