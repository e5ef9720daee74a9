"""Adagrad: a rate for each element, which falls with the gradients that it has seen; and with dual averaging.

Stands for `python/training/adagrad.py` and `adagrad_da.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.scopes import colocate_with, device
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
        return "Adagrad", {"accum": self.get_slot(var, "accumulator"), **self._cast(var, lr=self._learning_rate_tensor)}


class AdagradDAOptimizer(OneOpOptimizer):
    """Adagrad for sparse linear models (Duchi et al., 2010): weights follow from the sum of all gradients.

    A weight begins at zero, and is zero while the sum of its gradients is within `l1 * global_step`. Slots:
    `gradient_accumulator` and `gradient_squared_accumulator`.
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        initial = initial_gradient_squared_accumulator_value
        if initial <= 0.0:
            raise ValueError(f"initial_gradient_squared_accumulator_value must be positive: {initial}")
        super().__init__(use_locking, name)
        self._learning_rate = learning_rate
        self._initial_gradient_squared_accumulator_value = initial
        self._l1_regularization_strength = l1_regularization_strength
        self._l2_regularization_strength = l2_regularization_strength
        self._global_step = global_step

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        squares = self._initial_gradient_squared_accumulator_value
        for var in var_list:
            dtype, shape = var.dtype.base_dtype, var.shape
            with colocate_with(var):
                g_val = constant(0.0, shape=shape, dtype=dtype)
                gg_val = constant(squares, shape=shape, dtype=dtype)
            self._get_or_make_slot(var, g_val, "gradient_accumulator", self._name)
            self._get_or_make_slot(var, gg_val, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        self._learning_rate_tensor = convert_to_tensor(self._learning_rate, name="learning_rate")
        with colocate_with(self._learning_rate_tensor):
            self._global_step_on_worker = arrays.identity(self._global_step) + 1

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        with device(var.device):
            global_step = arrays.identity(self._global_step_on_worker)
        return "AdagradDA", {
            "gradient_accumulator": self.get_slot(var, "gradient_accumulator"),
            "gradient_squared_accumulator": self.get_slot(var, "gradient_squared_accumulator"),
            **self._cast(var, lr=self._learning_rate_tensor, l1=self._l1_regularization_strength),
            **self._cast(var, l2=self._l2_regularization_strength),
            "global_step": global_step,
        }
