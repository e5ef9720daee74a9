"""Adadelta: steps in the units of the variable, of the size of the steps before.

Stands for `python/training/adadelta.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class AdadeltaOptimizer(OneOpOptimizer):
    """`update = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * gradient; var -= learning_rate * update`.

    `accum` and `accum_update` are the moving means (by `rho`) of squared gradients and squared updates: the slots.
    """

    _zeros = ("accum", "accum_update")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        super().__init__(use_locking, name)
        self._lr = learning_rate
        self._rho = rho
        self._epsilon = epsilon

    def _prepare(self) -> None:
        self._lr_t = self._setting(self._lr, "lr")
        self._rho_t = self._setting(self._rho, "rho")
        self._epsilon_t = self._setting(self._epsilon, "epsilon")

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "Adadelta", {
            "accum": self.get_slot(var, "accum"),
            "accum_update": self.get_slot(var, "accum_update"),
            **self._cast(var, lr=self._lr_t, rho=self._rho_t, epsilon=self._epsilon_t),
        }
