"""Queues on devices: who waits is seen, is served in order, and goes with its step; queues go with their owners."""

from __future__ import annotations

import gc
import re
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

import dtflab as tf
from dtflab.graph import dtypes
from dtflab.graph.tensor_shape import TensorShape
from dtflab.machine.clock import REAL
from dtflab.ops.queues.queue_state import Get, Put
from dtflab.ops.queues.shared_queue import Queue, Spec


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def cluster():
    with tf.Cluster(ps=1, worker=2) as cluster:
        yield cluster


class Running:
    """A call on a thread; `result()` waits for it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._value: Any = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            self._value = call()
        except Exception as error:
            self._error = error

    def result(self) -> Any:
        self._thread.join(30)
        assert not self._thread.is_alive(), "still waiting after 30 s"
        if self._error is not None:
            raise self._error
        return self._value


def until(condition: Callable[[], Any]) -> None:
    """Let other threads run until `condition()`."""
    for _ in range(30_000):
        if condition():
            return
        REAL.sleep(0.001)
    pytest.fail("did not come about in 30 s")


def gives_up(run: Callable[[Any], Any]) -> tf.errors.DeadlineExceededError:
    """The error of `run(options)`, a step that stood in line until its time was up.

    On a busy machine the time may be up before it has come there; then it gets more.
    """
    for milliseconds in (30, 300, 3_000, 30_000):
        with tf.watch() as seen, pytest.raises(tf.errors.DeadlineExceededError) as caught:
            run(tf.RunOptions(timeout_in_ms=milliseconds))
        if any(event.what == "wait" for event in seen.queues):
            return caught.value
    pytest.fail("did not stand in line within 30 s")


def queues(cluster):
    """(task, name, queue) of all queues of a cluster in this process."""
    return [
        (task.name, name, resource)
        for task in cluster.tasks
        for device in task.server.task.worker.devices
        for _, name, resource in device.resources.items()
        if isinstance(resource, Queue)
    ]


def test_a_cluster_tells_who_waits_at_which_queue(cluster):
    with tf.device("/job:ps"):
        full = tf.FIFOQueue(1, tf.int32, [()], shared_name="full")
        empty = tf.FIFOQueue(-1, tf.int32, [()], name="empty")
    calls = [full.enqueue_many([[1, 2, 3]]), full.close(name="close_full"), empty.dequeue_many(3)]
    session, running = tf.Session(cluster.target), []
    for number, op in enumerate(calls):
        running.append(Running(lambda op=op: session.run(op)))
        until(lambda number=number: sum(" waits at " in line for line in cluster.waits()) > number)
    lines = [line.split(" (step")[0] for line in cluster.waits() if " waits at " in line]
    where = "/job:ps/replica:0/task:0/device:CPU:0"
    assert lines[:2] == [
        f"{where}: fifo_queue_EnqueueMany waits at FIFOQueue 'full' with 1 of 1 elements to enqueue 2 more",
        f"{where}: close_full waits at FIFOQueue 'full' with 1 of 1 elements to close",
    ]
    assert lines[2].endswith(" 'empty' with 0 elements to dequeue 3 more")
    session.run([full.dequeue() for _ in range(2)])
    session.run(empty.enqueue_many([[1, 2, 3]]))
    assert [r.result() is None for r in running] == [True, True, False]
    assert cluster.waits() == []


def test_those_who_wait_are_served_in_the_order_in_which_they_came(cluster):
    q = tf.FIFOQueue(10, tf.int32, [()], shared_name="q")
    session, waiting = tf.Session(cluster.target), []
    for n in range(1, 4):
        waiting.append(Running(lambda n=n: session.run(q.dequeue_many(n)).tolist()))
        until(lambda n=n: len(cluster.waits()) == n)
    session.run(q.enqueue_many([[1, 2]]))
    assert waiting[0].result() == [1]
    assert "1 more" not in cluster.waits()[-1] and len(cluster.waits()) == 2
    session.run(q.enqueue_many([[3, 4, 5, 6]]))
    assert [w.result() for w in waiting[1:]] == [[2, 3], [4, 5, 6]]


def test_clients_of_two_servers_meet_at_a_queue(cluster):
    def build():
        with tf.Graph().as_default() as graph, tf.device("/job:ps"):
            q = tf.FIFOQueue(1, [tf.int32, tf.string], shared_name="q", name=f"made_{REAL.now()}".replace(".", "_"))
            return graph, q

    (graph1, q1), (graph2, q2) = build(), build()
    with graph1.as_default(), tf.Session(cluster.target_of("worker", 0)) as one:
        take = q1.dequeue()
        waiting = Running(lambda: one.run(take))
        until(cluster.waits)
        with graph2.as_default(), tf.Session(cluster.target_of("worker", 1)) as two:
            two.run(q2.enqueue((3, "x")))
            assert waiting.result() == [3, b"x"]


def test_a_queue_without_a_shared_name_goes_with_its_session(cluster):
    q = tf.FIFOQueue(10, tf.int32, name="mine")
    shared = tf.FIFOQueue(10, tf.int32, shared_name="ours")
    put = [q.enqueue(1), shared.enqueue(1)]
    with tf.Session(cluster.target) as one, tf.Session(cluster.target) as two:
        one.run(put)
        assert two.run([q.size(), shared.size()]) == [0, 1]
        assert sorted(name.lstrip("_0123456789") for _, name, _ in queues(cluster)) == ["mine", "mine", "ours"]
    assert [name for _, name, _ in queues(cluster)] == ["ours"]


def test_a_reset_sends_all_away_who_wait(cluster):
    with tf.device("/job:ps"):
        q = tf.FIFOQueue(1, tf.int32, shared_name="q")
    take = q.dequeue()
    mine, others = (tf.Session(cluster.target_of("worker", n)) for n in range(2))
    waiting = [Running(lambda s=s: s.run(take)) for s in (mine, others)]
    until(lambda: sum("waits at" in line for line in cluster.waits()) == 2)
    tf.Session.reset(cluster.target_of("worker", 0))  # it knows only its own sessions, but the queue is gone for all
    for running in waiting:
        with pytest.raises(tf.errors.CancelledError):
            running.result()
    assert queues(cluster) == []


@pytest.mark.parametrize("wait", ["dequeue", "dequeue_many", "enqueue", "close"])
def test_whoever_gives_up_leaves_the_line(cluster, wait):
    q = tf.FIFOQueue(1, tf.int32, [()], shared_name="q")
    session = tf.Session(cluster.target)
    if wait in ("enqueue", "close"):
        session.run(q.enqueue(0))
    more = q.enqueue(7)
    full = Running(lambda: session.run(more)) if wait == "close" else None
    until(lambda: full is None or cluster.waits())
    op = {"dequeue": q.dequeue, "dequeue_many": lambda: q.dequeue_many(2), "enqueue": lambda: q.enqueue(1),
          "close": q.close}[wait]()  # fmt: skip
    gives_up(lambda options: session.run(op, options=options))
    if full is None:
        assert cluster.waits() == []
        return
    closed = q.is_closed()
    assert session.run(q.dequeue()) == 0
    full.result()
    until(lambda: session.run(closed))  # though nobody waits for that any more


def test_ctrl_c_ends_the_wait(cluster):
    q = tf.FIFOQueue(1, tf.int32, shared_name="q")
    take = q.dequeue()
    session = tf.Session(cluster.target)

    def interrupt():
        until(cluster.waits)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    gc.disable()  # Python has no use for an interrupt that comes into a callback of the collector
    try:
        interrupting = Running(interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.run(take)
    finally:
        gc.enable()
    interrupting.result()
    assert cluster.waits() == []
    session.run(q.enqueue(5))
    assert session.run(take) == 5


def test_a_wait_holds_no_thread(cluster):
    before = threading.active_count()
    qs = [tf.FIFOQueue(1, tf.int32, shared_name=f"q{n}") for n in range(50)]
    session = tf.Session(cluster.target)
    takes = [q.dequeue() for q in qs]
    waiting = Running(lambda: session.run(takes))
    until(lambda: len(cluster.waits()) == 50)
    assert threading.active_count() < before + 5
    session.run([q.enqueue(n) for n, q in enumerate(qs)])
    assert waiting.result() == list(range(50))


def test_elements_do_not_change_when_what_was_fed_or_fetched_does():
    import numpy as np

    x = tf.placeholder(tf.float32, [2, 2])
    q = tf.FIFOQueue(9, tf.float32, [(2,)])
    w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    given = np.zeros((2, 2), "f")
    with tf.Session() as session:
        session.run(w.initializer)
        session.run(q.enqueue_many([x]), {x: given})
        given[:] = 9
        session.run(q.enqueue_many([w]))
        session.run(w.assign_add(w))
        first = session.run(q.dequeue())
        first[:] = 7
        assert session.run(q.dequeue_many(3)).tolist() == [[0, 0], [1, 2], [3, 4]]


def test_a_timeout_says_who_was_waiting():
    q = tf.FIFOQueue(1, tf.int32, [[]], name="jobs")
    put = q.enqueue(1)
    with tf.Session() as session:
        session.run(put)
        error = gives_up(lambda options: session.run(put, options=options))
    assert re.search(r"(?s)Timed out.*jobs_enqueue.*test_queue\.py", str(error))
    assert error.op is put and error.device.endswith("CPU:0")


@pytest.mark.parametrize("take", ["dequeue_many", "dequeue_up_to"])
@pytest.mark.parametrize("wrong", [[1, 2], []])
def test_a_count_that_is_no_scalar_is_refused(take, wrong):
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(3, tf.float32, shapes=[[]])
        n = tf.placeholder(tf.int32)
        taken = getattr(queue, take)(n)
        with tf.Session() as session:
            with pytest.raises(tf.errors.InvalidArgumentError, match=rf"expects a scalar for n.*\[{len(wrong) or 0}\]"):
                session.run(taken, {n: wrong})
            session.run(queue.enqueue(5.0))
            assert session.run(taken, {n: 1}).tolist() == [5.0]


class StepThatFails:
    """A step as a queue sees it, in which `meanwhile(cancel)` happens just when a wait is announced to it."""

    def __init__(self, meanwhile: Callable[[Callable[[Exception], object]], object]) -> None:
        self.waits: list[Callable[[Exception], object]] = []
        self._meanwhile = meanwhile

    def on_cancel(self, callback: Callable[[Exception], object]) -> Callable[[], object]:
        self.waits.append(callback)
        self._meanwhile(callback)
        return self.waits.clear


@pytest.fixture
def queue():
    return Queue("jobs", Spec("FIFOQueue", 3, (dtypes.int32,), (TensorShape([]),), 0, (0, 0)))


def test_a_wait_that_ends_while_it_is_announced_is_forgotten(queue):
    came = []
    step = StepThatFails(lambda cancel: queue.join(None, Put([(7,)], 1)))  # on another thread, say
    queue.join(step, Get(1, done=lambda held, error: came.append(held)))
    assert came == [[(7,)]] and not step.waits


def test_a_step_that_has_failed_already_does_not_wait(queue):
    errors = []
    step = StepThatFails(lambda cancel: cancel(ValueError()))
    queue.join(step, Get(1, done=lambda held, error: errors.append(type(error))))
    assert errors == [tf.errors.CancelledError] and not step.waits and not queue.waiting()
