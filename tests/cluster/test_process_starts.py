"""How a cluster waits for its processes, and how what they say reaches the person in front."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import process
from dtflab.machine import console
from dtflab.machine.clock import REAL
from tests.cluster.two_tasks import until

READY = f"print({process._READY!r}, flush=True);"


@pytest.fixture
def child(monkeypatch):
    """Let each process run a program of the test's."""

    def runs(program):
        popen = subprocess.Popen
        command = [sys.executable, "-S", "-c", "import sys, time;" + program]
        monkeypatch.setattr(process.subprocess, "Popen", lambda _, **options: popen(command, **options))

    return runs


def test_the_wait_for_a_process_is_told_while_it_lasts(child, monkeypatch):
    child("print('thinking', flush=True); sys.stdin.read()")
    monkeypatch.setattr(tf.timeouts, "notice", 0.01)
    lines = []

    def hear(line):
        lines.append(line)
        if "thinking" in line:
            raise KeyboardInterrupt

    monkeypatch.setattr(process, "say", hear)
    with pytest.raises(KeyboardInterrupt):
        tf.Cluster({"worker": ["localhost:0"]}, engine="process")
    assert lines[-1].startswith("still waiting for /job:worker/task:0 at localhost:")
    assert "which has not started yet (for " in lines[-1] and "Its last lines: thinking. " in lines[-1]


def test_a_task_is_ready_once_it_has_answered(child, monkeypatch):
    child(READY + "sys.stdin.read()")
    with pytest.raises(errors.UnavailableError, match=r"did not start within 0.2 s: it serves but does not answer"):
        tf.Cluster(worker=1, engine="process", timeout=0.2)


def test_a_deadline_that_others_have_used_up(child):
    child("sys.stdin.read()")
    task = process.ProcessTask(tf.train.ClusterSpec({"worker": ["localhost:0"]}), "worker", 0)
    try:
        with pytest.raises(errors.UnavailableError, match="did not start within 600 s"):
            task.wait_ready(600, REAL.now() - 600)
    finally:
        task.kill()
        task.stop()


def test_a_process_that_ends_after_it_was_ready(child):
    child(READY + "print('no more', flush=True); sys.exit(3)")
    with pytest.raises(errors.UnavailableError, match=r"ended with status 3[^$]*no more"):
        tf.Cluster(worker=1, engine="process")


def test_a_line_that_a_child_says_is_shown_as_that_of_its_task(child, monkeypatch, capsys):
    child(f"print('of no interest'); print({process._SAID!r} + 'no room', flush=True);" + READY + "sys.stdin.read()")
    monkeypatch.setattr(process.ProcessTask, "_has_answered", lambda task, seconds: task._ready.wait(seconds))
    with tf.Cluster(worker=1, engine="process") as cluster:
        assert list(cluster.tasks[0].log) == ["of no interest", "no room"]
    assert capsys.readouterr().err == "/job:worker/task:0: no room\n"


def test_what_an_op_prints_in_a_process_is_shown(capfd):
    shown = []
    with tf.Cluster(worker=1, engine="process") as cluster, tf.Graph().as_default():
        with tf.Session(cluster.target) as session:
            session.run(tf.Print(tf.constant(1), [tf.constant(7)], "seven: "))
        until(lambda: shown.append(capfd.readouterr().err) or "\n" in "".join(shown), "it is shown")
    assert "".join(shown) == "/job:worker/task:0: seven: [7]\n"


def test_marked_lines(monkeypatch, capsys):
    monkeypatch.setattr(console, "_mark", "mark ")
    console.say("one\ntwo")
    console.aside()("three")
    assert capsys.readouterr().err == "mark one\nmark two\nthree\n"
    monkeypatch.setattr(console, "_mark", "")
    assert console.aside() is console.say
