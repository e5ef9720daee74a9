"""Momentum: the gradients of the past push on, less and less.

Stands for `python/training/momentum.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class MomentumOptimizer(OneOpOptimizer):
    """`accumulation = momentum * accumulation + gradient; var -= learning_rate * accumulation`.

    With `use_nesterov` the step is along `gradient + momentum * accumulation`: where the ball is about to roll.
    Both settings are numbers, tensors, or functions that give one. Slot: `momentum`.
    """

    _zeros = ("momentum",)

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._use_nesterov = use_nesterov

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._setting(self._learning_rate, "learning_rate")
        self._momentum_tensor = self._setting(self._momentum, "momentum")

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "Momentum", {
            "accum": self.get_slot(var, "momentum"),
            **self._cast(var, lr=self._learning_rate_tensor, momentum=self._momentum_tensor),
            "use_nesterov": self._use_nesterov,
        }
