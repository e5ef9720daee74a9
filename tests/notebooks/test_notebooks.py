"""Every notebook is fresh, carries no outputs, and runs through without an error or a word on stderr."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from tests.house import ROOT
from tests.notebooks.kernels import execute

pytestmark = pytest.mark.timeout(900)
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
ALL = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def run(*command: str | Path, **how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, **how)


def complaints(notebook: nbformat.NotebookNode) -> list[str]:
    """What a reader should not see: errors, and any word on stderr (it also costs points under nbgrader)."""
    found = []
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                found.append(f"cell {number}: {output.ename}: {output.evalue}")
            elif output.output_type == "stream" and output.name == "stderr":
                found.append(f"cell {number}: stderr: {output.text}")
    return found


def not_drawn(notebook: nbformat.NotebookNode) -> list[str]:
    """Cells that say that they make a figure of the book (docs/figures.md), and show no picture."""
    found = []
    for cell in notebook.cells:
        first = cell.source.split("\n")[0]
        shown = [output.get("data", {}) for output in cell.get("outputs", [])]
        drawn = any("<svg" in data.get("text/html", "") or "image/png" in data for data in shown)
        found += [f"{first}: no picture"] if first.startswith("# Figure 12-") and not drawn else []
    return found


def test_there_is_a_welcome():
    assert "00_welcome" in [path.stem for path in NOTEBOOKS]


def test_notebooks_are_what_their_sources_say():
    done = run("notebooks/build.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@ALL
def test_the_hook_that_strips_outputs_finds_nothing_to_strip(path):
    text = path.read_text(encoding="utf-8")
    assert run("-m", "nbstripout", "--keep-id", input=text).stdout == text


@ALL
def test_runs_clean_twice_in_one_kernel(path, tmp_path, record_property):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells += nbformat.read(path, as_version=4).cells
    began = time.perf_counter()
    execute(notebook, tmp_path, allow_errors=True)
    record_property(f"{path.stem}, both runs", f"{time.perf_counter() - began:.0f} s")
    assert complaints(notebook) + not_drawn(notebook) == []
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


def test_complaints_are_found():
    outputs = [
        v4.new_output("stream", name="stdout", text="fine"),
        v4.new_output("stream", name="stderr", text="oh"),
        v4.new_output("error", ename="ValueError", evalue="no", traceback=[]),
    ]
    cells = [v4.new_markdown_cell("# Title"), v4.new_code_cell("# Figure 12-1\n…", outputs=outputs)]
    assert complaints(v4.new_notebook(cells=cells)) == ["cell 1: stderr: oh", "cell 1: ValueError: no"]
    assert not_drawn(v4.new_notebook(cells=cells)) == ["# Figure 12-1: no picture"]
