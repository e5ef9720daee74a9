"""Which seconds count: an answer has the same mark on an idle and on a busy machine. The test moves the clocks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtflab.grading import attempt, batch, meter, programs, watchdog
from dtflab.grading.catalogue import find
from dtflab.grading.questions import Wrong
from dtflab.grading.submissions import Submission


class Answer:
    """Needs seconds of the processor, of which it gets a share; it is the event of its end, and moves the clocks."""

    def __init__(self, needs, share, together=1.0):
        self.needs, self.share, self.together = needs, share, together
        self.now = self.processor = 0.0
        self.looks = []

    def wait(self, seconds):
        """Passes the time in steps of 5 ms; True as soon as it has what it needs."""
        end = self.now + seconds
        while self.processor < self.needs and self.now < end:
            step = min(0.005, end - self.now)
            self.now += step
            self.processor += step * (self.share(self.now) if callable(self.share) else self.share) * self.together
        self.looks.append(self.processor)
        return self.processor >= self.needs


@pytest.fixture
def call(monkeypatch):
    """Lets an answer run under a limit; whether it was stopped."""

    def call(answer, seconds=4.0, wall=float("inf")):
        monkeypatch.setattr(watchdog.REAL, "now", lambda: answer.now, raising=False)
        monkeypatch.setattr(watchdog, "processor_seconds", lambda: answer.processor)
        answer.counted = watchdog._wait(answer, seconds, wall)
        return answer.processor < answer.needs

    return call


SHARES = (1.0, 0.5, 1 / 7, 0.11)  # 1/7: fourteen programs on two cores


@pytest.mark.parametrize("share", SHARES)
def test_who_computes_has_its_seconds_of_the_processor(call, share):
    assert not call(enough := Answer(3.6, share)) and enough.counted == pytest.approx(3.6, abs=0.3)
    assert call(too_long := Answer(60, share)) and 4 <= too_long.processor < 4.3


def test_a_flood_that_once_lost_a_point_under_load(call):
    assert not call(answer := Answer(2.5, 1 / 7)) and answer.now > 4


@pytest.mark.parametrize("share", [0.0, 0.005])
def test_who_waits_is_stopped_by_the_clock(call, share):
    """Also one that looks every millisecond whether it may go on."""
    assert call(answer := Answer(60, share)) and answer.now == pytest.approx(4, abs=0.1)


def test_who_gets_the_processor_in_bursts_does_not_wait(call):
    bursts = Answer(3.5, lambda now: 1.0 if now % 0.8 > 0.7 else 0.0)
    assert not call(bursts) and bursts.now > 20


def test_many_threads_cost_no_more_than_the_clock(call):
    """Sixteen threads of BLAS have had 4 s of the processor after a quarter of a second."""
    assert not call(answer := Answer(60, 1.0, together=16)) and answer.counted < 4
    assert call(answer := Answer(70, 1.0, together=16)) and answer.now == pytest.approx(4, abs=0.1)


def test_computing_and_then_waiting_forever(call):
    assert call(answer := Answer(60, lambda now: 1.0 if now < 2 else 0.0)) and answer.now == pytest.approx(4, abs=0.3)


def test_every_limit_has_an_end(call):
    assert call(answer := Answer(60, 0.04)) and answer.now == pytest.approx(40, abs=1)
    assert call(answer := Answer(60, 1 / 7), wall=25) and answer.now == pytest.approx(25) and answer.counted < 4


@pytest.mark.parametrize(("wall", "had", "counts"), [
    (1, 1, 1), (1, 0.5, 0.5), (1, 16, 1), (1, 0, 1), (1, -3, 1), (1, 0.029, 1), (1, 0.05, 0.1), (0, 0, 0),
])  # fmt: skip
def test_what_a_second_counts(wall, had, counts):
    assert meter.counted(wall, had) == counts


def test_a_process_that_ends_takes_its_time_along_and_gives_none_back():
    watch = meter.Meter(10, 0.0, 5.0)
    assert not watch.look(0.5, 1.0) and watch.seconds == pytest.approx(0.05)
    assert not watch.look(1.0, 1.0) and watch.seconds == 1.0
    assert not watch.look(2.0, 1.5) and watch.seconds == 1.5


def test_the_processors_clock_sees_children_running_and_ended():
    program = "import sys, time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\nsys.stdin.read()"
    before = meter.processor_seconds()
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        child.stdout.readline()
        if meter.processes():  # there is a /proc
            assert child.pid in meter.processes() and meter.processes()[child.pid].parent == os.getpid()
            assert meter.processor_seconds() - before >= 0.15  # ticks of 10 ms
        child.stdin.close()
    assert meter.processor_seconds() - before >= 0.15
    assert child.pid not in meter.processes()


class Silent:
    """A process that ends after that many looks, or not at all."""

    returncode = 0

    def __init__(self, clock, looks):
        self.clock, self.looks = clock, looks

    def communicate(self, timeout):
        self.clock.wait(timeout)
        if len(self.clock.looks) < self.looks:
            raise subprocess.TimeoutExpired("python", timeout)
        return "said", ""


def test_processes_of_an_answer_have_seconds_that_count(monkeypatch):
    def ended(clock, looks):
        monkeypatch.setattr(programs.REAL, "now", lambda: clock.now, raising=False)
        monkeypatch.setattr(programs, "processor_seconds", lambda: clock.processor)
        return programs._ended(Silent(clock, looks), meter.Meter(7, 0.0, 0.0))

    busy = Answer(99, 1 / 7)
    assert ended(busy, looks=30) == (0, "said", "") and busy.now > 20
    with pytest.raises(Wrong, match="has not ended after 7 s"):
        ended(Answer(99, 0.0), looks=30)


def test_a_cell_is_reminded_when_its_seconds_are_over(monkeypatch):
    clock, sent = Answer(99, 1 / 7), []

    def kill(ident, number):
        sent.append(clock.now)
        clock.needs = 0.0 if len(sent) == 3 else 99  # the cell ends after the third reminder

    monkeypatch.setattr(attempt.REAL, "now", lambda: clock.now, raising=False)
    monkeypatch.setattr(attempt, "processor_seconds", lambda: clock.processor)
    monkeypatch.setattr(attempt.signal, "pthread_kill", kill)
    attempt._remind(1, 4.0, clock)
    assert len(sent) == 3 and 25 < sent[0] < 32


def test_what_reacts_to_nothing_is_ended_by_the_grader():
    """By the seconds that count since the cell, or the question, began."""
    work = batch._Work(Submission(Path("x"), "ada", "ex1", ""), ["1"], [find("placement/q1")], batch.Options())
    limits = {("cell", 1): 30 + attempt.GRACE, ("judging", "placement/q1"): 25, ("cells", None): 1e6}
    for (event, about), most in limits.items():
        work._used = 5.0
        work._take(event, about, None)
        assert (work._is_deaf(5 + most), work._is_deaf(5.1 + most)) == (False, event != "cells")
    work._take("cell", 1, None)
    work._blame("It could not be stopped.")
    assert work.skip == [1] and not work.notes[0].endswith("within 30 s, and could not be stopped.")
    work._is_deaf(work._used + 34)
    work._blame("It could not be stopped.")
    assert work.notes[1] == "Cell 1 was left out. It did not end within 30 s, and could not be stopped."
