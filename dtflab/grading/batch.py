"""Submissions are graded, each in a process of its own; several at a time.

A cell or an answer that takes its process down (a crash, an endless loop in C, `os._exit`) is left out of the next
attempt, so it costs the student only itself. After `ATTEMPTS` of them, or when the file's seconds are over, what is not
judged yet has no points.

Rule: whatever is in a file, there is a `Graded` for it, with a mark and with sentences.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dtflab.grading import answer_cells, attempt, hidden, isolation, judge, report_pages as pages, tampering
from dtflab.grading.judge import Report, Result
from dtflab.grading.questions import MOST, Check, Question
from dtflab.grading.remote import Gone, Link
from dtflab.grading.score import Score
from dtflab.grading.submissions import Submission
from dtflab.machine.clock import REAL, Thread

ATTEMPTS = 4
_NOTES = 8  # sentences about a file
_NAMES = 100  # that it replaced or changed
SHIPPED = "As shipped: no answer is written in it."
_STUB = "NotImplementedError"  # the error of a cell that calls a stub
_BUSY = (
    "The machine was too busy, and it was stopped before it had had its seconds. The student is not to blame: run "
    "it again, with --resume for it alone, when the machine has less to do."
)
READ = "Read this file"  # a note begins with it where a submission has changed the grader
_REPLACED = (
    f"{READ}: it replaced {{}}. Its points here do not depend on that. In a kernel that grades itself, as with "
    "nbgrader and otter, they may."
)
_CHANGED = f"{READ} before you believe its mark: the grader's own code was changed while it ran: {{}}."
_OVER = "All its cells and answers together have {:g} s, and these were over{}. {}"
_LOOK = "Look for a loop that does not end, or grade the file alone with a longer --timeout."
# Of the teacher's environment, in which there may be tokens and passwords, a submission has these variables.
_KEPT = re.compile(
    r"PATH|LANG|LC_\w+|TZ|LD_LIBRARY_PATH|DYLD_\w+|VIRTUAL_ENV|CONDA_PREFIX|PYTHON\w*|\w+_NUM_THREADS|OPENBLAS_\w+|"
    r"CUDA_\w+|TF_\w+|DTFLAB_(GPUS?|GPU_MEMORY|HOST|WIRE|ISOLATED|(TIMEOUT|LIMIT)_\w+)"
)
_MORE = 5.0  # seconds for a question whose own are over: its answer is asked to stop, more than once
_DEAF = f"{{}} was stopped: its process did not react for {MOST + _MORE:g} s. Look for an endless loop or thread."


class Options(NamedTuple):
    """How submissions are graded: limits of a file, all attempts together; the teacher's checks and seed.

    `folder` is where they run, None for the system's folder of temporary files. `hidden` is what they must not see,
    None where the system has no namespaces for that.
    """

    limits: isolation.Limits = isolation.Limits()
    cell_seconds: float = 30.0
    checks: str = ""
    seed: str = "0"
    folder: Path | None = None
    hidden: tuple[Path, ...] | None = None


@dataclass
class Graded:
    """A submission's mark. `failed` says why a file could not be graded; `notes` what else there is to know."""

    submission: Submission
    reports: list[Report] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: str = ""
    output: str = ""
    seconds: float = 0.0
    answers: dict[str, str] = field(default_factory=dict)  # the code of each, by the question's id
    others: dict[int, str] = field(default_factory=dict)  # the other cells, by number
    counts: bool = True  # not another file of the same student
    handed_in: bool = True
    was_run: bool = True  # else there was no process for it, or no processor: another time it may have one

    @property
    def score(self) -> Score:
        return Score(self.reports)

    @property
    def is_touched(self) -> bool:
        """Whether the submission has changed the grader, or what its own imports find of that."""
        return any(note.startswith(READ) for note in self.notes)


def none(submission: Submission, questions: Sequence[Question], why: str, code: Sequence[str] = ()) -> Graded:
    """No points for a file that can't be graded."""
    lost = [_lost(question, "Not judged: the file could not be graded.") for question in questions]
    return Graded(submission, lost, [], why, "", 0.0, *written(code, questions))


def written(code: Sequence[str], questions: Sequence[Question]) -> tuple[dict[str, str], dict[int, str]]:
    """The code of the answers in a file, by the questions' ids, and of its other cells, by their numbers."""
    names = {question.id: question.answer for question in questions}
    answers = {id: answer_cells.shown(code, name) for id, name in names.items()}
    return answers, answer_cells.others(code, names.values())


def _lost(question: Question, why: str, stopped: bool = False, crashed: bool = False, broken: bool = False) -> Report:
    results = [Result(c, False, why, stopped=stopped, crashed=crashed, broken=broken) for c in question.checks]
    return Report(question, results, "", "", next_step=why)


