"""The pages' claims on the repository are true: links, files, a room's design page, the map, the glossary."""

from __future__ import annotations

import ast
import re

import pytest

from dtflab.cluster import link
from tests import house, pages
from tests.house import PACKAGE, ROOT

DESIGN = sorted((ROOT / "docs" / "design").glob("*.md"))
ROOMS = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
NO_ROOMS = {"course", "live", "repository", "wire"}  # design pages of something else


@pytest.mark.parametrize("page", pages.pages(), ids=house.name)
def test_links_lead_to_files_and_headings(page):
    assert list(pages.dead_links(page)) == []


@pytest.mark.parametrize("page", [page for page in pages.pages() if page.name != "plan.md"], ids=house.name)
def test_what_a_page_names_exists(page):
    assert pages.unknown_names(page) == []


@pytest.mark.parametrize("page", pages.pages(), ids=house.name)
def test_a_benchmark_has_the_flags_that_a_page_gives_it(page):
    assert pages.unknown_flags(page) == []


def test_files_that_docstrings_and_comments_name_exist():
    """Names have backticks or not; names of others' files stand where the docstring says what it stands for."""
    files = [path for path in house.tracked_files() if path.suffix == ".py" and not path.stem.endswith("_pb2")]
    unknown = {house.name(path): pages.unknown_in_prose(path.read_text(encoding="utf-8")) for path in files}
    assert {name: found for name, found in unknown.items() if found} == {}


def test_stale_names_in_docstrings_and_comments_are_found():
    docstring = "Stands for `core/a.cc`, `python/b` and `b.py`, `c.py`; rules are in `d.py`.\n\nMore (gone_1.py). "
    docstring += "See `sim/cli.py`."
    code = (
        f'"""{docstring}"""\nx = 1  # as `gone_2.py` (ops/gone_3) says, not `ops/gone_5`, base/events.py or gone_4.md\n'
    )
    code += 'def f():\n    """`b.py` is not known here."""\n'
    gone = ["gone_1.py", "gone_2.py", "gone_4.md", "ops/gone_3", "ops/gone_5"]
    assert pages.unknown_in_prose(code) == ["b.py", "d.py", *gone]


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# A `b.c`: d\n```\n# no heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text("[1](other.md#a-bc-d) [2](other.md#no-heading) [3](gone.md) [4](#x) ```[5](gone)```\n# X\n")
    assert list(pages.dead_links(page)) == ["page.md: other.md#no-heading", "page.md: gone.md", "page.md: gone"]
    page.write_text(
        '[1][a], [a], [a][], [2][b], `x[1][2]`, <a href="c">, <img src="other.md">, [3](d "e")\n\n[A]: f.md\n'
    )
    found = [link.removeprefix("page.md: ") for link in pages.dead_links(page)]
    assert sorted(found) == ["[2][b]", "c", "d", "f.md"]


def test_names_that_a_page_invents_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "`sim/cli.py`, `ops/*/state.py`, `python away/gone_1.py --x`, gone.py, `a.pyx`, `train.py`, `map.md`,\n"
        "docs/gone_2.md, [x](../gone_3.md), `dtflab/ops/gone_4/`, `sim/models/`, `tests/<room>/`, `make gone-5`,\n"
        "make sure, `make test`, `JOBS=2 make gone_6`\n```\nmake gone-7 # x\n```\n"
    )
    assert pages.unknown_names(page) == [
        "away/gone_1.py", "docs/gone_2.md", "dtflab/ops/gone_4/", "make gone-5", "make gone-7", "make gone_6",
    ]  # fmt: skip


def test_flags_that_a_benchmark_does_not_have_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "`make bench ARGS=--write`, `ARGS=--gone-1`, `make quick ARGS=--x`, `python -m benchmarks --only a --sizes`\n"
        "`python -m benchmarks.gpu --sizes 8 --only`\n```\nmake bench-gpu  # ARGS=--rounds\n```\n"
    )
    assert pages.unknown_flags(page) == ["--gone-1", "--sizes", "--only", "--rounds"]


