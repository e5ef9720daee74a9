"""Proximal Adagrad: Adagrad's rates with L1 and L2 penalties.

Stands for `python/training/proximal_adagrad.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.scopes import colocate_with
from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class ProximalAdagradOptimizer(OneOpOptimizer):
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
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            with colocate_with(var):
                val = constant(self._initial_accumulator_value, shape=var.shape, dtype=var.dtype.base_dtype)
            self._get_or_make_slot(var, val, "accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = convert_to_tensor(self._learning_rate, name="learning_rate")
        self._l1_tensor = convert_to_tensor(self._l1_regularization_strength, name="l1_regularization_strength")
        self._l2_tensor = convert_to_tensor(self._l2_regularization_strength, name="l2_regularization_strength")

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "ProximalAdagrad", {
            "accum": self.get_slot(var, "accumulator"),
            "lr": self._cast(self._learning_rate_tensor, var),
            "l1": self._cast(self._l1_tensor, var),
            "l2": self._cast(self._l2_tensor, var),
        }