# -- one submission ------------------------------------------------------------------------------------------


def grade(
    submission: Submission,
    code: list[str],
    questions: Sequence[Question],
    options: Options,
    stopped: Callable[[], bool] = lambda: False,
    *,
    known: Sequence[str] = (),
) -> Graded:
    """Run the cells of a submission, and judge its answers to `questions`; `known` are notes about the file."""
    began = time.monotonic()
    work = _Work(submission, code, questions, options)
    work.notes.extend(known)
    for _ in range(ATTEMPTS):
        try:
            work.go_on(stopped)
        except OSError as error:  # no process, no room: the next file may fare better
            not_run = none(submission, questions, f"It could not be run: {error}.", code)
            not_run.was_run = False
            return not_run
        except Exception as error:  # a defect of the grader costs one file its points, not all
            traceback.print_exc()
            why = f"The grader failed: {type(error).__name__}: {error}. Please report it."
            return none(submission, questions, why, code)
        if work.unwatched:
            return none(submission, questions, f"{work.unwatched} None of its answers counts.", code)
        if work.done or work.late or stopped():
            break
    return work.graded(time.monotonic() - began)


class _Work:
    """The results of the attempts at a submission so far."""

    def __init__(
        self, submission: Submission, code: list[str], questions: Sequence[Question], options: Options
    ) -> None:
        self.submission, self.code, self.options = submission, code, options
        self.questions = {question.id: question for question in questions}
        self.reports: dict[str, Report] = {}
        self.errors: dict[int, str] = {}  # of cells, by number
        self.skip: list[int] = []
        self.notes: list[str] = []
        self.replaced: dict[str, int] = {}  # what a cell replaced of dtflab, and the cell's number
        self.changed: set[str] = set()  # in the grader itself
        self.output = ""
        self.done = False
        self.starved = False  # it was stopped on a busy machine
        self.unwatched = ""  # what to say of a file that rid itself of the process that watches it
        self._left = options.limits.seconds  # as `meter` counts them
        self._used = 0.0  # by the attempt that runs
        self._token = secrets.token_hex(16)
        self._now: tuple[str, Any, float] = ("", None, 0.0)  # what was said last, and after how many seconds
        self._check = ""  # the title of the check that runs
        self._public: dict[str, Report] = {}  # on questions whose hidden checks still have to be asked
        self._link = Link(lambda text: None)
        self._asking: dict[str, Thread] = {}  # by the questions, each once in an attempt

    @property
    def late(self) -> bool:
        """Whether the file's time is over."""
        return self._left <= 0

    def go_on(self, stopped: Callable[[], bool]) -> None:
        """One process: all cells but those to be skipped, all questions without a report."""
        folder = Path(tempfile.mkdtemp(prefix="dtflab-attempt-", dir=self.options.folder))
        self._now, self._used = ("start", None, 0.0), 0.0
        try:
            ended = isolation.run(
                [sys.executable, "-m", attempt.__name__],
                self.options.limits._replace(seconds=self._left),
                folder,
                environment=_environment(folder, self.submission.student),
                given=json.dumps(self._order()._asdict()),
                heard=self._hear,
                talk=self._talk,
                hidden=self.options.hidden,
                stopped=stopped,
                late=self._is_deaf,
            )
        finally:
            self._hang_up()
            shutil.rmtree(folder, ignore_errors=True)
        self.output, self.starved = ended.output, ended.starved
        self._left -= ended.seconds
        if ended.unwatched:
            self.unwatched = ended.error
        if self.done and ended.error:
            self.notes.append(f"Everything was judged, but its process did not end by itself. {ended.error}")
        if not self.done and not self.late:  # a question that was running at the end need not have taken the time
            self._blame(ended.error or "It ended the whole process.")

    def _order(self) -> attempt.Order:
        left = [id for id in self.questions if id not in self.reports]
        secret = {id: one.answer for id, one in self.questions.items() if any(check.hidden for check in one.checks)}
        how, student = self.options, self.submission.student
        seed, limits = hidden.seed_for(how.seed, student), (how.cell_seconds, how.limits.memory)
        return attempt.Order(self._token, self.code, self.skip, left, secret, seed, student, *limits)

    def _hear(self, line: str) -> None:
        """A line from the process. Without the token, or of another form, it is the submission's own: nothing."""
        with contextlib.suppress(ValueError, TypeError, LookupError, RecursionError):
            token, event, about, more = json.loads(line)
            if token == self._token:
                self._take(event, about, more)

    def _take(self, event: str, about: Any, more: Any) -> None:
        """Take in an event of the child; an error if it can't have happened."""
        if event in ("cell", "error"):
            self.code[about - 1]  # there is such a cell
        if event == "judging":
            self.questions[about]
        if event == "check":
            self._begin(self.questions[self._now[1]].only(about).checks[0])
            return
        if event == "reply":
            if self._link.asks:
                self._link.hear({**about, "seconds": float(about["seconds"])})
                self._now = (*self._now[:2], self._used)
            return
        if event == "error":
            self.errors[about] = str(more)
            return
        if event == "replaced":
            if len(self.replaced) < _NAMES:
                self.replaced.setdefault(str(about)[:200], int(more))
            return
        if event == "changed":
            if len(self.changed) < _NAMES:
                self.changed.add(str(about)[:200])
            return
        self._check = ""
        if event == "broken":
            self.reports[about] = self._own_failure(self.questions[about], str(more))
        if event == "report":
            question = self.questions[about["id"]]
            self._public[question.id] = report = pages.report_of(about, question.part(hidden=False))
            if len(report.results) == len(question.checks):
                self.reports[question.id] = report
            event, about = "judging", question.id
        if event == "hidden" and about not in self._asking:
            self._asking[about] = REAL.spawn(self._ask, self.questions[about], more, name="dtflab-hidden")
        self.done = event == "end"
        self._now = (event, about, self._used)

    def _begin(self, check: Check) -> None:
        self._check = check.title

    def _talk(self, say: Callable[[str], None]) -> None:
        self._link = Link(say)

    def _ask(self, question: Question, answer: Any) -> None:
        """Judge hidden checks, on a thread: the answer's replies are heard on the one that watches its process."""
        public, how = self._public.get(question.id), self.options
        try:
            done = hidden.report(question, public, answer, self._link, how.seed, self.submission.student, self._begin)
        except Gone:
            return
        except Exception as error:
            done = self._own_failure(question, judge.line_of(error))
        self.reports.setdefault(question.id, done)
        self._link.end()

    def _hang_up(self) -> None:
        """End the wait for replies: the process has ended."""
        self._link.hear(None)
        for thread in self._asking.values():
            thread.join()
        self._asking.clear()

    def _own_failure(self, question: Question, line: str) -> Report:
        message = f"The grader has failed, not {question.answer}: the check must be fixed. {line}"
        return _lost(question, message, broken=True)

    def _is_deaf(self, seconds: float) -> bool:
        """Whether the cell or the question of now should have stopped by itself long ago."""
        self._used = seconds
        event, _, since = self._now
        judging = event == "judging" or (event == "hidden" and self._link.asks)
        most = self.options.cell_seconds + attempt.GRACE if event == "cell" else MOST + _MORE
        return (event == "cell" or judging) and seconds - since > most

    def _blame(self, error: str) -> None:
        """Find the cell or question that ended the process, and leave it out of the next attempt."""
        event, about, since = self._now
        if event == "cell":
            if self._used - since >= self.options.cell_seconds:
                error = f"It did not end within {self.options.cell_seconds:g} s, and could not be stopped."
            self.skip.append(about)
            self.notes.append(f"Cell {about} was left out. {error}")
        elif event in ("judging", "hidden") and about not in self.reports:
            question, is_deaf = self.questions[about], error == isolation.DEAF
            message = _DEAF if is_deaf else f"{{}} was being judged when its process ended. {error}"
            self.reports[about] = _lost(question, message.format(question.answer), stopped=is_deaf, crashed=not is_deaf)
        else:
            self.notes.append(error)

    def graded(self, took: float) -> Graded:
        missing = [id for id in self.questions if id not in self.reports]
        starved = self.starved or any(result.starved for report in self.reports.values() for result in report.results)
        why = self._over() if self.late else f"{ATTEMPTS} attempts came to no end."
        message = f"Not judged. {why}"
        reports = [self.reports.get(id) or _lost(question, message) for id, question in self.questions.items()]
        is_shipped = self._is_shipped(reports)
        untouched = [SHIPPED] if is_shipped else list(self._absent(reports))
        told = {number: error for number, error in sorted(self.errors.items()) if not (is_shipped and error == _STUB)}
        errors = [f"Cell {number}: {error}" for number, error in told.items()]
        notes = [*self._tampering(), *untouched, *dict.fromkeys(self.notes), *errors]
        more = [f"… and {len(notes) - _NOTES} more."] if len(notes) > _NOTES else []
        ended = why if missing else _BUSY if starved else ""
        failed = " ".join(filter(None, [ended, *_broken(reports)]))
        code = written(self.code, list(self.questions.values()))
        graded = Graded(self.submission, reports, notes[:_NOTES] + more, failed, self.output, took, *code)
        graded.was_run = not starved  # it may be again, with --resume
        return graded

    def _over(self) -> str:
        """Why a file whose seconds are over is not graded: what ran then, and what to do."""
        if self.starved:
            return _BUSY
        event, about, _ = self._now
        judged = f" while {about} was judged" + f", in the check “{self._check}”" * bool(self._check)
        running = {"cell": f" while cell {about} ran", "judging": judged, "hidden": judged}.get(event, "")
        advice = f"What ran then need not be what took the time. {_LOOK}" if running else _LOOK
        return _OVER.format(self.options.limits.seconds, running, advice)

    def _tampering(self) -> Iterator[str]:
        """Notes on what it changed of the grader."""
        if self.replaced:
            yield _REPLACED.format(tampering.few({f"{name} (cell {cell})" for name, cell in self.replaced.items()}))
        if self.changed:
            yield _CHANGED.format(tampering.few(self.changed))

    def _is_shipped(self, reports: Sequence[Report]) -> bool:
        """Whether each answer is still the stub. A cell that crashed, hung or changed the grader is a student's own."""
        hung = any(error.startswith(attempt.STOPPED) for error in self.errors.values())
        if hung or self.skip or self.replaced or self.changed:
            return False
        return all(report.as_shipped and self._is_stub(report.question.answer) for report in reports)

    def _is_stub(self, name: str) -> bool:
        number = answer_cells.cell_of(self.code, name)
        return number > 0 and answer_cells.is_stub(self.code[number - 1], name)

    def _absent(self, reports: Sequence[Report]) -> Iterator[str]:
        """Notes on answers that no cell defines. Of one whose cell failed, the next step says so."""
        for report in reports:
            name = report.question.answer
            number = answer_cells.cell_of(self.code, name)
            if report.as_shipped and not number:
                yield f"No cell defines {name}."
            elif report.as_shipped and (number in self.skip or number in self.errors):
                error = self.errors.get(number)
                how = f"failed ({error})" if error else "ended its process and was left out"
                report.next_step = f"{name} does not exist: cell {number}, which should define it, {how}."


