"""Initial values: built from other variables whether they have a value or not.

Stands for `VariableV1.initialized_value` and `_try_guard_against_uninitialized_dependencies` of
`python/ops/variables.py`.

Rule: initializers run in any order. So where the initial value of one variable is computed from another
variable, the computation is built again on the other's value if it has one, else on its initial value.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, get_default_graph
from dtflab.ops.control.cond import cond
from dtflab.ops.variables import functions


def initialized_value(variable: Any) -> Tensor:
    """The value of `variable` if it has one, else its initial value."""
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
    """The variable of the graph's collections that `operation` holds, or None."""
    for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES):
        for variable in operation.graph.get_collection(key):
            if getattr(variable, "op", None) is operation and hasattr(variable, "initialized_value"):
                return variable
    return None


@contextlib.contextmanager
def on_device_of(name: str) -> Iterator[None]:
    """Operations made inside share the device of an operation `name` that may not exist yet."""
    graph = get_default_graph()
    start = graph.version
    yield
    for operation in graph.get_operations()[start:]:
        operation.attrs.setdefault("_class", [b"loc:@" + name.encode()])


def inside_control_flow(scope: str) -> ValueError:
    """The error for an initial value that only exists where a branch is taken."""
    return ValueError(
        f"Initializer for variable {scope} is from inside a control-flow construct, such as a loop or "
        "conditional. When creating a variable inside a loop or conditional, use a lambda as the initializer."
    )
