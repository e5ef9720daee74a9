"""A wait for a task that is not there is reported, however long it takes to ask."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import dtflab as tf
from dtflab.cluster.task import await_task


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