def _broken(reports: Sequence[Report]) -> list[str]:
    """The grader's own failures, each reason once."""
    reasons: dict[str, str] = {}
    for report in reports:
        for result in report.results:
            if result.broken:
                reasons.setdefault(result.message, f"{report.question.id}, {result.check.title}: {result.message}")
    return list(reasons.values())


def _environment(folder: Path, student: str) -> dict[str, str]:
    """The variables of this process that a program needs. A submission's files in its home go with the folder."""
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    homes = dict.fromkeys(("HOME", "TMPDIR", "IPYTHONDIR", "MPLCONFIGDIR", "XDG_CACHE_HOME"), str(folder))
    registry = {"DTFLAB_REGISTRY": str(folder / "registry"), "DTFLAB_STUDENT": student}
    return {**kept, **homes, **registry, "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0"}


# -- many ----------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """The work on a file; it polls a stop flag. `alone`: while no other runs; `known`: its mark is known."""

    run: Callable[[Callable[[], bool]], Graded]
    alone: bool = False
    known: bool = False


def grade_all(tasks: Sequence[Task], jobs: int, done: Callable[[Graded], None]) -> list[Graded]:
    """Carry out the tasks, `jobs` at a time, and call `done` with each. Ctrl-C kills what runs, and is raised.

    Those that need no run are the first, also in what is kept after Ctrl-C, and those that run alone the last.
    """
    found: dict[int, Graded] = {}
    numbered = sorted(enumerate(tasks), key=lambda pair: not pair[1].known)
    for alone, at_once in ((False, jobs), (True, 1)):
        _carry_out([(i, task) for i, task in numbered if task.alone is alone], at_once, found, done)
    return [found[number] for number in sorted(found)]


def _carry_out(
    tasks: Sequence[tuple[int, Task]], jobs: int, found: dict[int, Graded], done: Callable[[Graded], None]
) -> None:
    """Put what tasks bring into `found`, by their numbers."""
    errors: list[BaseException] = []
    waiting = iter(tasks)
    stop, ended = REAL.event(), REAL.event()

    def work() -> None:
        try:
            while not stop.is_set() and (following := next(waiting, None)):
                number, task = following
                graded = task.run(stop.is_set)
                if not stop.is_set():
                    found[number] = graded
                    done(graded)
        except BaseException as error:
            errors.append(error)
            stop.set()
        finally:
            ended.set()

    threads = [REAL.spawn(work, name=f"dtflab-grade-{job}") for job in range(min(jobs, len(tasks)))]
    try:
        while any(thread.is_alive() for thread in threads):
            ended.wait(0.2)
            ended.clear()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
