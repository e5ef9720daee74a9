"""A busy machine costs no points: sixteen programs compute on the core on which answers are judged.

On one core only: the tests that run at the same time keep the others.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from dtflab.grading.judge import judge
from dtflab.grading.questions import Question

pytestmark = [pytest.mark.slow, pytest.mark.processes]
OTHERS = 16  # programs

# Their parent ends at once: what this process has started would count as the answer's own.
START = """
import subprocess, sys
for _ in range(int(sys.argv[1])):
    own = {"stdout": subprocess.DEVNULL, "start_new_session": True}  # Linux shares a core among sessions
    spins = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"], **own)
    print(spins.pid, flush=True)
"""


@pytest.fixture
def one_core():
    """The only core for this process and what it starts. Where it can't be chosen, all cores: the list of them."""
    if not hasattr(os, "sched_setaffinity"):
        yield [*range(os.cpu_count() or 1)]
        return
    cores = os.sched_getaffinity(0)
    _pin([min(cores)])
    try:
        yield [min(cores)]
    finally:
        _pin(cores)


def _pin(cores):
    """Each thread has cores of its own, and passes them on to those that it starts."""
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread), cores)


@pytest.fixture
def busy(one_core):
    """Programs that compute: one for each core, and fifteen times more, which are ready to."""
    command = [sys.executable, "-S", "-c", START, str(OTHERS * len(one_core))]
    started = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    try:
        yield
    finally:
        for pid in started.stdout.split():
            os.kill(int(pid), signal.SIGKILL)


def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def computes(n):
    """Needs a third of the seconds that it has."""
    compute(0.2)
    return 2 * n


def computes_and_waits(n):
    for _ in range(8):
        compute(0.02)
        time.sleep(0.01)
    return 2 * n


@pytest.fixture
def question():
    question = Question("numbers/q9", "Double it", "answer", ("Add it.",))

    @question.check("One", points=1, seconds=0.6)
    def one(answer, random):
        assert answer(1) == 2

    return question


@pytest.mark.parametrize("answer", [computes, computes_and_waits])
def test_a_right_answer_has_full_marks(busy, question, answer):
    (result,) = judge(question, {"answer": answer}, "0", "", wall=float("inf")).results
    assert result.passed, result.message


def test_an_endless_answer_is_stopped_for_what_it_has_used(busy, question):
    def forever(n):
        while True:
            pass

    (result,) = judge(question, {"answer": forever}, "0", "", wall=float("inf")).results
    assert result.stopped and not result.passed


def test_an_answer_that_had_no_time_to_answer_is_not_judged(busy, question):
    """The clock of a notebook's cell ends first, and nothing is known of the answer."""
    question.checks[0] = question.checks[0]._replace(seconds=19.0)
    (result,) = judge(question, {"answer": lambda n: compute(18) or 2 * n}, "0", "", wall=2.0).results
    assert result.starved and not result.passed and result.message.startswith("Not judged, run it again")
