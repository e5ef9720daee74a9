"""Patience with a thread that may come: on a busy machine it is longer."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import pytest

from dtflab.machine import patience
from dtflab.machine.patience import Patience


@pytest.fixture
def moment(monkeypatch):
    """The clock of the wall and that of the processor, which a test sets."""
    found = SimpleNamespace(wall=0.0, processor=0.0, ready=False)
    monkeypatch.setattr(patience, "REAL", SimpleNamespace(now=lambda: found.wall))
    monkeypatch.setattr(patience, "time", SimpleNamespace(process_time=lambda: found.processor))
    monkeypatch.setattr(patience, "_is_another_ready", lambda: found.ready)
    return found


def test_it_ends_by_the_clock_where_nobody_is_ready(moment):
    one = Patience(2.0)
    moment.wall = 1.9
    assert not one.is_over()
    moment.wall = 2.0
    assert one.is_over()


def test_who_is_ready_and_does_not_run_is_waited_for_until_the_process_has_computed_as_long(moment):
    one, moment.ready = Patience(2.0), True
    moment.wall, moment.processor = 60.0, 1.9
    assert not one.is_over()
    moment.wall += 1.0
    assert not one.is_over()
    moment.wall, moment.processor = 62.0, 2.0
    assert one.is_over()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which threads are ready")
def test_a_thread_that_computes_is_ready_and_one_that_waits_is_not():
    over = threading.Event()

    def compute():
        while not over.is_set():
            sum(range(1000))

    waits = threading.Thread(target=over.wait)
    waits.start()
    computes = threading.Thread(target=compute)
    computes.start()
    try:
        assert any(patience._is_another_ready() for _ in range(1000))
    finally:
        over.set()
        computes.join()
        waits.join()
