"""The process of a submission: runs its cells in order, then the checks of its answers. `python -m …attempt`.

The order comes as JSON on standard input, what happens goes as lines of JSON to a pipe: which cell runs, its error,
which question is judged, its report, or that the grader failed. Hidden checks run in the grader: their calls come by a
second pipe, and go to the answer (`answering`). A cell that fails or takes too long does not keep later ones from
running; one that can't be stopped takes the process down, and the caller makes another attempt without it (`batch.py`).

Rule: the marks come from the questions as they were before the first cell ran. This process puts its own `grading`
modules out of the submission's reach, as far as `import` goes: what it changes in `dtflab.grade` or in the checks, it
changes in copies. Left out: what only another process could prevent. Code that looks for the grader's objects in
memory, or at a library below the checks, can earn the points of any public check.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any, NamedTuple

from dtflab.grading import answering, catalogue, judge, report_pages as pages, tampering
from dtflab.grading.meter import Meter, used
from dtflab.grading.questions import Question
from dtflab.machine.clock import REAL, Event

STOPPED = "stopped after"  # what is said of a cell that took too long begins with it
GRACE = 3.0  # seconds that a cell has to react when its time is up; then the caller ends the process
_FILE = 256 * 2**20  # bytes of the largest file that a submission may write
# A cell that only grades is skipped: the questions are asked here.
_ONLY_GRADES = re.compile(r"\s*(import dtflab\s+)?(dtflab\.grade\([^()\n]*\)|%dtf_grade[^\n]*)\s*")


class Order(NamedTuple):
    """The caller's order; `token` shows that a line is from here, `skip` are cells that can't be run."""

    token: str
    cells: list[str]
    skip: list[int]
    questions: list[str]
    hidden: dict[str, str]  # questions that also have hidden checks, or only such, and the names of their answers
    seed: str
    student: str
    cell_seconds: float
    memory: int


class TimeUp(BaseException):
    """The time of a cell is up. Not an Exception: cells catch those."""


class Teller:
    """Says what happens. A process that a submission forked is not the one that is asked: it ends here."""

    def __init__(self, descriptor: int, token: str) -> None:
        self._descriptor, self._token, self._process = descriptor, token, os.getpid()
        os.set_inheritable(descriptor, False)

    def __call__(self, event: str, about: Any = None, more: Any = None) -> None:
        if os.getpid() != self._process:
            os._exit(0)
        line = json.dumps([self._token, event, about, more]) + "\n"
        with open(self._descriptor, "wb", closefd=False) as pipe:
            pipe.write(line.encode())


def main(descriptor: int, calls: int) -> None:
    """Run the order that standard input holds."""
    order = Order(**json.load(sys.stdin))
    tell = Teller(descriptor, order.token)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    known = {question.id: question for question in catalogue.public_questions()}
    grader = tampering.Snapshot([*known.values()])
    asked = answering.Answering(_lines(calls), functools.partial(tell, "reply"))
    _restrict(order.memory)
    _detach()
    with _own_end():
        namespace = _run_cells(order, tell, grader)
        for id in order.questions:
            _open_streams()
            tell("judging", id)
            if id in known:
                _judge(known[id], namespace, order, tell)
            if id in order.hidden:
                _answer(id, namespace, order, tell, asked)
        for name in sorted(grader.changed()):
            tell("changed", name)
        tell("end")


def _lines(descriptor: int) -> IO[str]:
    os.set_inheritable(descriptor, False)
    return open(descriptor, encoding="utf-8")


def _answer(id: str, namespace: dict[str, Any], order: Order, tell: Teller, asked: answering.Answering) -> None:
    """Let hidden checks ask the answer, if there is one."""
    name = order.hidden[id]
    tell("hidden", id, asked.kept(namespace[name]) if name in namespace else None)
    asked.serve()


def _judge(question: Question, namespace: dict[str, Any], order: Order, tell: Teller) -> None:
    """Send the report, or the grader's own failure, which costs other questions nothing."""
    try:
        seed, student = order.seed, order.student
        report = judge.judge(question, namespace, seed, student, math.inf, lambda check: tell("check", check.name))
        tell("report", pages.sent(report))
    except Exception as error:
        if not judge.is_own(error):
            raise
        tell("broken", question.id, judge.line_of(error))


