"""Writes `notebooks/*.ipynb` from `notebooks/src/*.py`, the form that people edit, diff and lint.

    python notebooks/build.py            write
    python notebooks/build.py --check    compare only; exit status 1 and the names of what is stale

The sources are in percent format: `# %% [markdown]` opens a text cell, `# %%` a code cell, `# %x` is a magic.
The rule: the same source gives the same bytes. jupytext invents new cell ids each time, so they are set here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import jupytext
import nbformat

HERE = Path(__file__).resolve().parent
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def notebook(source: Path) -> str:
    """The notebook that `source` describes, without outputs."""
    document = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
    document.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for number, cell in enumerate(document.cells):
        cell.id = f"{source.stem.partition('_')[0]}-{number:02d}"
        cell.metadata.pop("lines_to_next_cell", None)  # jupytext's own layout notes
    document.nbformat, document.nbformat_minor = 4, 5
    nbformat.validate(document)
    return nbformat.writes(document) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Build notebooks/*.ipynb from notebooks/src/*.py")
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    built = {HERE / f"{source.stem}.ipynb": notebook(source) for source in sorted((HERE / "src").glob("*.py"))}
    stale = [path for path, text in built.items() if not path.exists() or path.read_text("utf-8") != text]
    orphans = [path for path in HERE.glob("*.ipynb") if path not in built]
    for path in orphans:
        print(f"{path.name}: has no source in notebooks/src")
    for path in stale:
        if not check:
            path.write_text(built[path], encoding="utf-8")
        print(f"{path.name}: {'stale, run `make notebooks`' if check else 'written'}")
    return bool(orphans or (check and stale))


if __name__ == "__main__":
    sys.exit(main())
