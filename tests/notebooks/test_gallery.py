"""The gallery: what a notebook shows when it is run, as pages, and what failed."""

from __future__ import annotations

import runpy

import nbformat
from nbformat import v4

from tests.house import ROOT

GALLERY = runpy.run_path(str(ROOT / "notebooks" / "gallery.py"))


def test_a_notebook_becomes_a_page_and_a_line_of_the_index(tmp_path):
    cells = [v4.new_markdown_cell("# Threads & tasks\n\n**Who waits\nfor whom?**"), v4.new_code_cell("6 * 7")]
    in_pieces = 'import sys\nfor piece in ("first ", "second"):\n    print(piece, end="")\n    sys.stdout.flush()'
    cells.append(v4.new_code_cell(in_pieces))
    nbformat.write(v4.new_notebook(cells=[*cells, v4.new_code_cell("1 / 0")]), tmp_path / "03_threads.ipynb")
    page = GALLERY["run"](tmp_path / "03_threads.ipynb", tmp_path)
    assert (page.title, page.question) == ("Threads & tasks", "Who waits for whom?")
    assert page.errors == ["ZeroDivisionError: division by zero"] and page.seconds > 0
    shown = (tmp_path / "03_threads.html").read_text(encoding="utf-8")
    assert "first second" in shown
    assert "42" in shown and "ZeroDivisionError" in shown
    index = GALLERY["index"]([page])
    assert '<a href="03_threads.html">Threads &amp; tasks</a>' in index and "division by zero" in index
