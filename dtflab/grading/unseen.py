"""Which files a submission must not see: a teacher's checks, the class, its marks, other submissions, solutions.

Folders are hidden whole, with what earlier gradings left in them. One that has Python or dtflab in it can't be: of that
folder the files are hidden whose names end like those of marks or submissions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dtflab.grading.isolation import can_hide
from dtflab.grading.submissions import Submission, same

_CODE, _MARKS = (".py", ".ipynb"), (".csv", ".json", ".html", ".journal", ".db")
# Of dtflab and of Python.
_OURS = (Path(__file__).parents[1], Path(sys.prefix), Path(sys.base_prefix))
_CLONE = Path(__file__).parents[2]  # of the repository, if dtflab runs from there
_SOLVED = ("solutions", "tests", ".git")
_LEVELS = 3  # of folders: `handed_in/ada/ex01/x.ipynb` is ada's


def unseen(
    checks: Iterable[Path], paths: Iterable[Path], submissions: Sequence[Submission], marks: Sequence[Path]
) -> tuple[Path, ...]:
    """The files and folders to hide; `marks` are the files of marks and the list of students."""
    named = (path for path in paths if path.is_dir())
    classes = {*named, *(folder for one in submissions for folder in (one.path.parent, _class_folder(one)))}
    kinds = (({*checks, *classes}, _CODE), ({path.parent for path in marks}, _MARKS))
    folders = [(folder.resolve(), endings) for some, endings in kinds for folder in some]
    whole = {folder for folder, _ in folders if can_hide(folder)}
    files = [path for folder, endings in folders if folder not in whole for path in _of_kind(folder, endings)]
    outermost = [folder for folder in whole if whole.isdisjoint(folder.parents)]
    handed_in = {Path(os.path.realpath(one.path)) for one in submissions}
    apart = (path for path in handed_in if whole.isdisjoint(path.parents) and _may_be_an_answer(path))
    solved = [_CLONE / name for name in _SOLVED if (_CLONE / "pyproject.toml").exists()]
    return (*outermost, *marks, *files, *apart, *solved)


def _may_be_an_answer(path: Path) -> bool:
    """False for what a program needs, as a library: a student may have handed in a link to it."""
    return path.suffix.lower() in _CODE and not any(path.is_relative_to(folder) for folder in _OURS)


def _above(path: Path) -> Sequence[Path]:
    """The folders in which a file is, not those to which it leads if a student has handed in a link."""
    folder = path.parent.resolve()
    return folder, *folder.parents


def _class_folder(submission: Submission) -> Path:
    """The folder of all students: the one that has the student's folder, or the file itself."""
    above = _above(submission.path)
    students = (folder.parent for folder in above[:_LEVELS] if same(folder.name) == submission.student)
    return next(students, above[0])


def _of_kind(folder: Path, endings: Sequence[str]) -> Iterator[Path]:
    return (path for path in folder.glob("*") if path.suffix.lower() in endings)
