"""A step that waits for long says for what: once, to its own client, unless steps of its kind always wait."""

from __future__ import annotations

import contextlib
import threading

import pytest

import dtflab as tf
from dtflab.cluster.link import Link
from dtflab.machine import console
from dtflab.machine.console import listener, say, unheard
from dtflab.runtime.blocked import Once, Report
from dtflab.runtime.master import Master
from dtflab.runtime.runner import Step
from tests.cluster.two_tasks import HERE, THERE, cluster_over, lab_over, until


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(tf.timeouts, "notice", 0.01)


@pytest.fixture
def said(monkeypatch):
    lines: list[str] = []
    monkeypatch.setattr(console, "_write", lambda text, *rest, **more: lines.append(text))
    return lines


@contextlib.contextmanager
def running(session, fetch, **arguments):
    """Run a step on a thread of its own; gives the list of what it returned or raised."""
    found = []

    def run():
        try:
            found.append(session.run(fetch, **arguments))
        except tf.errors.OpError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield found
    thread.join()


def test_a_local_step_names_the_op_and_the_queue(said):
    queue = tf.FIFOQueue(3, tf.float32, name="letters")
    y, put = queue.dequeue(name="take") + 1.0, queue.enqueue(1.0)
    line = (
        "a step has been blocked for 0.01 s: take waits at FIFOQueue 'letters' with 0 of 3 elements to dequeue 1 more"
    )
    with tf.Session() as sess:
        with running(sess, y) as found:
            until(lambda: said, "it is said")
            sess.run(put)
        assert (said, found) == ([line], [2.0])


def test_a_kind_of_step_that_was_reported_and_ended_well_is_not_reported_again(said):
    queue = tf.FIFOQueue(3, tf.float32)
    x, put = queue.dequeue(), queue.enqueue(1.0)

    def watched(fetches, targets):
        step = Step(1)
        signatures = sess._master.session(sess.handle).signatures
        signatures[(), fetches, targets, False].report.watch(step)
        return step.when_blocked is not None

    with tf.Session() as sess:
        sess.run([put])
        sess.run(x)
        assert watched((x.name,), ())
        with running(sess, x):
            until(lambda: said, "it is said")
            sess.run(put)
        assert len(said) == 1 and not watched((x.name,), ()) and watched((), (put.name,))


def test_a_kind_of_step_that_failed_while_it_was_blocked_is_reported_again(said):
    queue = tf.FIFOQueue(3, tf.float32)
    x = queue.dequeue()
    with tf.Session() as sess:
        for times in (1, 2):
            with pytest.raises(tf.errors.DeadlineExceededError):
                sess.run(x, options=tf.RunOptions(timeout_in_ms=50))
            assert len(said) == times


def test_a_step_whose_own_time_is_up_first_says_nothing(said, monkeypatch):
    monkeypatch.setattr(tf.timeouts, "notice", 60.0)
    with tf.Session() as sess, pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(tf.FIFOQueue(3, tf.float32).dequeue(), options=tf.RunOptions(timeout_in_ms=20))
    assert said == []


def test_the_wait_for_an_accumulator_and_that_of_many_ops(said):
    gradients = tf.ConditionalAccumulator(tf.float32, [], name="mean")
    queue = tf.FIFOQueue(3, tf.float32, name="letters")
    waits = [gradients.take_grad(2, name="mean/take"), *(queue.dequeue(name=f"take{n}") for n in range(3))]
    with tf.Session() as sess, running(sess, waits) as found:
        until(lambda: said, "it is said")
        sess.close()
    assert "mean/take waits at accumulator" in said[0] and said[0].endswith(" (and 2 more)")
    assert isinstance(found[0], tf.errors.CancelledError)


@pytest.mark.parametrize("wire", ["direct", "link"])
def test_the_client_hears_of_a_queue_in_another_task(wire, said, monkeypatch):
    news, told = [], Link._told
    monkeypatch.setattr(Link, "_told", lambda link, *what: news.append(what) or told(link, *what))
    with lab_over(wire) as lab:
        with tf.device(THERE):
            queue = tf.FIFOQueue(3, tf.float32, name="q", shared_name="q")
            x, put = queue.dequeue(name="take"), queue.enqueue(1.0)
        with tf.device(HERE):
            y = x + 1.0
        with lab.session() as sess:
            with running(sess, y) as found:
                line = "/job:lab/task:1/device:CPU:0: take waits at FIFOQueue 'q' with 0 of 3 elements"
                until(lambda: any(line in text for text in said), "it is said")
                if wire == "link":  # from the task to its master, and from there to the client; perhaps several times
                    until(lambda: sum(line in text for _, text in news) >= 2, "it has come")
                sess.run(put)
            assert found == [2.0]


