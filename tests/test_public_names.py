"""What people read and copy (lessons, exercises, docs, a teacher's checks) uses public names only.

Public is what `dir(tf)` shows, and what its modules show in turn; docs/engineer.md says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import dtflab as tf
from tests.house import ROOT, name

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


def used(code: str) -> Iterator[str]:
    """Dotted names of dtflab in Python code with magics, without the `dtflab.`"""
    code = re.sub(r"(?m)^(\s*)[%!].*", r"\1pass", code)
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                found = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), names=names):
                found = [f"{module}.{alias.name}" for alias in names]
            case ast.Attribute():
                found = [re.sub(r"^tf\.", "dtflab.", ast.unparse(node))]
            case _:
                continue
        yield from (dotted.removeprefix("dtflab.") for dotted in found if re.fullmatch(r"dtflab(\.\w+)+", dotted))


def fenced(text: str) -> Iterator[str]:
    return (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def wrong(dotted_names) -> list[str]:
    return sorted({found for dotted in dotted_names if (found := inner(dotted))})


@pytest.mark.parametrize("path", PERCENT, ids=name)
def test_cells_use_public_names(path):
    assert wrong(used(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_code_of_the_docs_uses_public_names(path):
    assert wrong(dotted for block in fenced(path.read_text(encoding="utf-8")) for dotted in used(block)) == []


@pytest.mark.parametrize("path", [*PERCENT, *(path for path in PAGES if path.name not in RECORDS)], ids=name)
def test_prose_names_no_inner_module(path):
    text = path.read_text(encoding="utf-8")
    assert wrong(re.findall(r"\bdtflab\.((?:[a-z_]+\.)+\w+)", text)) == []
    assert re.findall(r"python -m dtflab\.\S+", text) == []


def test_what_is_inner_is_found():
    code = "import dtflab as tf\nfrom dtflab.graph import op_registry\nimport dtflab.runtime.master\n%magic\n"
    code += "tf.ops.shapes.unchanged, tf.nn.relu, tf.sim.engine, tf.Session(x).run.it, tf.viz.timeline\n"
    assert wrong(used(code)) == ["dtflab.graph", "dtflab.ops", "dtflab.runtime", "dtflab.sim.engine"]
    assert inner("extend.place") is None and inner("extend.annotations") == "dtflab.extend.annotations"


@pytest.mark.parametrize("module", ["extend", "grading", "notebook", "sim", "viz"])
def test_every_public_name_is_there_and_others_are_named_in_the_error(module):
    public = getattr(tf, module)
    assert {*public.__all__} <= {*dir(public)}
    assert all(getattr(public, each) is not None for each in public.__all__)
    with pytest.raises(AttributeError, match="nothing_like_it"):
        _ = public.nothing_like_it
