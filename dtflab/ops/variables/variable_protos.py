"""Variables as messages: how they travel in meta graphs.

Stands for `to_proto`, `from_proto` and the registrations of `python/ops/variables.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes, proto_functions
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import get_default_graph, prepend_scope, strip_scope
from dtflab.ops.variables.variable_slices import SaveSliceInfo
from dtflab.protos.variable_pb2 import VariableDef


def to_proto(variable: Any, tensor: Tensor, snapshot: Tensor, export_scope: str | None) -> VariableDef | None:
    """The VariableDef of a variable, named by `tensor` and read by `snapshot`; None outside `export_scope`."""
    if export_scope is not None and not tensor.name.startswith(export_scope):
        return None
    initial, info = variable.initial_value, variable._get_save_slice_info()
    return VariableDef(
        variable_name=strip_scope(tensor.name, export_scope),
        initial_value_name="" if initial is None else strip_scope(initial.name, export_scope),
        initializer_name=strip_scope(variable.initializer.name, export_scope),
        snapshot_name=strip_scope(snapshot.name, export_scope),
        is_resource=tensor.dtype == dtypes.resource,
        trainable=variable.trainable,
        synchronization=variable.synchronization.value,
        aggregation=variable.aggregation.value,
        save_slice_info_def=None if info is None else info.to_proto(export_scope),
    )


def restore(variable: Any, variable_def: VariableDef, import_scope: str | None) -> None:
    """Make `variable` the one that a VariableDef describes; its operations must be in the default graph."""

    def find(name: str) -> Any:
        return get_default_graph().as_graph_element(prepend_scope(name, import_scope))

    variable._restore(variable_def, find)
    variable._initializer_op = find(variable_def.initializer_name)
    variable._initial_value = find(variable_def.initial_value_name) if variable_def.initial_value_name else None
    if variable_def.HasField("save_slice_info_def"):
        info = SaveSliceInfo(save_slice_info_def=variable_def.save_slice_info_def, import_scope=import_scope)
        variable._set_save_slice_info(info)


def _exported(variable: Any, export_scope: str | None = None) -> Any:
    return variable.to_proto(export_scope)


def register(variable_class: Any) -> None:
    """Enter how the collections of variables are written and read."""
    for key in (
        "GLOBAL_VARIABLES TRAINABLE_VARIABLES MOVING_AVERAGE_VARIABLES LOCAL_VARIABLES MODEL_VARIABLES "
        "METRIC_VARIABLES GLOBAL_STEP"
    ).split():
        proto_functions.register(getattr(GraphKeys, key), VariableDef, _exported, variable_class.from_proto)
