"""A wait can be interrupted, a thread works ahead no further than it was asked to, and nothing is left running."""

from __future__ import annotations

import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import dtflab as tf
from dtflab.files.env import DEFAULT
from dtflab.machine.clock import REAL
from dtflab.ops.datasets.dataset import Run
from dtflab.ops.datasets.threads import Calls, Prefetched, ShortCalls
from dtflab.runtime.runner import Step
from tests.cluster.two_tasks import interrupt_main


class Source:
    """Numbers as elements, and how many of them have been asked for."""

    def __init__(self, count: int = 10**9) -> None:
        self.count, self.made = count, 0

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        if self.made == self.count:
            raise StopIteration
        self.made += 1
        return [self.made]


@pytest.fixture
def run():
    run = Run(SimpleNamespace(step=Step(1, REAL), env=DEFAULT))
    yield run
    run.close()


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def threads(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


def until(condition: Any) -> None:
    """Wait for what must come; the test's own limit of time ends what never does."""
    while not condition():
        threading.Event().wait(0.001)


# -- ahead ------------------------------------------------------------------------------------------------------------


def test_a_prefetch_begins_with_the_first_element_and_keeps_as_many_as_it_was_asked_for(run):
    source = Source()
    ahead = Prefetched(source, 3, run)
    assert source.made == 0 and threads("prefetch") == []
    assert next(ahead) == [1]
    until(lambda: source.made == 4)  # one is taken, three are kept
    thread = threads("prefetch")[0]
    run.close()
    thread.join(60)
    assert source.made == 4 and not thread.is_alive()


def test_a_prefetch_that_nobody_holds_ends(run):
    ahead = Prefetched(Source(), 2, run)
    next(ahead)
    thread = threads("prefetch")[0]
    del ahead
    thread.join(60)
    assert not thread.is_alive()


def test_the_thread_of_a_prefetch_ends_with_the_elements(run):
    assert list(Prefetched(Source(3), 2, run)) == [[1], [2], [3]]
    until(lambda: threads("prefetch") == [])


def test_calls_run_side_by_side_and_come_in_order(run):
    begun = [threading.Event() for _ in range(3)]

    def function(element):
        i = element[0] - 1
        begun[i].set()
        for other in begun:  # a call ends when all have begun: one after the other they never would
            assert other.wait(60)
        return [i * 10]

    assert list(Calls(Source(3), function, 3, run)) == [[0], [10], [20]]


def test_calls_ask_for_no_more_elements_than_run(run):
    source = Source()
    calls = Calls(source, lambda element: element, 2, run)
    assert source.made == 0
    assert [next(calls) for _ in range(3)] == [[1], [2], [3]]
    assert source.made == 4


def test_calls_go_to_threads_once_they_take_long(run):
    clock = SimpleNamespace(now=lambda: len(on), spawn=REAL.spawn, event=REAL.event)  # a second for each call
    on: list[str] = []
    run.clock = clock

    def function(element):
        on.append(threading.current_thread().name)
        return element

    here = threading.current_thread().name
    assert list(ShortCalls(Source(6), function, 2, run)) == [[i] for i in range(1, 7)]
    assert on == [here] * 3 + ["map"] * 3
    on.clear()
    run.clock = SimpleNamespace(now=lambda: 0.0)
    assert list(ShortCalls(Source(6), function, 2, run)) == [[i] for i in range(1, 7)] and on == [here] * 6


def test_an_error_in_a_short_call_is_that_of_its_element(run):
    calls = ShortCalls(Source(3), lambda element: [6 // (element[0] - 2)], 2, run)
    assert next(calls) == [-6]
    with pytest.raises(ZeroDivisionError):
        next(calls)
    assert list(calls) == [[6]]


def test_who_waits_for_a_call_is_told_that_the_run_is_over(run):
    begun, end = threading.Event(), threading.Event()

    def function(element):
        begun.set()
        assert end.wait(60)
        return element

    calls = Calls(Source(), function, 1, run)
    threading.Thread(target=lambda: (begun.wait(60), run.close())).start()
    with pytest.raises(tf.errors.CancelledError, match="closed, recreated"):
        next(calls)
    end.set()


# -- steps that wait --------------------------------------------------------------------------------------------------


@pytest.fixture
def waiting():
    """A data set whose elements wait for a queue: the next one, and what lets one come."""
    queue = tf.FIFOQueue(10, tf.int64, [])
    iterator = tf.data.Dataset.range(5).map(lambda x: x * 100 + queue.dequeue()).make_initializable_iterator()
    number = tf.placeholder(tf.int64, [])
    return SimpleNamespace(iterator=iterator, next=iterator.get_next(), number=number, put=queue.enqueue(number))


def in_the_background(session: Any, fetch: Any) -> tuple[threading.Thread, list[Exception]]:
    errors: list[Exception] = []

    def task() -> None:
        try:
            session.run(fetch)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=task)
    thread.start()
    return thread, errors


def test_closing_the_session_ends_a_wait(waiting):
    session = tf.Session()
    session.run(waiting.iterator.initializer)
    thread, errors = in_the_background(session, waiting.next)
    until(lambda: threads("iterator"))
    session.close()
    thread.join(60)
    assert not thread.is_alive() and isinstance(errors[0], tf.errors.CancelledError)
    until(lambda: threads("iterator") == [])


def test_what_comes_after_a_timeout_is_for_the_next_step(waiting):
    with tf.Session() as session:
        session.run(waiting.iterator.initializer)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(waiting.next, options=tf.RunOptions(timeout_in_ms=50))
        session.run(waiting.put, {waiting.number: 7})
        session.run(waiting.put, {waiting.number: 8})
        assert [session.run(waiting.next) for _ in range(2)] == [7, 108]


def test_to_begin_again_sends_away_who_waits(waiting):
    with tf.Session() as session:
        session.run(waiting.iterator.initializer)
        thread, errors = in_the_background(session, waiting.next)
        until(lambda: threads("iterator"))
        session.run(waiting.iterator.initializer)
        thread.join(60)
        assert isinstance(errors[0], tf.errors.CancelledError)
        session.run(waiting.put, {waiting.number: 7})
        assert session.run(waiting.next) == 7


def test_control_c_gets_the_prompt_back(waiting):
    with tf.Session() as session:
        session.run(waiting.iterator.initializer)
        threading.Thread(target=interrupt_main, args=("_wait",)).start()
        with pytest.raises(KeyboardInterrupt):
            session.run(waiting.next)
        session.run(waiting.put, {waiting.number: 7})
        assert session.run(waiting.next) == 7


@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_a_wait_on_another_task_ends_with_the_session(engine):
    with tf.Cluster(ps=1, worker=1, engine=engine) as cluster:
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(10, tf.int64, [])
            iterator = tf.data.Dataset.range(5).map(lambda x: x + queue.dequeue()).make_initializable_iterator()
            element = iterator.get_next()
        with tf.device("/job:worker/task:0"):
            used, put = element + 1, queue.enqueue(tf.constant(7, tf.int64))
        with tf.Session(cluster.target) as session:
            session.run(iterator.initializer)
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(used, options=tf.RunOptions(timeout_in_ms=100))
            for lost in range(3):  # over a wire, the step whose time was up may take the first before it hears of that
                session.run(put)
                with contextlib.suppress(tf.errors.DeadlineExceededError):
                    assert session.run(used, options=tf.RunOptions(timeout_in_ms=20_000)) == 8 + lost
                    break
            assert lost == 0 or engine == "process"
            thread, errors = in_the_background(session, used)
        thread.join(60)
        assert not thread.is_alive()
        assert isinstance(errors[0], tf.errors.CancelledError | tf.errors.AbortedError | RuntimeError)


def test_an_error_names_the_function_its_line_and_the_iterator():
    dataset = tf.data.Dataset.range(3).map(lambda x: 10 // (x - 1))
    element = dataset.make_one_shot_iterator().get_next(name="take")
    with tf.Session() as session:
        assert session.run(element) == -10
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(element)
        assert session.run(element) == 10
    first, second, *_ = caught.value.message.splitlines()
    assert first == "Integer division by zero"
    assert "{{function_node Dataset_map_lambda}}{{node floordiv}}" in second and "test_waiting.py" in second
    assert caught.value.op is element.op


def test_an_iterator_on_a_ps_is_shared_by_two_workers_graphs():
    found: list[int] = []

    def work() -> None:
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            iterator = tf.data.Dataset.range(6).make_initializable_iterator(shared_name="numbers")
            element = iterator.get_next()
            with tf.Session(cluster.target) as session:
                if not found:
                    session.run(iterator.initializer)
                found.extend(int(session.run(element)) for _ in range(3))

    with tf.Cluster(ps=1, worker=2) as cluster:
        work()
        work()
    assert found == [0, 1, 2, 3, 4, 5]


# -- generators -------------------------------------------------------------------------------------------------------


def test_closing_the_session_ends_the_wait_for_a_generator():
    come, yielded = threading.Event(), threading.Event()

    def slow():
        yield 1
        yielded.set()
        come.wait(60)
        yield 2

    element = tf.data.Dataset.from_generator(slow, tf.int32, []).make_one_shot_iterator().get_next()
    session = tf.Session()
    assert session.run(element) == 1
    thread, errors = in_the_background(session, element)
    assert yielded.wait(60)
    session.close()
    thread.join(60)
    assert not thread.is_alive() and isinstance(errors[0], tf.errors.CancelledError)
    come.set()


def test_a_generator_that_was_waited_for_too_shortly_loses_nothing():
    come = threading.Event()

    def slow():
        come.wait(60)
        yield from (1, 2)

    element = tf.data.Dataset.from_generator(slow, tf.int32, []).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(element, options=tf.RunOptions(timeout_in_ms=50))
        come.set()
        assert [session.run(element) for _ in range(2)] == [1, 2]


def test_a_generator_is_closed_with_its_iterator():
    closed = threading.Event()

    def endless():
        try:
            while True:
                yield 1
        finally:
            closed.set()

    element = tf.data.Dataset.from_generator(endless, tf.int32, []).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 1
        assert not closed.is_set()
    assert closed.wait(60)


def test_a_prefetched_generator_works_ahead():
    made = threading.Semaphore(0)

    def numbers():
        for i in range(100):
            made.release()
            yield i

    dataset = tf.data.Dataset.from_generator(numbers, tf.int32, []).prefetch(2)
    element = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(element) == 0
        for _ in range(3):  # the one that was taken, and two ahead
            assert made.acquire(timeout=60)


def test_an_error_that_is_kept_keeps_no_iterator():
    dataset = tf.data.Dataset.range(9).map(lambda x: 10 // (x - 1), num_parallel_calls=2).prefetch(2)
    element = dataset.make_one_shot_iterator().get_next()
    kept = []
    with tf.Session() as session:
        for _ in range(3):
            try:
                session.run(element)
            except tf.errors.OpError as error:
                kept.append(error)
    until(lambda: not any(threads(name) for name in ("iterator", "prefetch", "map")))
    assert len(kept) == 1
