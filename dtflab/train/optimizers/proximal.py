"""Proximal optimizers: a step down the gradient, then one towards zero as far as L1 and L2 penalties pull.

Stands for `python/training/proximal_gradient_descent.py` and `proximal_adagrad.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.scopes import colocate_with
from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class _ProximalOptimizer(OneOpOptimizer):
    """Base of both: a rate and the strengths of the two penalties."""

    def __init__(self, learning_rate: Any, l1: float, l2: float, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1
        self._l2_regularization_strength = l2

    def _prepare(self) -> None:
        self._learning_rate_tensor = convert_to_tensor(self._learning_rate, name="learning_rate")
        self._l1_tensor = convert_to_tensor(self._l1_regularization_strength, name="l1_regularization_strength")
        self._l2_tensor = convert_to_tensor(self._l2_regularization_strength, name="l2_regularization_strength")

    def _scalars(self, rate: str, var: Any) -> dict[str, Any]:
        """The inputs other than slots; the op calls the learning rate `rate`."""
        return self._cast(var, **{rate: self._learning_rate_tensor}, l1=self._l1_tensor, l2=self._l2_tensor)


class ProximalGradientDescentOptimizer(_ProximalOptimizer):
    """Gradient descent with L1 and L2 penalties by forward-backward splitting (Duchi and Singer, 2009)."""

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(learning_rate, l1_regularization_strength, l2_regularization_strength, use_locking, name)

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "ProximalGradientDescent", self._scalars("alpha", var)


class ProximalAdagradOptimizer(_ProximalOptimizer):
    """Adagrad with penalties by forward-backward splitting (Duchi and Singer, 2009). Slot: `accumulator`."""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(learning_rate, l1_regularization_strength, l2_regularization_strength, use_locking, name)
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            with colocate_with(var):
                val = constant(self._initial_accumulator_value, shape=var.shape, dtype=var.dtype.base_dtype)
            self._get_or_make_slot(var, val, "accumulator", self._name)

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "ProximalAdagrad", {"accum": self.get_slot(var, "accumulator"), **self._scalars("lr", var)}
