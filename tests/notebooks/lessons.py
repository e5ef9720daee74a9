"""Lessons and demos, each run once for all that is asked of it: all cells, and all cells again in the same kernel."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import nbformat
import pytest
from nbformat import NotebookNode, v4

from tests.house import ROOT
from tests.notebooks.kernels import execute

# Of each lesson: what must hold of its values when it has run.
HOLDS = {
    "09_model_parallelism": """
pairs = [(one, sliced), (one_cnn, two_cnn), (one_cnn, careless), (one_rnn, four_rnn)]
pairs += [(alone, flow) for flow in flows.values()]
assert all(np.allclose(a.value, b.value, rtol=1e-3, atol=1e-5) for a, b in pairs), "a cut changes where, not what"
assert np.allclose(measured, counted, atol=0.05)
""",
    "10_data_parallelism": """
assert free.steps > 10 * spare.steps > 10 * full.steps
assert spare.reaches(0.25) < full.reaches(0.25) < free.reaches(0.25)
assert abs(alone[-1, 2]) < 0.01 and abs(eight[-1, 2]) > 10
assert all(late[name] < late["nothing"] for name in late if name != "nothing")
assert max(late["lower rate"], late["scale"]) < min(late["drop"], late["warm-up"], late["larger batch"])
""",
}

Said = list[tuple[str, str]]  # a sentence, and the pattern of what is then shown


class Ran(NamedTuple):
    """The display of a notebook that runs twice."""

    name: str
    notebook: NotebookNode
    shown: str  # all that the cells print and show when they run for the first time, as text
    seconds: float


def run_twice(name: str, folder: Path) -> Ran:
    notebook = read(name)
    first = notebook.cells
    notebook.cells = first + read(name).cells + [v4.new_code_cell(HOLDS.get(name, "pass"))]
    began = time.perf_counter()
    execute(notebook, folder, allow_errors=True)
    seconds = time.perf_counter() - began
    outputs = [output for cell in notebook.cells[: len(first)] for output in cell.get("outputs", [])]
    return Ran(name, notebook, "".join(map(_as_text, outputs)), seconds)


def _as_text(output: NotebookNode) -> str:
    # A busy kernel sends a printed line in pieces, at times; what is shown has no line end of its own.
    return output.get("text") or f"\n{output.get('data', {}).get('text/plain', '')}\n"


def lessons(*names: str) -> pytest.MarkDecorator:
    """A test of each of these notebooks as it ran; tests of one module share the run."""
    return pytest.mark.parametrize("ran", names, indirect=True)


def checks_of(said: dict[str, Said], *others: str) -> tuple[Callable[..., None], ...]:
    """Tests of some lessons: they run clean twice (`others`, too), show what they say, and still say it."""

    @lessons(*others, *said)
    def runs_clean_twice(ran: Ran, record_property: Callable[[str, object], None]) -> None:
        record_property(f"{ran.name}, both runs", f"{ran.seconds:.0f} s")
        found = wrong(ran.notebook)
        assert found == [], "\n".join(found)

    @lessons(*said)
    def said_is_shown(ran: Ran) -> None:
        not_shown = [sentence for sentence, pattern in said[ran.name] if not re.search(pattern, ran.shown)]
        assert not_shown == [], "\n".join(not_shown)

    @pytest.mark.parametrize("lesson", said)
    def still_said(lesson: str) -> None:
        lines = " ".join(text(lesson).split())
        not_said = [sentence for sentence, _ in said[lesson] if " ".join(sentence.split()) not in lines]
        assert not_said == [], "\n".join(not_said)

    return runs_clean_twice, said_is_shown, still_said


def read(name: str) -> NotebookNode:
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)


def text(name: str) -> str:
    return "\n".join(cell.source for cell in read(name).cells)


def complaints(notebook: NotebookNode) -> list[str]:
    """The outputs that a reader should not see: errors, and words on stderr (these also cost points under nbgrader)."""
    found = []
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                found.append(f"cell {number}: {output.ename}: {output.evalue}")
            elif output.output_type == "stream" and output.name == "stderr":
                found.append(f"cell {number}: stderr: {output.text}")
    return found


def not_drawn(notebook: NotebookNode) -> list[str]:
    """Cells that say that they make a figure of the book (docs/figures.md), and show no picture."""
    found = []
    for cell in notebook.cells:
        first = cell.source.split("\n")[0]
        shown = [output.get("data", {}) for output in cell.get("outputs", [])]
        drawn = any("<svg" in data.get("text/html", "") or "image/png" in data for data in shown)
        found += [f"{first}: no picture"] if first.startswith("# Figure 12-") and not drawn else []
    return found


def wrong(notebook: NotebookNode) -> list[str]:
    """All of this, and cells that did not run."""
    not_run = [cell.source for cell in notebook.cells if cell.cell_type == "code" and not cell.execution_count]
    return complaints(notebook) + not_drawn(notebook) + not_run
