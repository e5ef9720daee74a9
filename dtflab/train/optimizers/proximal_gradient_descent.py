"""Proximal gradient descent: a step down the gradient, then one towards zero as far as the penalties pull.

Stands for `python/training/proximal_gradient_descent.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.convert import convert_to_tensor
from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class ProximalGradientDescentOptimizer(OneOpOptimizer):
    """Gradient descent with L1 and L2 penalties by forward-backward splitting (Duchi and Singer, 2009)."""

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _prepare(self) -> None:
        self._learning_rate_tensor = convert_to_tensor(self._learning_rate, name="learning_rate")
        self._l1_tensor = convert_to_tensor(self._l1_regularization_strength, name="l1_regularization_strength")
        self._l2_tensor = convert_to_tensor(self._l2_regularization_strength, name="l2_regularization_strength")

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "ProximalGradientDescent", {
            "alpha": self._cast(self._learning_rate_tensor, var),
            "l1": self._cast(self._l1_tensor, var),
            "l2": self._cast(self._l2_tensor, var),
        }
