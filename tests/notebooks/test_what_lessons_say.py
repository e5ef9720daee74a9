"""What the text of a lesson says is what its cells show: numbers and names that a reader is told to look for."""

from __future__ import annotations

import re
from pathlib import Path

import nbclient
import nbformat
import pytest

from tests.house import ROOT

# Of each lesson: what its text says, and what must then stand in the outputs.
SAID = {
    "01_placement": [
        ("`c` ran on `GPU:0`", r"device:GPU:0 +1  c\n"),
        ("`c.device` stays empty", r"c to ''"),
        ("all 20 products with their 21 constants are on the first card", r"GPU:0 has 41 ops, GPU:1 has 0"),
        ("`overridden` is on task 2 and on a CPU", r"overridden +'/job:worker/task:2/device:CPU:0'"),
        ("`other_job` still has task 1", r"other_job +'/job:ps/task:1'"),
        ("why is `weights0/read` on `GPU:0`?", r"GPU:0 +4  weights0, weights0/read"),
        ("Look at the row `VariableV2 int32`", r"VariableV2 int32 +1 op placed here +no kernel +no kernel"),
        ("The *placer* refused", r"Cannot assign a device for operation i"),
        ("`3.0` in place of `3` is often the cure", r"i = 3\.0, on .*GPU:0"),
        ("goes to a device that can run it", r"i +on CPU:0: no GPU kernel(.|\n)*far +on GPU:0: there is no /gpu:7"),
    ],
    "02_gpu_memory": [
        ("`failed to allocate 3.66G … CUDA_ERROR_OUT_OF_MEMORY`", r"failed to allocate 3\.66G"),
        ("Each sees two GPUs", r"I see 2 GPUs"),
        ("1,677 MiB of each card", r"1,677 MiB"),
        ("3 × 0.4 is more than 1: the third one fails", r"failed to allocate 1\.60G"),
        ("Ann holds 680 MiB, of which her tensors\nnow use 20", r"ann\S* of \S+ \(\d+\) +680 MiB +20\.0 MiB"),
        ("Bob's program asked for a large piece, then for smaller and smaller ones", r"512\.00M(.|\n)*302\.33M"),
        ("with 4,096 rows the peak was\n33 MiB", r"peak 33\.3 MiB"),
        ("doubled until it does not fit", r"8,192 rows fit(.|\n)*16,384 rows: OOM"),
        ("`x` is given away but not needed", r"\*{9,}x+"),
    ],
    "03_parallel_execution": [
        ("`A`, `B` and `C` are ready from the start", r"step, not begun\nready next: A, B, C,"),
        ("`D` and `E` both went from 1 to 0", r"after set 1\nready next: send A, send B, D, E\n"),
        ("yet they wait until `b` has finished", r"set 3: b\nset 4: x y\nset 5: z\n"),
        ("each makes a table of\n16 MiB", r"peak 112 MiB"),
        ("less than a third of the memory", r"peak 32\.0 MiB"),
        ("a program that fails and one that runs", r"False: OOM(.|\n)*True: \d"),
    ],
}


def outputs(lesson: str, folder: Path) -> str:
    """All that the cells of a lesson print and show, run in a folder, as text."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": folder}}).execute()
    found = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in found)


def text(lesson: str) -> str:
    cells = nbformat.read(ROOT / "notebooks" / f"{lesson}.ipynb", as_version=4).cells
    return "\n".join(cell.source for cell in cells)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("lesson", SAID)
def test_what_is_said_is_shown(lesson, tmp_path):
    shown = outputs(lesson, tmp_path)
    assert [said for said, pattern in SAID[lesson] if not re.search(pattern, shown)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\((\.\.?/[^)]+)\)", text(path.stem))
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("lesson", SAID)
def test_it_is_still_said(lesson):
    lines = " ".join(text(lesson).split())
    assert [said for said, _ in SAID[lesson] if " ".join(said.split()) not in lines] == []
