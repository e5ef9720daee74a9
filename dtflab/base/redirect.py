"""Redirect: an import path that gives a module of another path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class Redirect(MetaPathFinder, Loader):
    """Imports `target(path)` where it says one; None leaves the path to other finders."""

    def __init__(self, target: Callable[[str], str | None]) -> None:
        self._target = target

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if self._target(fullname) is not None else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that is meant in the place of the new one."""
        target = self._target(module.__name__)
        if target is not None:
            sys.modules[module.__name__] = importlib.import_module(target)