def test_a_tensor_is_not_named_once_its_maker_has_named_the_queue(said, monkeypatch):
    looked, tell = [], Report._tell

    def noted(report, step, times=1):
        tell(report, step, times)
        looked.append((len(report._workers), times))

    monkeypatch.setattr(Report, "_tell", noted)
    with lab_over("link") as lab:
        with tf.device(THERE):
            queue = tf.FIFOQueue(3, tf.float32, name="q", shared_name="q")
            x, put = queue.dequeue(name="take"), queue.enqueue(1.0)
        with tf.device(HERE):
            y = x + 1.0
        with lab.session() as sess:
            with running(sess, y) as found:
                until(lambda: said, "the maker has said it")
                until(lambda: (2, 2) in looked, "the master has looked twice")
                sess.run(put)
            assert found == [2.0]
    assert len(said) == 1 and "take waits at FIFOQueue 'q'" in said[0]


def test_a_way_to_the_person_is_one_way():
    lines = []
    once = Once(lines.append)
    for line in ("a step has been blocked for 1 s: x", "a silent peer", "a step has been blocked for 2 s: y"):
        once(line)
    assert lines == ["a step has been blocked for 1 s: x", "a silent peer"]
    assert len({say, Once(say), Once(say)}) == 1 and Once(say) != once


STEPS = {
    "a partial run": lambda sess, y: sess.partial_run(sess.partial_run_setup([y], []), y),
    "a step by hand": lambda sess, y: sess.step_through(y).finish(),
}


@pytest.mark.parametrize("run", STEPS.values(), ids=STEPS)
def test_other_steps_say_what_they_wait_for(said, run):
    queue = tf.FIFOQueue(3, tf.float32, name="letters")
    y, put = queue.dequeue(name="take") + 1.0, queue.enqueue(1.0)
    with tf.Session() as sess:
        found = []
        thread = threading.Thread(target=lambda: found.append(run(sess, y)))
        thread.start()
        until(lambda: said, "it is said")
        sess.run(put)
        thread.join()
    assert "take waits at FIFOQueue 'letters'" in said[0] and found == [2.0]


def test_a_tensor_that_is_pulled_names_the_task_that_owes_it(said):
    with cluster_over("grpc", ps=1, worker=1) as cluster:
        with tf.device("/job:ps"):
            queue = tf.FIFOQueue(3, tf.float32, name="q", shared_name="q")
            x, put = queue.dequeue(name="take"), queue.enqueue(1.0)
        with tf.device("/job:worker"):
            y = x + 1.0
        with tf.Session(cluster.target_of("worker", 0)) as sess, running(sess, y) as found:
            line = "/job:worker/task:0/device:CPU:0 waits for take from /job:ps/task:0"
            until(lambda: any(line in text for text in said), "it is said")
            sess.run(put)
        assert found == [2.0]


def test_steps_of_virtual_time_say_nothing(said, monkeypatch):
    watched = []
    monkeypatch.setattr(Step, "_wakes_soon", lambda step, report: watched.append(step))
    with tf.Cluster(ps=1, worker=1, clock="virtual") as cluster:
        queue = tf.FIFOQueue(3, tf.float32, shared_name="q")
        with tf.Session(cluster.target_of("worker", 0)) as sess, pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(queue.dequeue(), options=tf.RunOptions(timeout_in_ms=20_000))
    assert said == watched == []


def test_a_step_that_cannot_wait_is_not_watched(monkeypatch):
    reports = []
    drive = Master.run_step

    def run_step(master, handle, *rest):
        values = drive(master, handle, *rest)
        reports.extend(signature.report for signature in master.session(handle).signatures.values())
        return values

    monkeypatch.setattr(Master, "run_step", run_step)
    with tf.Session() as sess:
        sess.run(tf.constant(1.0) + 1.0)
    assert reports == [None]


def test_queue_runners_wait_in_silence(said):
    """For room, most of the time; their threads' calls have a listener that says nothing."""
    heard = []

    class Session:
        def make_callable(self, op):
            def enqueue():
                heard.append(listener())
                raise tf.errors.OutOfRangeError(None, None, "the input ends")

            return enqueue

        def run(self, op):
            """Close the queue."""

    queue = tf.FIFOQueue(3, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)])
    for thread in runner.create_threads(Session(), start=True):
        thread.join()
    assert listener() is say and len(heard) == 1
    heard[0]("a line")
    assert said == []
    with unheard():
        assert listener() is heard[0]
