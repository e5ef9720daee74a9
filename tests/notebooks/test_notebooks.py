"""Every notebook is fresh, carries no outputs, leads somewhere, and one of the modules here runs it."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode, v4

from tests.house import ROOT
from tests.notebooks.lessons import complaints, not_drawn, text

FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.rglob("*.ipynb"))
ALL = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_there_is_a_welcome():
    assert "00_welcome" in [path.stem for path in NOTEBOOKS]


def test_notebooks_are_what_their_sources_say():
    build = [sys.executable, "notebooks/build.py", "--check"]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def stripped(tmp_path_factory):
    """The notebooks as the hook leaves them."""
    folder = tmp_path_factory.mktemp("stripped")
    copies = {path: Path(shutil.copy(path, folder)) for path in NOTEBOOKS}
    subprocess.run([sys.executable, "-m", "nbstripout", "--keep-id", *copies.values()], check=True)
    return copies


@ALL
def test_the_hook_that_strips_outputs_finds_nothing_to_strip(path, stripped):
    assert stripped[path].read_bytes() == path.read_bytes()


def runs_of(path: Path) -> list[str]:
    """The notebooks that a module of tests runs twice."""
    test = getattr(importlib.import_module(f"tests.notebooks.{path.stem}"), "test_runs_clean_twice_in_one_kernel", None)
    return [name for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize" for name in mark.args[1]]


def test_every_notebook_runs_twice():
    run = [name for path in Path(__file__).parent.glob("test_*.py") for name in runs_of(path)]
    assert sorted(run) == sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in NOTEBOOKS)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\((\.\.?/[^)]+)\)", text(path.stem))
    assert [link for link in links if not (path.parent / link).exists()] == []


OPENS = re.compile(r" *([-*+] |\d+\. |[|#<$]|```|$)")  # a list item, or what is not wrapped


def badly_wrapped(cell: str) -> Iterator[str]:
    """Lines of a text cell that are too long, indented in a paragraph, or end where the next word still fits."""
    lines = re.sub(r"```.*?```", "```", cell, flags=re.S).splitlines()
    yield from (line for line in lines if len(line) > 118 and not line.startswith("|"))
    for line, after in pairwise(lines):
        if line.strip() and line[0] not in "|#<$`" and not OPENS.match(after):
            if len(line) < 80 and len(line) + 1 + len(after.split()[0]) <= 118:
                yield line
            if after[0] == " " and not OPENS.match(line) and line[0] != " ":
                yield after


@pytest.mark.parametrize(
    "path", [*NOTEBOOKS, *sorted((ROOT / "exercises").glob("*.ipynb"))], ids=lambda path: path.stem
)
def test_text_is_wrapped(path):
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown"]
    assert [line for cell in cells for line in badly_wrapped(cell)] == []


def test_text_that_is_badly_wrapped_is_found():
    long = " ".join(["word"] * 30)
    assert list(badly_wrapped(f"# Title\n\n{long}\nso\n\n- one item\n- another\n\n| {long} |\n")) == [long]
    assert list(badly_wrapped(f"{long[:89]}\n   indented\n\n*word*.\nmore of it\n")) == ["   indented", "*word*."]


WIDEST, LONGEST = (
    88,
    25,
)  # of a code cell: characters next to the list of files at 1280 pixels, lines that are still read
COURSE = pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if path.stem != "11_claims"], ids=lambda path: path.stem
)


def too_large(cells: list[NotebookNode]) -> list[str]:
    """Lines of code that are too wide, and the first lines of cells that are too long."""
    code = [cell.source.splitlines() for cell in cells if cell.cell_type == "code"]
    return [line for cell in code for line in cell if len(line) > WIDEST] + [
        cell[0] for cell in code if len(cell) > LONGEST
    ]


@ALL
def test_code_is_small_enough_to_be_read(path):
    assert too_large(nbformat.read(path, as_version=4).cells) == []


FOLD = '<details style="margin-bottom:1em"><summary><b>'
FOLDED = f"{FOLD}Show why</b></summary>\n\n"


def unfolded(cells: list[NotebookNode]) -> Iterator[str]:
    """Questions whose answer stands in the open: the next text cell folds it, above its first heading."""
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    for asks, answers in pairwise(texts):
        asked = re.findall(r"\*\*Predict.*?\*\*", asks, re.S)
        if asked and FOLDED not in re.split(r"^#", answers, flags=re.M)[0]:
            yield asked[-1]
    for each in texts:
        opens = re.findall(f"^{FOLD}.*</summary>\n\n", each, re.M)
        if not len(opens) == each.count("<details") == each.count("\n\n</details>"):
            yield each


@COURSE
def test_answers_are_folded_away_until_they_are_asked_for(path):
    assert list(unfolded(nbformat.read(path, as_version=4).cells)) == []


def test_code_that_is_too_large_and_answers_in_the_open_are_found():
    cells = [
        v4.new_markdown_cell("# One\n\n**Predict: how\nmany?**"),
        v4.new_code_cell("x = 1\n" * 26 + "#" * 89),
        v4.new_markdown_cell(f"Four.\n\n## Two\n\n{FOLDED}Five.\n\n</details>"),
        v4.new_markdown_cell(f"{FOLDED}Six.\n</details>"),
    ]
    assert too_large(cells) == ["#" * 89, "x = 1"]
    assert list(unfolded(cells)) == ["**Predict: how\nmany?**", cells[3].source]


def test_complaints_are_found():
    outputs = [
        v4.new_output("stream", name="stdout", text="fine"),
        v4.new_output("stream", name="stderr", text="oh"),
        v4.new_output("error", ename="ValueError", evalue="no", traceback=[]),
    ]
    cells = [v4.new_markdown_cell("# Title"), v4.new_code_cell("# Figure 12-1\n…", outputs=outputs)]
    assert complaints(v4.new_notebook(cells=cells)) == ["cell 1: stderr: oh", "cell 1: ValueError: no"]
    assert not_drawn(v4.new_notebook(cells=cells)) == ["# Figure 12-1: no picture"]
