"""Variables by name: get_variable, and the scopes that give it a prefix and defaults.

Stands for the public part of `python/ops/variable_scope.py`. Left out: eager mode.

Rule: a variable scope opens a name scope too, but the two may differ. Variables are named by the first, which is
the same each time that it is entered; operations by the second, which is made unique.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import add_to_collection, get_collection, get_default_graph, graph_of, name_scope
from dtflab.ops.variables.policies import VariableAggregation, VariableSynchronization


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE  # make the variable if it is not there


def of_graph(key: Any, make: Callable[[], Any]) -> Any:
    """The one thing of its kind that the default graph keeps under `key`."""
    if not get_collection(key):
        add_to_collection(key, make())
    return get_collection(key)[0]


class VariableScope:
    """A prefix for the names of variables, and what `get_variable` takes for arguments that it is not given."""

    def __init__(
        self, reuse: Any, name: str = "", initializer: Any = None, regularizer: Any = None,
        caching_device: Any = None, partitioner: Any = None, custom_getter: Any = None, name_scope: str = "",
        dtype: Any = dtypes.float32, use_resource: bool | None = None, constraint: Any = None,
    ) -> None:  # fmt: skip
        self.name = name  # the prefix, without the slash at its end
        self.original_name_scope = name_scope  # the name scope that was opened with this scope first
        self.reuse = reuse  # whether variables are to be there already: False, True or AUTO_REUSE
        self.initializer, self.regularizer = initializer, regularizer
        self.caching_device, self.partitioner, self.custom_getter = caching_device, partitioner, custom_getter
        self.dtype, self.use_resource, self.constraint = dtype, use_resource, constraint

    def reuse_variables(self) -> None:
        """From here on variables must be there already."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: Any) -> None:
        self.dtype = dtype

    def set_use_resource(self, use_resource: bool | None) -> None:
        self.use_resource = use_resource

    def get_collection(self, name: Any) -> list[Any]:
        """The items of a graph's collection that are named under this scope."""
        return get_collection(name, f"{self.name}/" if self.name else "")

    def trainable_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(
        self, var_store: Any, name: str, shape: Any = None, dtype: Any = None, initializer: Any = None,
        regularizer: Any = None, reuse: Any = None, trainable: bool | None = None, collections: Any = None,
        caching_device: Any = None, partitioner: Any = None, validate_shape: bool = True, use_resource: Any = None,
        custom_getter: Any = None, constraint: Any = None,
        synchronization: Any = VariableSynchronization.AUTO, aggregation: Any = VariableAggregation.NONE,
    ) -> Any:  # fmt: skip
        """The variable `name` of `var_store` under this scope's prefix, with this scope's defaults."""
        with name_scope(None):
            _check_dtype(dtype, initializer)
            given = initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource
            named = dict(zip(_INHERITED, given)) | {"reuse": reuse, "constraint": constraint}
            inherited = {key: getattr(self, key) if value is None else value for key, value in named.items()}
            own = {"shape": shape, "trainable": trainable, "collections": collections, "validate_shape": validate_shape}
            own |= {"synchronization": synchronization, "aggregation": aggregation}
            return var_store.get_variable(f"{self.name}/{name}" if self.name else name, **own, **inherited)

    def _below(self, name: str, name_scope: str, reuse: Any, given: dict[str, Any]) -> VariableScope:
        """A scope with the defaults of this one, except for what is `given`."""
        scope = VariableScope(reuse, name, name_scope=name_scope, constraint=given["constraint"])
        for default in _INHERITED:
            mine, new = getattr(self, default), given[default]
            if default == "custom_getter" and None not in (mine, new):
                new = _nested_getters(mine, new)
            setattr(scope, default, mine if new is None else new)
        return scope


_INHERITED = "initializer regularizer caching_device partitioner custom_getter dtype use_resource".split()


def _nested_getters(outer: Any, inner: Any) -> Callable[..., Any]:
    """Custom getter `inner`, whose getter is `outer`."""
    return lambda getter, *args, **kwargs: inner(functools.partial(outer, getter), *args, **kwargs)


def _check_dtype(dtype: Any, initializer: Any) -> None:
    if dtype is None or initializer is None or callable(initializer):
        return
    given = convert_to_tensor(initializer).dtype.base_dtype
    if given != dtype:
        raise ValueError(f"Initializer type '{given}' and explicit dtype '{dtype}' don't match.")


# -- the scope where a program is ---------------------------------------------------------------------


class _Scopes(threading.local):
    """For one graph and each thread: the innermost scope, and how often each name was entered."""

    def __init__(self) -> None:
        self.current_scope = VariableScope(False)
        self.variable_scopes_count: dict[str, int] = {}

    def open(self, name: str) -> None:
        self.variable_scopes_count[name] = self.variable_scopes_count.get(name, 0) + 1

    def close_below(self, name: str) -> None:
        """Forget what was entered inside `name`: unique names begin again there."""
        for other in self.variable_scopes_count:
            if other.startswith(f"{name}/"):
                self.variable_scopes_count[other] = 0

    def unique(self, prefix: str) -> str:
        """`prefix`, or `prefix_1`, …: the first that was not entered yet below the current scope."""
        full = f"{self.current_scope.name}/{prefix}" if self.current_scope.name else prefix
        index, suffix = 0, ""
        while self.variable_scopes_count.get(full + suffix, 0):
            index += 1
            suffix = f"_{index}"
        return prefix + suffix


