"""Judge an answer: every check of its question, in order, each for its own time, whatever the answer does.

Rules: nothing that an answer does gets out of here: errors, endless loops, wrong types and floods of text are results.
A check's own error is reported as the grader's, which a teacher has to mend, and never as the answer's.
The mark follows from the answer, the seed and the student alone: its seconds are those that `meter` counts.
"""

from __future__ import annotations

import functools
import os
import platform
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from dtflab.base.errors import OpError
from dtflab.grading import watchdog
from dtflab.grading.capture import captured
from dtflab.grading.questions import CELL, MOST, Check, NotJudged, Question, Wrong
from dtflab.machine.clock import REAL

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Frames below are not the answer's own, but of a library that it calls.
_LIBRARIES = (_HERE, *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
# What an answer of a wrong type, length or size brings about in the line of a check that uses it.
_BY_A_VALUE = (
    *(AssertionError, TypeError, AttributeError, LookupError, ValueError),
    *(OverflowError, MemoryError, RecursionError, StopIteration, OpError),
)
PUBLIC_SEED = "0"  # in a notebook the numbers are drawn from it; any other seed is secret
_DEAF = "Not tried, because the answer could not be stopped."
_ENDLESS = "Not tried, because the answer did not come to an end in the check before."
_LATE = f"Not tried, because the answer has used up its {MOST:g} s."
BUSY = (
    "Not judged, run it again: other programs had the processor, and the answer was stopped before it had had its "
    "seconds. The answer is not to blame."
)
NOT_TRIED = (_DEAF, _ENDLESS, _LATE, BUSY)


@dataclass
class Result:
    """How one check went.

    `message` says what was seen and expected; `hint` which mistake that looks like, and `cure` what to do about it.
    """

    check: Check
    passed: bool
    message: str = ""
    mistake: str = ""  # its name
    hint: str = ""
    cure: str = ""
    picture: Any = None
    output: str = ""
    seconds: float = 0.0
    unwritten: bool = False  # it is the exercise as shipped
    stopped: bool = False  # the answer did not come to an end
    starved: bool = False  # and had not had its seconds: nothing was found out about it
    left_running: bool = False  # the answer could not be stopped
    crashed: bool = False  # the answer ended its process
    broken: bool = False  # the check has failed, not the answer

    @property
    def points(self) -> int:
        return self.check.points if self.passed else 0


@dataclass
class Report:
    """All that is known about an answer; `earlier` has results of the same try from other reports."""

    question: Question
    results: list[Result]
    seed: str
    student: str
    next_step: str = ""  # where there is nothing to judge yet
    versions: dict[str, str] = field(default_factory=dict)
    earlier: Sequence[Result] = ()

    @property
    def points(self) -> int:
        return sum(result.points for result in self.results)

    @property
    def as_shipped(self) -> bool:
        """Whether no answer is written yet."""
        return bool(self.results) and all(result.unwritten for result in self.results)


def judge(
    question: Question,
    namespace: Mapping[str, Any],
    seed: str | None = None,
    student: str | None = None,
    wall: float | None = None,
    begins: Callable[[Check], None] = lambda check: None,
) -> Report:
    """The report on the answer that `namespace` holds under the question's name for it.

    Instances are drawn from `seed` and `student`; by default those of the environment. After `wall` seconds on the
    clock, those of a cell by default, the answer is stopped on a busy machine, too. `begins` is called before each
    check.
    """
    seed = os.environ.get("DTFLAB_GRADE_SEED", PUBLIC_SEED) if seed is None else seed
    student = _student() if student is None else student
    defined = question.answer in namespace
    if defined:
        end = REAL.now() + (CELL if wall is None else wall)
        results = list(_results(question, namespace[question.answer], seed, student, end, begins))
    else:
        results = [Result(check, False, unwritten=True) for check in question.checks]
    return report_on(question, results, seed, student, defined)


def _student() -> str:
    """The student of the environment; under nbgrader, which names none, the one in whose folder the kernel runs."""
    named = os.environ.get("DTFLAB_STUDENT", "")
    if not named and is_autograded():
        return os.path.basename(os.path.dirname(os.getcwd()))
    return named


def is_autograded() -> bool:
    """Whether nbgrader runs this notebook for its mark."""
    return os.environ.get("NBGRADER_EXECUTION") == "autograde"


def report_on(question: Question, results: list[Result], seed: str, student: str, defined: bool) -> Report:
    """The report of these results; what to do next if there is no answer yet."""
    report = Report(question, results, seed, student, versions=_versions())
    if report.as_shipped:
        report.next_step = _next_step(question, defined)
    return report


def _results(
    question: Question, answer: Any, seed: str, student: str, end: float, begins: Callable[[Check], None]
) -> Iterator[Result]:
    left, why = MOST, ""
    for check in question.checks:
        if why:
            yield Result(check, False, why, starved=why == BUSY)
            continue
        begins(check)
        timed = check._replace(seconds=min(check.seconds, left))
        result, used = _run(question, timed, answer, seed, student, end - REAL.now())
        yield result
        left -= used
        why = after([result]) or (_LATE if left <= 0 else BUSY if REAL.now() >= end else "")


def after(results: Sequence[Result]) -> str:
    """Why no other check is tried after these; empty if the next one is."""
    if any(result.left_running for result in results):
        return _DEAF
    if any(result.starved for result in results):
        return BUSY
    return _ENDLESS if any(result.stopped for result in results) else ""


def _next_step(question: Question, defined: bool) -> str:
    if defined:
        return (
            f"{question.answer} is not written yet. Replace `raise NotImplementedError()` in it by your code, run that "
            "cell, then this one."
        )
    return f"There is no {question.answer} yet. Run the cell that defines it, then this one."


def _run(question: Question, check: Check, answer: Any, seed: str, student: str, wall: float) -> tuple[Result, float]:
    """The result, and the seconds that count."""
    random = Random(f"{seed}/{student}/{question.id}/{check.name}")  # the same on every machine
    began = time.perf_counter()
    with captured() as kept:
        outcome = watchdog.call(functools.partial(check.judge, answer, random), check.seconds, wall)
    result = result_of(question, check, outcome)
    result.output, result.seconds = kept.text, time.perf_counter() - began
    return result, outcome.seconds


def result_of(question: Question, check: Check, outcome: watchdog.Outcome) -> Result:
    """The result of a check that ended like this."""
    error = outcome.error
    if outcome.stopped:
        endless = f"Stopped after {check.seconds:.3g} s: {question.answer} does not come to an end."
        result = Result(check, False, (BUSY if outcome.starved else endless) + outcome.deaf, stopped=True)
        result.starved, result.left_running = outcome.starved, outcome.left_running
        return result
    if error is None:
        return Result(check, True, picture=outcome.value)
    if isinstance(error, NotJudged):
        return Result(check, False, BUSY, stopped=True, starved=True)
    if isinstance(error, Wrong):
        found = question.diagnosis(error.evidence) if error.evidence is not None else None
        name, hint, cure = (found.name, found.diagnosis, found.cure) if found else ("", "", "")
        return Result(check, False, str(error), name, hint, cure, error.picture)
    if _fails_itself(check, error):
        message = f"The check has failed, not {question.answer}: the teacher has to mend it. {line_of(error)}"
        return Result(check, False, message, broken=True)
    return Result(check, False, raised(error, _file(check)), unwritten=_is_stub(error))


def _fails_itself(check: Check, error: BaseException) -> bool:
    """Whether a line of the check raised it, and no value of the answer's is likely to be the reason."""
    *_, last = traceback.walk_tb(error.__traceback__)
    return last[0].f_code.co_filename == _file(check) and not isinstance(error, _BY_A_VALUE)


def _file(check: Check) -> str:
    code = getattr(check.judge, "__code__", None)
    return code.co_filename if code is not None else ""


def is_own(error: BaseException) -> bool:
    """Whether the grader's own line raised it, not one of a submission."""
    return traceback.extract_tb(error.__traceback__)[-1].filename.startswith(_LIBRARIES)


def line_of(error: BaseException) -> str:
    """Where a program failed, as a sentence: file, line, error. A line of a teacher's file is not quoted."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    quoted = f", `{last.line}`," if last.filename.startswith(_LIBRARIES) else ""
    return f"Line {last.lineno} of {os.path.basename(last.filename)}{quoted} raised {_kind_and_gist(error)}."


def _is_stub(error: BaseException) -> bool:
    """Whether an exercise as shipped raised it by `raise NotImplementedError()`, and not NumPy for a tensor."""
    return isinstance(error, NotImplementedError) and not str(error)


def raised(error: BaseException, check: str = "") -> str:
    """An error of the answer, and its line; `check` is the file in which a line is the check's.

    The line of a teacher's check is not quoted: students must not read it.
    """
    if told := getattr(error, "told", ""):  # by the process in which it was raised
        return str(told)
    text = _kind_and_gist(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_LIBRARIES)]
    if not frames:
        return f"Calling it raised {text}"
    last = frames[-1]
    is_hidden = last.filename == check and not check.startswith(_HERE)
    source = f", `{last.line}`," if last.line and not is_hidden else ""  # none of what runs in built-in code
    line = "The check's line" if last.filename == check else "Line"
    return f"{line} {last.lineno}{source} raised {text}"


def _kind_and_gist(error: BaseException) -> str:
    return f"{type(error).__name__}: {_gist(str(error))}" if str(error) else type(error).__name__


def _gist(message: str) -> str:
    """The first line of an error, and what to do about it; not the lines of debugging that TensorFlow adds."""
    first, *others = message.split("\n")
    return "\n".join([first, *(line for line in others if line.startswith("What to do"))])


def _versions() -> dict[str, str]:
    package: Any = sys.modules["dtflab"]  # the roof, which no room imports
    return {"dtflab": package.__version__, "python": platform.python_version()}
