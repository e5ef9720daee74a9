"""The journal of a grading: a line when a file begins, and its mark as soon as there is one. `--resume` reads it.

A submission runs with the rights of the teacher, so it can kill the grader. The journal then has the marks of the
others, and says which files were running: such a file is graded once more, by itself, and has no points if the grading
is killed again.

Rules: a mark counts only for the same work: the same cells, student, questions, checks, seed and limits.
Each line is on the disk before the grading goes on. A line that can't be read is passed over: the last one of a grading
that was killed may be cut off.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dtflab.grading import batch, report_pages as pages
from dtflab.grading.batch import Graded, Task
from dtflab.grading.questions import Question
from dtflab.grading.submissions import Submission

_KILLED = (
    "The grading was killed twice while this file ran, the second time while no other did. Look into it before you "
    "grade it by itself: it may end processes."
)


class Work(NamedTuple):
    """The work on a file; `known` are notes about it."""

    submission: Submission
    code: list[str]
    questions: Sequence[Question]
    options: batch.Options
    known: Sequence[str]

    def grade(self, stopped: Callable[[], bool]) -> Graded:
        """Grade it now."""
        return batch.grade(self.submission, self.code, self.questions, self.options, stopped, known=self.known)


class GradingJournal:
    """The notes of an earlier grading, and of this one. Without a `path` nothing is kept.

    `resumed` counts the files that have a mark already, `suspects` are students whose file ran when the grading ended.
    """

    def __init__(self, path: Path | None, resume: bool) -> None:
        self.resumed = 0
        self.suspects: list[str] = []
        self._path = path
        self._judges: dict[tuple[str, ...], str] = {}  # what judges questions, by their ids
        self._marks: dict[str, Any] = {}
        self._cut_off: dict[str, bool] = {}  # files that had begun when the grading ended: whether they ran alone
        if path is not None:
            lines = path.read_bytes().splitlines() if resume and path.exists() else []
            for event, key, more in _readable(lines):
                self._take(event, key, more)
            with path.open("ab" if lines else "wb") as file:
                file.write(b"\n" if lines else b"")  # the last line may be cut off

    def _take(self, event: str, key: str, more: Any) -> None:
        if event == "begin":
            self._cut_off[key] = bool(more)
        else:
            self._cut_off.pop(key, None)
        if event == "mark":
            self._marks[key] = more

    def task(self, work: Work) -> Task:
        """The work that is left for a file: none if it has its mark."""
        if self._path is None:
            return Task(functools.partial(Work.grade, work))
        key = self._key(work)
        found = _graded(work, self._marks.get(key))
        if found is not None:
            self.resumed += 1
            return Task(lambda stopped: found, known=True)
        if self._cut_off.get(key):
            killed = batch.none(work.submission, work.questions, _KILLED, work.code)
            return Task(lambda stopped: killed, known=True)
        alone = key in self._cut_off
        if alone:
            self.suspects.append(work.submission.student)
        return Task(functools.partial(self._grade, work, key, alone), alone)

    def _key(self, work: Work) -> str:
        """Names what a mark is made from: with anything else the file is graded again."""
        ids = tuple(question.id for question in work.questions)
        if ids not in self._judges:
            self._judges[ids] = _judge(work.questions, work.options.checks)
        path, student, assignment, _ = work.submission
        how = (work.options.limits, work.options.cell_seconds, work.options.seed, self._judges[ids])
        about = (str(path.resolve()), student, assignment, work.code, ids, work.known, how)
        return _digest(json.dumps(about).encode())

    def _grade(self, work: Work, key: str, alone: bool, stopped: Callable[[], bool]) -> Graded:
        self._write("begin", key, alone)
        kept: tuple[str, Any] = ("left", None)  # an end that the file did not bring about
        try:
            graded = work.grade(stopped)
            if graded.was_run and not stopped():
                kept = ("mark", _data(graded))
        finally:
            self._write(kept[0], key, kept[1])
        return graded

    def _write(self, event: str, key: str, more: Any) -> None:
        """A line, which stays even if the machine goes down; a disk that is full costs only what is kept."""
        assert self._path is not None
        try:
            with self._path.open("ab", buffering=0) as file:
                file.write(json.dumps([event, key, more]).encode() + b"\n")
                os.fsync(file.fileno())
        except OSError as error:
            print(f"dtflab grade: {self._path} could not be written: {error.strerror}", file=sys.stderr)


def _readable(lines: Sequence[bytes]) -> Iterator[tuple[str, str, Any]]:
    for line in lines:
        try:
            event, key, more = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(event, str) and isinstance(key, str):
            yield event, key, more


def _data(graded: Graded) -> dict[str, Any]:
    return {
        "student": graded.submission.student,  # for people: the key says whose it is
        "reports": [pages.sent(report) for report in graded.reports],
        **{name: getattr(graded, name) for name in ("notes", "failed", "output", "seconds")},
    }


def _graded(work: Work, found: Any) -> Graded | None:
    """The mark that `_data` describes; None if it does not describe one."""
    try:
        reports = [pages.report_of(*pair) for pair in zip(found["reports"], work.questions, strict=True)]
        notes, failed, output = [str(note) for note in found["notes"]], str(found["failed"]), str(found["output"])
        code = batch.written(work.code, work.questions)
        return Graded(work.submission, reports, notes, failed, output, float(found["seconds"]), *code)
    except (KeyError, TypeError, ValueError):
        return None


def _judge(questions: Sequence[Question], folder: str) -> str:
    """The digest of what judges: the package's version, the grader's files, a teacher's, those of installed checks."""
    package: Any = sys.modules["dtflab"]
    here = Path(__file__).parent
    files = {*here.rglob("*.py"), *here.rglob("*.toml")}
    if folder:
        files.update(Path(folder).rglob("*.py"))
    judges = [check.judge for question in questions for check in question.checks]
    files.update(Path(judge.__code__.co_filename) for judge in judges if hasattr(judge, "__code__"))
    digests = [_digest(path.read_bytes()) for path in sorted(files) if path.is_file()]
    return _digest(json.dumps([package.__version__, digests]).encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
