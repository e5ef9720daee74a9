"""RMSProp: gradients in units of their recent size.

Stands for `python/training/rmsprop.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.ops.arrays import functions as arrays
from dtflab.ops.variables.initializers import ones_initializer
from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class RMSPropOptimizer(OneOpOptimizer):
    """`rms` is the moving mean of squared gradients; `var -= mom`, a momentum of `rate * gradient / sqrt(rms)`.

    If `centered`, the moving mean of the gradients (`mg`) is taken out first: `sqrt(rms - mg ** 2)`.
    Slots: `rms`, `momentum`, and `mg` if centered.
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._decay = decay
        self._momentum = momentum
        self._epsilon = epsilon
        self._centered = centered

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            dtype, shape = var.dtype.base_dtype, var.shape
            ones: Any = ones_initializer(dtype) if shape.is_fully_defined() else arrays.ones_like(var)
            self._get_or_make_slot_with_initializer(var, ones, shape, dtype, "rms", self._name)
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._setting(self._learning_rate, "learning_rate")
        self._decay_tensor = self._setting(self._decay, "decay")
        self._momentum_tensor = self._setting(self._momentum, "momentum")
        self._epsilon_tensor = self._setting(self._epsilon, "epsilon")

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        slots = {"ms": self.get_slot(var, "rms"), "mom": self.get_slot(var, "momentum")}
        if self._centered:
            slots["mg"] = self.get_slot(var, "mg")
        return "CenteredRMSProp" if self._centered else "RMSProp", {
            **slots,
            **self._cast(var, lr=self._learning_rate_tensor, rho=self._decay_tensor),
            **self._cast(var, momentum=self._momentum_tensor, epsilon=self._epsilon_tensor),
        }
