"""Each figure of the book's chapter is made by a cell of a lesson, and docs/figures.md says which."""

from __future__ import annotations

import runpy

from tests.house import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "figures_table.py"))
CELLS = SCRIPT["cells"]()


def test_all_eighteen_figures_are_there():
    assert sorted({figure for figure, _, _ in CELLS}) == list(range(1, 19)) == list(SCRIPT["FIGURES"])


def test_the_page_is_fresh():
    assert (ROOT / "docs" / "figures.md").read_text(encoding="utf-8") == SCRIPT["page"](), (
        "python docs/figures_table.py"
    )
