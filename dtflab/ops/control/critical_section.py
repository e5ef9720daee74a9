"""CriticalSection: a part of a graph that only one step runs at a time.

Stands for `python/ops/critical_section_ops.py`; the ops of its mutex are in `state_ops.py`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import (
    add_to_collections,
    colocate_with,
    control_dependencies,
    get_collection,
    get_default_graph,
    name_scope,
)
from dtflab.ops.arrays.functions import identity
from dtflab.ops.control.functions import group, init_scope, tuple as gated

CRITICAL_SECTIONS = "critical_sections"
EXECUTIONS = "critical_section_executions"


class _Execution(NamedTuple):
    """The record that `execute` leaves in the graph's collection, to warn of deadlocks."""

    op: Operation
    handle: Tensor
    resources: list[Tensor]
    exclusive_resource_access: bool


class _Open(threading.local):
    """The sections whose bodies this thread is building."""

    def __init__(self) -> None:
        self.signatures: list[Any] = []


_open = _Open()


class CriticalSection:
    """A part of a graph that is run by one step at a time, among all sessions of a cluster that share its name.

    >>> section = tf.CriticalSection(name="counter")
    >>> added = section.execute(lambda: v.assign_add(1.0))
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None:
            raise ValueError("Argument `critical_section_def` is not supported.")
        with name_scope(name, "CriticalSection", []) as scope, init_scope():
            container = get_default_graph()._container
            shared = scope if shared_name is None else shared_name
            self._handle: Tensor = apply_op("MutexV2", scope, shared_name=shared, container=container or "")
        self._signature = (container, shared or id(self._handle), _place(self._handle.op))
        add_to_collections(CRITICAL_SECTIONS, self)

    @property
    def name(self) -> str:
        return self._handle.op.name

    def execute(self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None) -> Any:
        """The result of `fn()`; the operations that it makes run while this section is held.

        With `exclusive_resource_access`, ValueError if another section uses a resource of these operations, too.
        """
        graph = get_default_graph()
        with name_scope(name, "critical_section_execute", []):
            with self._entered():
                lock: Tensor = apply_op("MutexLock", mutex=self._handle)
                start = graph.version
                with control_dependencies([lock]):
                    returned = fn()
                created = graph.get_operations()[start:]
            _wait_for_arguments(created, lock.op)
            resources = _captured(created)
            self._check_access(resources, exclusive_resource_access)
            outputs = self._left(lock, returned)
            signature = _Execution(lock.op, self._handle, resources, exclusive_resource_access)
            add_to_collections(EXECUTIONS, signature)
            return outputs

    def _left(self, lock: Tensor, returned: Any) -> Any:
        """The outputs, once all of them are computed and the section is left."""
        flat = [_identity(x) for x in nest.flatten(returned)]
        with control_dependencies(flat):
            with colocate_with(self._handle):
                left = apply_op("ConsumeMutexLock", mutex_lock=lock)
            together = nest.pack_sequence_as(returned, gated(nest.flatten(returned)))
        with control_dependencies([left]):
            return nest.map_structure(_identity, together)

    @contextlib.contextmanager
    def _entered(self) -> Iterator[None]:
        if self._signature in _open.signatures:
            raise self._already_inside()
        _open.signatures.append(self._signature)
        try:
            yield
        finally:
            _open.signatures.pop()

    def _already_inside(self) -> ValueError:
        return ValueError(
            f"Attempting to lock a CriticalSection (signature={self._signature}) in which we are already running. This "
            "is illegal and may cause deadlocks."
        )

    def _is_self(self, handle: Tensor) -> bool:
        ours, theirs = self._handle.op, handle.op
        if theirs.type != "MutexV2" or not theirs.get_attr("shared_name"):
            return False
        same = theirs.get_attr("shared_name") == ours.get_attr("shared_name")
        return same and _place(theirs) == _place(ours)

    def _check_access(self, resources: list[Tensor], exclusive: bool) -> None:
        if any(self._is_self(handle) for handle in resources):
            raise self._already_inside()
        for other in get_collection(EXECUTIONS):
            if self._is_self(other.handle) or not (exclusive or other.exclusive_resource_access):
                continue
            shared = [r for r in resources if any(r is theirs for theirs in other.resources)]
            if shared:
                raise ValueError(
                    f"This execution would access resources: {shared}. Either this lock (CriticalSection: "
                    f"{self._handle}) or lock '{other}' (CriticalSection: {other.handle}) requested exclusive resource "
                    "access of this resource. Did you mean to call execute with keyword argument "
                    "exclusive_resource_access=False?"
                )


def _place(operation: Operation) -> Any:
    return operation.device or operation.attrs.get("_class")


def _identity(x: Any) -> Any:
    return group(x) if isinstance(x, Operation) else identity(x)


def _captured(created: Iterable[Operation]) -> list[Tensor]:
    """The resources that operations use directly, each once."""
    found = [t for operation in created for t in operation.inputs if t.dtype == dtypes.resource]
    return list(dict.fromkeys(found))


def _wait_for_arguments(created: list[Operation], lock: Operation) -> None:
    """Let the lock wait for all that the operations need from outside: the holder never waits for a non-holder."""
    inside = {*created, lock, *lock.control_inputs, *(t.op for t in lock.inputs)}
    needed = [t.op for operation in created for t in operation.inputs]
    needed += [before for operation in created for before in operation.control_inputs]
    outside = [operation for operation in dict.fromkeys(needed) if operation not in inside]
    if outside:
        lock._add_control_input(group(*outside))
