"""The fetches of `run`, and how the answers are put back into their form.

Stands for `_FetchMapper` and its kin in `python/client/session.py`.

Rule: a fetch is turned once into the list of graph elements it needs and a function that rebuilds it from their values;
each element is fetched once, however often it is named.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.base import errors
from dtflab.base.ownership import SOLE_ELEMENT, holders
from dtflab.base.suggestions import near
from dtflab.graph.operation import Operation, Tensor

if TYPE_CHECKING:
    from dtflab.graph.graph import Graph

Rebuild = Callable[[Sequence[Any]], Any]
Expansion = Callable[[Any], tuple[list[Any], Rebuild]]

_expansions: list[tuple[type, Expansion]] = []


def register_fetch_expansion(kind: type, expand: Expansion) -> None:
    """Fetches of `kind` stand for several elements: `expand(fetch)` → (elements, function of their values)."""
    _expansions.append((kind, expand))


def is_expanded(kind: type) -> bool:
    """True if it is known what fetches of `kind` stand for."""
    return any(issubclass(known, kind) for known, _ in _expansions)


_makers: dict[str, Callable[[Any, Tensor, Any], Any]] = {}


def register_fetched_value(op_type: str, make: Callable[[Any, Tensor, Any], Any]) -> None:
    """Register the client's value for fetched outputs of an op of that type: `make(value, tensor, session)`."""
    _makers[op_type] = make


class Fetches:
    """A fetch structure, resolved once against a graph and the tensors that are fed.

    `tensors` and `targets` are what it needs; the master is asked by `feed_names`, `fetch_names` (those that are not
    fed) and `target_names`; `rebuild` makes the result.
    """

    def __init__(self, graph: Graph, fetches: object, fed: Collection[Tensor] = ()) -> None:
        self._graph = graph
        self._slots: dict[Tensor | Operation, int] = {}
        self._rebuild = self._map(fetches)
        elements = list(self._slots)
        self.tensors = [e for e in elements if isinstance(e, Tensor)]
        self.targets = [e for e in elements if isinstance(e, Operation)]
        asked = [t for t in self.tensors if t not in fed]
        self.feed_names = tuple(t.name for t in fed)
        self.fetch_names = tuple(t.name for t in asked)
        self.target_names = tuple(op.name for op in self.targets)
        self._given = [t for t in self.tensors if t in fed]
        found: dict[Any, int] = {element: i for i, element in enumerate(asked + self._given)}
        self._order = [found.get(e, -1) for e in elements]
        self._quantized = [(i, e) for i, e in enumerate(elements) if isinstance(e, Tensor) and e.dtype.is_quantized]
        self._made = [(i, e) for i, e in enumerate(elements) if isinstance(e, Tensor) and e.op.type in _makers]

    def rebuild(
        self, values: Iterable[object], session: object, feeds: Mapping[Tensor, object] = MappingProxyType({})
    ) -> object:
        """The result of `run` in `session` from the values of `fetch_names` and the feeds; an operation's is None."""
        if not self.tensors:
            return self._rebuild([None] * len(self._order))
        known = [*map(own, values), None]
        if self._given:
            known[-1:] = [*(np.array(feeds[t]) for t in self._given), None]
        found = list(map(known.__getitem__, self._order))
        for i, tensor in self._quantized:  # inside, a record of one field; a client gets the integers in it
            found[i] = found[i][tensor.dtype.base_dtype.name]
        for i, tensor in self._made:
            found[i] = _makers[tensor.op.type](found[i], tensor, session)
        return self._rebuild(found)

    def _map(self, fetch: Any) -> Rebuild:
        if fetch is None:
            raise TypeError(f'Argument `fetch` = {fetch} has invalid type "{type(fetch).__name__}". Cannot be None')
        if isinstance(fetch, list | tuple):
            return self._map_sequence(fetch)
        if isinstance(fetch, collections.abc.Mapping):
            return self._map_mapping(fetch)
        if hasattr(type(fetch), "__attrs_attrs__"):
            return self._map_attrs(fetch)
        for kind, expand in _expansions:
            if isinstance(fetch, kind):
                elements, contract = expand(fetch)
                parts = [self._map_element(e) for e in elements]
                return lambda values: contract([part(values) for part in parts])
        return self._map_element(fetch)

    def _map_sequence(self, fetch: Sequence[Any]) -> Rebuild:
        parts = [self._map(f) for f in fetch]
        make: Callable[[list[Any]], Any] = type(fetch)
        if hasattr(fetch, "_fields"):
            named = type(fetch)
            make = lambda values: named(*values)  # noqa: E731
        return lambda values: make([part(values) for part in parts])

    def _map_mapping(self, fetch: collections.abc.Mapping[Any, Any]) -> Rebuild:
        parts = {key: self._map(f) for key, f in fetch.items()}

        def rebuild(values: Sequence[Any]) -> Any:
            built = {key: part(values) for key, part in parts.items()}
            kind: Any = type(fetch)
            if issubclass(kind, collections.defaultdict):
                return kind(fetch.default_factory, built)  # type: ignore[attr-defined]
            return kind(built)

        return rebuild

    def _map_attrs(self, fetch: Any) -> Rebuild:
        names = [a.name for a in type(fetch).__attrs_attrs__]
        parts = [self._map(getattr(fetch, name)) for name in names]
        return lambda values: type(fetch)(*[part(values) for part in parts])

    def _map_element(self, fetch: Any) -> Rebuild:
        try:
            element = self._graph.as_graph_element(fetch, allow_tensor=True, allow_operation=True)
        except TypeError as error:
            raise TypeError(
                f'Argument `fetch` = {fetch} has invalid type "{type(fetch).__name__}" must be a string or Tensor. '
                f"({error})"
            ) from None
        except (ValueError, KeyError) as error:
            wrong = ValueError(f"Argument `fetch` = {fetch} cannot be interpreted as a Tensor. ({error.args[0]})")
            raise noted(wrong, self._graph, fetch) from None
        if not self._graph.is_fetchable(element):
            raise errors.InaccessibleTensorError(
                f"Operation {getattr(element, 'op', element).name} has been marked as not fetchable. Typically this "
                "happens when it is defined inside a branch or loop. Return it from there to get its value."
            )
        slot = self._slots.setdefault(element, len(self._slots))
        return lambda values: values[slot]


def noted(error: Exception, graph: Graph, name: object, suffix: str = "") -> Exception:
    """The error of a name, with the op or tensor that it may mean: all tensors end alike, so their ops are compared."""
    op_name, colon, _ = name.partition(":") if isinstance(name, str) else ("", "", "")
    suffix = suffix or colon.replace(":", ":0")
    for found in near(op_name, [op.name for op in graph.get_operations() if op.outputs or not suffix]):
        error.add_note(f"Did you mean {found}{suffix}?")
    return error


def own(value: Any) -> Any:
    """A value that belongs to the client alone: a copy, unless nobody else holds the array as it is."""
    if not isinstance(value, np.ndarray):
        return value
    if value.ndim == 0:
        return value[()]
    if holders(value) <= SOLE_ELEMENT and value.base is None and value.flags.carray:  # in C order, and may be changed
        return value
    return value.copy()
