"""Handles of resources: how one op tells another which variable, queue, reader, table or iterator is meant.

Stands for `core/framework/resource_handle.h`, and for `GetResourceFromContext` and `ContainerInfo` of
`resource_mgr.h`.

Rule: a handle is a name, not a value. The newer families of ops hand out resource handles, the older ones references
to two strings, container and name; both lead to the same resources.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dtflab.base import errors
from dtflab.graph import dtypes, op_registry
from dtflab.graph.node import Node
from dtflab.ops.cell import Cell
from dtflab.ops.messages import invalid
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER, name_for

VARIABLE_TYPE = "tensorflow::Var"
kinds: dict[str, type] = {VARIABLE_TYPE: Cell}  # which class a handle's type is, of those that can be destroyed
T = TypeVar("T")


class ResourceHandle(NamedTuple):
    """The value of a tensor of dtype `resource`: where the resource lives and what it is called."""

    device: str
    container: str
    name: str
    type_name: str


def new_or_shared(
    node: Node, kind: type[T], type_name: str, make: Callable[..., T], check: Callable[[T, str], Any] | None = None
) -> Callable[..., Any]:
    """The kernel of an op that gives a resource's handle, and first makes the resource if none has its name.

    `make(ctx, name, *inputs)` makes it; `check(resource, name)` raises if another node has made a different one.
    """
    container, shared_name = node["container"].decode() or DEFAULT_CONTAINER, node["shared_name"].decode()
    if not shared_name and node.attrs.get("use_node_name_sharing"):
        shared_name = node.name
    handle_of = functools.cache(lambda device, name: ResourceHandle(device, container, name, type_name))

    def find(ctx: Any, *inputs: Any) -> ResourceHandle:
        name = name_for(ctx, node.name, container, shared_name, kind)
        found = ctx.resources.lookup_or_create(container, name, kind, lambda: make(ctx, name, *inputs))
        if check is not None and shared_name:  # a private one is as its only node has made it
            check(found, name)
        return handle_of(ctx.device, name)

    return _by_reference(find) if op_registry.get(node.op).op_def.outputs[0].is_ref else find


def _by_reference(find: Callable[..., ResourceHandle]) -> Callable[..., Cell]:
    """A kernel that gives a reference to two strings where `find` gives a handle."""

    def find_reference(ctx: Any, *inputs: Any) -> Cell:
        handle = find(ctx, *inputs)
        cell = Cell(handle.name, dtypes.string, (2,))
        cell.assign(np.array([handle.container.encode(), handle.name.encode()], object))
        return cell

    return find_reference


def resource_of(ctx: Any, handle: Cell | ResourceHandle, kind: type[T]) -> T:
    """The resource that a handle of either family names.

    Raises NotFoundError if it is gone or of another kind, InvalidArgumentError if it lives on another device.
    """
    if isinstance(handle, Cell):
        container, name = (text.decode() for text in handle.read())
    elif handle.device == ctx.device:
        container, name = handle.container, handle.name
    else:
        raise invalid(
            f"Trying to access resource {handle.name} located in device {handle.device} from device {ctx.device}"
        )
    return ctx.resources.lookup(container, name, kind)


def variable_of(ctx: Any, handle: ResourceHandle) -> Cell:
    """The variable that `handle` names; NotFoundError if it has not been assigned yet."""
    try:
        return resource_of(ctx, handle, Cell)
    except errors.NotFoundError as error:
        raise errors.NotFoundError.of(
            f"{error.message} (Could not find resource: {handle.container}/{handle.name})"
        ) from None


# -- what lives as long as a step ---------------------------------------------------------------------


def handle_in_step(ctx: Any, name: str, type_name: str, make: Callable[[], Any]) -> ResourceHandle:
    """The handle of what lives under `name` as long as the step; `make()` creates it if it does not exist yet."""
    if (name, ctx.device) not in ctx.step.temporaries:
        ctx.step.temporaries[name, ctx.device] = make()
    return ResourceHandle(ctx.device, str(ctx.step.step_id), name, type_name)


def found_in_step(ctx: Any, handle: ResourceHandle, what: str, kind: type[T]) -> T:
    """The resource that `handle` names; NotFoundError if it belongs to another step or another device."""
    found: T | None = ctx.step.temporaries.get((handle.name, ctx.device))
    if found is None:
        raise errors.NotFoundError.of(
            f"There is no {what} {handle.name} on {ctx.device} in this step: it was made on {handle.device}, and lives "
            "only there and only as long as its step. Use it in the step that makes it, on that device."
        )
    return found
