"""Changes that a submission has made to the grader: in the memory of its process, and in what its `import` finds.

Rule: a finding is a warning for the teacher, and no proof that there is nothing else. Points are not taken away for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence, Set
from importlib import import_module
from types import ModuleType
from typing import Any

from dtflab.grading.questions import Question

CALLED = ("grade", "check", "predict")  # what notebooks call
ROOF: Any = sys.modules["dtflab"]  # which no room imports
_PACKAGE = "dtflab.grading"


def modules() -> dict[str, ModuleType]:
    """The modules of the grader that `import` finds now, by name."""
    return {name: module for name, module in sys.modules.items() if name.startswith(_PACKAGE)}


class Snapshot:
    """The functions and classes of the grader and the checks of its questions, as they are when this is made."""

    def __init__(self, questions: Sequence[Question]) -> None:
        import_module(f"{_PACKAGE}.grade")  # what notebooks call: an attempt needs none of it
        self._modules = modules()
        known = {
            (name, key): one
            for name, module in self._modules.items()
            for key, one in vars(module).items()
            if callable(one) and str(getattr(one, "__module__", "")).startswith(_PACKAGE)
        }
        self._code = {at: _code(one) for at, one in known.items()}
        self._names = {at: f"{one.__module__}.{getattr(one, '__qualname__', at[1])}" for at, one in known.items()}
        self._checks = {question: [*question.checks] for question in questions}

    def changed(self) -> set[str]:
        """The names of those that differ in the grader itself."""
        checks = {f"the checks of {one.id}" for one, before in self._checks.items() if one.checks != before}
        return self._different(self._modules) | checks

    def replaced(self, namespace: Mapping[str, Any]) -> set[str]:
        """The names for which a submission has something of its own now: dtflab, its functions, parts of the grader."""
        here = os.path.dirname(os.path.abspath(ROOF.__file__))
        own = {f"dtflab.{name}": vars(ROOF)[name] for name in CALLED if name in vars(ROOF)}
        found = {name for name, one in own.items() if not _is_in(here, one)} | self._different(modules())
        is_whole = namespace.get("dtflab", ROOF) is sys.modules.get("dtflab") is ROOF
        return found if is_whole else found | {"dtflab"}

    def _different(self, now: Mapping[str, ModuleType]) -> set[str]:
        there = {(name, key): vars(now[name]).get(key) for name, key in self._code if name in now}
        return {self._names[at] for at, one in there.items() if one is not None and _code(one) != self._code[at]}


def _code(one: Any) -> Any:
    """The code of a function and of what it wraps, or of each method of a class."""
    if isinstance(one, type):
        methods = (property, classmethod)
        return {name: _code(it) for name, it in vars(one).items() if callable(it) or isinstance(it, methods)}
    inner = next((getattr(one, name) for name in ("fget", "__wrapped__") if hasattr(one, name)), None)
    return getattr(one, "__code__", None), inner and _code(inner)


def _is_in(folder: str, function: Any) -> bool:
    return str(getattr(getattr(function, "__code__", None), "co_filename", "")).startswith(folder)


def few(names: Set[str]) -> str:
    """The first three of these names, and the number of the others."""
    first, more = sorted(names)[:3], len(names) - 3
    return ", ".join(first) + f" and {more} more" * (more > 0)
