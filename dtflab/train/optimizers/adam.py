"""Adam: the moving mean of the gradients over the moving mean of their size.

Stands for `python/training/adam.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, get_default_graph
from dtflab.ops.control import functions as control
from dtflab.ops.math import functions as math
from dtflab.ops.variables import functions as variables
from dtflab.train.optimizers.one_op_optimizer import OneOpOptimizer


class AdamOptimizer(OneOpOptimizer):
    """`m` and `v` are the moving means of the gradient and of its square; `var -= rate * m / (sqrt(v) + epsilon)`.

    The rate in step t is `learning_rate * sqrt(1 - beta2 ** t) / (1 - beta1 ** t)`, which makes up for `m` and `v`
    beginning at zero; the powers are variables of the optimizer. Slots: `m`, `v`. A gradient of some rows moves
    all rows, as it would if the others were zero.
    """

    _zeros = ("m", "v")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
        use_own_namescope_for_non_slot_vars: bool = False,
    ) -> None:
        super().__init__(use_locking, name, use_own_namescope_for_non_slot_vars)
        self._lr = learning_rate
        self._beta1 = beta1
        self._beta2 = beta2
        self._epsilon = epsilon

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        """The variables `beta1 ** t` and `beta2 ** t`."""
        graph = get_default_graph()
        return self._get_non_slot_variable("beta1_power", graph), self._get_non_slot_variable("beta2_power", graph)

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        first = min(var_list, key=lambda var: var.name)  # the same in every worker
        self._create_non_slot_variable(self._beta1, "beta1_power", first)
        self._create_non_slot_variable(self._beta2, "beta2_power", first)
        super()._create_slots(var_list)

    def _prepare(self) -> None:
        self._lr_t = self._setting(self._lr, "learning_rate")
        self._beta1_t = self._setting(self._beta1, "beta1")
        self._beta2_t = self._setting(self._beta2, "beta2")
        self._epsilon_t = self._setting(self._epsilon, "epsilon")

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        beta1_power, beta2_power = self._get_beta_accumulators()
        return "Adam", {
            "m": self.get_slot(var, "m"),
            "v": self.get_slot(var, "v"),
            **self._cast(var, beta1_power=beta1_power, beta2_power=beta2_power, lr=self._lr_t),
            **self._cast(var, beta1=self._beta1_t, beta2=self._beta2_t, epsilon=self._epsilon_t),
        }

    # No op does this for rows: `m` and `v` decay everywhere, and get their share of the gradient at some rows.

    def _apply_sparse_shared(self, grad: Tensor, var: Any, indices: Tensor, scatter_add: Callable[..., Any]) -> Any:
        _, given = self._step(var)
        rate = given["lr"] * math.sqrt(1 - given["beta2_power"]) / (1 - given["beta1_power"])

        def decayed(slot: Any, beta: Tensor, share: Tensor) -> Any:
            kept = variables.assign(slot, slot * beta, use_locking=self._use_locking)
            with control_dependencies([kept]):
                return scatter_add(slot, indices, share)

        m = decayed(given["m"], given["beta1"], grad * (1 - given["beta1"]))
        v = decayed(given["v"], given["beta2"], grad * grad * (1 - given["beta2"]))
        size = math.sqrt(v)
        change = rate * m / (size + given["epsilon"])
        update = variables.assign_sub(var, change, use_locking=self._use_locking)
        return control.group(update, m, v)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        def scatter_add(x: Any, i: Tensor, v: Tensor) -> Any:
            return variables.scatter_add(x, i, v, use_locking=self._use_locking)

        return self._apply_sparse_shared(grad.values, var, grad.indices, scatter_add)

    def _resource_scatter_add(self, x: Any, i: Tensor, v: Tensor) -> Tensor:
        with control_dependencies([apply_op("ResourceScatterAdd", None, resource=x.handle, indices=i, updates=v)]):
            return x.value()

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._apply_sparse_shared(grad, handle, indices, self._resource_scatter_add)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        with control_dependencies(update_ops):
            beta1_power, beta2_power = self._get_beta_accumulators()
            with colocate_with(beta1_power):
                powers = [
                    power.assign(power * beta, use_locking=self._use_locking)
                    for power, beta in ((beta1_power, self._beta1_t), (beta2_power, self._beta2_t))
                ]
        return control.group(*update_ops, *powers, name=name_scope)
