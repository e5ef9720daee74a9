"""Resource containers: the state of a task that outlives steps and sessions.

Stands for `core/framework/resource_mgr.h`. Left out: type hashes; a resource's Python class is its type.

Rule: a resource is found by (container, kind, name); the container named "" is `localhost`. Sessions come and go,
resources stay until their container is reset or their task ends.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

from dtflab.base import errors

DEFAULT_CONTAINER = "localhost"


class ResourceMgr:
    """The containers of one device; `memory` is where a GPU accounts what its variables hold."""

    def __init__(self) -> None:
        self.memory: Any = None
        self._lock = threading.RLock()  # re-entrant: the collector may close a session on the thread that holds it
        self._containers: dict[str, dict[tuple[type, str], Any]] = {}

    def lookup_or_create(self, container: str, name: str, kind: type, create: Callable[[], Any]) -> Any:
        """The resource of that kind and name, made by `create` if there is none yet."""
        try:
            return self._containers[container or DEFAULT_CONTAINER][kind, name]
        except KeyError:
            pass
        with self._lock:
            resources = self._containers.setdefault(container or DEFAULT_CONTAINER, {})
            if (kind, name) not in resources:
                resource = resources[kind, name] = create()
                if hasattr(resource, "memory"):
                    resource.memory = self.memory
            return resources[kind, name]

    def lookup(self, container: str, name: str, kind: type) -> Any:
        """The resource of that kind and name; NotFoundError if there is none."""
        try:
            return self._containers[container or DEFAULT_CONTAINER][kind, name]
        except KeyError:
            raise _not_found(container, name, kind) from None

    def delete(self, container: str, name: str, kind: type) -> None:
        """Close and forget one resource; NotFoundError if there is none."""
        with self._lock:
            resource = self._containers.get(container or DEFAULT_CONTAINER, {}).pop((kind, name), None)
            if resource is None:
                raise _not_found(container, name, kind)
            _close(resource)

    def cleanup(self, containers: Iterable[str]) -> None:
        """Empty the named containers, or the default one if none is named (`Session.reset`)."""
        self._empty(list(containers) or [DEFAULT_CONTAINER])

    def clear(self) -> None:
        """Empty all containers."""
        self._empty(list(self._containers))

    def _empty(self, containers: Iterable[str]) -> None:
        with self._lock:
            for container in containers:
                for resource in self._containers.pop(container, {}).values():
                    _close(resource)

    def items(self) -> list[tuple[str, str, Any]]:
        """All resources as (container, name, resource)."""
        with self._lock:  # steps of other clients may be making some
            return [(c, n, r) for c, rs in self._containers.items() for (_, n), r in rs.items()]


def _close(resource: Any) -> None:
    """Release the threads that wait for a resource and end its own, if it has any."""
    close = getattr(resource, "close", None)
    if close is not None:
        close()


def _not_found(container: str, name: str, kind: type) -> errors.NotFoundError:
    path = f"{container or DEFAULT_CONTAINER}/{name}/{kind.__name__}"
    return errors.NotFoundError.of(f"Resource {path} does not exist.")


_numbers = itertools.count()


class _Private:
    """A resource without a shared name: deleted when its session forgets the state of the node that made it."""

    def __init__(self, resources: ResourceMgr, container: str, node_name: str, kind: type) -> None:
        self.name = f"_{next(_numbers)}_{node_name}"
        self._resources, self._container, self._kind = resources, container, kind

    def __del__(self) -> None:
        with contextlib.suppress(errors.NotFoundError):  # the container was reset before
            self._resources.delete(self._container, self.name, self._kind)


def plain_name(name: str) -> str:
    """The name of a resource as its program knows it: that of its node, if it is private."""
    return re.sub(r"^_\d+_", "", name)


def name_for(ctx: Any, node_name: str, container: str, shared_name: str, kind: type) -> str:
    """The name of a node's resource: its shared name, or a private one that lives as long as the session."""
    if shared_name:
        return shared_name
    private: _Private = ctx.state(node_name, lambda: _Private(ctx.resources, container, node_name, kind))
    return private.name
