"""Reads the simulator's source: what in it asks for a name, or decides by a number that is written down.

Which modules are read follows from what they import. A number counts in each place where it can decide something,
however it is written: `1e8`, `float(10**8)`, `int("100000000")`, or the name of any of these in any module.
"""

from __future__ import annotations

import ast
import builtins
import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from dtflab.sim.predictions import points
from tests.house import ROOT, imports_when_run, tree

ENOUGH = 2  # alone, or not; in turns, or not

_CONTENT = json.loads(points.CALIBRATION.read_text())
_WORD = re.compile("[a-z]{3,}[0-9]*|[a-z]+[0-9]{2,}")
_NAMES = {word for name in [*_CONTENT["platforms"], *_CONTENT["models"]] for word in _WORD.findall(name.lower())}
_COMMON = {"server", "shared"}  # words of the schema, too

_PURE = {name: getattr(builtins, name) for name in "abs bool float int len max min ord pow round str sum".split()}
_CHOOSING = set(
    "bisect bisect_left bisect_right clip copysign digitize eq ge greater greater_equal gt heaviside isclose le less "
    "less_equal lt max maximum min minimum ne piecewise searchsorted select sign where".split()
)


def reached(*starts: str, rooms: tuple[str, ...] = ("dtflab.sim", "dtflab.hardware")) -> dict[str, Path]:
    """The modules of `rooms` that `starts` import, or those that they import in turn."""
    found: dict[str, Path] = {}
    todo = list(starts)
    while todo:
        module = todo.pop()
        path = _path(module)
        if module in found or path is None or not f"{module}.".startswith(tuple(f"{room}." for room in rooms)):
            continue
        found[module] = path
        for name in imports_when_run(path):
            todo += [name, name.rpartition(".")[0]]  # `from a import b`: b is a module, or is in a
    return found


def _path(module: str) -> Path | None:
    stem = ROOT.joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def names_in(source: str) -> set[str]:
    """Words of platforms and models in the source's texts, docstrings aside."""
    parsed = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(parsed) if isinstance(node, ast.Expr)}
    constants = [
        node.value for node in ast.walk(parsed) if isinstance(node, ast.Constant) and id(node) not in docstrings
    ]
    words = {word for one in constants if isinstance(one, str) for word in _WORD.findall(one.lower())}
    return {word for word in words - _COMMON if any(name.startswith(word) for name in _NAMES)}


def numbers_in(source: str, known: dict[str, list[float]] | None = None) -> set[float]:
    """Numbers above ENOUGH that decide something; `known` are the constants of other modules."""
    parsed = ast.parse(source)
    named = _constants(parsed, known or {})
    scopes = [node for node in ast.walk(parsed) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    places = [(parsed, named), *((scope, _constants(scope, named, inside=True)) for scope in scopes)]
    found = {
        number
        for scope, names in places
        for part in _deciding(scope)
        for inner in ast.walk(part)
        for number in _values(inner, names)
    }
    return {abs(number) for number in found if ENOUGH < abs(number) < math.inf}


@cache
def constants_of(paths: tuple[Path, ...]) -> dict[str, list[float]]:
    """The named numbers of all these modules, by their names, which are in capitals."""
    found: dict[str, list[float]] = {}
    for path in paths:
        for name, numbers in _constants(tree(path), {}).items():
            if name.isupper():
                found.setdefault(name, []).extend(numbers)
    return found


def _deciding(parsed: ast.AST) -> Iterator[ast.AST]:
    """Expressions that are compared, tested, matched, looked up, rounded down, or given to a function that chooses."""
    for node in ast.walk(parsed):
        match node:
            case ast.Compare() | ast.MatchValue():
                yield node
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield test
            case ast.comprehension(ifs=tests):
                yield from tests
            case ast.Dict(keys=keys) | ast.MatchMapping(keys=keys):
                yield from (key for key in keys if key)
            case ast.Subscript(slice=index) if any(isinstance(inner, ast.Name) for inner in ast.walk(index)):
                yield index
            case ast.BinOp(op=ast.FloorDiv() | ast.Mod(), left=left, right=right) if not _is_text(left):
                yield right
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if name in _CHOOSING:
                yield from args


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _constants(scope: ast.AST, known: dict[str, list[float]], inside: bool = False) -> dict[str, list[float]]:
    """Names that stand for numbers: assigned, as a default, or in a loop over numbers; `inside` functions, too."""
    named = {name: list(numbers) for name, numbers in known.items()}
    given = [*_given(scope, inside)]
    for _ in range(3):  # by names of names, too
        for name, expression in given:
            numbers = [number for number in _values(expression, named) if number not in named.get(name, [])]
            if numbers:
                named.setdefault(name, []).extend(numbers)
    return named


def _given(scope: ast.AST, inside: bool) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.walk(scope) if inside else _outside_functions(scope):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((name, value) for target in targets for name in _named(target))
            case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value) if value:
                yield from ((name, value) for name in _named(target))
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield from ((name, value) for name in _named(target))
            case ast.arguments():
                places = node.posonlyargs + node.args
                defaults = [*zip(places[len(places) - len(node.defaults) :], node.defaults, strict=True)]
                defaults += [pair for pair in zip(node.kwonlyargs, node.kw_defaults, strict=True) if pair[1]]
                yield from ((arg.arg, value) for arg, value in defaults)


def _outside_functions(scope: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            yield from _outside_functions(node)


def _named(target: ast.AST) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr


def _values(node: ast.AST, named: dict[str, list[float]]) -> list[float]:
    """The numbers for which an expression stands if it is made of constants alone."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return named.get(name, [])
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [number for each in node.elts for number in _values(each, named)]
    if not isinstance(node, ast.expr):
        return []
    names = {name: numbers[0] for name, numbers in named.items()}
    pure = {"__builtins__": {}, "math": math, "np": np, **_PURE}
    try:
        value = eval(compile(ast.Expression(node), "source", "eval"), pure, names)  # noqa: S307 - this repository's own
    except Exception:  # it is made of more than constants
        return []
    return [float(value)] if isinstance(value, int | float | np.number) and not isinstance(value, bool) else []
