"""Choices about variables: which kind is the default, what creates them, the policies of distributed variables.

Stands for the enumerations and `variable_creator_scope` of `python/ops/variables.py`, and for
`enable_resource_variables` of `variable_scope.py`. Left out: distribution strategies; `synchronization` and
`aggregation` are kept, and do nothing.
"""

from __future__ import annotations

import contextlib
import enum
import functools
from collections.abc import Callable, Iterator
from typing import Any

from dtflab.graph.default_stacks import DefaultStack
from dtflab.graph.graph import Graph
from dtflab.graph.scopes import get_default_graph


class VariableSynchronization(enum.Enum):
    """When the copies of a distributed variable are brought together. Accepted, of no effect here."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How updates to the copies of a distributed variable are combined. Accepted, of no effect here."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3  # noqa: PIE796 - its name in TF1


_resource_variables = [False]


def enable_resource_variables() -> None:
    """Make resource variables where nothing else is asked for."""
    _resource_variables[0] = True


def disable_resource_variables() -> None:
    """Make reference variables where nothing else is asked for: the default."""
    _resource_variables[0] = False


def resource_variables_enabled() -> bool:
    """Which kind `Variable(...)` makes."""
    return _resource_variables[0]


def checked_policies(
    synchronization: Any, aggregation: Any, trainable: bool | None, name: str | None
) -> tuple[VariableSynchronization, VariableAggregation, bool]:
    """The three with their defaults; ValueError for a mode that does not exist."""
    try:
        aggregation = VariableAggregation(aggregation or 0)
    except ValueError:
        raise ValueError(f"Invalid variable aggregation mode: {aggregation} for variable: {name}") from None
    try:
        synchronization = VariableSynchronization(synchronization or 0)
    except ValueError:
        raise ValueError(f"Invalid variable synchronization mode: {synchronization} for variable: {name}") from None
    if trainable is None:
        trainable = synchronization is not VariableSynchronization.ON_READ
    return synchronization, aggregation, trainable


Creator = Callable[..., Any]


_creators: DefaultStack[tuple[Graph, Creator]] = DefaultStack()


@contextlib.contextmanager
def variable_creator_scope(variable_creator: Creator) -> Iterator[None]:
    """`variable_creator(next_creator, **arguments)` makes the variables of this graph inside, or has them made."""
    entry = get_default_graph(), variable_creator
    _creators.stack.append(entry)
    try:
        yield
    finally:
        if _creators.stack[-1] is not entry:
            raise RuntimeError("Exiting variable_creator_scope without proper nesting.")
        _creators.stack.pop()


def by_creators(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make`, asked for by the creators of the graph, the innermost first."""
    for graph, creator in _creators.stack:
        if graph is get_default_graph():
            make = functools.partial(creator, make)
    return make
