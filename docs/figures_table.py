"""Writes docs/figures.md: for each figure of the book's chapter, the cell of a lesson that makes it from a real run.

`python docs/figures_table.py`. A cell says so itself, in its first line: `# Figure 12-5`. A test holds the page fresh,
and counts.
"""

from __future__ import annotations

import re
from pathlib import Path

import jupytext

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(__file__).with_name("figures.md")

# The subject of each figure of the chapter, in our words.
FIGURES = {
    1: "one graph, run by several devices at once",
    2: "what computes an operation on a GPU",
    3: "two programs, each with GPUs of its own",
    4: "two programs, each with a part of every GPU",
    5: "operations run as their inputs come, some at the same time",
    6: "a cluster: jobs, tasks, servers, clients",
    7: "resource containers: which clients share which variables",
    8: "a queue between those who load data and those who train",
    9: "reading records of files within the graph",
    10: "several readers at once",
    11: "a network per device",
    12: "replicas in one graph",
    13: "replicas in a graph each",
    14: "a fully connected net, split",
    15: "a net with local connections, split",
    16: "a deep recurrent net, a layer per device",
    17: "data parallelism: the same step on each replica, one set of variables",
    18: "gradients that are out of date when they arrive",
}
TOP = """# The chapter's figures, from real runs

The course follows a book's chapter on distributing TensorFlow (“Hands-On Machine Learning”, chapter 12). Each of its 18
figures is made here by a cell that runs. Written by `python docs/figures_table.py`.

| figure | what it is about | lesson | cell, in order of running |
| --- | --- | --- | --- |
"""


def cells() -> list[tuple[int, str, int]]:
    """(figure, lesson, number of the code cell) of each cell that says that it makes a figure."""
    found = []
    for source in sorted((ROOT / "notebooks" / "src").glob("*.py")):
        document = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
        code = [cell.source for cell in document.cells if cell.cell_type == "code"]
        for number, text in enumerate(code, 1):
            if match := re.match(r"# Figure 12-(\d+)$", text.split("\n")[0]):
                found.append((int(match[1]), source.stem, number))
    return sorted(found)


def page() -> str:
    """The whole page."""
    rows = [
        f"| 12-{figure} | {FIGURES[figure]} | [{lesson}](../notebooks/{lesson}.ipynb) | [{number}] |"
        for figure, lesson, number in cells()
    ]
    return TOP + "\n".join(rows) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
