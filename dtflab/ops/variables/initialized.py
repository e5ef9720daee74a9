"""The value of another variable, whether it is initialized yet or not.

Stands for `VariableV1.initialized_value` and `_try_guard_against_uninitialized_dependencies` of
`python/ops/variables.py`.

Rule: initializers run in any order. So where the initial value of one variable is computed from another
variable, the computation is built again on the other's value if it has one, else on its initial value.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops.control.cond import cond
from dtflab.ops.variables import functions


def initialized_value(variable: Any) -> Tensor:
    """The value of `variable` if it has one, else what it will be initialized with."""
    with control_dependencies(None):
        return cond(functions.is_variable_initialized(variable), variable.read_value, lambda: variable.initial_value)


def guarded(scope: str, initial_value: Tensor) -> Tensor:
    """`initial_value` of the variable `scope`, rebuilt where it depends on other variables."""
    if _has_cycle(initial_value.op):
        return initial_value
    return _safe_tensor(scope, initial_value, {})


def _has_cycle(start: Operation) -> bool:
    """True if `start` can be reached from itself, or a cycle from it."""
    entered: set[Operation] = set()
    left: set[Operation] = set()
    stack = [(start, False)]
    while stack:
        operation, done = stack.pop()
        if done:
            entered.discard(operation)
            left.add(operation)
        elif operation in entered:
            return True
        elif operation not in left:
            entered.add(operation)
            stack.append((operation, True))
            stack += [(o, False) for o in (*(t.op for t in operation.inputs), *operation.control_inputs)]
    return False


def _safe_tensor(scope: str, tensor: Tensor, seen: dict[Operation, Operation]) -> Tensor:
    if tensor.op not in seen:
        seen[tensor.op] = _safe_op(scope, tensor.op, seen)
    return seen[tensor.op].outputs[tensor.value_index]


def _safe_op(scope: str, operation: Operation, seen: dict[Operation, Operation]) -> Operation:
    if operation.type in ("IsVariableInitialized", "VarIsInitializedOp", "ReadVariableOp", "If"):
        return operation
    if operation.type in ("Variable", "VariableV2", "VarHandleOp"):
        variable = _variable_of(operation)
        return operation if variable is None else initialized_value(variable).op
    inputs = [_safe_tensor(scope, t, seen) for t in operation.inputs]
    if all(new is old for new, old in zip(inputs, operation.inputs)):
        return operation
    op_type = "Switch" if operation.type == "RefSwitch" else operation.type
    name = f"{operation.name}_{scope}".replace(":", "_")
    return operation.graph.create_op(op_type, inputs, name=name, attrs=dict(operation.attrs))


def _variable_of(operation: Operation) -> Any:
    """The variable of the graph's collections that stands on `operation`, or None."""
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in operation.graph.get_collection(key):
            if getattr(variable, "op", None) is operation and hasattr(variable, "initialized_value"):
                return variable
    return None
