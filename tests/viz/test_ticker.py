"""The thread that tells a live picture what changed: seldom enough, the last state always, and it ends."""

from __future__ import annotations

import queue
import threading

import pytest

import dtflab as tf
from dtflab.machine.clock import REAL
from dtflab.viz.drawing import front_end
from dtflab.viz.drawing.ticker import EVERY, Ticker

SOON = 60.0


class Page:
    """A page that hears what is said to pictures, and the moments at which a ticker waits."""

    def __init__(self):
        self.heard = queue.Queue()
        self.waits = queue.Queue()
        self.steps = queue.Queue()

    def send(self, message):
        self.heard.put(message)

    def wait(self, timeout):
        self.waits.put(timeout)
        self.steps.get(timeout=SOON)

    def set(self):
        self.steps.put(None)

    def clear(self):
        pass


@pytest.fixture
def page(monkeypatch):
    page = Page()
    monkeypatch.setattr(front_end, "_widgets", [page])
    return page


def made(page, state, **more):
    one = Ticker("7", state, **more)
    one._wake = page
    return one


def told(page):
    return page.heard.get(timeout=SOON)["says"]


def test_states_are_told_at_most_ten_times_a_second_and_the_last_one_always(page):
    now = {"n": 0}
    one = made(page, lambda: dict(now), every=0.001)
    one.begin()
    assert page.heard.get(timeout=SOON) == {"picture": "7", "says": {"n": 0}}
    assert page.waits.get(timeout=SOON) == EVERY == 0.1
    now["n"] = 1
    page.set()
    assert told(page) == {"n": 1}
    page.waits.get(timeout=SOON)
    now["n"] = 2
    one.end()
    one.end()
    assert told(page) == {"n": 2}
    one.join(SOON)
    assert page.heard.empty()


def test_an_end_before_the_first_state_still_tells_it(page):
    one = made(page, lambda: {"n": 5})
    one.end()
    assert told(page) == {"n": 5}
    one.join(SOON)
    assert page.heard.empty()


def test_an_end_while_a_state_is_taken_is_followed_by_the_last_one(page):
    taken, go_on, states = threading.Event(), threading.Event(), iter(["old", "last"])

    def state():
        says = {"n": next(states)}
        taken.set()
        assert go_on.wait(SOON)
        return says

    one = made(page, state)
    one.begin()
    assert taken.wait(SOON)
    one.end()
    go_on.set()
    assert [told(page), told(page)] == [{"n": "old"}, {"n": "last"}]
    one.join(SOON)


def test_nothing_new_is_not_told(page):
    one = made(page, lambda: None)
    one.begin()
    page.waits.get(timeout=SOON)
    one.end()
    one.join(SOON)
    assert page.heard.empty()


def test_a_picture_that_nobody_sees_rests_until_the_page_shows_it(page, monkeypatch):
    now = 100.0
    monkeypatch.setattr(type(REAL), "now", staticmethod(lambda: now))
    one = made(page, lambda: {"at": now}, patience=20.0)
    one.begin()
    assert told(page) == {"at": 100.0}
    page.waits.get(timeout=SOON)
    now = 121.0
    page.set()
    assert told(page) == {"at": 121.0}
    one.join(SOON)  # it rests
    one.seen()
    assert told(page) == {"at": 121.0}
    one.end()
    assert told(page) == {"at": 121.0}
    one.join(SOON)
    one.seen()  # after the end there is nothing to tell
    assert one._thread is None


def test_a_ticker_that_has_ended_can_begin_again(page):
    one = made(page, lambda: {"n": 1})
    for _ in range(2):
        one.begin()
        assert told(page) == {"n": 1}
        one.end()
        assert told(page) == {"n": 1}
        one.join(SOON)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_is_shown_and_ends_the_thread_not_the_ticker(page, monkeypatch):
    seen = queue.Queue()
    monkeypatch.setattr(threading, "excepthook", seen.put)
    states = iter([None])
    one = made(page, lambda: next(states) or {"n": next(states)})
    one.begin()
    assert seen.get(timeout=SOON).exc_type is StopIteration
    one.join(SOON)
    one._state = lambda: {"n": 3}
    one.begin()
    assert told(page) == {"n": 3}
    one.end()
    assert told(page) == {"n": 3}
    one.join(SOON)


def test_real_seconds_count_in_a_virtual_cluster(page):
    with tf.Cluster(worker=1, clock="virtual"):
        one = made(page, lambda: {"n": 1})
        one.begin()
        assert told(page) == {"n": 1}
        assert page.waits.get(timeout=SOON) == EVERY
        one.end()
        one.join(SOON)
