"""All questions: the package's own, and what only the teacher has, in Python files of a folder or installed packages.

    from dtflab.grading import Wrong, find, register

    @find("placement/q1").check("Three models in a row", points=2)
    def rows(answer, random): ...            # as in the package's own `checks/`

DTFLAB_CHECKS in the environment names the folder; a package names its module in the entry point group `dtflab.checks`.
Rule: each is loaded once, after the package's own questions, in the order of their names. One that fails is an error
that names it, each time until it is mended, and nothing of it stays: a mark without its checks is a wrong mark. This is
the teacher's own program: it is run, and needs no trust that the package does not.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

from dtflab.base.suggestions import did_you_mean
from dtflab.grading.questions import Question, registered, teachers_own

GROUP = "dtflab.checks"
_loaded: set[str] = set()
_loading: list[str] = []  # while one is loaded it asks for questions itself, and the next one waits for its turn


class ChecksError(RuntimeError):
    """A teacher's check that can't be loaded."""


def all_questions() -> list[Question]:
    """Every question of the package, by id, with what the teacher adds; ChecksError says what can't be loaded."""
    _load_package()
    _load_hidden()
    return registered()


def public_questions() -> list[Question]:
    """The package's own questions alone, by id: what the process of a submission has."""
    _load_package()
    return registered()


def teachers_files(folder: str) -> list[Path]:
    """Where the teacher's own checks are: the folder, and installed packages."""
    modules = {entry.module.partition(".")[0] for entry in _installed()}
    specs = [spec for name in modules if (spec := importlib.util.find_spec(name)) is not None]
    packages = [path for spec in specs for path in spec.submodule_search_locations or [spec.origin or ""]]
    return [Path(path) for path in (*packages, folder) if path]


def find(text: Any, namespace: Container[str] = ()) -> Question:
    """The question of an id, or of the end of one (`q1`): the only one, or the only one with an answer in `namespace`.

    LookupError lists what there is, TypeError for anything but a text.
    """
    known = {question.id: question for question in all_questions()}
    if not isinstance(text, str):
        example = next(iter(known), "topic/q1")
        raise TypeError(f'A question is named by its id, a text: dtflab.grade("{example}"), not {type(text).__name__}')
    if text in known:
        return known[text]
    ending = [id for id in known if id.endswith(f"/{text}")]
    answered = [id for id in ending if known[id].answer in namespace]
    for found in (ending, answered):
        if len(found) == 1:
            return known[found[0]]
    if ending:
        raise LookupError(f"{text!r} is the end of several questions. Name one: {', '.join(ending)}")
    meant = did_you_mean(text, known, 3)
    raise LookupError(f"There is no question {text!r}.{meant} There are: {', '.join(known)}")


def _load_package() -> None:
    """Register the package's own questions."""
    checks = importlib.import_module("dtflab.grading.checks")
    for module in pkgutil.iter_modules(checks.__path__):
        importlib.import_module(f"{checks.__name__}.{module.name}")


def _load_hidden() -> None:
    """Load the folder that DTFLAB_CHECKS names, and what is installed; ChecksError says what can't be."""
    if _loading:
        return
    for entry in _installed():
        _load(f"{entry.value}, installed as {GROUP},", functools.partial(_load_entry, entry))
    if named := os.environ.get("DTFLAB_CHECKS"):
        load_folder(Path(named))


@functools.cache  # it looks at every installed package
def _installed() -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(sorted(importlib.metadata.entry_points(group=GROUP)))


def load_folder(folder: Path) -> None:
    """Load each Python file of a folder, in the order of their names."""
    paths = sorted(folder.glob("*.py"))
    if not paths:
        raise ChecksError(f"{folder} has no Python files. DTFLAB_CHECKS or --checks names the folder of the checks.")
    for path in paths:
        _load(str(path.resolve()), functools.partial(_load_file, path))


def _load(name: str, load: Callable[[], Any]) -> None:
    """Load it once: all of it, or, with an error, nothing."""
    if name in _loaded:
        return
    _load_package()
    _loading.append(name)
    try:
        with teachers_own():
            load()
    except (Exception, SystemExit) as error:
        raise ChecksError(f"{name} can't be loaded: {type(error).__name__}: {error}") from error
    finally:
        _loading.remove(name)
    _loaded.add(name)


def _load_file(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(f"dtflab_checks_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # its name ends in .py
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def _load_entry(entry: importlib.metadata.EntryPoint) -> None:
    before = set(sys.modules)
    try:
        entry.load()
    except BaseException:
        package = entry.module.partition(".")[0]
        for name in set(sys.modules) - before:  # those of its modules that had no error would not run again
            if name.partition(".")[0] == package:
                del sys.modules[name]
        raise
