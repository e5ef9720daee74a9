"""Checks that only the teacher has: Python files in a folder, and installed packages.

    from dtflab.grading.questions import Wrong, find, register

    @find("placement/q1").check("Three models in a row", points=2)
    def rows(answer, random): ...            # as in the package's own `checks/`

DTFLAB_CHECKS in the environment names the folder; a package names its module in the entry point group `dtflab.checks`.
Rule: a file is loaded once, after the package's own questions; one that fails is an error that names it, because a
mark without its checks is a wrong mark. This is the teacher's own program: it is run, and needs no trust that the
package does not.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
from pathlib import Path

GROUP = "dtflab.checks"
_loaded: set[str] = set()


class ChecksError(RuntimeError):
    """A teacher's check that can't be loaded."""


def load_hidden() -> None:
    """Load the folder that DTFLAB_CHECKS names, and what is installed; ChecksError says what can't be."""
    for entry in _installed():
        if entry.value not in _loaded:
            _loaded.add(entry.value)
            entry.load()
    if named := os.environ.get("DTFLAB_CHECKS"):
        load_folder(Path(named))


@functools.cache  # it looks at every installed package
def _installed() -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(importlib.metadata.entry_points(group=GROUP))


def load_folder(folder: Path) -> None:
    """Load each Python file of a folder, in the order of their names."""
    paths = sorted(folder.glob("*.py"))
    if not paths:
        raise ChecksError(
            f"{folder}: no folder with Python files. It should hold the checks; DTFLAB_CHECKS or --checks."
        )
    for path in paths:
        if str(path.resolve()) not in _loaded:
            _load(path)


def _load(path: Path) -> None:
    _loaded.add(str(path.resolve()))  # before: it asks for questions itself
    spec = importlib.util.spec_from_file_location(f"dtflab_checks_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # its name ends in .py
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except Exception as error:
        _loaded.discard(str(path.resolve()))
        raise ChecksError(f"{path} can't be loaded: {type(error).__name__}: {error}") from error
