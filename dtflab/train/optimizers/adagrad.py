"""Adagrad: a rate for each element, that falls with the gradients which it has seen.

Stands for `python/training/adagrad.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.ops.arrays import functions as arrays
from dtflab.ops.variables.initializers import constant_initializer
from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class AdagradOptimizer(OneOpOptimizer):
    """`accumulator += gradient ** 2; var -= learning_rate * gradient / sqrt(accumulator)`.

    The accumulator begins at `initial_accumulator_value`, which is positive. Slot: `accumulator`.
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        if initial_accumulator_value <= 0.0:
            raise ValueError(f"initial_accumulator_value must be positive: {initial_accumulator_value}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            dtype = var.dtype.base_dtype
            init: Any = self._of_shape(var)
            if var.shape.is_fully_defined():
                init = constant_initializer(self._initial_accumulator_value, dtype=dtype)
            self._get_or_make_slot_with_initializer(var, init, var.shape, dtype, "accumulator", self._name)

    def _of_shape(self, var: Any) -> Callable[[], Any]:
        """The accumulator of a variable whose shape is known when it runs."""
        return lambda: arrays.cast(
            arrays.fill(arrays.shape(var), self._initial_accumulator_value), var.dtype.base_dtype
        )

    def _prepare(self) -> None:
        self._learning_rate_tensor = self._setting(self._learning_rate, "learning_rate")

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "Adagrad", {
            "accum": self.get_slot(var, "accumulator"),
            "lr": self._cast(self._learning_rate_tensor, var),
        }
