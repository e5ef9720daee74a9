"""Which files a submission must not see: a teacher's checks, the class, its marks, other submissions.

Folders are hidden whole, with what earlier gradings left in them. One that has Python or dtflab in it can't be: of that
folder the files are hidden whose names end like those of marks or submissions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dtflab.grading.isolation import can_hide
from dtflab.grading.submissions import Submission, same

_CODE, _MARKS = (".py", ".ipynb"), (".csv", ".json", ".html", ".journal", ".db")
_LEVELS = 3  # of folders: `handed_in/ada/ex01/x.ipynb` is ada's


def unseen(
    checks: Iterable[Path], paths: Iterable[Path], submissions: Sequence[Submission], marks: Sequence[Path]
) -> tuple[Path, ...]:
    """The files and folders to hide; `marks` are the files of marks and the list of students."""
    handed_in = {*paths, *(folder for one in submissions for folder in (one.path.parent, _class_folder(one)))}
    kinds = (({*checks, *handed_in}, _CODE), ({path.parent for path in marks}, _MARKS))
    folders = [(folder.resolve(), endings) for some, endings in kinds for folder in some]
    whole = {folder for folder, _ in folders if can_hide(folder)}
    files = [path for folder, endings in folders if folder not in whole for path in _of_kind(folder, endings)]
    outermost = [folder for folder in whole if whole.isdisjoint(folder.parents)]
    return (*outermost, *marks, *files, *(one.path for one in submissions if whole.isdisjoint(_above(one.path))))


def _above(path: Path) -> Sequence[Path]:
    return path.resolve().parents


def _class_folder(submission: Submission) -> Path:
    """The folder of all students: the one that has the student's folder, or the file itself."""
    above = _above(submission.path)
    students = (folder.parent for folder in above[:_LEVELS] if same(folder.name) == submission.student)
    return next(students, above[0])


def _of_kind(folder: Path, endings: Sequence[str]) -> Iterator[Path]:
    return (path for path in folder.glob("*") if path.suffix.lower() in endings)
