"""The variables of a graph: lists of them, and operations that initialize or check them.

Stands for the functions of `python/ops/variables.py`. Variable itself is in `variable.py`, its two kinds in
`ref_variable.py` and `resource_variable.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.graph import dtypes, proto_functions
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, device, get_collection, get_default_graph, name_scope
from dtflab.ops.control import control_flow
from dtflab.ops.variables import state
from dtflab.ops.variables.ref_variable import RefVariable
from dtflab.ops.variables.resource_variable import ResourceVariable
from dtflab.ops.variables.variable import (
    Variable,
    VariableAggregation,
    VariableSynchronization,
    disable_resource_variables,
    enable_resource_variables,
    init_scope,
    resource_variables_enabled,
)
from dtflab.protos.variable_pb2 import VariableDef

__all__ = [
    "RefVariable", "ResourceVariable", "Variable", "VariableAggregation", "VariableSynchronization",
    "all_variables", "assert_variables_initialized", "disable_resource_variables",
    "enable_resource_variables", "global_variables", "global_variables_initializer", "init_scope",
    "initialize_all_variables",
    "initialize_local_variables", "initialize_variables", "is_variable_initialized", "local_variables",
    "local_variables_initializer", "model_variables", "moving_average_variables",
    "report_uninitialized_variables", "resource_variables_enabled", "trainable_variables",
    "variables_initializer",
]  # fmt: skip

is_variable_initialized = state.is_variable_initialized


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables that all tasks share: the default kind."""
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of this process alone, which are not saved."""
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimizers change by default."""
    return get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that inference needs."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that have moving averages."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Sequence[Any], name: str = "init") -> Operation:
    """One operation that runs the initializers of `var_list`, in any order."""
    if var_list:
        return control_flow.group(*[v.initializer for v in var_list], name=name)
    return control_flow.no_op(name=name)


def global_variables_initializer() -> Operation:
    """One operation that initializes all global variables made so far."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """One operation that initializes all local variables made so far."""
    return variables_initializer(local_variables())


# What these were called before TensorFlow 0.12.
all_variables = global_variables
initialize_variables = variables_initializer
initialize_all_variables = global_variables_initializer
initialize_local_variables = local_variables_initializer


def _all_or_found() -> list[Any]:
    """Global and local variables; in a graph without Variable objects, the variable operations themselves."""
    found = global_variables() + local_variables()
    kinds = ("Variable", "VariableV2", "AutoReloadVariable")
    return found or [o.outputs[0] for o in get_default_graph().get_operations() if o.type in kinds]


def assert_variables_initialized(var_list: Sequence[Any] | None = None) -> Any:
    """An operation that fails if one of `var_list` (all) has no value; None if there are no variables."""
    var_list = _all_or_found() if var_list is None else var_list
    ranks = []
    for variable in var_list:
        with colocate_with(variable.op):
            ranks.append(apply_op("Rank", None, input=variable))
    if len(ranks) > 1:
        return apply_op("Pack", "stack", values=ranks)
    return ranks[0] if ranks else None


def report_uninitialized_variables(
    var_list: Sequence[Any] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """A string vector: the names of those of `var_list` (all) that have no value."""
    from dtflab.ops.reduce import segments

    if var_list is None:
        var_list = _all_or_found()
    with name_scope(name):
        states = [state.is_variable_initialized(v) for v in var_list]
        with device("/cpu:0"):
            if not var_list:
                return constant([], dtype=dtypes.string)
            missing = apply_op("LogicalNot", None, x=apply_op("Pack", "stack", values=states))
            names = constant([v.op.name for v in var_list])
            return segments.boolean_mask(names, missing)


# How variables travel in meta graphs.
for _key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.TRAINABLE_VARIABLES, GraphKeys.MOVING_AVERAGE_VARIABLES,
             GraphKeys.LOCAL_VARIABLES, GraphKeys.MODEL_VARIABLES, GraphKeys.METRIC_VARIABLES,
             GraphKeys.GLOBAL_STEP):  # fmt: skip
    proto_functions.register(
        _key, VariableDef, lambda variable, export_scope=None: variable.to_proto(export_scope), Variable.from_proto
    )
