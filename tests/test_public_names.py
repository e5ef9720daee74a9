"""Texts that people read and copy (lessons, exercises, docs, a teacher's checks) use public names only.

Public is what `dir(tf)` shows, and what its modules show in turn; docs/engineer.md says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import dtflab as tf
from tests.house import ROOT, imported_by, name

PERCENT = [*ROOT.glob("notebooks/src/**/*.py"), *ROOT.glob("solutions/**/*.py")]
PAGES = [path for folder in (".", "docs", "exercises", "solutions") for path in (ROOT / folder).glob("*.md")]
RECORDS = {"CHANGELOG.md", "plan.md"}  # for those who change the package


def shown(module: ModuleType) -> set[str]:
    """The public names of a public module. Modules that it merely imports are not among them."""
    names = [n for n in getattr(module, "__all__", None) or dir(module) if not n.startswith("_")]
    loaded = {n for n in names if isinstance(vars(module).get(n), ModuleType)}
    return {*names} - (loaded - {*tf._MODULES} if module is tf else set())


def inner(dotted: str) -> str | None:
    """The beginning of `nn.conv2d` up to the first part that is not public, if there is one."""
    thing, parts = tf, dotted.split(".")
    for number, part in enumerate(parts, 1):
        if not isinstance(thing, ModuleType):
            break
        if part not in shown(thing):
            return ".".join(["dtflab", *parts[:number]])
        thing = getattr(thing, part)
    return None


class Code:
    """Python code with magics: the dotted names of dtflab that it uses, whatever it calls them, and private names."""

    def __init__(self, code: str) -> None:
        self.nodes = [*ast.walk(ast.parse(re.sub(r"(?m)^(\s*)[%!].*", r"\1pass", code)))]
        self.imported = {name.removesuffix(".*") for node in self.nodes for name in imported_by(node)}
        self.called = {"tf": "dtflab", "dtflab": "dtflab"}  # name → dotted name
        for node in self.nodes:
            match node:
                case ast.Import(names=names):
                    self.called |= {alias.asname: alias.name for alias in names if alias.asname}
                case ast.ImportFrom(module=str(module), names=names):
                    self.called |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in names}
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.NamedExpr(target=ast.Name(id=name), value=value)
                ) if dotted := self.dotted(value):
                    self.called[name] = dotted

    def dotted(self, node: ast.AST) -> str:
        match node:
            case ast.Name(id=name):
                return self.called.get(name, "")
            case ast.Attribute(value=value, attr=attr):
                return (base := self.dotted(value)) and f"{base}.{attr}"
            case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(attr)), *_]):
                return (base := self.dotted(value)) and f"{base}.{attr}"
        return ""

    def used(self) -> Iterator[str]:
        """The names that are used, without the `dtflab.` in front."""
        named = self.imported | {*map(self.dotted, self.nodes)}
        return (name.removeprefix("dtflab.") for name in named if re.fullmatch(r"dtflab(\.\w+)+", name))

    def private(self) -> Iterator[str]:
        """`x._name`, and `getattr(x, "_name")`; a class may have names of its own."""
        for node in self.nodes:
            match node:
                case (
                    ast.Attribute(attr=attr)
                    | ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=str(attr)), *_])
                ) if re.match(r"_(?!_)", attr) and not (text := ast.unparse(node)).startswith(("self._", "cls._")):
                    yield text

    def wrong(self) -> list[str]:
        return wrong(self.used()) + sorted(self.private())


def fenced(text: str) -> Iterator[str]:
    return (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def wrong(dotted_names) -> list[str]:
    return sorted({found for dotted in dotted_names if (found := inner(dotted))})


@pytest.mark.parametrize("path", PERCENT, ids=name)
def test_cells_use_public_names(path):
    assert Code(path.read_text(encoding="utf-8")).wrong() == []


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_code_of_the_docs_uses_public_names(path):
    assert [name for block in fenced(path.read_text(encoding="utf-8")) for name in Code(block).wrong()] == []


@pytest.mark.parametrize("path", [*PERCENT, *(path for path in PAGES if path.name not in RECORDS)], ids=name)
def test_prose_names_no_inner_module(path):
    text = path.read_text(encoding="utf-8")
    assert wrong(re.findall(r"\bdtflab\.((?:[a-z_]+\.)+\w+)", text)) == []
    assert re.findall(r"python -m dtflab\.\S+", text) == []


def test_what_is_inner_is_found():
    code = "import dtflab as tf\nfrom dtflab.graph import op_registry\nimport dtflab.runtime.master\n%magic\n"
    code += "tf.ops.shapes.unchanged, tf.nn.relu, tf.sim.engine, tf.Session(x).run.it, tf.viz.timeline\n"
    assert Code(code).wrong() == ["dtflab.graph", "dtflab.ops", "dtflab.runtime", "dtflab.sim.engine"]
    assert inner("extend.place") is None and inner("extend.annotations") == "dtflab.extend.annotations"


@pytest.mark.parametrize(
    "code, found",
    [
        ("from dtflab import sim as s; s.engine.job; s.estimate", "dtflab.sim.engine"),
        ("import dtflab.sim as s; s.engine", "dtflab.sim.engine"),
        ("t = tf; t.ops.shapes; t.nn.relu", "dtflab.ops"),
        ("if o := tf.sim: u = o; u.engine", "dtflab.sim.engine"),
        ('getattr(tf, "ops")', "dtflab.ops"),
        ('import importlib; importlib.import_module("dtflab.graph")', "dtflab.graph"),
        ("from dtflab.ops import *", "dtflab.ops"),
        ("tf.Session()._master; self._own; x.__class__", "tf.Session()._master"),
        ('getattr(session, "_master")', "getattr(session, '_master')"),
    ],
)
def test_what_is_inner_is_found_under_another_name(code, found):
    assert Code(code).wrong() == [found]


@pytest.mark.parametrize("module", ["extend", "grading", "notebook", "sim", "viz"])
def test_every_public_name_is_there_and_others_are_named_in_the_error(module):
    public = getattr(tf, module)
    assert {*public.__all__} <= {*dir(public)}
    assert all(getattr(public, each) is not None for each in public.__all__)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = public.nothing_like_it
