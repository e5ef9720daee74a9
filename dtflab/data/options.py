"""Options of a data set: accepted, kept, and of no effect, because nothing here is tuned or rewritten.

Stands for `python/data/ops/options.py`.
"""

from __future__ import annotations

from typing import Any


class _Group:
    """Options under one name; any may be set."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Options:
    """How a pipeline is to be run: `options.experimental_deterministic = False`, `options.threading…`."""

    def __init__(self) -> None:
        self.threading = _Group()
        self.autotune = _Group()
        self.experimental_optimization = _Group()
        self.experimental_distribute = _Group()
        self.experimental_threading = self.threading
        self.experimental_deterministic: bool | None = None
        self.deterministic: bool | None = None

    def merge(self, other: Options) -> Options:
        """These options, with those of `other` that are set."""
        merged = Options()
        for options in (self, other):
            for name, value in vars(options).items():
                if isinstance(value, _Group):
                    vars(getattr(merged, name)).update(vars(value))
                elif value is not None:
                    setattr(merged, name, value)
        return merged
