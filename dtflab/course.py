"""`dtflab notebooks DIR`: the course, copied from the package into a folder.

A wheel holds the lessons, demos, exercises and docs in `dtflab/course_files/`, where `notebooks/wheel.py` puts them; a
checkout has them at its top. Rule: what is in the folder is its owner's work, and is never written over.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

FOLDER = "course_files"
_PACKAGE = Path(__file__).parent
ROOT = _PACKAGE / FOLDER if (_PACKAGE / FOLDER).is_dir() else _PACKAGE.parent
_PATTERNS = (
    *("notebooks/*.ipynb", "notebooks/demos/*.ipynb", "exercises/*.ipynb", "exercises/README.md"),
    *("docs/*.md", "docs/*/*.svg"),
)
_OURS = ("docs/engineer.md", "docs/gallery.md", "docs/glossary.md", "docs/map.md")  # of no use without the repository


def files(root: Path = ROOT) -> Iterator[Path]:
    """Where the files of the course are in a folder, relative to it."""
    for pattern in _PATTERNS:
        found = (path.relative_to(root) for path in sorted(root.glob(pattern)))
        yield from (path for path in found if path.as_posix() not in _OURS)


def exercises() -> dict[str, Path]:
    """Their files, by their names: `ex01_placement`, …"""
    return {path.stem: ROOT / path for path in files() if path.match("exercises/*.ipynb")}


def copy_course(folder: Path) -> tuple[list[Path], list[Path]]:
    """Copy the course into `folder`: the files that were written, and those that were there and differ (they stay)."""
    written, kept = [], []
    for path in files():
        text, target = (ROOT / path).read_bytes(), folder / path
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
            written.append(path)
        elif target.read_bytes() != text:
            kept.append(path)
    return written, kept


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `dtflab notebooks`."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to put them; made if it is not there")


def main(options: argparse.Namespace) -> None:
    """Copy, and say what was done and what comes next."""
    from dtflab.machine.console import show  # not above: a wheel's build runs this file before dtflab is there

    try:
        written, kept = copy_course(options.folder)
    except OSError as error:
        raise SystemExit(f"dtflab notebooks: {error.strerror}: {error.filename}") from None
    show(f"{len(written)} files written to {options.folder}")
    for path in kept:
        show(f"kept as it is: {options.folder / path} (move it away to get the shipped one)")
    # The folder, not a lesson: JupyterLab shows nothing above what it is given, so there would be no exercises.
    show(f"Next: jupyter lab {shlex.quote(str(options.folder))}, then open notebooks/00_welcome.ipynb in it")
