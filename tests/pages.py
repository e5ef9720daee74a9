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
EXAMPLES |= {"file.py", "name.py", "program.py"}
EXAMPLES |= {
    "solutions/exNN_topic.py",
    "exNN_topic.py",
    "checks/topic.py",
    "dtflab/grading/checks/topic.py",
    "solutions/wrong/topic/q1.py",
}
_FILE = re.compile(r"(?<![\w/*….-])[\w/*.-]*[\w*]\.py\b(?!\.)")
_ROOMS = "|".join(sorted(path.parent.name for path in house.PACKAGE.glob("*/__init__.py")))
_IN_A_ROOM = re.compile(
    rf"(?<![\w/`.-])((?:{_ROOMS})/(?!q\d)[a-z_/0-9]*[a-z_0-9])(?![\w./*(])"
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
    """What `#…` may name in a page: its headings, as GitHub and JupyterLab write them."""
    headings = re.findall(r"^#+ +(.*?) *$", text_of(page), re.M)
    github = {re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", one).lower()).replace(" ", "-") for one in headings}
    return frozenset(github | {one.replace(" ", "-") for one in headings})


def dead_links(page: Path) -> Iterator[str]:
    """Links of a page that lead to no file, or to a heading that its file does not have."""
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", text_of(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield f"{page.name}: {link}"


def mentioned(text: str) -> Iterator[str]:
    """The `name.py` in backticks, with what stands before it: `sim/what_ifs/what_if.py`, `catalogue_*.py`."""
    for quoted in re.findall(r"`([^`\n]+)`", text):
        yield from _FILE.findall(quoted)


def unknown_in_prose(code: str) -> list[str]:
    """Files that docstrings and comments name and the repository does not have.

    What a docstring stands for, or has as its source, are others' files. `room/file` without `.py` names no file.
    """
    found: set[str] = set()
    for text in _prose(code):
        others = " ".join(re.findall(r"[Ss]tands? for.*?(?:[;.]\s|\Z)|Sources?: .*?(?:\n\n|\Z)", text, re.S))
        found |= {name for name in unknown_files(_FILE.findall(text)) if name not in _FILE.findall(others)}
        found |= {name for name in _IN_A_ROOM.findall(text) if not (house.PACKAGE / name).is_dir()}
    return sorted(found)


def _prose(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


def unknown_files(names: Iterable[str]) -> list[str]:
    """Those of the mentioned files that the repository does not have. A name may begin at any folder."""
    return sorted(name for name in {*names} - EXAMPLES if not fnmatch.filter(_names_of_files(), name))


@cache
def _names_of_files() -> frozenset[str]:
    """Each Python file of the repository by all its names: `dtflab/sim/cli.py`, `sim/cli.py`, `cli.py`."""
    found = (Path(house.name(path)).parts for path in house.tracked_files() if path.suffix == ".py")
    return frozenset("/".join(parts[i:]) for parts in found for i in range(len(parts)))


def rows(page: Path, heading: str = "") -> list[list[str]]:
    """The cells of the tables below a heading, without heads; of the whole page if no heading is named."""
    text = page.read_text(encoding="utf-8")
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0] if heading else text
    tables = re.findall(r"^\|[ -]+\|.*\n((?:\|.*\n)+)", part, re.M)
    return [[cell.strip() for cell in row.strip("| \n").split(" | ")] for one in tables for row in one.splitlines()]
