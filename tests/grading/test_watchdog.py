"""A call that never ends is stopped, a deaf one is left behind, and Ctrl-C gets through."""

from __future__ import annotations

import sys
import threading
import time
import weakref

import pytest

import dtflab as tf
from dtflab.grading import watchdog
from dtflab.machine import clock
from dtflab.virtual.clock import VirtualClock
from tests.cluster.two_tasks import until

SOON = 0.2  # seconds


def loop_forever():
    while True:
        pass


def test_a_value_and_an_error():
    done = watchdog.call(lambda: 7, 5)
    assert (done.value, done.error, done.stopped) == (7, None, False)
    failed = watchdog.call(lambda: 1 // 0, 5)
    assert isinstance(failed.error, ZeroDivisionError) and not failed.stopped


def test_leaving_is_an_error_not_an_end():
    def leave():
        raise SystemExit(3)

    assert isinstance(watchdog.call(leave, 5).error, SystemExit)


def test_an_endless_loop_is_stopped():
    outcome = watchdog.call(loop_forever, SOON)
    assert outcome.stopped and not outcome.left_running


def test_a_loop_that_catches_everything_once_is_stopped():
    caught = []

    def stubborn():
        try:
            loop_forever()
        except BaseException as error:
            caught.append(type(error))
        loop_forever()

    outcome = watchdog.call(stubborn, SOON)
    assert outcome.stopped and not outcome.left_running and caught == [watchdog.Stopped]


def test_who_is_stopped_in_a_callback_of_the_garbage_collector_is_stopped_again(capfd):
    """Python can't raise there, and has only words for it: pytest makes a failure of them."""

    class Thing:
        pass

    def forever(_=None):
        while True:
            pass

    def answer():
        thing = Thing()
        watched = weakref.ref(thing, forever)
        del thing  # the first attempt ends in the callback
        assert watched() is None
        forever()

    outcome = watchdog.call(answer, 0.1)
    assert outcome.stopped and not outcome.left_running
    assert capfd.readouterr() == ("", "")


def test_a_deaf_call_is_left_behind(monkeypatch):
    monkeypatch.setattr(watchdog, "_ATTEMPTS", 2)
    release = threading.Event()
    outcome = watchdog.call(release.wait, SOON)
    assert outcome.stopped and outcome.left_running
    release.set()  # it ends; conftest.py looks


@pytest.mark.parametrize("number", [1, 2], ids=["until it begins", "until it ends"])
def test_ctrl_c_stops_the_answer_and_gets_through(number, monkeypatch):
    running = threading.Event()
    ended = threading.Event()

    def answer():
        try:
            running.set()
            loop_forever()
        finally:
            ended.set()

    class Interrupted(type(watchdog.REAL.event())):
        """One of the waits is interrupted, as by Ctrl-C."""

        waits = 0

        def wait(self, timeout=None):
            Interrupted.waits += 1
            if Interrupted.waits == number:
                assert running.wait(60)
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(watchdog.REAL, "event", Interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt):
        watchdog.call(answer, 60)
    assert ended.is_set()


def test_the_limit_is_of_the_call_not_of_the_thread_before_it():
    began = time.monotonic()
    assert watchdog.call(lambda: None, 60).value is None
    assert time.monotonic() - began < 60


def test_seconds_count_from_the_moment_at_which_the_thread_begins(monkeypatch):
    """On a busy machine it may be late: then it has its time all the same, and can be stopped."""
    spawn = watchdog.REAL.spawn

    def late(target, **how):
        return spawn(lambda: (time.sleep(SOON), target()), **how)

    monkeypatch.setattr(watchdog.REAL, "spawn", late, raising=False)
    assert watchdog.call(lambda: 7, SOON / 2).value == 7
    outcome = watchdog.call(loop_forever, SOON / 2)
    assert outcome.stopped and not outcome.left_running


def test_a_call_that_is_slow_to_end_is_stopped_without_a_word(monkeypatch, capsys):
    monkeypatch.setattr(watchdog, "_AGAIN", 0.0)  # as on a busy machine: the next one comes while the thread ends
    for _ in range(20):
        assert watchdog.call(loop_forever, 0.01).stopped
    until(lambda: "dtflab-answer" not in {thread.name for thread in threading.enumerate()}, "all have ended")
    assert capsys.readouterr().err == ""


def test_an_answer_that_never_ends_in_virtual_time_takes_its_cluster_along(monkeypatch):
    """Queue runners wait for their turns: stopped in the middle of its own, one would leave them waiting forever.

    The clock knows that without a look at anybody's frames, whatever its functions are called.
    """
    monkeypatch.setattr(sys, "_current_frames", lambda: pytest.fail("a frame was looked at"))

    def read_forever():
        with (
            tf.Cluster(worker=1, clock="virtual") as cluster,
            tf.Graph().as_default(),
            tf.Session(cluster.target) as sess,
        ):
            queue = tf.FIFOQueue(2, tf.int32, shapes=[[]])
            tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1)] * 3))
            take = queue.dequeue()
            tf.train.start_queue_runners(sess, tf.train.Coordinator())
            while True:
                sess.run(take)

    for _ in range(5):
        outcome = watchdog.call(read_forever, SOON)
        assert outcome.stopped and not outcome.left_running
        assert clock.current() is clock.REAL


def test_nobody_is_broken_off_in_the_middle_of_virtual_time(monkeypatch):
    """The clock refuses three times, then agrees; only then is the answer stopped."""
    asked, stopped_after = [], []

    def may_stop(ident):
        asked.append(ident)
        return len(asked) == 4

    def answer():
        try:
            loop_forever()
        finally:
            stopped_after.append(len(asked))

    monkeypatch.setattr(watchdog, "_AGAIN", 60.0)  # there is one attempt
    monkeypatch.setattr(VirtualClock, "may_stop", staticmethod(may_stop))
    assert watchdog.call(answer, SOON).stopped and stopped_after == [4]
