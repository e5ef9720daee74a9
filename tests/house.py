"""Reads the sources as data, for `test_house.py`: files, imports, calls, and the stated reading order."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Generic, Protocol

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "dtflab"


def tracked_files() -> list[Path]:
    """The files that git has or would take, so that leftovers of a run are not judged."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def sources(folder: Path = PACKAGE) -> list[Path]:
    """The hand-written Python files."""
    return sorted(path for path in folder.rglob("*.py") if not path.stem.endswith(("_pb2", "_pb2_grpc")))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """The syntax of a file, which stays until the end: to look for garbage in it takes most of the time of parsing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    finally:
        if collects:
            gc.enable()


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))


# ---- imports ----


@cache
def imports(path: Path) -> list[str]:
    """Dotted names that a file imports, wherever it does so: `from a import b` gives `a.b`."""
    return [name for node in nodes(path) for name in imported_by(node)]


@cache
def imports_when_loaded(path: Path) -> list[str]:
    """The imports that run with the module itself: not in a function, not for the type checker only."""
    found: list[str] = []
    todo: list[ast.AST] = [tree(path)]
    while todo:
        node = todo.pop()
        found += imported_by(node)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            todo.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
    return found


@cache
def imports_when_run(path: Path) -> list[str]:
    """The imports of `imports_when_loaded` and those in functions: all but those for the type checker only."""
    found: list[str] = []
    todo: list[ast.AST] = [tree(path)]
    while todo:
        node = todo.pop()
        found += imported_by(node)
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        todo.extend(node.orelse if typing_only else ast.iter_child_nodes(node))
    return found


def imports_when_checked(path: Path) -> Iterator[tuple[str, str]]:
    """Names and what they are, of the imports that only a type checker makes."""
    for block in tree(path).body:
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test):
            yield from ((name.rpartition(".")[2], name) for node in block.body for name in imported_by(node))


def imported_thing(name: str) -> object:
    """A module of the package, or what one of its modules has under that name."""
    module, _, last = name.rpartition(".")
    return importlib.import_module(name) if page(name) else getattr(importlib.import_module(module), last)


def defines_names_later(path: Path) -> bool:
    """Whether a module-level `__getattr__` gives more than an error."""
    functions = [node for node in tree(path).body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]
    return any(isinstance(node, ast.Return) for function in functions for node in ast.walk(function))


def imports_on_demand(path: Path) -> Iterator[str]:
    """The pages that the tables of an `__init__.py` name, `_LAZY` and `_MODULES`: loaded when a name is first used."""
    if path.name == "__init__.py":
        package = ".".join(path.parent.relative_to(ROOT).parts)
        constants = (node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant))
        words = {value for value in constants if isinstance(value, str) and re.fullmatch(r"[\w.]+", value)}
        yield from (name for word in sorted(words) for name in (word, f"{package}.{word}") if page(name))


def page(module: str) -> Path | None:
    """The file of a module of the package, `dtflab.ops.all`; None if there is none."""
    stem = ROOT.joinpath(*module.split("."))
    found = (path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file())
    return next(found, None) if module else None


def page_of_import(imported: str) -> Path | None:
    """The file behind what `imports` gives: `a.b` is the module b of a, or what a's own file has under the name b."""
    return page(imported) or page(imported.rpartition(".")[0])


def imported_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__", "importorskip"):
        yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


def imports_module(path: Path, module: str) -> bool:
    return any(f"{imported}.".startswith(f"{module}.") for imported in imports(path))


# ---- names and calls ----


def called(call: ast.Call) -> str:
    """The last part of what is called: `Thread` for `threading.Thread(...)`."""
    match call.func:
        case ast.Attribute(attr=last) | ast.Name(id=last):
            return last
    return ""


def dotted(node: ast.AST) -> str:
    """A name, or attributes of a name, as it is written; else nothing."""
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return base and f"{base}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def reaches_for(path: Path, names: set[str]) -> bool:
    """Whether one of `names` is taken out of another package: imported by name, or as `module.name`."""
    imported = {name.rpartition(".")[2] for name in imports(path) if not name.startswith("dtflab.")}
    attributes = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
    return bool(names & (imported | attributes))


@cache
def calls(path: Path) -> list[ast.Call]:
    return [node for node in nodes(path) if isinstance(node, ast.Call)]


def calls_when_loaded(path: Path) -> Iterator[ast.Call]:
    """The calls that run with the module itself: decorators, too, but nothing in a function."""
    todo: list[ast.AST] = [tree(path)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Call):
            yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            todo.extend(node.decorator_list)
        elif not isinstance(node, ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))


def hooks(path: Path) -> Iterator[str]:
    """The names that a module sets in others when it is loaded: `gradients.gate` for `gradients.gate = …`."""
    modules = {
        name.rpartition(".")[2] for name in imports_when_loaded(path) if name.startswith("dtflab.") and page(name)
    }
    for node in tree(path).body:
        targets = [ast.unparse(target) for target in node.targets] if isinstance(node, ast.Assign) else []
        yield from (target for target in targets if re.split(r"[.\[]", target)[0] in modules)


