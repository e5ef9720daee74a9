"""Which collections hold objects that travel as messages: variables, savers, queue runners, contexts.

Stands for `register_proto_function` of `python/framework/ops.py`.

Rule: a meta graph stores such a collection as serialized messages of one type; every other one as names or plain
values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class ProtoFunctions(NamedTuple):
    """How the items of a collection travel."""

    proto_type: Any
    to_proto: Callable[..., Any]  # (item, export_scope=…) → message, or None if it is not in that scope
    from_proto: Callable[..., Any]  # (message, import_scope=…) → item


_registered: dict[str, ProtoFunctions] = {}


def register(
    collection_name: str, proto_type: Any, to_proto: Callable[..., Any], from_proto: Callable[..., Any]
) -> None:
    """Say how the items of a collection become messages and back; KeyError if that has been said."""
    if not callable(to_proto) or not callable(from_proto):
        raise TypeError("to_proto and from_proto must be callable.")
    if collection_name in _registered:
        raise KeyError(f"Registering two proto functions with the name '{collection_name}'!")
    _registered[collection_name] = ProtoFunctions(proto_type, to_proto, from_proto)


def find(collection_name: str) -> ProtoFunctions | None:
    """The functions registered for a collection, or None."""
    return _registered.get(collection_name)
