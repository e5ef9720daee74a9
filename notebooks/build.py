"""Writes the notebooks from the form that people edit, diff and lint: Python files in percent format.

    python notebooks/build.py                  notebooks/*.ipynb from notebooks/src, exercises/*.ipynb from solutions
    python notebooks/build.py --check          compare only; exit status 1 and the names of what is stale
    python notebooks/build.py --nbgrader DIR   DIR/source/EXERCISE, with the solution: for generate_assignment;
                                               --checks FOLDER reserves the points of a teacher's hidden checks

`# %% [markdown]` opens a text cell, `# %%` a code cell, `# %x` is a magic. From solutions, the exercises are made by
`dtflab.grading.sources`. The rule: the same source gives the same bytes. jupytext invents new cell ids each time, so
they are set here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jupytext
import nbformat

from dtflab.grading.catalogue import find, load_folder
from dtflab.grading.hidden_marks import task_cell
from dtflab.grading.sources import cell_metadata, student_version, without_letters
from dtflab.grading.submissions import asked

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FOLDED = '<details style="margin-bottom:1em">'  # or the next paragraph looks like a part of it
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def lesson(source: Path) -> Any:
    """The notebook that `source` describes, without outputs."""
    return _notebook(source.read_text(encoding="utf-8"), source.stem)


def exercise(source: Path, solved: bool = False) -> Any:
    """The exercise of a solution, with nbgrader's metadata; `solved` leaves the solution in it."""
    text = source.read_text(encoding="utf-8")
    document = _notebook(text if solved else student_version(text), source.stem)
    with_solution = _code(_notebook(text, source.stem))
    for cell, metadata in zip(_code(document), cell_metadata([cell.source for cell in with_solution])):
        cell.metadata.update(metadata)
    return document


def _code(document: Any) -> list[Any]:
    return [cell for cell in document.cells if cell.cell_type == "code"]


def _notebook(text: str, name: str) -> Any:
    document = jupytext.reads(text.replace("  # fmt: skip\n", "\n"), fmt="py:percent")  # a note to ruff alone
    document.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for number, cell in enumerate(document.cells):
        cell.id = f"{name.partition('_')[0]}-{number:02d}"
        cell.metadata.pop("lines_to_next_cell", None)  # jupytext's own layout notes
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("<details>", FOLDED)
    document.nbformat, document.nbformat_minor = 4, 5
    return document


def text_of(document: Any) -> str:
    """The notebook as its file holds it."""
    nbformat.validate(document)
    return nbformat.writes(document) + "\n"


def built() -> Iterator[tuple[Path, str]]:
    """Every notebook of the repository and its text."""
    for source in sorted((HERE / "src").rglob("*.py")):
        yield (HERE / source.relative_to(HERE / "src")).with_suffix(".ipynb"), text_of(lesson(source))
    for source in sorted((ROOT / "solutions").glob("ex*.py")):
        yield ROOT / "exercises" / f"{source.stem}.ipynb", text_of(exercise(source))


def write_nbgrader(folder: Path, checks: Path | None = None) -> None:
    """An assignment for each exercise, as nbgrader's instructors keep them: it cuts out solutions, but no letters.

    For questions to which `checks` adds some, a cell at the end reserves their points.
    """
    if checks is not None:
        load_folder(checks)
    for source in sorted((ROOT / "solutions").glob("ex*.py")):
        document = exercise(source, solved=True)
        for cell in _code(document):
            cell.source = without_letters(cell.source)
        document.cells += _reserved(document)
        path = folder / "source" / source.stem / f"{source.stem}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(document), encoding="utf-8")
        print(f"{path}: written")


def _reserved(document: Any) -> list[Any]:
    """A cell for each question of a notebook that has hidden checks."""
    found = []
    for question in map(find, asked([cell.source for cell in _code(document)])):
        if question.part(hidden=True).checks:
            text, metadata = task_cell(question)
            found.append(nbformat.v4.new_markdown_cell(text, metadata=metadata, id=metadata["nbgrader"]["grade_id"]))
    return found


def write(check: bool) -> bool:
    """Write what is stale, or only name it; True if something is wrong."""
    texts = dict(built())
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    folders = (HERE, HERE / "demos", ROOT / "exercises")
    orphans = [path for folder in folders for path in folder.glob("*.ipynb") if path not in texts]
    for path in orphans:
        print(f"{path.name}: has no source in notebooks/src or solutions")
    for path in stale:
        if not check:
            path.write_text(texts[path], encoding="utf-8")
        print(f"{path.name}: {'stale, run `make notebooks`' if check else 'written'}")
    return bool(orphans or (check and stale))


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the notebooks and exercises from their Python sources")
    parser.add_argument("--check", action="store_true", help="compare only")
    parser.add_argument("--nbgrader", metavar="DIR", type=Path, help="write the solved exercises as nbgrader's source")
    parser.add_argument("--checks", metavar="FOLDER", type=Path, help="with --nbgrader: your own checks")
    args = parser.parse_args()
    if args.nbgrader is not None:
        write_nbgrader(args.nbgrader, args.checks)
        return 0
    return write(args.check)


if __name__ == "__main__":
    sys.exit(main())
