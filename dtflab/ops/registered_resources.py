"""Resources that programs register, so that they are initialized and checked together with variables.

Stands for `python/ops/resources.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dtflab.graph import dtypes
from dtflab.graph.convert import constant
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import add_to_collection, device, get_collection, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math


class _Resource(NamedTuple):
    handle: Tensor
    create: Operation
    is_initialized: Tensor


def register_resource(handle: Tensor, create_op: Operation, is_initialized_op: Tensor, is_shared: bool = True) -> None:
    """Register what `handle` names as a resource of the cluster, or of each session.

    `create_op` creates it; `is_initialized_op`, a scalar bool, is True once it exists.
    """
    kind = GraphKeys.RESOURCES if is_shared else GraphKeys.LOCAL_RESOURCES
    add_to_collection(kind, _Resource(handle, create_op, is_initialized_op))


def shared_resources() -> list[Any]:
    """The resources that all sessions of the cluster share."""
    return get_collection(GraphKeys.RESOURCES)


def local_resources() -> list[Any]:
    """The resources that each session has of its own."""
    return get_collection(GraphKeys.LOCAL_RESOURCES)


def initialize_resources(resource_list: Sequence[Any], name: str = "init") -> Operation:
    """An operation that creates all of them; resource variables count, too."""
    if not resource_list:
        return control.no_op(name=name)
    return control.group(*(resource.create for resource in resource_list), name=name)


def report_uninitialized_resources(
    resource_list: Sequence[Any] | None = None, name: str = "report_uninitialized_resources"
) -> Tensor:
    """A vector of strings: the names of the resources that do not exist yet, among all if `resource_list` is None."""
    resource_list = shared_resources() + local_resources() if resource_list is None else resource_list
    with name_scope(name), device("/cpu:0"):
        if not resource_list:
            return constant([], dtype=dtypes.string)
        missing = math.logical_not(arrays.stack([resource.is_initialized for resource in resource_list]))
        names = constant([resource.handle.name for resource in resource_list])
        return indexing.boolean_mask(names, missing)
