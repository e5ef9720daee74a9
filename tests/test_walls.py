"""The walls inside rooms: what a family of ops may take from another one, and that nothing is imported in a circle."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from tests import house
from tests.house import PACKAGE

OPS = PACKAGE / "ops"
FAMILIES = sorted(path.parent.name for path in OPS.glob("*/__init__.py"))
HALL = [path for path in sorted(OPS.glob("*.py")) if path.name not in ("__init__.py", "all.py")]


# ---- families of ops ----


def family(path: Path) -> str | None:
    return path.parent.name if path.parent.parent == OPS else None


def short(path: Path) -> str:
    return path.relative_to(OPS).as_posix()


def holds_ops(path: Path) -> bool:
    """Whether a page registers an op: `@op("…")`, or `op("…")(…)` in a loop over a table."""
    called = {house.called(call) for call in house.calls(path)}
    return "op" in called and any(name.endswith("op_registry.op") for name in house.imports_when_loaded(path))


@cache
def programs_call() -> set[Path]:
    """The pages of families from which the namespaces of programs take names."""
    found = set()
    for namespace in [PACKAGE / "__init__.py", *house.sources(PACKAGE / "api")]:
        found |= {house.page_of_import(name) for name in house.imports(namespace)}
    return {page for page in found if page and family(page)}


def programs_call_of(name: str) -> list[Path]:
    return [page for page in house.sources(OPS / name) if page in programs_call()]


# What programs call or see without a name for it in a namespace.
ALSO_SEEN = {
    OPS / "indexing/getitem.py": "`tensor[…]`",
    OPS / "variables/resource_variable.py": "the class of what `tf.get_variable(…, use_resource=True)` returns",
}


def foreign_pages(path: Path) -> Iterator[Path]:
    """The pages of other families that a page of `ops/` imports, for the type checker alone, too; or all of `ops`."""
    pages = {house.page_of_import(imported) for imported in house.imports(path)}
    yield from (page for page in pages if page and family(page) not in (None, family(path)))
    yield from pages & {OPS / "__init__.py", OPS / "all.py", PACKAGE / "__init__.py"}


@pytest.mark.parametrize("name", [*FAMILIES, "hall"])
def test_a_family_takes_of_others_only_what_programs_call(name):
    pages = HALL if name == "hall" else house.sources(OPS / name)
    allowed = programs_call() | set(ALSO_SEEN)
    assert [
        f"{short(path)} ← {short(page)}" for path in pages for page in foreign_pages(path) if page not in allowed
    ] == []


def test_what_a_family_takes_of_others_is_defined_there_and_public():
    """Not a kernel or a private name that a page of functions has merely imported or hides."""
    taken = {
        (short(path), imported)
        for path in house.sources(OPS)
        for imported in house.imports(path)
        if (page := house.page_of_import(imported)) in programs_call() - {None}
        and family(page) != family(path)
        and house.page(imported) is None  # a name, not the page itself
        and (imported.rpartition(".")[2].startswith("_") or imported.rpartition(".")[2] not in house.top_names(page))
    }
    assert taken == set()


# A kernel can also be had by the name of its op.
KERNELS_BY_NAME = {
    "nn/fused.py": "a fused op runs the kernels of the ops that it replaces",
    "variables/scatter_ops.py": "a resource's GatherNd is the GatherNd of its value",
}


def test_kernels_of_other_ops_are_asked_for_by_name_in_few_pages():
    asks = re.compile(r"op_registry\.get\([^()]*(?:\(\))?\)\.(?:bind|kernel)\b")
    assert {short(path) for path in house.sources(OPS) if family(path) and asks.search(path.read_text())} == {
        *KERNELS_BY_NAME
    }


def test_what_is_also_seen_is_imported_and_in_no_namespace():
    needed = {page for path in house.sources(OPS) for page in foreign_pages(path)}
    assert set(ALSO_SEEN) <= needed - programs_call()


@pytest.mark.parametrize("name", FAMILIES)
def test_what_programs_call_is_no_page_of_ops(name):
    assert [short(page) for page in programs_call_of(name) if holds_ops(page)] == []


@pytest.mark.parametrize("name", FAMILIES)
def test_contents_of_a_family_begin_with_what_programs_call(name):
    contents = house.ast.get_docstring(house.tree(OPS / name / "__init__.py"))
    stated = re.search(r"^Programs: (.*?)\.$", contents, re.DOTALL | re.MULTILINE)
    named = re.findall(r"`(\w+)`", stated[1]) if stated else []
    assert sorted(named) == [page.stem for page in programs_call_of(name)]


def test_the_modules_of_ops_in_a_family_end_in_ops_or_none_does():
    ends = {name: {p.stem.endswith("_ops") for p in house.sources(OPS / name) if holds_ops(p)} for name in FAMILIES}
    assert [name for name, found in ends.items() if len(found) > 1] == ["datasets"]  # `iterator` is in `data/`
    assert [short(path) for path in sorted(OPS.glob("*/*_ops.py")) if not holds_ops(path)] == []


# ---- resources ----

RESOURCE_CALLS = {"found_in_step", "handle_in_step", "lookup_or_create", "new_or_shared", "resource_of"}
BESIDE_ITS_OPS = {"SparseTensorsMap": "sparse/transport_ops.py"}  # of 25 lines, so without a page of its own


def resources(path: Path) -> Iterator[tuple[str, Path]]:
    """The classes, and where they are defined, of the resources that the ops of a page make and look up."""
    own = {node.name: path for node in house.tree(path).body if isinstance(node, house.ast.ClassDef)}
    known = {name.rpartition(".")[2]: house.page_of_import(name) for name in house.imports_when_loaded(path)} | own
    given = [arg for call in house.calls(path) if house.called(call) in RESOURCE_CALLS for arg in call.args]
    names = {arg.id for arg in given if isinstance(arg, house.ast.Name)}
    yield from ((name, known[name]) for name in names & set(known) if re.match("[A-Z]+[a-z]", name))


def test_the_class_of_a_resource_is_in_a_page_of_state():
    found = {name: page for path in house.sources(OPS) if family(path) for name, page in resources(path)}
    stray = {name: short(page) for name, page in found.items() if not re.match("state|shared_|cell", page.stem)}
    assert len(found) > 8 and stray == BESIDE_ITS_OPS


# ---- what is loaded ----


@cache
def registering() -> set[str]:
    """The functions of the lower rooms that add to a registry."""
    functions = house.defined(PACKAGE / "base") | house.defined(PACKAGE / "graph")
    return {name for name in functions if name.lower().startswith("register")} | {"override_operator"}


def registers(path: Path) -> bool:
    """Whether a page that is loaded adds ops, gradients, conversions, operators or hooks, or calls what adds ops."""
    imported = {name.rpartition(".")[2]: house.page_of_import(name) for name in house.imports_when_loaded(path)}
    helpers = {name for name, page in imported.items() if page and page.is_relative_to(OPS) and holds_ops(page)}
    called = {house.called(call) for call in house.calls_when_loaded(path)}
    return holds_ops(path) or bool(called & (registering() | helpers)) or any(house.hooks(path))


def test_all_loads_the_pages_that_register_something():
    loaded = {house.page_of_import(name) for name in house.imports_when_loaded(OPS / "all.py")} - {None}
    assert sorted(map(short, loaded)) == [short(path) for path in sorted(house.sources(OPS)) if registers(path)]


def test_a_page_that_is_not_loaded_yet_registers_nothing():
    """The registries themselves say so, whatever way `registers` does not see."""
    pages = [".".join(path.relative_to(house.ROOT).with_suffix("").parts) for path in house.sources(OPS)]
    code = (
        "import dtflab, importlib, sys\n"
        "from dtflab.base.nest import _composites\n"
        "from dtflab.graph import convert, fetches, gradients, op_registry, proto_functions\n"
        "registries = (op_registry._registry, gradients._registered, convert._conversions, fetches._expansions,\n"
        "              proto_functions._registered, _composites)\n"
        "for page in sys.argv[1:]:\n"
        "    before = [*map(len, registries)]\n"
        "    importlib.import_module(page)\n"
        "    if before != [*map(len, registries)]: print(page)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *pages], cwd=house.ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# ---- pages ----


@pytest.mark.parametrize("name", FAMILIES)
def test_pages_of_a_family_are_of_60_to_300_lines(name):
    lengths = {house.name(path): len(path.read_text().splitlines()) for path in house.sources(OPS / name)}
    pages = {page: lines for page, lines in lengths.items() if not page.endswith(("__init__.py", "/functions.py"))}
    assert {page: lines for page, lines in pages.items() if not 60 <= lines <= 300} == {}


def test_pages_of_the_hall_and_functions_end():
    limits = {**dict.fromkeys(HALL, 300), **dict.fromkeys(OPS.glob("*/functions.py"), 620)}
    lengths = {path: len(path.read_text().splitlines()) for path in limits}
    assert {house.name(path): lines for path, lines in lengths.items() if lines > limits[path]} == {}


def test_no_two_pages_of_a_folder_differ_by_a_plural():
    pages = {path.with_suffix("") for path in house.sources()}
    assert [house.name(page) for page in pages if page.with_name(f"{page.name}s") in pages] == []


def test_no_page_and_no_family_is_named_like_a_module_of_python():
    pages = [path for room in ("base", "ops") for path in house.sources(PACKAGE / room)]
    assert [house.name(path) for path in pages if path.stem in sys.stdlib_module_names] == []
    assert {path.parent.name for path in pages if path.parent.name in sys.stdlib_module_names} == {"math"}


def test_the_engines_of_the_simulator_know_none_of_the_questions():
    folders = {path.parent.name for path in (PACKAGE / "sim").glob("*/__init__.py")}
    questions = {"estimates", "predictions", "what_ifs"}
    assert folders >= {"engine", *questions}
    for path in house.sources(PACKAGE / "sim" / "engine"):
        known = {name.split(".")[2] for name in house.imports_when_run(path) if name.startswith("dtflab.sim.")}
        assert known & questions == set(), path


def test_the_layout_of_pictures_knows_nothing_of_the_rest_of_dtflab():
    layout = house.sources(PACKAGE / "viz" / "layout")
    imported = [name for path in layout for name in house.imports(path) if name.startswith("dtflab")]
    assert imported and [name for name in imported if not name.startswith("dtflab.viz.layout.")] == []


# ---- circles ----


def circles(room: str, unit: Callable[[Path], Path]) -> list[list[str]]:
    """The circles of imports among the units of a room: when modules load and later, in functions and on demand.

    Imports for types alone don't count.
    """
    graph = nx.DiGraph()
    for path in house.sources(PACKAGE / room):
        for imported in [*house.imports_when_run(path), *house.imports_on_demand(path)]:
            page = house.page_of_import(imported)
            if page is not None and page.is_relative_to(PACKAGE / room) and unit(page) != unit(path):
                graph.add_edge(house.name(unit(path)), house.name(unit(page)))
    return [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1]


@pytest.mark.parametrize("room", sorted(house.order().level))
def test_no_circle_of_imports_inside_a_room(room):
    assert circles(room, lambda page: page) == []


@pytest.mark.parametrize("room", sorted(set(house.order().level) - {"ops"}))
def test_no_circle_of_imports_between_the_folders_of_a_room(room):
    """A folder is one unit, and so is a file outside the folders. Families of ops may call the functions of others."""
    depth = len((PACKAGE / room).parts) + 1
    assert circles(room, lambda page: Path(*page.parts[:depth])) == []
