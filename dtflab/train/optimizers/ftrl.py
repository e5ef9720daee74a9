"""Ftrl: follow the regularized leader, for sparse weights.

Stands for `python/training/ftrl.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.math import functions as math
from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class FtrlOptimizer(OneOpOptimizer):
    """FTRL-proximal (McMahan et al., 2013), with the L1 and L2 penalties of the paper and its `beta`.

    A weight is zero as long as the sum of its gradients (the slot `linear`) is within the L1 penalty; the rate
    of each falls as the power `learning_rate_power` of the sum of squared gradients (the slot `accum`).
    `l2_shrinkage_regularization_strength` is a penalty on the weights as if it were part of the loss; with a
    gradient of rows, on those rows.
    """

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float | None = None,
    ) -> None:
        super().__init__(use_locking, name)
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power:f} needs to be negative or zero")
        for setting, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise ValueError(f"{setting} {value:f} needs to be positive or zero")
        self._learning_rate = learning_rate
        self._learning_rate_power = learning_rate_power
        self._initial_accumulator_value = initial_accumulator_value
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self._beta = 0.0 if beta is None else beta
        self._accum_name = accum_name
        self._linear_name = linear_name

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        def initial(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Tensor:
            return arrays.ones(shape, dtype) * self._initial_accumulator_value

        for var in var_list:
            name = self._accum_name or self._name
            self._get_or_make_slot_with_initializer(var, initial, var.shape, var.dtype, "accum", name)
            self._zeros_slot(var, "linear", self._linear_name or self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = convert_to_tensor(self._learning_rate, name="learning_rate")
        self._l1_tensor = convert_to_tensor(self._l1_regularization_strength, name="l1_regularization_strength")
        # The op knows of no beta: it is the same as this much L2.
        beta = self._beta / (2.0 * math.maximum(self._learning_rate, 1e-36))
        l2 = self._l2_regularization_strength + beta
        self._l2_tensor = convert_to_tensor(l2, name="adjusted_l2_regularization_strength")
        self._beta_tensor = convert_to_tensor(self._beta, name="beta")
        shrinkage = self._l2_shrinkage_regularization_strength
        self._l2_shrinkage_tensor = convert_to_tensor(shrinkage, name="l2_shrinkage_regularization_strength")
        self._learning_rate_power_tensor = convert_to_tensor(self._learning_rate_power, name="learning_rate_power")

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        shrinks = self._l2_shrinkage_regularization_strength > 0.0
        inputs = {
            "accum": self.get_slot(var, "accum"),
            "linear": self.get_slot(var, "linear"),
            **self._cast(var, lr=self._learning_rate_tensor, l1=self._l1_tensor, l2=self._l2_tensor),
        }
        if shrinks:
            inputs |= self._cast(var, l2_shrinkage=self._l2_shrinkage_tensor)
        inputs |= self._cast(var, lr_power=self._learning_rate_power_tensor)
        return "FtrlV2" if shrinks else "Ftrl", inputs