@contextlib.contextmanager
def _own_end() -> Iterator[None]:
    """Whatever a submission left behind, threads or what is to be done at exit, is not waited for."""
    try:
        yield
    except BaseException as error:  # an exception that came late, from a thread or a timer of the submission
        print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(1)
    os._exit(0)


def _restrict(memory: int) -> None:
    """Limits of this process and of those that it starts; all its processes together are watched by the caller."""
    import resource  # there is none on Windows

    for limit, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_FSIZE, _FILE), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    with contextlib.suppress(OSError):  # where memory runs out, this is what the system should end first
        Path("/proc/self/oom_score_adj").write_text("1000")


def _open_streams() -> None:
    """Reopen the standard streams if a cell has closed them."""
    sys.stdout = sys.stderr = open(1, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115


def _detach() -> None:
    """Let `import dtflab.grading` give the submission modules of its own."""
    for name in tampering.modules():
        del sys.modules[name]
    for name in ("grading", *tampering.CALLED):
        vars(tampering.ROOF).pop(name, None)


# -- cells ---------------------------------------------------------------------------------------------------


def _run_cells(order: Order, tell: Teller, grader: tampering.Snapshot) -> dict[str, Any]:
    """Run the cells; returns the values of all names afterwards. After each it tells what the cell has replaced, since
    the next one may grade, and put things back.
    """
    shell, replaced = _shell(), set[str]()
    for number, cell in enumerate(order.cells, 1):
        if number not in order.skip and not _ONLY_GRADES.fullmatch(cell):
            _open_streams()
            tell("cell", number)
            if error := _run_cell(shell, cell, order.cell_seconds):
                tell("error", number, error)
            for name in sorted((now := grader.replaced(shell.user_ns)) - replaced):
                tell("replaced", name, number)
            replaced |= now
    tell("cells")
    namespace: dict[str, Any] = shell.user_ns
    return namespace


def _shell() -> Any:
    """IPython without a kernel: magics, `await`, `!command`; it shows nothing and writes no history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell: Any = InteractiveShell.instance(config=config)
    shell.ask_exit = _end_of_cell
    shell.showtraceback = shell.showsyntaxerror = lambda *_, **__: None  # reported in one line
    shell._tee = lambda channel: contextlib.nullcontext()  # it would keep all output in memory: 0.1 ms and more a line
    sys.argv = [""]
    return shell


def _end_of_cell() -> None:
    """Stand in for `exit()` and `quit()`: in Jupyter they end the kernel, here the cell."""
    raise SystemExit(
        "the cell called exit() or quit(), which ends a kernel. Here only the rest of the cell was skipped"
    )


def _run_cell(shell: Any, cell: str, seconds: float) -> str:
    """Run it; its error in one line, empty if there was none."""
    try:
        with _limited(seconds):
            result = shell.run_cell(cell, silent=True)
        error = result.error_before_exec or result.error_in_exec
    except TimeUp as late:  # it came while the cell was being left
        error = late
    if isinstance(error, TimeUp):
        return f"{STOPPED} {seconds:g} s"
    return _described(error)[:500].rstrip(": ") if error is not None else ""


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TimeUp in the block when its seconds are over, again and again, as it may be caught."""
    inside, done = [True], REAL.event()

    def time_up(number: int, frame: FrameType | None) -> None:
        if inside:
            raise TimeUp

    signal.signal(signal.SIGALRM, time_up)
    REAL.spawn(_remind, threading.get_ident(), seconds, done, name="dtflab-cell")
    try:
        yield
    finally:
        inside.clear()
        done.set()


def _remind(ident: int, seconds: float, done: Event) -> None:
    """Send SIGALRM to a thread when its seconds are over."""
    meter = Meter(seconds, REAL.now(), used())
    while not done.wait(meter.pause(REAL.now())):
        if meter.look(REAL.now(), used()):
            signal.pthread_kill(ident, signal.SIGALRM)
            done.wait(GRACE / 5)


def _described(error: BaseException) -> str:
    """The error's type and message; for a syntax error its line, not IPython's own name for the cell."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f"{type(error).__name__} in its line {error.lineno}: {error.msg}"
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
