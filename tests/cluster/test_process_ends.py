"""How a cluster ends its processes: all are asked before one is waited for; those that do not serve yet are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import dtflab as tf
from dtflab.cluster import process
from dtflab.cluster.process import ProcessTask
from dtflab.machine.clock import REAL
from tests.cluster.two_tasks import interrupt_main, until

READY = f"print({process._READY!r}, flush=True);"
OBEDIENT, DEAF, NEVER_READY = READY + "sys.stdin.read()", READY + "time.sleep(600)", "time.sleep(600)"


class Children:
    """The processes that are started, each with a program of the test's if it has any, and what happens to them."""

    def __init__(self, monkeypatch, programs=()):
        self.all = []
        self.events = []  # ("wait" or "kill", number of the task, seconds of a wait)
        children, popen = self, subprocess.Popen

        class Recorded(popen):
            def __init__(self, command, **options):
                self.number = int(command[-1].rpartition(":")[2])  # /job:worker/task:3
                if programs:
                    command = [sys.executable, "-S", "-c", "import sys, time;" + programs[self.number]]
                super().__init__(command, **options)
                children.all.append(self)

            def wait(self, timeout=None):
                if timeout is not None:
                    children.note("wait", self.number, timeout)
                return super().wait(timeout)

            def kill(self):
                if self.poll() is None:
                    children.note("kill", self.number, None)
                super().kill()

        monkeypatch.setattr(process.subprocess, "Popen", Recorded)
        if programs:  # they can't be asked for their devices
            monkeypatch.setattr(tf.Cluster, "_capacities", lambda cluster: {})
            monkeypatch.setattr(ProcessTask, "_has_answered", lambda task, seconds: task._ready.wait(seconds))

    def note(self, *event):
        if event[0] == "wait" and not self.waits():
            self.asked_at_first_wait = [child.number for child in self.all if child.stdin.closed]
        self.events.append(event)

    def waits(self):
        """Seconds of the waits, in their order."""
        return [seconds for what, _, seconds in self.events if what == "wait"]

    def ended(self):
        """True if all have ended and been waited for."""
        return [child.returncode is not None for child in self.all] == [True] * len(self.all)


def test_a_stopped_cluster_asks_all_before_it_waits_for_one(monkeypatch):
    children = Children(monkeypatch, [OBEDIENT] * 3)
    with tf.Cluster(worker=3, engine="process") as cluster:
        pass
    assert children.asked_at_first_wait == [0, 1, 2] and children.ended()
    cluster.stop()


def test_restarted_tasks_are_asked_before_one_is_waited_for(monkeypatch):
    children = Children(monkeypatch, [OBEDIENT] * 3)
    with tf.Cluster(worker=3, engine="process") as cluster:
        cluster.restart()
        assert children.asked_at_first_wait == [0, 1, 2] and len(children.all) == 6
    assert children.ended()


def test_an_interrupted_start(monkeypatch):
    """Two of four serve and hear nothing. Nothing is in them yet, so all four are killed before one is waited for."""
    children = Children(monkeypatch, [DEAF, DEAF, NEVER_READY, NEVER_READY])
    wait_ready = ProcessTask.wait_ready

    def interrupted(task, timeout, since):
        if task.name.endswith("task:2"):
            raise KeyboardInterrupt
        wait_ready(task, timeout, since)

    monkeypatch.setattr(ProcessTask, "wait_ready", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tf.Cluster(worker=4, engine="process")
    assert children.asked_at_first_wait == [0, 1, 2, 3] and children.ended()
    first_wait = [what for what, *_ in children.events].index("wait")
    assert {number for what, number, _ in children.events[:first_wait] if what == "kill"} == {0, 1, 2, 3}


def test_tasks_that_hear_nothing_share_their_grace(monkeypatch):
    children = Children(monkeypatch, [DEAF] * 3)
    tf.Cluster(worker=3, engine="process").stop()
    assert children.asked_at_first_wait == [0, 1, 2] and children.ended()
    waited = [seconds for what, _, seconds in children.events if what == "wait" and seconds is not None]
    assert waited == sorted(waited, reverse=True) and waited[-1] < waited[0]


def test_a_start_that_is_interrupted_before_the_cluster_knows_the_process(monkeypatch):
    children = Children(monkeypatch, [NEVER_READY])

    def interrupted(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(REAL), "spawn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tf.Cluster(worker=1, engine="process")
    assert len(children.all) == 1 and children.ended()


def test_a_second_interrupt_ends_them_all_the_same(monkeypatch):
    children = Children(monkeypatch, [DEAF] * 3)
    cluster = tf.Cluster(worker=3, engine="process")
    wait = process.subprocess.Popen.wait

    def interrupted(child, timeout=None):
        if timeout is not None:
            raise KeyboardInterrupt
        return wait(child)

    monkeypatch.setattr(process.subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cluster.stop()
    assert children.ended()


def test_ctrl_c_while_sixteen_processes_start(monkeypatch, record_property):
    children, moments = Children(monkeypatch), []

    def interrupt():
        interrupt_main("wait_ready")
        moments.append(time.perf_counter())

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        tf.Cluster(worker=16, engine="process")
    thread.join()
    record_property("until 16 processes had ended, seconds", f"{time.perf_counter() - moments[0]:.2f}")
    assert len(children.all) == 16 and children.ended()


STARTS = """
import sys, threading
import dtflab as tf

def start():
    global cluster
    cluster = tf.Cluster(ps=1, engine="process")

if sys.argv[1] == "thread":
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
else:
    start()
print(cluster.tasks[0].pid, flush=True)
sys.stdin.read()
"""


def state_of(pid):
    """The state of a process in the system's words: T if it is stopped, Z once it has ended, "" once that is known."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for a signal, and reads /proc")
@pytest.mark.parametrize("started_by", ["main", "thread"])
def test_a_stopped_child_ends_with_its_parent(started_by):
    """A child that is stopped until it stays so: the thread that has started it may end only now, which wakes it."""
    command = [sys.executable, "-c", STARTS, started_by]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        try:
            until(lambda: os.kill(child, signal.SIGSTOP) or state_of(child) == "T", "the child is stopped")
            parent.kill()
            until(lambda: state_of(child) in ("", "Z"), "the child has ended")
        finally:
            parent.kill()
            if state_of(child) not in ("", "Z"):
                os.kill(child, signal.SIGKILL)