def test_a_row_of_a_table_is_one_line():
    for page in pages.pages():
        for block in re.findall(r"^\|[ -]+\|.*\n(?:(?!<!--).+\n)*", pages.text_of(page), re.M):
            assert [line for line in block.splitlines() if not (line[0] == line.rstrip()[-1] == "|")] == [], page.name


LENGTHS = {  # lines of other things than dtflab's files, and limits that tests/test_house.py holds
    "CONTRIBUTING.md": ["25 lines"],
    "docs/defense.md": ["14,769 lines", "1,600 lines", "2,000 lines"],
    "docs/engineer.md": ["300 lines"],
    "docs/design/grading.md": ["200,000 lines"],
    "docs/design/runtime.md": ["1,600 code lines"],
    "docs/design/virtual.md": ["230,000 lines"],
}


def test_a_page_gives_no_length_of_a_file_that_nothing_holds():
    stable = [page for page in pages.pages() if page.name not in ("plan.md", "measured.md", "CHANGELOG.md")]
    found = {house.name(page): re.findall(r"(?<=\s)\d[\d,]+ (?:code )?lines\b", pages.text_of(page)) for page in stable}
    assert {name: lengths for name, lengths in found.items() if lengths} == LENGTHS


# ---- design pages ----


@pytest.mark.parametrize("room", ROOMS, ids=house.name)
def test_a_room_names_its_design_page(room):
    (page,) = re.findall(r"^Design: (\S+)$", ast.get_docstring(house.tree(room / "__init__.py")), re.M)
    assert ROOT / page in DESIGN
    assert f"../../{house.name(room)}/__init__.py" in (ROOT / page).read_text(encoding="utf-8"), "and it names the room"


@pytest.mark.parametrize("page", DESIGN, ids=house.name)
def test_a_design_page_is_short_and_says_where_it_stands(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150 and max(map(len, lines)) <= 160
    assert lines[2].startswith("Status: ") and any(line.startswith("Code: ") for line in lines)
    assert page.stem in {room.name for room in ROOMS} | NO_ROOMS


# ---- map and glossary ----

MAP, GLOSSARY = ROOT / "docs" / "map.md", ROOT / "docs" / "glossary.md"


@pytest.mark.parametrize("question, file, begin", pages.rows(MAP), ids=[row[0] for row in pages.rows(MAP)])
def test_what_the_map_names_is_there(question, file, begin):
    name, link = re.fullmatch(r"\[(.*)\]\((.*)\)", file).groups()
    path = (MAP.parent / link).resolve()
    assert path == PACKAGE / name and question.endswith("?")
    node = house.tree(path)
    for part in begin.strip("`").split("."):
        found = [child for child in node.body if getattr(child, "name", "") == part]
        assert found, f"{name} has no {begin}"
        node = found[0]


@pytest.mark.parametrize("word, file", [row[:2] for row in pages.rows(GLOSSARY)])
def test_words_of_the_glossary_are_in_use(word, file):
    text = (ROOT / file.strip("`")).read_text(encoding="utf-8")
    for one in re.sub(r" \(.*?\)", "", word).split(", "):
        assert re.search(one.replace(" ", r"[\s_]+"), text, re.I), f"{file} does not say {one!r}"


def test_frames_of_a_link_are_those_of_its_design():
    page = (ROOT / "docs" / "design" / "wire.md").read_text()
    rows = re.findall(r"^  \| (`[A-Z_`, ]+`) \|", page, re.MULTILINE)
    stated = re.findall(r"`(\w+)`", " ".join(rows))
    code = (ROOT / "dtflab" / "cluster" / "link.py").read_text()
    kinds = " ".join(re.findall(r"^\((_[\w, ]+)\) = range", code, re.MULTILINE))
    assert sorted(stated) == sorted(re.findall(r"\b_(\w+)", kinds))
    assert f"head of {link._FRAME.size} bytes" in page and f"{link._SHARED} is added to the kind" in page
