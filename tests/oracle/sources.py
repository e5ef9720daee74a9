"""The parts of a test: its function, and everything in `tests` that this function mentions.

TensorFlow's recorded answers are good as long as this code is the same. Comments, docstrings, layout, paths and where
things of other packages are imported from don't count.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests import house

ROOT = house.ROOT
MACHINERY = {ROOT / "tests" / "oracle" / name for name in ("answers.py", "tensorflow1.py")}
_IMPORTS = (ast.Import, ast.ImportFrom)


class Module:
    """A file by its names: which statements make one, what is imported under which, and the texts that it holds."""

    def __init__(self, path: Path) -> None:
        self.imported: dict[str, str] = {}  # name → dotted name
        self.texts: set[str] = set()
        self.made_by: dict[str, list[ast.stmt]] = defaultdict(list)
        for statement in house.tree(path).body:
            for name in _made(statement):
                self.made_by[name].append(statement)
        for node in house.nodes(path):
            if isinstance(node, ast.ImportFrom) and node.module:
                self.imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                self.imported |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.texts.add(node.value)

    def nodes(self, name: str) -> Iterator[ast.AST]:
        return itertools.chain.from_iterable(ast.walk(statement) for statement in self.made_by[name])


@cache
def _code(path: Path, name: str) -> str:
    """The statements that make a name, as one text: equal for equal code in each version of Python."""
    return "\n".join(map(_written, module(path).made_by[name]))


def _written(node: Any) -> str:
    """A syntax tree as a text, without docstrings and imports (what is imported from `tests` counts by its code)."""
    if isinstance(node, list):
        return ",".join(_written(item) for item in node if not _is_text(item) and not isinstance(item, _IMPORTS))
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ((field, value) for field, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({','.join(f'{field}={_written(value)}' for field, value in fields)})"


def _made(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement]
    stored = {node for target in targets for node in ast.walk(target)}
    names = {node.id for node in stored if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.name for node in stored if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def module(path: Path) -> Module:
    return Module(path)


def file_of(dotted: str) -> Path | None:
    """The file of a module of the tests."""
    path = ROOT.joinpath(*dotted.split(".")).with_suffix(".py")
    return path if dotted.startswith("tests.") and path.is_file() else None


@cache
def _mentioned(path: Path, name: str) -> frozenset[tuple[Path | None, str]]:
    """The names that the statements of a name mention: names of the tests by their file, of other packages by None."""
    here = module(path)
    return frozenset(_meant(here, path, dotted) for dotted in set(map(house.dotted, here.nodes(name))) if dotted)


def _meant(here: Module, path: Path, name: str) -> tuple[Path | None, str]:
    """Where a name comes from: a file of the tests and its name there, or None and the name in another package."""
    first, dot, rest = name.partition(".")
    if first in here.made_by:
        return path, first
    full = here.imported.get(first, "") + dot + rest
    parts = full.split(".")
    for end in range(len(parts) - 1, 1, -1):
        if file := file_of(".".join(parts[:end])):
            return file, parts[end]
    return None, full


def reached(path: Path, names: Iterable[str]) -> set[tuple[Path | None, str]]:
    """The names that these names of a file mention, directly or not, but for the machinery of records."""
    found: set[tuple[Path | None, str]] = set()
    todo = [(path, name) for name in names]
    while todo:
        new = {place for place in _mentioned(*todo.pop()) if place[0] not in MACHINERY} - found
        found |= new
        todo += [place for place in new if place[0]]
    return found


@cache
def fingerprint(path: Path, names: frozenset[str]) -> str:
    """The fingerprint of the code of these names and of all that they reach."""
    texts = {_code(file, name) for file, name in {(path, name) for name in names} | reached(path, names) if file}
    return hashlib.sha256("\n\n".join(sorted(texts)).encode()).hexdigest()[:16]
