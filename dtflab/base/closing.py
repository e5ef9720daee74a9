"""Closing: what a block closes at its end."""

from __future__ import annotations

from typing import Any, Self


class Closing:
    """Base of a context manager that is itself what is open."""

    def close(self) -> None:
        """Let go of what is open."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
