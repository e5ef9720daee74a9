"""BriefLock: one thread at a time, and free again after an error."""

from __future__ import annotations

import sys
import threading

import pytest

from dtflab.base.brief_lock import BriefLock


@pytest.fixture
def restless():
    """The interpreter changes between threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_one_thread_at_a_time(restless):
    lock, counted = BriefLock(), [0]

    def count():
        for _ in range(3000):
            with lock:
                seen = counted[0]
                sum(range(20))  # where another thread could come in
                counted[0] = seen + 1

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == [12_000]


def test_an_error_leaves_it_free():
    lock = BriefLock()
    with pytest.raises(ValueError), lock:
        raise ValueError
    with lock:
        pass
