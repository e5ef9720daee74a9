"""Threads that take turns: waiting inside of events, guests, Ctrl-C, stopping, several clocks at once."""

from __future__ import annotations

import threading
from collections import deque
from types import SimpleNamespace

import pytest

import dtflab as tf
from dtflab.machine import clock as clocks, patience
from dtflab.virtual import deadlock, guests
from dtflab.virtual.clock import VirtualClock
from dtflab.virtual.deadlock import DeadlockError
from tests.cluster.two_tasks import interrupt_main


def interrupt_soon(started):
    """Ctrl-C, once `started` is set and the main thread stands still."""
    assert started.wait(60)
    interrupt_main("_stand_still")


@pytest.fixture
def cluster():
    with tf.Cluster(ps=1, worker=3, clock="virtual") as cluster:
        yield cluster


def add_in(seconds):
    """A function for py_func that takes virtual seconds."""

    def function(x):
        tf.sim.sleep(seconds)
        return x + 1

    return function


def test_a_kernel_that_sleeps_takes_that_long_and_others_go_on_meanwhile(cluster):
    def program(client):
        with tf.device(client.device), tf.Session(client.target) as session:
            result = session.run(tf.py_func(add_in(3.0 + client.index), [tf.constant(1.0)], tf.float32))
        return float(result), tf.sim.now()

    found = cluster.run(program)
    assert [result for result, _ in found] == [2.0] * 3
    assert [seconds for _, seconds in found] == pytest.approx([3.0, 4.0, 5.0], abs=0.01)
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:  # and on the main thread
        assert session.run(tf.py_func(add_in(3.0), [tf.constant(1.0)], tf.float32)) == 2.0
    assert cluster.now() == pytest.approx(8.0, abs=0.01)


def test_a_function_of_a_data_set_takes_the_time_of_what_it_calls(cluster):
    def program(client):
        with tf.device(client.device), tf.Session(client.target) as session:
            rows = tf.data.Dataset.range(4).map(lambda x: tf.py_func(add_in(2.0), [x], tf.int64))
            following = tf.data.make_one_shot_iterator(rows.prefetch(4) if client.index else rows).get_next()
            first = int(session.run(following)), tf.sim.now()
            tf.sim.sleep(10.0)  # a prefetching thread goes on meanwhile
            return [first, (int(session.run(following)), tf.sim.now())]

    found = cluster.run(program)
    assert [[number for number, _ in pairs] for pairs in found] == [[1, 2]] * 3
    seconds = [[second for _, second in pairs] for pairs in found]
    assert seconds == [pytest.approx(expected, abs=0.01) for expected in ([2.0, 14.0], [2.0, 12.0], [2.0, 12.0])]


