"""The default graph and session, for programs that name none; module-level forms of a graph's scopes.

Stands for the default-graph stack of `python/framework/ops.py`. Both stacks are per thread, as in TensorFlow.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Sequence
from typing import Any

from dtflab.graph.default_stacks import default_graph_stack
from dtflab.graph.graph import Graph
from dtflab.graph.operation import TWO_GRAPHS, Operation, Tensor


class _OwnGraph(threading.local):
    """The graph that a thread uses outside all blocks."""

    graph: Graph | None = None


_own = _OwnGraph()


def get_default_graph() -> Graph:
    """The innermost `graph.as_default()` of this thread, else a graph that the thread has for itself."""
    graph = default_graph_stack.get_default()
    if graph is not None:
        return graph
    if _own.graph is None:
        _own.graph = Graph()
    return _own.graph


def reset_default_graph() -> None:
    """Forget the default graph of this thread; the next use makes a new one."""
    if default_graph_stack.stack:
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, exit the "
            "nesting and create a new graph."
        )
    _own.graph = None


def get_name_scope() -> str:
    """The scope of names here, `a/b`, or an empty string."""
    return get_default_graph().get_name_scope()


def device(device_name_or_function: Any) -> contextlib.AbstractContextManager[None]:
    """Devices for the operations made inside; see `Graph.device`."""
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs: Sequence[Any] | None) -> contextlib.AbstractContextManager[None]:
    """Operations made inside run after `control_inputs`; see `Graph.control_dependencies`."""
    return get_default_graph().control_dependencies(control_inputs)


def container(container_name: str) -> contextlib.AbstractContextManager[str]:
    """State of the operations made inside lives in that container; see `Graph.container`."""
    return get_default_graph().container(container_name)


def colocate_with(op: Any, ignore_existing: bool = False) -> contextlib.AbstractContextManager[None]:
    """Operations made inside share the device of `op`."""
    return get_default_graph().colocate_with(op, ignore_existing)


def add_to_collection(name: Any, value: Any) -> None:
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    get_default_graph().add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    return get_default_graph().get_collection_ref(key)


def graph_of(values: Sequence[Any]) -> Graph:
    """The graph that the tensors among `values` belong to, else the default graph; ValueError if two.

    In the body of a function it is the body, which takes tensors from outside as arguments.
    """
    if get_default_graph().building_function:
        return get_default_graph()
    found: Graph | None = None
    for value in values:
        graph = value.graph if isinstance(value, Tensor | Operation) else getattr(value, "graph", None)
        if not isinstance(graph, Graph):
            continue
        if found is not None and graph is not found:
            raise ValueError(f"{value} must be from the same graph as the other inputs. {TWO_GRAPHS}")
        found = graph
    return found or get_default_graph()


class name_scope:
    """`with tf.name_scope(name, default_name, values) as scope:` names inside begin with `scope`."""

    def __init__(self, name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None) -> None:
        if not (default_name is None or isinstance(default_name, str)):
            raise TypeError(
                f"`default_name` type ({type(default_name)}) is not a string type. You likely meant to pass this "
                "into the `values` kwarg."
            )
        if name is None and default_name is None and values is not None:
            raise ValueError(
                f"At least one of name ({name}) and default_name ({default_name}) must be provided with values."
            )
        self.name = default_name if name is None else name
        self._values = values or ()

    def __enter__(self) -> str:
        self._graph = graph = graph_of(self._values)
        self._default = None if graph is get_default_graph() else graph.as_default()
        if self._default is not None:
            self._default.__enter__()
        self._outer = graph._blocks.name_stack
        try:
            return graph._enter_name_scope(self.name)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def __exit__(self, *exc: Any) -> None:
        self._graph._blocks.name_stack = self._outer
        if self._default is not None:
            self._default.__exit__(*exc)


_PREFIX = r"^(\^|loc:@|)"  # of a control input, and of an operation that another one stands next to


def strip_scope(name: str, scope: str | None) -> str:
    """`name` as it is inside `scope`."""
    return re.sub(rf"{_PREFIX}{re.escape(scope.rstrip('/'))}/+", r"\1", name) if scope else name


def prepend_scope(name: str, scope: str | None) -> str:
    """`name` as it is after an import under `scope`."""
    return re.sub(_PREFIX, lambda found: f"{found[0]}{scope.rstrip('/')}/", name) if scope else name
