"""nest: structures of lists, tuples, dicts and attrs classes, seen as the list of their leaves.

Stands for `python/util/nest.py`. Left out: what only `tf.data` needs (`flatten_up_to` and its kin).

Rule: the leaves of a dict come in the order of its sorted keys. What stands for several tensors (IndexedSlices, a
SparseTensor) is a leaf, unless `expand_composites` is set.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class _Composite(NamedTuple):
    kind: type
    parts: Callable[[Any], Sequence[Any]]
    rebuild: Callable[[Any, Sequence[Any]], Any]


_composites: list[_Composite] = []


def register_composite(
    kind: type, parts: Callable[[Any], Sequence[Any]], rebuild: Callable[[Any, Sequence[Any]], Any]
) -> None:
    """A value of `kind` stands for the tensors `parts(value)`; `rebuild(value, tensors)` makes one from others."""
    _composites.append(_Composite(kind, parts, rebuild))


def is_composite(value: Any) -> bool:
    """Whether `value` stands for several tensors."""
    return _composite(value) is not None


def _composite(value: Any) -> _Composite | None:
    return next((c for c in _composites if isinstance(value, c.kind)), None)


def is_nested(structure: Any) -> bool:
    """True for a list, a tuple, a mapping or an instance of an attrs class; False for a leaf."""
    return isinstance(structure, list | tuple | Mapping) or hasattr(type(structure), "__attrs_attrs__")


def _children(structure: Any, expand_composites: bool) -> Sequence[Any] | None:
    """The elements directly inside; None for a leaf."""
    if isinstance(structure, list | tuple):
        return structure
    if isinstance(structure, Mapping):
        return [structure[key] for key in _sorted_keys(structure)]
    if hasattr(type(structure), "__attrs_attrs__"):
        return [getattr(structure, a.name) for a in type(structure).__attrs_attrs__]
    composite = _composite(structure) if expand_composites else None
    return composite.parts(structure) if composite else None


def _sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _like(structure: Any, children: Sequence[Any]) -> Any:
    """The same container with other contents."""
    kind: Any = type(structure)
    if hasattr(kind, "_fields") or hasattr(kind, "__attrs_attrs__"):
        return kind(*children)
    if isinstance(structure, Mapping):
        by_key = dict(zip(_sorted_keys(structure), children))
        ordered = {key: by_key[key] for key in structure}
        if isinstance(structure, collections.defaultdict):
            return kind(structure.default_factory, ordered)
        return kind(ordered)
    composite = _composite(structure)
    return composite.rebuild(structure, children) if composite else kind(children)


def leaves(structure: Any, expand_composites: bool = False) -> Iterator[Any]:
    """The leaves, one after the other."""
    children = _children(structure, expand_composites)
    if children is None:
        yield structure
    else:
        for child in children:
            yield from leaves(child, expand_composites)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The list of the leaves; of a leaf, the leaf alone."""
    return list(leaves(structure, expand_composites))


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """A copy of `structure` with the items of `flat_sequence` as leaves; ValueError if there are not as many."""
    if not isinstance(flat_sequence, list | tuple):
        raise TypeError(
            f"Attempted to pack value:\n  {flat_sequence}\ninto a structure, but found incompatible type "
            f"`{type(flat_sequence)}` instead."
        )
    count = sum(1 for _ in leaves(structure, expand_composites))
    if count != len(flat_sequence):
        raise ValueError(
            "Could not pack sequence. "
            f"Structure had {count} atoms, but flat_sequence had {len(flat_sequence)} items. "
            f"Structure: {structure}, flat_sequence: {flat_sequence}."
        )
    items = iter(flat_sequence)
    return _replaced(structure, lambda leaf: next(items), expand_composites)


def _replaced(structure: Any, function: Callable[[Any], Any], expand_composites: bool) -> Any:
    children = _children(structure, expand_composites)
    if children is None:
        return function(structure)
    return _like(structure, [_replaced(child, function, expand_composites) for child in children])


def map_structure(
    func: Callable[..., Any], *structure: Any, check_types: bool = True, expand_composites: bool = False
) -> Any:
    """`func` of the leaves of one or several structures alike, in a structure like the first."""
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand_composites)
    rows = zip(*(leaves(s, expand_composites) for s in structure))
    return pack_sequence_as(structure[0], [func(*row) for row in rows], expand_composites)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """ValueError if the two are nested in different ways; TypeError if containers differ in type."""
    try:
        _compare(nest1, nest2, check_types, expand_composites)
    except (ValueError, TypeError) as error:
        raise type(error)(
            f"The two structures don't have the same nested structure.\n\nFirst structure: {_shown(nest1)}\n\n"
            f"Second structure: {_shown(nest2)}\n\nMore specifically: {error}"
        ) from None


def _compare(first: Any, second: Any, check_types: bool, expand_composites: bool) -> None:
    children, others = _children(first, expand_composites), _children(second, expand_composites)
    if children is None or others is None:
        if children is not others:
            nested, leaf = map(_shown, (first, second) if others is None else (second, first))
            raise ValueError(f'Substructure "{nested}" is a sequence, while substructure "{leaf}" is not')
        return
    if check_types and not _same_type(first, second):
        raise TypeError(
            "The two structures don't have the same sequence type. First structure has type "
            f"{type(first).__name__}, while second structure has type {type(second).__name__}."
        )
    if check_types and isinstance(first, Mapping) and set(first) != set(second):
        raise ValueError(
            "The two dictionaries don't have the same set of keys. First structure has keys "
            f"{list(first)}, while second structure has keys {list(second)}"
        )
    if len(children) != len(others):
        raise ValueError(
            f"The two structures don't have the same number of elements. First structure: {_shown(first)}. "
            f"Second structure: {_shown(second)}"
        )
    for child, other in zip(children, others):
        _compare(child, other, check_types, expand_composites)


def _same_type(first: Any, second: Any) -> bool:
    """Alike for users: of one type, both mappings, both plain lists, or named tuples of one name and fields."""
    a, b = type(first), type(second)
    if hasattr(a, "_fields") and hasattr(b, "_fields"):
        return (a.__name__, a._fields) == (b.__name__, b._fields)
    return a is b or any(isinstance(first, kind) and isinstance(second, kind) for kind in (Mapping, list))


def _shown(structure: Any) -> str:
    return f"type={type(structure).__name__} str={structure}"
