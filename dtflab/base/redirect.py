"""Redirect: an import path that gives a module of another path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader


class Redirect:
    """Imports `target(path)` where it says one; None leaves the path to other finders.

    It is a finder and a loader without their base classes, because `importlib.abc` takes a tenth of `import dtflab`.
    """

    def __init__(self, target: Callable[[str], str | None]) -> None:
        self._target = target

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return (
            ModuleSpec(fullname, cast("Loader", self), is_package=True) if self._target(fullname) is not None else None
        )

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual new module will do."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module that is meant in the place of the new one."""
        target = self._target(module.__name__)
        if target is not None:
            sys.modules[module.__name__] = importlib.import_module(target)
