from __future__ import annotations

import os
import threading

import pytest

from dtflab.machine.clock import REAL, Pool
from tests.cluster.two_tasks import until


def test_waiting_tasks_never_keep_another_from_running():
    pool, meeting = Pool(idle=0.01), threading.Barrier(51, timeout=60)
    for _ in range(50):
        pool.submit(meeting.wait)
    meeting.wait()  # all fifty are inside at once


def test_an_idle_thread_takes_the_next_task():
    pool, ran = Pool(idle=1000), []
    for _ in range(5):
        done = threading.Event()
        pool.submit(lambda done=done: (ran.append(threading.get_ident()), done.set()))
        assert done.wait(30)
        until(lambda: pool._idle, "the thread has nothing to do")
    pool.close()
    assert len(ran) == 5 and len(set(ran)) == 1


def test_a_limit_bounds_the_threads_and_no_task_is_lost():
    pool, lock, go_on = Pool(limit=2, idle=0.01), threading.Lock(), threading.Event()
    inside, most, ran = 0, 0, []

    def task(number: int) -> None:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        go_on.wait(30)
        with lock:
            inside -= 1
            ran.append(number)

    for number in range(7):
        pool.submit(lambda number=number: task(number))
    until(lambda: inside == 2, "two are at work")
    go_on.set()
    until(lambda: len(ran) == 7, "all have run")
    assert most == 2 and sorted(ran) == list(range(7))


def test_tasks_run_in_the_order_in_which_they_came():
    pool, ran, done = Pool(limit=1, idle=0.01), [], threading.Event()
    for number in range(100):
        pool.submit(lambda number=number: ran.append(number))
    pool.submit(done.set)
    assert done.wait(30)
    assert ran == list(range(100))


def test_threads_without_work_end():
    pool, threads = Pool(name="short-lived", idle=0.01), []
    pool.submit(lambda: threads.append(threading.current_thread()))
    until(lambda: threads and not threads[0].is_alive(), "the thread has ended")
    assert threads[0].daemon and threads[0].name.startswith("short-lived")
    pool.submit(lambda: threads.append(threading.current_thread()))
    until(lambda: len(threads) == 2, "a new one runs")


def test_many_submit_at_once():
    pool, count, lock = Pool(limit=3, idle=0.001), [0], threading.Lock()

    def add() -> None:
        with lock:
            count[0] += 1

    clients = [REAL.spawn(lambda: [pool.submit(add) for _ in range(500)]) for _ in range(4)]
    for client in clients:
        client.join()
    until(lambda: count[0] == 2000, "all have run")


def test_a_task_of_the_pools_own_thread_never_waits_for_that_thread():
    pool, ran, done = Pool(limit=1, idle=0.01), [], threading.Event()

    def task() -> None:
        pool.submit(lambda: ran.append(threading.current_thread()))
        ran.append(threading.current_thread())
        done.set()

    pool.submit(task)
    assert done.wait(30)
    assert len(ran) == 2 and ran[0] is ran[1]


def test_threads_that_are_let_go_are_replaced():
    pool, waiting, go_on, ran = Pool(limit=3, idle=0.01), threading.Barrier(4), threading.Event(), []

    def wait() -> None:
        ran.append(threading.current_thread())
        waiting.wait(30)
        go_on.wait(30)

    mine, yours, in_line = object(), object(), threading.Event()
    for owner in (mine, mine, yours):
        pool.submit(wait, owner)
    waiting.wait(30)
    pool.submit(in_line.set)
    assert not in_line.is_set()
    pool.let_go(mine)
    assert in_line.wait(30), "a new thread does what was in line"
    assert len(pool._numbers) <= 2, "one works for the other owner, one is new"
    go_on.set()
    until(lambda: not any(thread.is_alive() for thread in ran), "all have ended, of the pool or not")
    until(lambda: not pool._numbers and not pool._busy and not pool._idle, "the pool knows of none")


@pytest.mark.processes
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    pool = Pool(limit=1, idle=60)
    pool.submit(int)
    until(lambda: pool._idle, "the thread has nothing to do")
    child = os.fork()
    if not child:
        ran = threading.Event()
        pool.submit(ran.set)
        os._exit(0 if ran.wait(30) else 1)
    assert os.waitpid(child, 0)[1] == 0
    pool.close()


def test_the_real_clock():
    event = REAL.event()
    start = REAL.now()
    assert not event.wait(0.001)
    assert REAL.now() > start
    found = []
    thread = REAL.spawn(found.append, 5, name="a thread")
    thread.join(30)
    assert found == [5] and not thread.is_alive() and thread.name == "a thread"


def test_a_thread_runs_from_its_start_on():
    ran = []
    thread = REAL.thread(ran.append, 5, name="later", daemon=False)
    assert not thread.is_alive() and ran == [] and thread.name == "later"
    thread.start()
    thread.join(30)
    assert ran == [5]


def test_the_main_thread_waits_in_stretches_so_that_no_signal_is_overlooked(monkeypatch):
    """A SIGINT that comes between CPython's last look and the system call is seen after the stretch."""
    event, stretches, a_lock = REAL.event(), [], threading.Lock

    class Lock:
        def __init__(self):
            self._lock = a_lock()

        def acquire(self, timeout=-1):
            if timeout >= 0:
                stretches.append(timeout)
                if len(stretches) == 3:
                    event.set()
                return self._lock.acquire(blocking=False)
            return self._lock.acquire()

        def release(self):
            self._lock.release()

    monkeypatch.setattr(threading, "Lock", Lock)
    assert event.wait() is True
    monkeypatch.undo()
    assert stretches == [event.STRETCH] * 3


def test_an_event_wakes_all_who_wait_and_stays_set():
    event, woken = REAL.event(), []
    threads = [REAL.spawn(lambda: woken.append(event.wait())) for _ in range(5)]
    while len(event._waiting) < 5:
        REAL.sleep(0.001)
    assert not event.wait(0.001) and len(event._waiting) == 5 and not event.is_set()
    event.set()
    for thread in threads:
        thread.join(60)
    assert woken == [True] * 5 and event.is_set() and event.wait(0) and not event._waiting
    event.clear()
    assert not event.is_set() and not event.wait(0)


def test_no_wake_up_is_lost():
    """Two threads hand a ball over 20,000 times; each turn sets one event and waits for the other."""
    here, there = REAL.event(), REAL.event()

    def play(mine, yours):
        for _ in range(10_000):
            assert mine.wait(60)
            mine.clear()
            yours.set()

    threads = [REAL.spawn(play, here, there), REAL.spawn(play, there, here)]
    here.set()
    for thread in threads:
        thread.join(120)
    assert here.is_set() and not there.is_set()


def test_an_event_that_is_not_set_ends_in_time():
    event = REAL.event()
    assert event.wait(0.0) is False
    assert event.wait(0.01) is False
    event.set()
    assert event.wait(5) is True
