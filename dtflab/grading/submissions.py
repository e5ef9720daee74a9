"""Submissions: which files there are, whose they are, and the cells in them. Nothing is run here.

    FOLDER/ada.ipynb                           student ada, assignment FOLDER
    FOLDER/ada/ex01_placement.ipynb            student ada, assignment ex01_placement
    FOLDER/ada/ex01_placement/any.ipynb        the same; this is nbgrader's `submitted`

The name of one of the course's exercises is an assignment's, never a student's: `ada/ex01_placement.ipynb` is ada's
where only the file, or only the folder `ada`, is named, too. A copy's name counts as the name of what it is a copy of:
`ex01_placement-Copy1.ipynb`, as Jupyter calls it, `ex01_placement (1).ipynb`, as browsers do, `… - Copy`, `… - Kopie`,
`… copy 2`, `Copy of …`, as Windows, macOS and web drives do; a teacher's file with such a name counts as a copy if the
original is next to it in the student's folder. The course's whole folder may be handed in:
`ada/exercises/ex01_placement.ipynb` is ada's ex01_placement.

A file is a notebook or Python in percent format (`# %%` begins a cell, `# %x` is a magic).

Rule: what a notebook says about grading (metadata, outputs, marks) is not read. Its code is, and which questions it
asks; but one student's file does not decide what is asked: the questions of an assignment are those that more than half
of its files ask, so that a deleted cell loses its points, and an added one changes nothing for the others.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

_ASKS = re.compile(r"""\.grade\(\s*["']([\w/]+)["']|^\s*%dtf_grade\s+(\w+/\w+)""", re.MULTILINE)
_CELL = re.compile(r"^#[ \t]*%%(?:[ \t](.*))?$", re.MULTILINE)
_MAGIC = re.compile(r"^# ?((?:[\w, ]+ = )?%{1,2}[a-zA-Z].*)$")
_COPY = re.compile(r"^(?:Copy of |Kopie von )+(?=.)|(?<=.)(?:-Copy\d+| - (?:Copy|Kopie)| copy(?: \d+)?| ?\(\d+\))+$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_CONFLICT = re.compile(r"^[<>]{7} .*$", re.MULTILINE)
_UTF_16 = "It is in UTF-16, and notebooks are in UTF-8. Save it in Jupyter again, or as UTF-8 in your editor."
_FOREIGN = {  # by the first bytes of a file
    b"\x1f\x8b": "It is compressed by gzip. Unpack it (gunzip), and hand in what is inside.",
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
}
_COURSES = "exercises"  # the folder that `dtflab notebooks` makes: no student, no assignment
_SUFFIXES = (".ipynb", ".py")
_MOST = 50 * 2**20  # bytes of a file


class Unreadable(ValueError):
    """A file that no cells can be taken from."""


class Submission(NamedTuple):
    """A student's file. `timestamp` is when it was handed in, as nbgrader writes it."""

    path: Path
    student: str
    assignment: str
    timestamp: str

    @property
    def name(self) -> str:
        """The file's name, or that of what it is a copy of."""
        return _COPY.sub("", _CONTROL.sub("", self.path.stem))

    @property
    def is_copy(self) -> bool:
        return self.name != self.path.stem


def found(paths: Iterable[Path], exercises: Container[str] = ()) -> tuple[list[Submission], list[Path]]:
    """The submissions in folders and files, and the folders' other files; `exercises` are the course's names.

    FileNotFoundError if a path is not there. A file that is named itself counts as one, whatever it is.
    """
    taken: list[Submission] = []
    left: list[Path] = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"there is no {path}")
        if not path.is_dir():
            taken.append(_submission(path, path.parent, exercises))
            continue
        inside = sorted(entry for entry in path.rglob("*") if not _aside(entry, path))
        files = [entry for entry in inside if _is_handed_in(entry)]
        ones = [file for file in files if _is_one(file)]
        left += sorted({*files} - {*ones})
        # Where no folder in it has a notebook, it is a student's own, or its students have no folders.
        bare = _without_files(inside, files, path) if any(file.parent != path for file in ones) else []
        taken += [_submission(entry, path, exercises) for entry in (*ones, *bare)]
    return taken, left


def _without_files(inside: Sequence[Path], files: Sequence[Path], folder: Path) -> list[Path]:
    """Links to folders, broken ones, and empty folders, of students who handed in nothing else."""
    named = {file.relative_to(folder).parts[0] for file in files}
    full = {entry.parent for entry in inside}
    return [entry for entry in inside if entry not in full and entry.relative_to(folder).parts[0] not in named]


def _is_handed_in(file: Path) -> bool:
    """True for a file, and for anything else with the name of a notebook: its row says why it is not graded."""
    return file.is_file() or _kind(file) in _SUFFIXES


def _no_file(path: Path) -> str:
    """Why nothing can be read from a path; empty for a file."""
    if path.is_file():
        return ""
    if path.is_symlink() and (path.is_dir() or not path.exists()):
        return f"There is no file at {os.readlink(path)}, to which it is a link. Hand in the file itself."
    if path.is_dir():
        return "It is a folder, not a file. Hand in the notebook itself."
    return "It is not a file, but a pipe or a device. Hand in the file itself."


def _aside(file: Path, folder: Path) -> bool:
    """Checkpoints and other hidden files, and nbgrader's note of the time."""
    return any(part.startswith(".") for part in file.relative_to(folder).parts) or file.name == "timestamp.txt"


def _is_one(file: Path) -> bool:
    """A notebook by its name, or Python with cells or a question; other Python files are a student's modules."""
    if _kind(file) != ".py" or not file.is_file():  # nobody may ever write into a pipe
        return _kind(file) in _SUFFIXES
    try:
        text = _text(file)
        return bool(_foreign(file) or _CELL.search(text) or _ASKS.search(text))
    except OSError:
        return True  # it can't be read: its row says so


def _kind(file: Path) -> str:
    """How its name ends; some systems write that in capitals."""
    return file.suffix.lower()


def _text(file: Path) -> str:
    return file.read_bytes()[:_MOST].decode("utf-8-sig", errors="replace")


def _submission(file: Path, folder: Path, exercises: Container[str]) -> Submission:
    between = tuple(name for name in file.relative_to(folder).parent.parts if name != _COURSES)
    stem = _CONTROL.sub("", file.stem) if between else file.stem  # a line break makes no assignment of its own
    original = _COPY.sub("", stem)
    is_copy = original in exercises or (between and file.with_stem(original).exists())
    names = (*between, original if is_copy else stem)
    place = folder.resolve()
    owner = place.parent if place.name == _COURSES else place
    student, assignment = _whose(names, owner, exercises)
    return Submission(file, same(student), same(assignment), _timestamp(file))


def same(name: str) -> str:
    """A name with its letters in one form, for comparisons: macOS writes `ü` of a folder's name as two characters.

    Bytes that are not UTF-8, as in an archive from an old Windows, and line breaks are spelled: `\\xeb`, `\\n`. (They
    could not be drawn otherwise.)
    """
    spelled = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    shown = _CONTROL.sub(lambda found: repr(found[0])[1:-1], spelled)
    return unicodedata.normalize("NFC", shown)


def _whose(names: Sequence[str], folder: Path, exercises: Container[str]) -> tuple[str, str]:
    """The student and the assignment, by the names of the folders in `folder`, and of the file."""
    first, *others = names
    if first in exercises and names[-1] not in exercises:  # ex01_placement/ada.ipynb
        return names[-1], first
    if first in exercises:
        return (folder.parent if folder.name == first else folder).name, first
    return (first, others[0]) if others else (first, folder.name)


def _timestamp(file: Path) -> str:
    """The time that nbgrader wrote next to the file, else the time of its last change."""
    note = file.parent / "timestamp.txt"
    if note.is_file():
        return _text(note).strip()[:40]
    return datetime.fromtimestamp(file.lstat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def in_parts(
    submissions: Sequence[Submission], exercises: Container[str], named: Container[str] = ()
) -> list[Submission]:
    """Submissions by parts: assignment `hw1/part1` where `hw1` has several notebooks, which are judged separately.

    Parts are the course's exercises, `named` ones, and names shared by two or more students who hand in several.
    """
    names: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in submissions:
        names[one.assignment][one.student].add(one.name)
    parts = {}
    for assignment, by_student in names.items():
        counts = Counter(name for several in by_student.values() if len(several) > 1 for name in several)
        every = set().union(*by_student.values())
        parts[assignment] = {name for name in every if counts[name] > 1 or name in exercises or name in named}
    return [
        one._replace(assignment=f"{one.assignment}/{one.name}")
        if one.name in parts[one.assignment] and len(parts[one.assignment]) > 1
        else one
        for one in submissions
    ]


# -- what is in a file ---------------------------------------------------------------------------------------


def cells(file: Path) -> list[str]:
    """The code cells of a notebook or of a file in percent format; Unreadable says why there are none."""
    if no_file := _no_file(file):
        raise Unreadable(no_file)
    if _CONTROL.search(str(file)):
        raise Unreadable("Its name has a line break or control character in it. Rename it, and hand it in again.")
    if _kind(file) not in _SUFFIXES:
        raise Unreadable(f"It is not a notebook: its name ends in {file.suffix or 'nothing'!r}, not in .ipynb or .py.")
    if file.stat().st_size > _MOST:
        raise Unreadable(f"It has more than {_MOST >> 20} MiB. Clear its outputs, and hand it in again.")
    if foreign := _foreign(file):
        raise Unreadable(foreign)
    text = _text(file)
    if not text.strip():
        raise Unreadable("The file is empty. Save it in Jupyter, and hand it in again.")
    code = _notebook_cells(text) if _kind(file) == ".ipynb" else list(_percent_cells(text))
    if not any(map(str.strip, code)):
        raise Unreadable("It has no code.")
    return code


def _foreign(file: Path) -> str:
    """Why a file is not text, judging by its first bytes."""
    with file.open("rb") as start:
        return _FOREIGN.get(start.read(2), "")


def _notebook_cells(text: str) -> list[str]:
    try:
        document = json.loads(text)
        return [_source(cell["source"]) for cell in document["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if conflict := _conflict(text):
            raise Unreadable(conflict) from None
        reason = f"{type(error).__name__}: {error}"[:200]
        raise Unreadable(
            f"It is not a notebook, although its name says so ({reason}). Save it in Jupyter again."
        ) from None


def _conflict(text: str) -> str:
    """The message about a file with git's conflict marks in it; empty if there are none."""
    mark = _CONFLICT.search(text)
    if mark is None:
        return ""
    line = text.count("\n", 0, mark.start()) + 1
    return (
        f"Line {line} is {mark[0][:40]!r}: git has left two versions in it, after a conflict. Keep one of them "
        "(git checkout --ours FILE, or --theirs), and hand it in again."
    )


def _source(source: Any) -> str:
    """A cell's text, which notebooks hold as one text or as lines."""
    if not isinstance(source, str | list):
        raise TypeError(f"a cell's source is {type(source).__name__}")
    return "".join(source)


def _percent_cells(text: str) -> Iterator[str]:
    kept: list[str] | None = []  # None in a cell of text
    for line in text.splitlines():
        if head := _CELL.match(line):
            if kept:
                yield "\n".join(kept)
            kept = None if "[markdown]" in (head[1] or "") or "[raw]" in (head[1] or "") else []
        elif kept is not None:
            kept.append(_MAGIC.sub(r"\1", line))
    if kept:
        yield "\n".join(kept)


def asked(code: Sequence[str]) -> list[str]:
    """Ids of the questions that cells ask, each once, in their order."""
    ids = (match[1] or match[2] for cell in code for match in _ASKS.finditer(cell))
    return list(dict.fromkeys(ids))


def questions_of(assignment: Sequence[Sequence[str]]) -> list[str]:
    """The questions of an assignment, from what each of its readable files asks; none if they are too different."""
    counts = Counter(id for ids in assignment for id in set(ids))
    return [id for id in dict.fromkeys(id for ids in assignment for id in ids) if 2 * counts[id] > len(assignment)]
