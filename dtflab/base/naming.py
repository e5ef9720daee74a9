"""Naming: a function that another function has made gets its own name and docstring."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def named(function: Function, name: str, doc: str | None) -> Function:
    """`function` under that name, with that docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
