"""Which threads the clock lets be stopped: none in the middle of its turn, and none that others wait for."""

from __future__ import annotations

import sys
import threading

import pytest

import dtflab as tf
from dtflab.virtual import critical
from dtflab.virtual.clock import VirtualClock
from dtflab.virtual.critical import CRITICAL
from dtflab.virtual.engine import Engine
from tests.cluster.two_tasks import until


@pytest.fixture
def clock():
    clock = VirtualClock()
    yield clock
    clock.stop()


def may_stop_here():
    return VirtualClock.may_stop(threading.get_ident())


def asleep(thread):
    """Wait until a thread stands still and may be stopped."""
    until(lambda: thread.ident is not None and VirtualClock.may_stop(thread.ident), f"{thread.name} waits for its turn")


def test_a_thread_that_never_asked_a_clock_may_be_stopped():
    assert VirtualClock.may_stop(0) and may_stop_here()


def test_a_thread_of_the_clock_may_be_stopped_only_while_it_waits_for_its_turn(clock):
    seen = []
    sleeper = clock.spawn(clock.sleep, 3.0, name="sleeper")

    def look():
        seen.append(may_stop_here())
        asleep(sleeper)

    clock.spawn(look).join()
    sleeper.join()
    assert seen == [False]


def test_a_guest_may_be_stopped_before_and_after_its_wait_but_not_while_it_turns_the_engine(clock):
    seen = []

    def guest():
        seen.append(may_stop_here())
        clock.engine.at(1.0, lambda: seen.append(may_stop_here()))
        clock.sleep(2.0)
        seen.append(may_stop_here())

    thread = threading.Thread(target=guest)
    thread.start()
    thread.join(60)
    assert seen == [True, False, True]


def test_a_thread_that_makes_an_event_may_not_be_stopped_even_while_it_waits_there(clock):
    seen, maker = [], []

    def event():
        maker.append(threading.get_ident())
        seen.append(VirtualClock.may_stop(maker[0]))
        clock.sleep(1.0)

    def look():
        clock.sleep(1.5)
        until(lambda: critical._records[maker[0]].waits, "the maker waits for its turn")
        seen.append(VirtualClock.may_stop(maker[0]))

    looks, turns = clock.spawn(look), clock.spawn(clock.sleep, 3.0)  # who waits last turns the engine
    clock.engine.at(1.0, event)
    looks.join()
    turns.join()
    assert maker == [turns.ident]
    assert seen == [False, False]


def test_a_thread_that_stops_a_clock_may_not_be_stopped(clock):
    seen = []

    def stays():
        try:
            clock.sleep(1e6)
        finally:
            seen.append(VirtualClock.may_stop(stopper.ident))

    def stop():
        clock.sleep(1.0)
        clock.stop()

    clock.spawn(stays)
    stopper = threading.Thread(target=stop)
    stopper.start()
    stopper.join(60)
    assert seen == [False]


def test_whoever_adds_an_event_or_turns_the_engine_is_in_a_critical_section(monkeypatch):
    """In a program with threads of its own, steps over two tasks, and a main thread that only waits."""
    places = set()
    for name in ("at", "turn"):
        over = getattr(Engine, name)

        def spied(engine, *args, name=name, over=over):
            caller = sys._getframe(1)
            places.add((name, caller.f_code.co_name, may_stop_here()))
            return over(engine, *args)

        monkeypatch.setattr(Engine, name, spied)

    with tf.Cluster(ps=1, worker=1, clock="virtual") as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            remote = tf.random_normal([]) + 1.0
        with tf.device("/job:worker/task:0"):
            total = remote + tf.random_normal([])
        with tf.Session(cluster.target_of("worker", 0)) as session:
            session.run(total)
        gate = cluster.clock.event()
        waiting = cluster.clock.spawn(gate.wait)
        cluster.clock.sleep(1.0)
        gate.set()
        waiting.join()
    assert {(name, function) for name, function, _ in places} >= {
        ("at", "_wake"),
        ("at", "_wait_inside"),
        ("at", "_carry"),
        ("at", "_run"),
        ("turn", "_turn_engine"),
    }
    assert [place for place in places if place[-1]] == []


def test_sections_within_sections_end_one_by_one_and_with_errors():
    def fail():
        with CRITICAL:
            raise ValueError

    with CRITICAL:
        with pytest.raises(ValueError):
            fail()
        assert not may_stop_here()
    assert may_stop_here()
