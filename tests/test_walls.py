"""The walls inside rooms: what a family of ops may take from another one, and that nothing is imported in a circle."""

from __future__ import annotations

import sys
from pathlib import Path

import networkx as nx
import pytest

from tests import house
from tests.house import PACKAGE

OPS = PACKAGE / "ops"
FAMILIES = sorted(path.parent.name for path in OPS.glob("*/__init__.py"))


# ---- families of ops ----


def family(path: Path) -> str | None:
    return path.parent.name if path.parent.parent == OPS else None


def holds_ops(path: Path) -> bool:
    """Whether a page registers an op: `@op("…")`, or `op("…")(…)` in a loop over a table."""
    called = {house.called(call) for call in house.calls(path)}
    return "op" in called and any(name.endswith("op_registry.op") for name in house.imports_when_loaded(path))


def holds_state(path: Path) -> bool:
    return path.stem == "state" or path.stem.endswith(("_state", "_resource"))


def public_functions() -> dict[Path, set[str]]:
    """By page of `ops/`: what the namespaces of programs take from it."""
    found: dict[Path, set[str]] = {}
    for namespace in [PACKAGE / "__init__.py", *house.sources(PACKAGE / "api")]:
        for name in house.imports(house.tree(namespace)):
            module, _, what = name.rpartition(".")
            if (page := house.page(module)) is not None and family(page):
                found.setdefault(page, set()).add(what)
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_takes_functions_of_others_not_their_kernels_or_state(name):
    wrong = []
    for path in house.sources(OPS / name):
        pages = {house.page_of_import(imported) for imported in house.imports(house.tree(path))}
        others = [page for page in pages if page and family(page) not in (None, name)]
        wrong += [f"{house.name(path)} ← {house.name(page)}" for page in others if holds_ops(page) or holds_state(page)]
    assert sorted(wrong) == []


@pytest.mark.parametrize("name", FAMILIES)
def test_what_programs_call_is_no_page_of_ops(name):
    public = {page: names for page, names in public_functions().items() if family(page) == name}
    assert {house.name(page): names for page, names in public.items() if holds_ops(page)} == {}


@pytest.mark.parametrize("name", FAMILIES)
def test_pages_of_a_family_are_of_60_to_300_lines(name):
    lengths = {house.name(path): len(path.read_text().splitlines()) for path in house.sources(OPS / name)}
    pages = {page: lines for page, lines in lengths.items() if not page.endswith(("__init__.py", "/functions.py"))}
    assert {page: lines for page, lines in pages.items() if not 60 <= lines <= 300} == {}


def test_no_page_is_named_like_a_module_of_python():
    pages = [path for room in ("base", "ops") for path in house.sources(PACKAGE / room)]
    assert [house.name(path) for path in pages if path.stem in sys.stdlib_module_names] == []


def test_the_engines_of_the_simulator_know_none_of_the_questions():
    for path in house.sources(PACKAGE / "sim" / "engine"):
        questions = {f"dtflab.sim.{question}" for question in ("estimates", "predictions", "what_ifs")}
        assert [name for name in house.imports_when_run(path) if name.startswith((*questions,))] == [], path


# ---- circles ----


@pytest.mark.parametrize("room", sorted(house.order().level))
def test_no_circle_of_imports_inside_a_room(room):
    """Neither when the modules load nor through imports in functions; those for the type checker alone don't count."""
    graph = nx.DiGraph()
    for path in house.sources(PACKAGE / room):
        for imported in house.imports_when_run(path):
            page = house.page_of_import(imported)
            if page is not None and page != path and page.is_relative_to(PACKAGE / room):
                graph.add_edge(house.name(path), house.name(page))
    circles = [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1]
    assert circles == []
