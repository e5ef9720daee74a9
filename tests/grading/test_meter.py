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
from tests.cluster.two_tasks import until


class Answer:
    """Needs seconds of the processor, of which it gets a share; it is the event of its end, and moves the clocks.

    `ready`: the rest of the time its thread is ready to run.
    """

    def __init__(self, needs, share, together=1.0, ready=False):
        self.needs, self.share, self.together, self.ready = needs, share, together, ready
        self.now = self.processor = 0.0
        self.looks = []

    def used(self):
        return meter.Used(self.processor, meter.Threads({7: self.now - self.processor} if self.ready else {}))

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
        monkeypatch.setattr(watchdog, "used", answer.used)
        answer.counted, answer.starved = watchdog._wait(answer, seconds, wall)
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
    assert call(answer := Answer(60, 0.0, ready=True)) and answer.now == pytest.approx(128, abs=1)
    assert answer.starved
    assert call(answer := Answer(60, 1 / 7), wall=25) and answer.now == pytest.approx(25) and answer.counted < 4
    assert answer.starved


@pytest.mark.parametrize("share", [0.0, 0.01, 0.025])
def test_who_is_ready_and_is_not_let_does_not_wait(call, share):
    """A share of less than 3%, as with more than 33 programs on a core; without one it seems to wait."""
    assert not call(enough := Answer(100 * share, share, ready=True)) and not enough.starved
    assert call(never := Answer(60, share, ready=True)) and never.now == pytest.approx(128, abs=1) and never.starved


def test_who_has_had_its_seconds_was_not_starved(call):
    for answer in (Answer(60, 1.0), Answer(60, 1 / 7, ready=True), Answer(60, 0.0), Answer(70, 1.0, together=16)):
        assert call(answer) and not answer.starved


@pytest.mark.parametrize(("wall", "had", "ready", "counts"), [
    (1, 1, 0, 1), (1, 0.5, 0, 0.5), (1, 16, 0, 1), (1, 0, 0, 1), (1, -3, 0, 1), (1, 0.029, 0, 1), (1, 0.05, 0, 0.05),
    (0, 0, 0, 0), (1, 0, 1, 0), (1, 0, 0.75, 0.25), (1, 0.01, 7, 0.01), (1, 0, 0.04, 1), (1, 0.5, 0.5, 0.5),
])  # fmt: skip
def test_what_a_second_counts(wall, had, ready, counts):
    assert meter.counted(wall, had, ready) == counts


def test_a_process_that_ends_takes_its_time_along_and_gives_none_back():
    watch = meter.Meter(10, 0.0, meter.Used(5.0))
    assert not watch.look(0.5, meter.Used(1.0)) and watch.seconds == 0.5 * meter.LEAST
    assert not watch.look(1.0, meter.Used(1.0)) and watch.seconds == 1.0
    assert not watch.look(2.0, meter.Used(1.5)) and watch.seconds == 1.5


def test_a_thread_that_began_meanwhile_counts_with_all_its_time():
    watch = meter.Meter(10, 0.0, meter.Used(0.0, meter.Threads({1: 50.0})))
    assert not watch.look(1.0, meter.Used(0.0, meter.Threads({1: 50.25, 2: 0.5}))) and watch.seconds == 0.25


def test_the_time_in_which_the_grader_itself_was_stopped_does_not_count():
    watch = meter.Meter(10, 0.0, meter.Used())
    assert not watch.look(1.0, meter.Used()) and watch.seconds == 1
    watch.go_on(901.0, meter.Used(5.0))
    assert not watch.look(901.0, meter.Used(5.0)) and watch.seconds == 1
    assert not watch.look(902.0, meter.Used(5.0)) and watch.seconds == 2


def test_while_the_one_that_looks_is_late_nobody_waits():
    """The whole process was stopped, as by a lid that was closed, or by a machine that saves itself."""
    watch = meter.Meter(4, 0.0, meter.Used())
    assert watch.pause(0.0) == 1
    assert not watch.look(90.0, meter.Used(0.5)) and watch.seconds == pytest.approx(90 * meter.LEAST)
    watch = meter.Meter(4, 0.0, meter.Used())
    watch.pause(0.0)
    assert not watch.look(3.0, meter.Used()) and watch.seconds == 1
    assert watch.pause(3.0) == 1
    assert not watch.look(4.0, meter.Used()) and watch.seconds == 2


def test_who_computes_while_the_one_that_looks_is_late_has_had_it():
    """An answer may keep the interpreter's lock."""
    watch = meter.Meter(4, 0.0, meter.Used())
    watch.pause(0.0)
    assert watch.look(5.0, meter.Used(5.0)) and not watch.starved


@pytest.mark.parametrize(("state", "waits"), [("S", True), ("R", False), ("D", False)])
def test_who_waits_for_a_disk_is_ready(state, waits, tmp_path, monkeypatch):
    (folder := tmp_path / "7" / "task" / "8").mkdir(parents=True)
    (folder / "schedstat").write_text("5 2000000000 3\n")
    (folder / "stat").write_text(f"8 (a (name)) {state} 1 2 3\n")
    monkeypatch.setattr(meter, "PROC", tmp_path)
    assert meter.threads([7]) == meter.Threads({8: 2.0}, set() if waits else {8})


def test_a_thread_that_is_ready_at_a_look_was_ready_since_the_last_one():
    """Linux counts that only when it runs again."""
    watch = meter.Meter(10, 0.0, meter.Used(0.0, meter.Threads({1: 50.0})))
    assert not watch.look(1.0, meter.Used(0.0, meter.Threads({1: 50.0}, {1}))) and watch.seconds == meter.LEAST
    assert not watch.look(2.0, meter.Used(0.0, meter.Threads({1: 50.0}))) and watch.seconds == 1 + meter.LEAST


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not count it")
def test_the_system_tells_who_was_ready():
    """Two programs that compute on one processor: each is ready while the other one runs."""
    (cpu, *_) = os.sched_getaffinity(0)
    spin = f"import os; os.sched_setaffinity(0, {{{cpu}}})\nprint(flush=True)\nwhile True: pass"
    children = [subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for child in children:
            child.stdout.readline()
        pids = [child.pid for child in children]
        until(lambda: min(meter.threads(pids).ready[pid] for pid in pids) > 0.1, "both have been ready for a while")
    finally:
        for child in children:
            child.kill()
            child.communicate()


@pytest.mark.skipif(not meter.PROC.is_dir(), reason="the system has no /proc")
def test_a_process_that_ends_during_the_look_has_no_threads(monkeypatch):
    class Ended(type(meter.PROC)):
        def iterdir(self):
            raise FileNotFoundError(self)

    monkeypatch.setattr(meter, "PROC", Ended(meter.PROC))
    assert meter.threads([os.getpid()]) == meter.Threads({}, set())


def test_the_processors_clock_sees_children_running_and_ended():
    program = "import sys, time\nwhile time.process_time() < 0.2: pass\nprint(flush=True)\nsys.stdin.read()"
    before = meter.used().processor
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        child.stdout.readline()
        if meter.processes():  # there is a /proc
            assert child.pid in meter.processes() and meter.processes()[child.pid].parent == os.getpid()
            assert meter.used().processor - before >= 0.15  # ticks of 10 ms
        child.stdin.close()
    assert meter.used().processor - before >= 0.15
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
        monkeypatch.setattr(programs, "used", clock.used)
        return programs._ended(Silent(clock, looks), meter.Meter(7, 0.0, meter.Used()))

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
    monkeypatch.setattr(attempt, "used", clock.used)
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
