"""The stacks of default graphs and default sessions of each thread.

Stands for `_DefaultStack` of `python/framework/ops.py`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from dtflab.graph.graph import Graph


T = TypeVar("T")


class DefaultStack(threading.local, Generic[T]):
    """The defaults of the current thread, innermost last."""

    def __init__(self) -> None:
        self.stack: list[T] = []

    def get_default(self) -> T | None:
        return self.stack[-1] if self.stack else None

    def reset(self) -> None:
        """Forget all of this thread."""
        self.stack.clear()

    @contextlib.contextmanager
    def entered(self, item: T) -> Iterator[T]:
        """`item` is the default inside; leaving in the wrong order is an error of the program."""
        self.stack.append(item)
        try:
            yield item
        finally:
            if self.stack[-1] is not item:
                raise AssertionError(f"Nesting violated for default stack of {type(item)} objects")
            self.stack.pop()


default_graph_stack: DefaultStack[Graph] = DefaultStack()


default_session_stack: DefaultStack[object] = DefaultStack()


def get_default_session() -> Any:
    """The innermost session used as a context manager in this thread, or None."""
    return default_session_stack.get_default()
