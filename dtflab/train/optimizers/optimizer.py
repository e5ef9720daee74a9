"""Optimizer: from a loss to the operation that makes it smaller.

Stands for `python/training/optimizer.py`. Left out: eager mode, distribution strategies, checkpoint tracking.

Rule: `minimize` is `compute_gradients`, then `apply_gradients`; a program may do something with the gradients
in between. Every update stands on the device of its variable, and the step is counted after all of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.gradients import gradients
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, get_collection_ref, get_default_graph, name_scope
from dtflab.ops.control import functions as control
from dtflab.ops.control.functions import init_scope
from dtflab.ops.variables import functions as variables
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.resource_variable import ResourceVariable
from dtflab.ops.variables.variable import Variable
from dtflab.ops.variables.variable_scope import variable_scope
from dtflab.train.optimizers import slot_creator

Gradient = Any  # Tensor, IndexedSlices or None


class Optimizer:
    """Base of the optimizers.

    A subclass says how one variable changes: `_apply_dense` and `_resource_apply_dense`, for a gradient of
    rows `_apply_sparse` and `_resource_apply_sparse`; what it keeps per variable: `_create_slots`; what it
    needs once per application: `_prepare`; and what comes last: `_finish`.
    """

    GATE_NONE = 0  # gradients may be applied while others are computed
    GATE_OP = 1  # … but not before all gradients of an operation are there
    GATE_GRAPH = 2  # all gradients first

    def __init__(self, use_locking: bool, name: str, use_own_namescope_for_non_slot_vars: bool = False) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name")
        self._use_locking = use_locking
        self._name = name
        self._non_slot_scope: Any = None
        if use_own_namescope_for_non_slot_vars:
            with variable_scope(None, default_name=name) as scope:
                self._non_slot_scope = scope
        self._slots: dict[str, dict[Any, Variable]] = {}
        self._non_slot_dict: dict[Any, Variable] = {}

    def get_name(self) -> str:
        """The name under which the updates are added to the graph."""
        return self._name

    def minimize(
        self,
        loss: Any,
        global_step: Any = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Tensor | None = None,
    ) -> Any:
        """An operation that changes the variables (all trainable ones) towards a smaller `loss`.

        It adds 1 to `global_step`, if given, after the updates.
        """
        grads_and_vars = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(grad is None for grad, _ in grads_and_vars):
            raise ValueError(
                "No gradients provided for any variable, check your graph for ops that do not support "
                f"gradients, between variables {[str(v) for _, v in grads_and_vars]} and loss {loss}."
            )
        return self.apply_gradients(grads_and_vars, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: int | None = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Tensor | None = None,
    ) -> list[tuple[Gradient, Any]]:
        """Pairs (gradient, variable) for the variables in `var_list`, by default all trainable ones.

        `loss` is a tensor, or a function that gives one. The gradient is None where the loss does not depend on
        the variable.
        """
        loss = self._call_if_callable(loss)
        if gate_gradients not in (Optimizer.GATE_NONE, Optimizer.GATE_OP, Optimizer.GATE_GRAPH):
            raise ValueError(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                f"Optimizer.GATE_GRAPH.  Not {gate_gradients}"
            )
        self._assert_valid_dtypes([loss] if grad_loss is None else [loss, grad_loss])
        if var_list is None:
            resources = get_default_graph().get_collection(GraphKeys.TRAINABLE_RESOURCE_VARIABLES)
            var_list = variables.trainable_variables() + resources
        else:
            var_list = nest.flatten(var_list)
        targets = [_target(v) for v in var_list]
        if not var_list:
            raise ValueError("No variables to optimize.")
        grads = gradients(
            loss,
            targets,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == Optimizer.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == Optimizer.GATE_GRAPH:
            grads = control.tuple(grads)
        self._assert_valid_dtypes([v for g, v in zip(grads, var_list) if g is not None])
        return list(zip(grads, var_list))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[tuple[Gradient, Any]],
        global_step: Any = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Any:
        """An operation that applies the gradients to their variables, then adds 1 to `global_step`.

        The last argument is for distribution strategies, and of no effect here.
        """
        pairs = [(_checked_gradient(g), v) for g, v in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        var_list = [v for g, v in pairs if g is not None]
        if not var_list:
            raise ValueError(f"No gradients provided for any variable: {[str(v) for _, v in pairs]}.")
        # Clients may be threads that share an optimizer and build a graph each. What `_prepare` keeps belongs to one
        # graph, so it is kept on a copy until the graph is built; the slots are those of `self`.
        mine = copy.copy(self)
        before = vars(mine).copy()
        with init_scope():
            mine._create_slots(var_list)
        with name_scope(name, self._name) as scope:
            mine._prepare()
            updates = []
            for grad, variable in pairs:
                if grad is not None:
                    with name_scope(f"update_{variable.op.name}"), colocate_with(variable):
                        updates.append(mine._update(grad, variable))
            if global_step is None:
                train_op = mine._finish(updates, scope)
            else:
                with control_dependencies([mine._finish(updates, "update")]), colocate_with(global_step):
                    train_op = _count_step(global_step, scope)
        # Programs read the last application's tensors, such as `_lr_t`, from the optimizer.
        vars(self).update({k: v for k, v in vars(mine).items() if k not in before or v is not before[k]})
        operation = train_op.op if isinstance(train_op, Tensor) else train_op
        train_ops = get_collection_ref(GraphKeys.TRAIN_OP)
        if operation not in train_ops:
            train_ops.append(operation)
        return operation

    def _update(self, grad: Gradient, variable: Any) -> Any:
        """The operation that applies one gradient, and the constraint of the variable after it."""
        if isinstance(grad, IndexedSlices):
            if variable.constraint is not None:
                raise RuntimeError("Cannot use a constraint function on a sparse variable.")
            if isinstance(variable, ResourceVariable):
                return self._resource_apply_sparse_duplicate_indices(grad.values, variable, grad.indices)
            return self._apply_sparse_duplicate_indices(grad, variable)
        if isinstance(variable, ResourceVariable):
            update = self._resource_apply_dense(grad, variable)
        elif isinstance(variable, Variable):
            update = self._apply_dense(grad, variable)
        else:
            raise NotImplementedError("Trying to update a Tensor ", variable)
        if variable.constraint is None:
            return update
        with control_dependencies([update]):
            return variable.assign(variable.constraint(variable))

    # -- slots

    def get_slot(self, var: Any, name: str) -> Variable | None:
        """The variable called `name` that this optimizer keeps for `var`, or None."""
        return self._slots.get(name, {}).get(_key(var))

    def get_slot_names(self) -> list[str]:
        """The names of the variables that this optimizer keeps for each trained variable."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """All variables that this optimizer keeps in the current graph."""
        # Copies, because another client may add its slots meanwhile.
        slots = (v for by_variable in [*self._slots.values()] for v in [*by_variable.values()])
        kept = [*self._non_slot_dict.values(), *slots]
        return sorted((v for v in kept if v.graph is get_default_graph()), key=lambda v: v.name)

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Variable:
        """A variable of the optimizer itself (Adam's `beta1_power`), next to the variable `colocate_with`."""
        key = (name, colocate_with.graph)
        if key not in self._non_slot_dict:
            use_resource = isinstance(colocate_with, ResourceVariable)
            with get_default_graph().colocate_with(colocate_with, ignore_existing=True):
                if self._non_slot_scope is None:
                    made = Variable(initial_value, name=name, trainable=False, use_resource=use_resource)
                else:
                    with name_scope(""), variable_scope(self._non_slot_scope):
                        made = get_variable(name, initializer=initial_value, trainable=False, use_resource=use_resource)
            self._non_slot_dict[key] = made
        return self._non_slot_dict[key]

    def _get_non_slot_variable(self, name: str, graph: Any = None) -> Variable | None:
        return self._non_slot_dict.get((name, graph))

    def _slot_dict(self, slot_name: str) -> dict[Any, Variable]:
        return self._slots.setdefault(slot_name, {})

    def _slot(self, var: Any, slot_name: str, make: Callable[[], Variable]) -> Variable:
        slots = self._slot_dict(slot_name)
        if _key(var) not in slots:
            slots[_key(var)] = make()
        return slots[_key(var)]

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Variable:
        """The slot of `var`, made with the value `val` if it has none."""
        return self._slot(var, slot_name, lambda: slot_creator.create_slot(var, val, op_name))

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Variable:
        """The slot of `var`, made with an initializer if it has none."""
        return self._slot(
            var, slot_name, lambda: slot_creator.create_slot_with_initializer(var, initializer, shape, dtype, op_name)
        )

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Variable:
        """The slot of `var`, made of zeros if it has none."""
        return self._slot(var, slot_name, lambda: slot_creator.create_zeros_slot(var, op_name))

    # -- what subclasses say

    def _valid_dtypes(self) -> set[dtypes.DType]:
        return {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}

    def _assert_valid_dtypes(self, tensors: Sequence[Any]) -> None:
        valid = self._valid_dtypes()
        for tensor in tensors:
            if tensor.dtype.base_dtype not in valid:
                raise ValueError(
                    f"Invalid type {tensor.dtype.base_dtype!r} for {tensor.name}, expected: {list(valid)}."
                )

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Make what is kept per variable."""

    def _prepare(self) -> None:
        """Make the tensors that all updates use, such as the learning rate."""

    def _apply_dense(self, grad: Tensor, var: Any) -> Any:
        raise NotImplementedError

    def _resource_apply_dense(self, grad: Tensor, handle: Any) -> Any:
        raise NotImplementedError

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        raise NotImplementedError

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        raise NotImplementedError

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        values, indices = _summed_rows(grad.values, grad.indices)
        return self._apply_sparse(IndexedSlices(values, indices, grad.dense_shape), var)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        values, unique = _summed_rows(grad, indices)
        return self._resource_apply_sparse(values, handle, unique)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        return control.group(*update_ops, name=name_scope)

    def _call_if_callable(self, param: Any) -> Any:
        return param() if callable(param) else param


class WrappingOptimizer(Optimizer):
    """Base of the optimizers around another one, to which gradients and all that is kept per variable belong.

    A subclass says what becomes of gradients before the optimizer inside, `_opt`, applies them: `apply_gradients`.
    """

    def __init__(self, opt: Optimizer, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Gradient, Any]]:
        """The gradients that the optimizer inside computes."""
        return self._opt.compute_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Variable | None:
        """The slot of the optimizer inside."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> list[str]:
        """The slot names of the optimizer inside."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> list[Variable]:
        """The variables of the optimizer inside."""
        return self._opt.variables()


def _key(variable: Any) -> tuple[Any, str]:
    return variable.op.graph, variable.op.name


def _target(variable: Any) -> Any:
    """The variable's reference or handle, with respect to which a loss is differentiated."""
    if isinstance(variable, ResourceVariable | Tensor):
        return variable
    if isinstance(variable, Variable):
        return variable._as_graph_element()
    raise NotImplementedError("Trying to optimize unsupported type ", variable)


def _checked_gradient(grad: Any) -> Gradient:
    if grad is None or isinstance(grad, IndexedSlices):
        return grad
    try:
        return convert_to_tensor(grad)
    except TypeError:
        raise TypeError(f"Gradient must be convertible to a Tensor or IndexedSlices, or None: {grad}") from None


def _count_step(global_step: Any, scope: str) -> Any:
    if isinstance(global_step, ResourceVariable):
        one = convert_to_tensor(1, global_step.dtype)
        return apply_op("AssignAddVariableOp", scope, resource=global_step.handle, value=one)
    return variables.assign_add(global_step, 1, name=scope)


def _summed_rows(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """The rows with those of equal index summed, and each index once."""
    unique, positions = apply_op("Unique", None, x=indices)
    count = apply_op("Shape", None, input=unique)[0]
    summed = apply_op("UnsortedSegmentSum", None, data=values, segment_ids=positions, num_segments=count)
    return summed, unique
