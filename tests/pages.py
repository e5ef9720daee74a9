"""Reads Markdown pages and notebooks as data, for the tests of the docs: links, headings, mentions of files."""

from __future__ import annotations

import ast
import fnmatch
import io
import json
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests import house

# Programs of a reader's own, in examples.
EXAMPLES = {"train.py", "script.py", "more.py", "ada/ex01_placement.py", "ex01_placement/ada.py", "simple_client.py"}
EXAMPLES |= {"file.py", "name.py", "program.py", "handed_in", "COURSE/source/exNN_topic"}
EXAMPLES |= {
    "solutions/exNN_topic.py",
    "exNN_topic.py",
    "checks/topic.py",
    "dtflab/grading/checks/topic.py",
    "solutions/wrong/topic/q1.py",
    "tests/grading/answers/topic/q1.py",
}
_QUOTED = re.compile(r"`([^`\n]+)`")
_FENCED = re.compile(r"^ *```.*\n((?:(?! *```).*\n)*)", re.M)
_PYTHON = re.compile(r"(?<![\w/*….-])[\w/*.-]*[\w*]\.py\b(?!\.)")
_MARKDOWN = re.compile(r"(?<![\w/*….-])[\w/*-]*[\w*]\.md\b(?!\.)")
_FOLDER = re.compile(r"(?<![\w/*….<>{}$~-])[\w*.-]+(?:/[\w*.-]+)*/(?![\w*<{…])")
_MAKE = re.compile(r"^(?:[A-Z]+=\S+ )*make ([a-z][\w-]*)")
_BENCH = re.compile(r"(?:python -m benchmarks(?:\.(\w+))?|make bench(?:-(gpu))?\s.*?ARGS=|`ARGS=)([^`\n]*)")
_ROOMS = "|".join(sorted(path.parent.name for path in house.PACKAGE.glob("*/__init__.py")))
_IN_A_ROOM = re.compile(
    rf"(?<![\w/.-])((?:{_ROOMS})/(?!q\d)[a-z_/0-9]*[a-z_0-9])(?![\w./*(])"
)  # `data/q1` is a question


def pages() -> list[Path]:
    """The Markdown that people read, wherever it lies in the repository."""
    return [path for path in house.tracked_files() if path.suffix == ".md" and "protos" not in path.parts]


