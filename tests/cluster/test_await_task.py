"""A wait for a task that is not there is reported, however long it takes to ask."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import dtflab as tf
from dtflab.cluster import task
from dtflab.cluster.task import await_task
from dtflab.machine.console import tell_to


@pytest.mark.parametrize(("takes", "notices"), [(0.0, 4), (1.0, 4), (7.0, 2), (30.0, 1)])
def test_who_waits_says_so_before_giving_up(takes, notices, monkeypatch, capsys):
    now = [0.0]

    def ask():
        now[0] += takes
        raise tf.errors.UnavailableError(None, None, "nobody there")

    def sleep(seconds):
        now[0] += seconds

    monkeypatch.setattr(tf.timeouts, "notice", 3)
    with pytest.raises(tf.errors.UnavailableError, match="did not answer within 13 s"):
        await_task(ask, "/job:a", "there:1", SimpleNamespace(now=lambda: now[0], sleep=sleep), 13.0, lambda: False)
    assert capsys.readouterr().err.count("still waiting for response from worker: /job:a at there:1\n") == notices


class Hung:
    """A task that accepts connections from a moment on, and never answers; each question takes 5 s."""

    def __init__(self, monkeypatch, accepts_at):
        self.now = 0.0
        self.accepts_at = accepts_at
        monkeypatch.setattr(tf.timeouts, "silence", 10.0)
        monkeypatch.setattr(task, "_accepts", lambda address: self.now >= accepts_at)

    def ask(self):
        self.now += 5.0
        reason = "no answer" if self.now > self.accepts_at else "connection refused"
        raise tf.errors.UnavailableError(None, None, f"nobody there ({reason}).")

    def wait(self, tell=None):
        clock = SimpleNamespace(now=lambda: self.now, sleep=lambda seconds: None)
        before = tell_to(tell) if tell else None
        try:
            await_task(self.ask, "/job:a", "there:1", clock, 300.0, lambda: False)
        finally:
            if before:
                tell_to(before)


@pytest.mark.parametrize(("accepts_at", "ends"), [(0.0, 20.0), (100.0, 115.0), (280.0, 295.0), (1000.0, 305.0)])
def test_a_task_that_accepts_connections_is_given_up_as_a_silent_one_is(accepts_at, ends, monkeypatch):
    """However long it was not there before."""
    hung = Hung(monkeypatch, accepts_at)
    words = "accepts connections but does not answer" if ends < 300 else "did not answer within 300 s"
    with pytest.raises(tf.errors.UnavailableError, match=words):
        hung.wait()
    assert hung.now == ends


def test_the_line_is_for_the_caller_of_the_thread(monkeypatch, capsys):
    told = []
    with pytest.raises(tf.errors.UnavailableError):
        Hung(monkeypatch, 0.0).wait(told.append)
    assert told and set(told) == {"CreateSession still waiting for response from worker: /job:a at there:1"}
    assert capsys.readouterr().err == ""