def _get_scopes() -> _Scopes:
    return of_graph(("__varscope",), _Scopes)


def get_variable_scope() -> VariableScope:
    """The innermost variable scope of this thread."""
    return _get_scopes().current_scope


@contextlib.contextmanager
def entered(name_or_scope: Any, original_name_scope: str | None, reuse: Any, given: dict[str, Any]) -> Iterator[Any]:
    """A variable scope without a name scope: below the current one, or again the one that is passed."""
    scopes = _get_scopes()
    outer = scopes.current_scope
    counts = None
    if isinstance(name_or_scope, VariableScope):
        again = name_or_scope
        scope = again._below(again.name, again.original_name_scope, reuse or again.reuse, given)
        scopes.open(scope.name)
        counts = dict(scopes.variable_scopes_count)
    else:
        name = f"{outer.name}/{name_or_scope}" if outer.name else name_or_scope
        original = name_or_scope if original_name_scope is None else original_name_scope
        scope = outer._below(name, original, reuse or outer.reuse, given)
        scopes.open(name)
    scopes.current_scope = scope
    try:
        yield scope
    finally:
        _check_innermost(scope)
        if counts is None:
            scopes.close_below(scope.name)
        else:
            scopes.variable_scopes_count = counts
        scopes.current_scope = outer


def new_scope(name: str | None, default_name: str, custom_getter: Any) -> VariableScope:
    """A scope below the current one, without a name scope: `name`, or `default_name` made unique."""
    given = dict.fromkeys((*_INHERITED, "constraint")) | {"custom_getter": custom_getter}
    with entered(name or _get_scopes().unique(default_name), None, None, given) as scope:
        made: VariableScope = scope
    return made


class variable_scope:
    """`with tf.variable_scope("layer") as scope:` variables made by `get_variable` inside begin with `layer/`.

    With a VariableScope instead of a name, that scope is entered again; with `default_name` alone, the name is made
    unique. The other arguments are defaults for `get_variable` inside. `reuse=True` and AUTO_REUSE hold for all
    scopes inside.
    """

    def __init__(
        self, name_or_scope: Any, default_name: str | None = None, values: Sequence[Any] | None = None,
        initializer: Any = None, regularizer: Any = None, caching_device: Any = None, partitioner: Any = None,
        custom_getter: Any = None, reuse: Any = None, dtype: Any = None, use_resource: bool | None = None,
        constraint: Any = None, auxiliary_name_scope: bool = True,
    ) -> None:  # fmt: skip
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if reuse not in (True, False, None, AUTO_REUSE):
            raise ValueError("The reuse parameter must be True or False or None.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}")
        self._name_or_scope, self._default_name, self._reuse = name_or_scope, default_name, reuse or None
        self._graph = graph_of(values or ())
        self._auxiliary_name_scope = auxiliary_name_scope
        self._name_scope: Any = None
        self._original_name_scope: str | None = None
        given = initializer, regularizer, caching_device, partitioner, custom_getter, dtype, use_resource
        self._given = dict(zip(_INHERITED, given)) | {"constraint": constraint}
        self._open: list[tuple[contextlib.ExitStack, VariableScope]] = []

    def __enter__(self) -> VariableScope:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._graph.as_default())
            self._enter_name_scope(stack)
            inner = entered(self._name_or_scope, self._original_name_scope, self._reuse, self._given)
            scope: VariableScope = stack.enter_context(inner)
            self._open.append((stack.pop_all(), scope))
        return scope

    def _enter_name_scope(self, stack: contextlib.ExitStack) -> None:
        """Open the name scope, and choose the name of the variable scope if it has none yet."""
        name = self._name_or_scope
        if name is None and self._reuse:
            raise ValueError("reuse=True cannot be used without a name_or_scope")
        if not isinstance(name, VariableScope | str | None):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        full_name = stack.enter_context(self._own_name_scope()) if self._has_name_scope() else None
        if name is None:
            self._name_or_scope = _get_scopes().unique(self._default_name or "")
        if self._original_name_scope is None:
            self._original_name_scope = full_name

    def _has_name_scope(self) -> bool:
        name = self._name_or_scope
        last = name.name if isinstance(name, VariableScope) else name
        return not self._auxiliary_name_scope or last != ""

    def _own_name_scope(self) -> Any:
        if self._name_scope is None:
            name = self._name_or_scope
            if not self._auxiliary_name_scope:
                current = get_default_graph().get_name_scope()
                opened = f"{current}/" if current else ""
            elif isinstance(name, VariableScope):
                opened = name.name.rpartition("/")[2]
            else:
                opened = self._default_name or "" if name is None else name
            self._name_scope = name_scope(opened)
        return self._name_scope

    def __exit__(self, *exc: Any) -> None:
        stack, scope = self._open[-1]
        _check_innermost(scope)
        self._open.pop()
        stack.__exit__(*exc)


def _check_innermost(scope: VariableScope) -> None:
    if get_variable_scope() is not scope:
        raise RuntimeError("Improper nesting of variable_scope.")