def defined(folder: Path) -> set[str]:
    """The names of all functions, methods and classes below a folder."""
    kinds = ast.FunctionDef | ast.ClassDef
    return {node.name for path in sources(folder) for node in ast.walk(tree(path)) if isinstance(node, kinds)}


def top_names(path: Path) -> set[str]:
    """The names that a module defines itself: functions, classes and variables, not what it imports."""
    body = [node for node in tree(path).body if not isinstance(node, ast.Import | ast.ImportFrom)]
    own = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names = [node for statement in body for node in _own_nodes(statement) if isinstance(node, ast.Name)]
    return own | {node.id for node in names if isinstance(node.ctx, ast.Store)}


def constructions(path: Path, module: str, names: set[str]) -> Iterator[tuple[str, str]]:
    """Where the code makes objects of some classes of a module: class and place, with how unless it is by keyword."""
    own = {name: name for name in names if page(module) == path}
    if not (own or module in {part for name in imports(path) for part in (name, name.rpartition(".")[0])}):
        return
    aliases = [a for n in nodes(path) if isinstance(n, ast.ImportFrom) and n.module == module for a in n.names]
    known = own | {a.asname or a.name: a.name for a in aliases} | {f"{module.rpartition('.')[2]}.{n}": n for n in names}
    for function in nodes(path):
        inner = function.body if isinstance(function, ast.FunctionDef | ast.Module | ast.ClassDef) else []
        for call in (node for statement in inner for node in _own_nodes(statement) if isinstance(node, ast.Call)):
            maker, _, way = ast.unparse(call.func).partition("._")
            if known.get(maker) in names:
                how = f" by _{way}" if way else " by position" if call.args else ""
                place = f"{path.relative_to(PACKAGE).as_posix()}: {getattr(function, 'name', '')}{how}"
                yield known[maker], place


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and what is in it, except what functions and classes in it have."""
    if not isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from _own_nodes(child)


_STREAMS = ("random", "numpy.random")
_MAKERS = {"Random", "RandomState", "default_rng"}  # of generators of one's own, repeatable if they are given a seed


def shared_draws(path: Path) -> set[str]:
    """The names that code takes from `random` and `numpy.random`, whose streams are the program's and copied by a fork.

    Named are their functions, as `random.shuffle`, and generators that are made without a seed, as `random.Random()`.
    """
    modules: dict[str, str] = {}
    for node in nodes(path):
        if isinstance(node, ast.Import | ast.ImportFrom):
            package = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                modules[name] = package + (alias.name if alias.asname or package else name)

    def meant(node: ast.AST) -> str:
        first, dot, rest = dotted(node).partition(".")
        return modules.get(first, "") + dot + rest

    used = {meant(node) for node in nodes(path) if isinstance(node, ast.Attribute | ast.Name)}
    unseeded = {f"{meant(call.func)}()" for call in calls(path) if not call.args and not call.keywords}
    makers = {f"{stream}.{maker}" for stream in _STREAMS for maker in _MAKERS}
    drawn = {name for name in used if name.rpartition(".")[0] in _STREAMS} - makers
    return drawn | {f"{maker}()" for maker in makers} & unseeded


def code_lines(path: Path) -> int:
    """Lines that hold code: not blank, no comment, no docstring."""
    strings = [node.value for node in nodes(path) if isinstance(node, ast.Expr)]
    docs = [node for node in strings if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    prose = {line for node in docs for line in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return sum(bool(text.strip()) and not text.lstrip().startswith("#") for line, text in lines if line not in prose)


def exempted(path: Path, word: str) -> int:
    """How often a file asks ruff not to lay code out: `# fmt: skip` ends a comment, `# fmt: off` is one."""
    text = path.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline) if f"# fmt: {word}" in text else ()
    return sum(token.type == tokenize.COMMENT and token.string.endswith(f"# fmt: {word}") for token in tokens)


def body_lengths() -> list[int]:
    """Lines of each function, its docstring left out."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    found = [node for path in sources() for node in nodes(path) if isinstance(node, functions)]
    return [_body_lines(node) for node in found]


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return 1 + function.end_lineno - body[0].lineno if body else 0


# ---- protocols ----


def implementations(protocol: type) -> list[type]:
    """The classes of the package that have every method of a protocol."""
    wanted = methods(protocol)
    return [x for x in _classes() if not getattr(x, "_is_protocol", False) and all(hasattr(x, n) for n in wanted)]


@cache
def _classes() -> list[type]:
    """All classes of the package, except those of what other processes import instead of it."""
    stems = [path.relative_to(ROOT).with_suffix("").parts for path in sources() if "as_tensorflow" not in path.parts]
    modules = [importlib.import_module(".".join(stem)) for stem in stems if stem[-1] != "__main__"]
    return [x for m in modules for x in vars(m).values() if inspect.isclass(x) and x.__module__ == m.__name__]