def text_of(page: Path) -> str:
    """A page's Markdown without its code blocks; of a notebook that of its cells of text."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.M | re.S)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors `#…` of a page: its headings, as GitHub and JupyterLab write them."""
    headings = re.findall(r"^#+ +(.*?) *$", text_of(page), re.M)
    github = {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", one).lower()).replace(" ", "-") for one in headings}
    return frozenset(github | {one.replace(" ", "-") for one in headings})


def dead_links(page: Path) -> Iterator[str]:
    """Links of a page that lead to no file, or to a heading that its file does not have, or have no target at all."""
    for link in _links(text_of(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"{page.name}: {link}"


def _links(text: str) -> Iterator[str]:
    """The targets inside a page or repository of `[text](target)`, `[text][label]` and `<a href="target">`.

    A label without a target is given as it stands.
    """
    written = re.sub(r"`[^`\n]*`", "", text)
    targets = {label.lower(): target for label, target in re.findall(r"^ *\[([^\]\n]+)\]: *<?([^\s>]+)", written, re.M)}
    used = re.findall(r"\[([^\[\]\n]+)\]\[([^\[\]\n]*)\]", written)
    found = [*targets.values(), *(f"[{a}][{b}]" for a, b in used if (b or a).lower() not in targets)]
    found += re.findall(r"\]\(<?([^)\s>]+)", text) + re.findall(r"""\b(?:href|src)=["']([^"']+)""", written)
    return (link for link in found if not re.match(r"https?:|mailto:|data:", link))


def mentioned(text: str) -> Iterator[str]:
    """The `name.py` in backticks, with what stands before it: `sim/what_ifs/what_if.py`, `catalogue_*.py`."""
    for quoted in _QUOTED.findall(text):
        yield from _PYTHON.findall(quoted)


def unknown_names(page: Path) -> list[str]:
    """The names in a page that the repository does not have.

    These are Python files in backticks, Markdown files anywhere, folders (`sim/models/`) and targets (`make test`).
    """
    text = page.read_text(encoding="utf-8")
    quoted = _QUOTED.findall(text)
    prose = re.sub(r"\]\([^)]*\)|https?:\S+", "]", text_of(page))
    folders = {name.rstrip("/") for one in quoted for name in _FOLDER.findall(one)} - EXAMPLES
    typed = [line.strip() for block in _FENCED.findall(text) for line in block.splitlines()]
    made = {target for one in quoted + typed for target in _MAKE.findall(one)}
    there = re.findall(r"^([a-z-]+):", (house.ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    unknown = unknown_files([*mentioned(text), *_MARKDOWN.findall(prose)])
    unknown += sorted(f"{name}/" for name in folders if not fnmatch.filter(_names_of_folders(), name))
    return unknown + sorted(f"make {target}" for target in made - {*there})


def unknown_flags(page: Path) -> list[str]:
    """The flags that a page gives to a benchmark that has no such flag; `ARGS=--flag` alone is for `make bench`."""
    folder = house.ROOT / "benchmarks"
    unknown = []
    for module, gpu, typed in _BENCH.findall(page.read_text(encoding="utf-8")):
        files = f"{module or gpu or '__main__'}.py", "measured.py"
        code = "".join((folder / file).read_text(encoding="utf-8") for file in files)
        unknown += [flag for flag in re.findall(r"(?<!\S)--[\w-]+", typed) if f'"{flag}"' not in code]
    return unknown


def unknown_in_prose(code: str) -> list[str]:
    """Files that docstrings and comments name and the repository does not have.

    What a docstring stands for, or has as its source, are others' files. `room/file` without `.py` names no file.
    """
    found: set[str] = set()
    for text in _prose(code):
        others = " ".join(re.findall(r"[Ss]tands? for.*?(?:[;.]\s|\Z)|Sources?: .*?(?:\n\n|\Z)", text, re.S))
        found |= {name for name in unknown_files(_PYTHON.findall(text)) if name not in _PYTHON.findall(others)}
        found |= {*unknown_files(_MARKDOWN.findall(text))}
        inside = {*_IN_A_ROOM.findall(text)} - {*_IN_A_ROOM.findall(others)}
        found |= {name for name in inside if not (house.PACKAGE / name).is_dir()}
    return sorted(found)


def _prose(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


def unknown_files(names: Iterable[str]) -> list[str]:
    """The mentioned files that the repository does not have. A name may begin at any folder."""
    return sorted(name for name in {*names} - EXAMPLES if not fnmatch.filter(_names_of_files(), name))


@cache
def _names_of_files() -> frozenset[str]:
    """Each file of the repository by all its names: `dtflab/sim/cli.py`, `sim/cli.py`, `cli.py`."""
    return _all_names(Path(house.name(path)) for path in house.tracked_files() if path.suffix in (".py", ".md"))


@cache
def _names_of_folders() -> frozenset[str]:
    return _all_names(Path(house.name(path)).parent for path in house.tracked_files())


def _all_names(paths: Iterable[Path]) -> frozenset[str]:
    parts = [path.parts[:end] for path in paths for end in range(1, len(path.parts) + 1)]
    return frozenset("/".join(one[i:]) for one in parts for i in range(len(one)))


def rows(page: Path, heading: str = "") -> list[list[str]]:
    """The cells of the tables below a heading, without heads; of the whole page if no heading is named."""
    text = page.read_text(encoding="utf-8")
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0] if heading else text
    tables = re.findall(r"^\|[ -]+\|.*\n((?:\|.*\n)+)", part, re.M)
    return [[cell.strip() for cell in row.strip("| \n").split(" | ")] for one in tables for row in one.splitlines()]
