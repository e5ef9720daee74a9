"""Grouping: the values of each key, as lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]], keys: Iterable[K] = ()) -> dict[K, list[V]]:
    """Key → its values, both in the order in which the pairs come; first of all `keys`, also those without values."""
    found: dict[K, list[V]] = {key: [] for key in keys}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
