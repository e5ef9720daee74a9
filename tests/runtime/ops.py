"""Ops that only tests have: registered for a while, so that `test_every_op` never sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dtflab.graph import op_registry
from dtflab.graph.op_registry import Op


@contextmanager
def op(interface: str, kernel: Callable[..., Any], **attributes: Any) -> Iterator[None]:
    """`with op("Double(x: float) -> (y: float)", lambda x: 2 * x):` the graph may use it, and it runs."""
    rules = {"bind": staticmethod(lambda node, xp: kernel), **attributes}
    registered = op_registry.op(interface)(type("TestOp", (Op,), rules))
    try:
        yield
    finally:
        del op_registry._registry[registered.op_def.name]