def test_threads_of_the_program_are_guests(cluster, monkeypatch):
    """One waits for what another brings later in real time; the main thread only joins them."""
    monkeypatch.setattr(deadlock, "PATIENCE", 60)  # on a busy machine the other one may be late
    with tf.Graph().as_default() as graph, tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(3, tf.float32, shared_name="between")
        enqueue, dequeue = queue.enqueue(1.0), queue.dequeue()
    found, asked = [], threading.Event()

    def run(op, number, after=None):
        with tf.Session(cluster.target_of("worker", number), graph=graph) as session:
            asked.set() if after is None else after.wait(60)
            found.append(session.run(op))

    threads = [threading.Thread(target=run, args=args) for args in ((dequeue, 0), (enqueue, 1, asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found, key=str) == [1.0, None]


def test_time_waits_for_threads_that_the_program_started(monkeypatch):
    """Computing between two waits takes no time, and threads that are about to start miss nothing."""
    monkeypatch.setattr(guests, "PATIENCE", 60)  # on a busy machine they may be late
    with tf.Cluster(ps=1, clock="virtual"):
        coordinator, times = tf.train.Coordinator(), []

        def ticks():
            while not coordinator.should_stop():
                tf.sim.sleep(1.0)
                times.append(tf.sim.now())

        threads = [threading.Thread(target=ticks) for _ in range(3)]
        for thread in threads:
            thread.start()
        tf.sim.sleep(4.5)
        assert tf.sim.now() == 4.5
        coordinator.request_stop()
        coordinator.join(threads)
        assert times == sorted(3 * [1.0, 2.0, 3.0, 4.0, 5.0])


def test_who_comes_back_is_expected_until_it_stands_in_line(monkeypatch):
    """In between, nothing that is due may come: it would find that time had passed."""
    monkeypatch.setattr(guests, "PATIENCE", 60)
    left, expected, over = set(), [], guests.Away.leaves

    class Line(deque):
        def append(self, turn):
            expected.extend([turn.thread in clock._away._until] * (turn.thread in left))
            super().append(turn)

    def leaves(away, thread):
        left.add(thread)
        over(away, thread)

    monkeypatch.setattr(guests.Away, "leaves", leaves)
    with tf.Cluster(ps=1, clock="virtual") as cluster:
        clock = cluster.clock
        clock._arrivals = Line()
        threads = [threading.Thread(target=lambda: [tf.sim.sleep(1.0) for _ in range(4)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        tf.sim.sleep(10.0)
        for thread in threads:
            thread.join(60)
    assert expected and all(expected)


def test_a_thread_that_is_just_being_started_is_expected(monkeypatch):
    """The system may take its time; until then it is listed, but not alive."""
    monkeypatch.setattr(guests, "PATIENCE", 60)
    away, main, there = guests.Away(), threading.main_thread(), threading.enumerate()
    monkeypatch.setattr(threading, "enumerate", lambda: [*there, beginning])
    beginning = threading.Thread()
    away.comes(main)
    away.is_in(main)
    assert away.expects() and not beginning.is_alive()
    there, beginning = [*there, beginning], main  # it is there
    assert away.expects()
    there = [main]  # it has ended
    assert not away.expects()


def test_guests_of_whom_nobody_can_be_woken_are_told_although_main_joins_them(cluster):
    with tf.Graph().as_default() as graph:
        dequeue = tf.FIFOQueue(3, tf.float32).dequeue()
    errors = []

    def run():
        with tf.Session(cluster.target, graph=graph) as session, pytest.raises(DeadlockError) as caught:
            session.run(dequeue)
        errors.append(str(caught.value))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(errors) == 2 and "0 of 3 elements" in errors[0]


def computes(client, started):
    with tf.device(client.device), tf.Session(client.target) as session:
        numbers = tf.random_normal([3]) + 1.0
        while True:
            session.run(numbers)
            started.set()


def runs_constants(client, started):
    with tf.device(client.device), tf.Session(client.target) as session:
        while True:
            session.run(tf.constant(1.0))
            started.set()


def sleeps(client, started):
    while True:
        tf.sim.sleep(1.0)
        started.set()


def keeps_the_turn(client, started):
    started.set()
    client.released.wait(60)


@pytest.mark.parametrize("program", [computes, runs_constants, sleeps, keeps_the_turn])
def test_ctrl_c_is_heard_whatever_the_clients_do_and_the_cluster_goes_on(cluster, program):
    started, released = threading.Event(), threading.Event()

    def run(client):
        client.released = released
        return program(client, started)

    threading.Thread(target=interrupt_soon, args=(started,), daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        cluster.run(run)
    released.set()
    before = cluster.now()
    assert cluster.run(lambda client: (tf.sim.sleep(1.0), client.index)[1]) == [0, 1, 2]
    assert cluster.now() > before


def test_ctrl_c_in_a_step_of_the_main_thread(cluster, monkeypatch):
    """Another thread that might still bring something keeps it from being a deadlock."""
    monkeypatch.setattr(deadlock, "PATIENCE", 60)
    started, over = threading.Event(), threading.Event()
    bystander = threading.Thread(target=over.wait, args=(60,))
    bystander.start()
    threading.Thread(target=interrupt_soon, args=(started,), daemon=True).start()
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:
        dequeue = tf.FIFOQueue(3, tf.float32).dequeue()
        started.set()
        with pytest.raises(KeyboardInterrupt):
            session.run(dequeue)
        assert session.run(tf.constant(1.0)) == 1.0
    over.set()
    bystander.join()


def test_stopping_sends_home_who_waits():
    ended = []

    def program(client):
        try:
            tf.sim.sleep(1e6)
        finally:
            ended.append(client.index)

    with tf.Cluster(worker=2, clock="virtual") as cluster:
        cluster.at(5.0, tf.sim.sleep, 1e6)
        cluster.at(10.0, cluster.stop)
        with pytest.raises(tf.errors.CancelledError, match="stopped"):
            cluster.run(program)
    assert sorted(ended) == [0, 1]


def test_an_error_of_what_is_due_is_raised_where_the_program_waits(cluster):
    def fails():
        raise ValueError("due at one")

    cluster.at(1.0, fails)
    with pytest.raises(ValueError, match="due at one"):
        cluster.run(lambda client: tf.sim.sleep(2.0))
    assert cluster.now() == 1.0


def test_clusters_run_within_and_beside_each_other(cluster):
    def sleep(client):
        tf.sim.sleep(1.0)
        return tf.sim.now()

    with tf.Cluster(worker=1, clock="virtual") as other, tf.Cluster(worker=2) as real:

        def program(client):
            assert real.run(lambda _: clocks.current()) == [clocks.REAL] * 2
            return other.run(sleep)[0], cluster.run(sleep)[0], tf.sim.now()

        found = cluster.run(program)
    assert [seconds for seconds, _, _ in found] == [1.0, 2.0, 3.0]  # of the other cluster: one after the other
    assert [seconds for _, _, seconds in found] == [1.0] * 3


def test_the_newest_cluster_says_which_clock_counts():
    with tf.Cluster(worker=1, clock="virtual") as virtual:
        assert clocks.current() is virtual.clock
        with tf.Cluster(worker=1) as real:
            assert clocks.current() is clocks.REAL
            assert virtual.run(lambda client: clocks.current()) == [virtual.clock]
            assert real.run(lambda client: clocks.current()) == [clocks.REAL]
        assert clocks.current() is virtual.clock
    assert clocks.current() is clocks.REAL


def test_however_short_a_sleep_is_time_passes():
    clock = VirtualClock()
    clock.sleep(1e9)
    clock.sleep(1e-12)
    assert clock.now() > 1e9
    clock.stop()


def test_patience_with_guests_begins_again_when_something_has_happened(monkeypatch):
    moment = [0.0]
    monkeypatch.setattr(patience, "REAL", SimpleNamespace(now=lambda: moment[0]))
    monkeypatch.setattr(patience, "_is_another_ready", lambda: False)
    watch, over = deadlock.DeadlockWatch(), threading.Event()
    bystander = threading.Thread(target=over.wait, args=(60,))
    bystander.start()
    inside = {threading.main_thread()}
    assert watch.somebody_may_come(inside, turned=5)
    moment[0] = 10.0
    assert not watch.somebody_may_come(inside, turned=5)
    assert watch.somebody_may_come(inside, turned=6)
    assert not watch.somebody_may_come({*inside, bystander}, turned=6)  # all wait inside
    assert watch.somebody_may_come(set(), turned=6)  # the main thread may do anything
    over.set()
    bystander.join()


def test_a_hundred_functions_may_sleep_at_once():
    def program(client):
        with tf.device(client.device), tf.Session(client.target) as session:
            session.run(tf.py_func(add_in(1.0), [tf.random_normal([])], tf.float32))
        return tf.sim.now()

    with tf.Cluster(worker=100, clock="virtual") as cluster:
        assert cluster.run(program) == pytest.approx([1.0] * 100, abs=0.01)


def test_work_in_a_thread_of_the_librarys_own_is_told_of_a_deadlock_at_once(monkeypatch):
    """An answer that is graded runs in such a thread, and the main one waits for it in real time."""
    monkeypatch.setattr(deadlock, "PATIENCE", 1e6)
    errors_seen, ended = [], threading.Event()

    def program():
        with tf.Cluster(worker=1, clock="virtual") as cluster, tf.Graph().as_default():
            with tf.Session(cluster.target) as session, pytest.raises(DeadlockError) as caught:
                session.run(tf.FIFOQueue(3, tf.float32).dequeue())
            errors_seen.append(caught.value)
        ended.set()

    clocks.REAL.spawn(program, name="work")
    assert ended.wait(60) and "work waits for step 1" in str(errors_seen[0])


def test_an_error_that_is_nobody_s_is_the_program_s_even_if_a_thread_has_waited_longer(cluster):
    """An error of `cluster.at` is one: the thread, which waits first, does not get it; the main thread does."""
    ended = []

    def waits_first():
        tf.sim.sleep(2.0)
        ended.append(tf.sim.now())

    cluster.clock.spawn(waits_first)
    cluster.clock.sleep(0.5)  # lets it begin to wait
    cluster.at(1.0, cluster.kill, "worker", 7)
    with pytest.raises(ValueError, match="has no task"):
        cluster.clock.sleep(5.0)
    assert cluster.now() == 1.0 and ended == []
    cluster.clock.sleep(1.5)
    assert ended == [2.0]
