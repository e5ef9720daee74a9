"""Runs every lesson and demo, and writes what a reader would see: a page each, and an index with the seconds they took.

    python notebooks/gallery.py DIR [NAME ...]      all of them, or those named: 01_placement race

Exit status 1 if a cell failed; its page shows the error. The committed notebooks carry no outputs: here they are.
"""

from __future__ import annotations

import argparse
import html
import sys
import time
from pathlib import Path
from typing import NamedTuple

import nbclient
import nbformat

from dtflab.notebook import export

HERE = Path(__file__).resolve().parent
LIMIT = 300  # seconds for a cell
_INDEX = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>The course</title>
<style>body{{font:16px/1.6 system-ui,sans-serif;max-width:60em;margin:3em auto;padding:0 1em}}
td{{padding:.4em 1.2em .4em 0;vertical-align:top}}td:last-child{{text-align:right;white-space:nowrap}}</style>
<h1>The course, as it runs</h1><table>
{rows}
</table></html>
"""


class Page(NamedTuple):
    """A notebook that was run: its title and question, how long it took, what failed."""

    name: str
    title: str
    question: str
    seconds: float
    errors: list[str]


def run(source: Path, folder: Path) -> Page:
    """Run a notebook in a kernel of its own, and write `folder/NAME.html`."""
    notebook = nbformat.read(source, as_version=4)
    began = time.perf_counter()
    where = {"metadata": {"path": str(folder)}}  # what a lesson writes stays there
    nbclient.NotebookClient(notebook, timeout=LIMIT, allow_errors=True, resources=where).execute()
    seconds = time.perf_counter() - began
    (folder / f"{source.stem}.html").write_text(export.html(notebook, source), encoding="utf-8")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    errors = [f"{one.ename}: {one.evalue}" for one in outputs if one.output_type == "error"]
    return Page(source.stem, *_opening(notebook), seconds, errors)


def _opening(notebook: nbformat.NotebookNode) -> tuple[str, str]:
    """The title of a lesson, and its first paragraph, which is the question."""
    title, _, rest = notebook.cells[0].source.lstrip("# ").partition("\n")
    return title, rest.strip().split("\n\n")[0].strip("*").replace("\n", " ")


def index(pages: list[Page]) -> str:
    """A table of all pages."""
    rows = "\n".join(
        f'<tr><td><a href="{page.name}.html">{html.escape(page.title)}</a></td><td>{html.escape(page.question)}'
        f"{''.join(f'<br><b>{html.escape(error)}</b>' for error in page.errors)}</td><td>{page.seconds:.0f} s</td></tr>"
        for page in pages
    )
    return _INDEX.format(rows=rows)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the lessons and demos into a folder of pages")
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, for example 01_placement")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(HERE.glob("*.ipynb")) + sorted((HERE / "demos").glob("*.ipynb"))
    if unknown := set(args.names) - {source.stem for source in sources}:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(one.stem for one in sources)}")
    pages = []
    for source in sources:
        if not args.names or source.stem in args.names:
            pages.append(run(source, args.folder.resolve()))
            print(f"{pages[-1].name:26} {pages[-1].seconds:5.1f} s  {'; '.join(pages[-1].errors)}", flush=True)
    (args.folder / "index.html").write_text(index(pages), encoding="utf-8")
    print(f"{args.folder / 'index.html'}: {len(pages)} pages")
    return int(any(page.errors for page in pages))


if __name__ == "__main__":
    sys.exit(main())
