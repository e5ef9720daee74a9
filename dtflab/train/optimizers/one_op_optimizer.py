"""OneOpOptimizer: the base of the optimizers whose update of a variable is one op.

Stands for the four methods `_apply_dense`, `_resource_apply_dense`, `_apply_sparse`, `_resource_apply_sparse` that
each optimizer of TensorFlow has, alike but for the op's name.

Rule: a subclass says in `_step` which formula of ops/training/rules.py moves a variable, and with what; the op is
the form of it for the kind of variable and of gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dtflab.graph import dtypes, op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.ops.arrays import functions as arrays
from dtflab.train.optimizers.optimizer import Optimizer


class OneOpOptimizer(Optimizer):
    """An optimizer with one formula."""

    _zeros: ClassVar[tuple[str, ...]] = ()  # the slots that begin at zero

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            for slot in self._zeros:
                self._zeros_slot(var, slot, self._name)

    def _step(self, var: Any) -> tuple[str, dict[str, Any]]:
        """The formula's name, and its inputs by name: slots as variables, scalars of the variable's dtype."""
        raise NotImplementedError

    def _setting(self, value: Any, name: str) -> Tensor:
        """The program's setting (a number, a tensor, or a function that gives one) as the tensor `name`."""
        return convert_to_tensor(self._call_if_callable(value), name=name)

    def _cast(self, var: Any, **settings: Any) -> dict[str, Any]:
        """The settings in the variable's dtype."""
        return {name: arrays.cast(setting, var.dtype.base_dtype) for name, setting in settings.items()}

    def _apply(self, form: str, var: Any, grad: Tensor, **indices: Tensor) -> Any:
        rule, inputs = self._step(var)
        op_def = op_registry.get(form + rule).op_def
        inputs = {"var": var, **inputs, "delta" if "delta" in op_def.argument_names else "grad": grad, **indices}
        for arg in op_def.inputs:
            if arg.type is dtypes.resource:
                inputs[arg.name] = inputs[arg.name].handle
        result = apply_op(op_def.name, None, **inputs, use_locking=self._use_locking)
        return result.op if isinstance(result, Tensor) else result

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        return self._apply("Apply", var, grad)

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        return self._apply("ResourceApply", handle, grad)

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._apply("SparseApply", var, grad.values, indices=grad.indices)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._apply("ResourceSparseApply", handle, grad, indices=indices)
