"""Handles of queues, readers and accumulators: how one op tells another which resource is meant.

Stands for `GetResourceFromContext` and `ContainerInfo` of `core/framework/resource_mgr.h`.

Rule: the newer family hands out resource handles. The older one hands out references to two strings, container and
name; both lead to the same resources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from dtflab.graph import dtypes
from dtflab.ops.messages import invalid
from dtflab.ops.variables.cell import Cell
from dtflab.ops.variables.handle_ops import ResourceHandle

T = TypeVar("T")


def by_reference(find: Callable[[Any], ResourceHandle]) -> Callable[[Any], Cell]:
    """A kernel that gives a reference to two strings where `find` gives a handle."""

    def find_reference(ctx: Any) -> Cell:
        handle = find(ctx)
        cell = Cell(handle.name, dtypes.string, (2,))
        cell.assign(np.array([handle.container.encode(), handle.name.encode()], object))
        return cell

    return find_reference


def resource_of(ctx: Any, handle: Cell | ResourceHandle, kind: type[T]) -> T:
    """The resource that a handle of either family names; NotFoundError if it is gone or of another kind."""
    found: T
    if isinstance(handle, Cell):
        container, name = (text.decode() for text in handle.read())
        found = ctx.resources.lookup(container, name, kind)
        return found
    if handle.device != ctx.device:
        raise invalid(
            f"Trying to access resource {handle.name} located in device {handle.device} from device {ctx.device}"
        )
    found = ctx.resources.lookup(handle.container, handle.name, kind)
    return found