def methods(protocol: type) -> dict[str, inspect.Signature]:
    """The signatures that a protocol states, with those of the protocols that it extends."""
    found = {name: member for name, member in _members(protocol).items() if inspect.isfunction(member)}
    return {name: inspect.signature(member) for name, member in found.items() if name[0] != "_"}


def values(protocol: type) -> dict[str, str]:
    """The types of the properties and variables that a protocol states."""
    found = {name: member for name, member in _members(protocol).items() if isinstance(member, property)}
    variables = [pair for base in _bases(protocol) for pair in vars(base).get("__annotations__", {}).items()]
    return dict(variables) | {name: inspect.signature(member.fget).return_annotation for name, member in found.items()}


def _bases(protocol: type) -> list[type]:
    """A protocol and those that it extends, the latter first."""
    return [base for base in reversed(protocol.__mro__) if base not in (object, Generic, Protocol)]


def _members(protocol: type) -> dict[str, object]:
    return {name: member for base in _bases(protocol) for name, member in vars(base).items()}


def deviations(protocol: type, implementation: type) -> list[str]:
    """Members other than the protocol's. A method may take more, with defaults, and return less."""
    where = implementation.__module__
    found = []
    for name, kind in values(protocol).items():
        own = getattr(implementation, name, None)  # None: its __init__ sets it, as mypy checks
        if own is not None and values(implementation).get(name) != kind:
            found.append(f"{where}: {name} is {own}, but {protocol.__name__} has a property {name}: {kind}")
    for name, stated in methods(protocol).items():
        own = inspect.signature(getattr(implementation, name))
        if not _keeps_to(stated, own):
            found.append(f"{where}: {name}{own}, but {protocol.__name__} has {name}{stated}")
    return found


def looks_inside(path: Path) -> Iterator[tuple[str, str, str | None]]:
    """Calls that ask an object for a member: the call, the object, and the member's name unless it is computed."""
    for call in calls(path):
        if called(call) in ("getattr", "hasattr", "getattr_static"):
            name = call.args[1].value if isinstance(call.args[1], ast.Constant) else None
            yield ast.unparse(call), ast.unparse(call.args[0]), name
        elif called(call) in ("attrgetter", "methodcaller"):
            yield ast.unparse(call), "", None


def reaches(path: Path) -> list[tuple[str, str]]:
    """Private members that are read of something else than `self`, with their names: `a.b._c` and `_c`."""
    members = [node for node in nodes(path) if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)]
    return [(ast.unparse(node), node.attr) for node in members if ast.unparse(node.value) not in ("self", "cls")]


def privates(path: Path) -> set[str]:
    """The private members that a page gives its own objects, as methods or attributes."""
    methods = {node.name for node in nodes(path) if isinstance(node, ast.FunctionDef)}
    members = [node for node in nodes(path) if isinstance(node, ast.Attribute)]
    own = {node.attr for node in members if ast.unparse(node.value) == "self"}
    of_classes = {node.id for node in nodes(path) if isinstance(node, ast.Name)}
    return {name for name in methods | own | of_classes if re.match("_[^_]", name)}


def _keeps_to(stated: inspect.Signature, own: inspect.Signature) -> bool:
    wanted, given = list(stated.parameters.values()), list(own.parameters.values())
    optional = all(more.default is not more.empty for more in given[len(wanted) :])
    returned = ("NoReturn", stated.return_annotation, *stated.return_annotation.split(" | "))
    return given[: len(wanted)] == wanted and optional and own.return_annotation in returned


# ---- the stated order ----


class Order:
    """The order that the docstring of `dtflab/__init__.py` states.

    The rooms, lower ones first, as `a < b < c`; one that stands on the level of another as `d next to b`;
    the chapter, one step of a session in reading order, as `x → y → z`.
    """

    def __init__(self, docstring: str) -> None:
        self.text = docstring.replace("`", "")
        self.rooms = self._chain("<")
        self.chapter = self._chain("→")
        self.level = {room: level for level, room in enumerate(self.rooms)}
        for room, other in re.findall(r"(\w+) next to (\w+)", self.text):
            if other in self.level:
                self.level[room] = self.level[other]

    def _chain(self, sign: str) -> list[str]:
        found = re.findall(rf"\w+(?:\s*{sign}\s*\w+)+", self.text)
        assert len(found) == 1, f"dtflab/__init__.py should state one order with {sign}, found {found}"
        return re.split(rf"\s*{sign}\s*", found[0])


@cache
def order() -> Order:
    return Order(ast.get_docstring(tree(PACKAGE / "__init__.py")) or "")


def without_address(value: object) -> str:
    """A test's name: the same in every process that collects it."""
    return re.sub(r" at 0x\w+", "", repr(value))
