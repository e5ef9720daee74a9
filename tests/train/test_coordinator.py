"""Threads that stop together, and queue runners: the same programs on dtflab and, where it is there, on TensorFlow."""

from __future__ import annotations

import importlib
import logging
import re
import sys
import threading

import pytest

PACKAGES = ["dtflab", pytest.param("tensorflow.compat.v1", marks=[pytest.mark.oracle, pytest.mark.live])]


@pytest.fixture(params=PACKAGES, ids=["dtflab", "tensorflow"])
def tf(request):
    tf = pytest.importorskip(request.param) if request.param != "dtflab" else importlib.import_module("dtflab")
    with tf.Graph().as_default():
        yield tf


@pytest.fixture
def lab():
    """For what TensorFlow does not say."""
    tf = importlib.import_module("dtflab")
    with tf.Graph().as_default():
        yield tf


@pytest.fixture
def started():
    """Start threads, and see that they end."""
    threads = []

    def start(*targets):
        new = [threading.Thread(target=target) for target in targets]
        for thread in new:
            thread.start()
        threads.extend(new)
        return new

    yield start
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def raised(call):
    try:
        call()
    except BaseException as error:
        return type(error).__name__, str(error)


# -- Coordinator ------------------------------------------------------------------------------------------------


def test_a_stop_is_requested_and_cleared(tf):
    coord = tf.train.Coordinator()
    assert not coord.should_stop() and not coord.wait_for_stop(0.0) and not coord.joined
    coord.request_stop()
    assert coord.should_stop() and coord.wait_for_stop(0.0) and coord.wait_for_stop()
    coord.join()
    assert coord.joined
    coord.clear_stop()
    assert not coord.should_stop() and not coord.joined


def test_who_waits_is_told(tf, started):
    coord, seen = tf.train.Coordinator(), []
    threads = started(lambda: seen.append(coord.wait_for_stop(30)))
    coord.request_stop()
    coord.join(threads)
    assert seen == [True]


def fails(coord, error, how):
    """A thread that raises `error` and reports it: as it is, as exc_info, or by the context handler."""
    if how == "handler":
        with coord.stop_on_exception():
            raise error
    else:
        try:
            raise error
        except Exception as e:
            coord.request_stop(e if how == "exception" else sys.exc_info())


@pytest.mark.parametrize("how", ["exception", "exc_info", "handler"])
def test_the_first_exception_is_raised_by_join(tf, started, how):
    coord, first = tf.train.Coordinator(), RuntimeError("First")
    threads = started(lambda: fails(coord, first, how))
    assert coord.wait_for_stop(30)
    threads += started(lambda: fails(coord, RuntimeError("Too late"), how))
    with pytest.raises(RuntimeError, match="First") as caught:
        coord.join(threads)
    assert caught.value is first and coord.joined
    with pytest.raises(RuntimeError, match="First"):
        coord.raise_requested_exception()
    with pytest.raises(RuntimeError, match="First"):
        coord.join()


def test_the_traceback_leads_to_the_thread(tf, started):
    coord = tf.train.Coordinator()
    threads = started(lambda: fails(coord, ValueError("there"), "exc_info"))
    with pytest.raises(ValueError) as caught:
        coord.join(threads)
    assert "fails" in [entry.name for entry in caught.traceback]


def test_the_end_of_input_is_no_error(tf):
    end = tf.errors.OutOfRangeError(None, None, "no more")
    coord = tf.train.Coordinator()
    fails(coord, end, "exception")
    assert coord.should_stop()
    coord.join()
    coord.raise_requested_exception()
    other = tf.train.Coordinator(clean_stop_exception_types=[StopIteration, KeyError])
    fails(other, KeyError("k"), "exc_info")
    other.join()
    third = tf.train.Coordinator((StopIteration,))
    fails(third, end, "handler")
    with pytest.raises(tf.errors.OutOfRangeError, match="no more"):
        third.join()


def test_after_join_an_error_is_raised_at_once(tf):
    coord = tf.train.Coordinator()
    coord.request_stop()
    coord.join()
    for how in ("exception", "exc_info", "handler"):
        with pytest.raises(RuntimeError, match="after"):
            fails(coord, RuntimeError("after"), how)
    fails(coord, tf.errors.OutOfRangeError(None, None, "clean"), "exception")
    coord.request_stop()


def test_an_exception_that_nobody_raised_is_refused(tf):
    assert raised(lambda: tf.train.Coordinator().request_stop(RuntimeError("new")))[0] == "TypeError"
    assert raised(lambda: tf.train.Coordinator().request_stop((None, None, None)))[0] == "TypeError"


def test_who_does_not_stop_is_named(tf, started):
    release = threading.Event()
    (laggard,) = started(lambda: release.wait(30))
    laggard.name = "laggard"
    coord = tf.train.Coordinator()
    coord.request_stop()
    coord.register_thread(laggard)
    with pytest.raises(RuntimeError, match="Coordinator stopped with threads still running: laggard"):
        coord.join(stop_grace_period_secs=0.01)
    coord.join([laggard], stop_grace_period_secs=0.01, ignore_live_threads=True)
    coord.join()  # what was registered is forgotten
    release.set()


def test_a_long_wait_names_who_is_waited_for(lab, started, capsys, monkeypatch):
    release = threading.Event()
    (laggard,) = started(lambda: release.wait(30))
    laggard.name = "laggard"
    coord = lab.train.Coordinator()
    coord.request_stop()
    coord.join([laggard], stop_grace_period_secs=0.01, ignore_live_threads=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(lab.timeouts, "notice", 0.0)
    coord.join([laggard], stop_grace_period_secs=0.01, ignore_live_threads=True)
    release.set()
    lines = set(capsys.readouterr().err.splitlines())
    assert lines == {"Coordinator still waiting for laggard to stop, at most 0 s more (the grace period)"}


def test_the_reported_error_goes_before_the_laggards(tf, started):
    release = threading.Event()
    threads = started(lambda: release.wait(30))
    coord = tf.train.Coordinator()
    fails(coord, RuntimeError("reported"), "exc_info")
    with pytest.raises(RuntimeError, match="reported"):
        coord.join(threads, stop_grace_period_secs=0.01)
    release.set()


def test_threads_that_end_by_themselves_are_joined(tf, started):
    coord = tf.train.Coordinator()
    threads = started(lambda: None, lambda: None)
    coord.register_thread(threads[0])
    coord.join(threads)
    assert coord.joined and not coord.should_stop()


# -- LooperThread -----------------------------------------------------------------------------------------------


def test_a_looper_calls_until_the_stop(tf):
    coord, calls = tf.train.Coordinator(), []

    def count(step, limit):
        calls.append(step)
        if len(calls) == limit:
            coord.request_stop()

    looper = tf.train.LooperThread.loop(coord, None, count, (2,), {"limit": 5})
    coord.join()
    assert calls == [2] * 5 and not looper.is_alive()


def test_a_looper_on_a_timer(tf):
    coord, turns = tf.train.Coordinator(), []

    class Looper(tf.train.LooperThread):
        def start_loop(self):
            turns.append("start")

        def run_loop(self):
            turns.append("turn")
            if len(turns) == 4:
                self._coord.request_stop()

        def stop_loop(self):
            turns.append("stop")

    looper = Looper(coord, 0.001)
    looper.start()
    coord.join([looper])
    assert turns == ["start", "turn", "turn", "turn", "stop"]


def test_a_looper_s_error_stops_the_others(tf):
    coord = tf.train.Coordinator()

    def fail():
        raise ValueError("in the loop")

    other = tf.train.LooperThread.loop(coord, 3600, lambda: None)
    tf.train.LooperThread.loop(coord, 0, fail)
    with pytest.raises(ValueError, match="in the loop"):
        coord.join()
    assert not other.is_alive()


def test_a_looper_s_arguments(tf):
    coord = tf.train.Coordinator()
    assert raised(lambda: tf.train.LooperThread(5, 1)) == (
        "ValueError",
        "'coord' argument must be a Coordinator: 5",
    )
    assert raised(lambda: tf.train.LooperThread(coord, 1, args=(1,)))[0] == "ValueError"


# -- QueueRunner ------------------------------------------------------------------------------------------------


def counter(tf, limit):
    """A variable, and an operation that counts it up to the limit and then says OutOfRange."""
    variable = tf.Variable(tf.constant(0, tf.int64), use_resource=False)
    return variable, variable.count_up_to(limit)


def run_all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_a_runner_runs_its_ops_until_they_end(tf):
    (few, to_few), (many, to_many) = counter(tf, 3), counter(tf, 30)
    queue = tf.FIFOQueue(10, tf.float32)
    runner = tf.train.QueueRunner(queue, [to_few, to_many])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        run_all(runner.create_threads(session))
        assert runner.exceptions_raised == []
        assert session.run([few, many]) == [3, 30]
        with pytest.raises(tf.errors.OutOfRangeError, match="is closed"):
            session.run(queue.dequeue())


def test_from_queue_to_queue(tf):
    source, sink = tf.FIFOQueue(3, tf.float32), tf.FIFOQueue(30, tf.float32)
    fill, close, get = source.enqueue((10.0,)), source.close(), sink.dequeue()
    runner = tf.train.QueueRunner(sink, [sink.enqueue((source.dequeue(),))])
    with tf.Session() as session:
        threads = runner.create_threads(session, start=True)
        for op in (fill, fill, close):
            session.run(op)
        for thread in threads:
            thread.join(30)
        assert runner.exceptions_raised == [] and [session.run(get), session.run(get)] == [10.0, 10.0]
        with pytest.raises(tf.errors.OutOfRangeError, match="is closed"):
            session.run(get)


def test_a_stop_before_the_start(tf):
    variable, count = counter(tf, 3)
    runner = tf.train.QueueRunner(tf.FIFOQueue(10, tf.float32), [count])
    coord = tf.train.Coordinator()
    coord.request_stop()
    with tf.Session() as session:
        session.run(variable.initializer)
        threads = runner.create_threads(session, coord)
        assert len(threads) == 2
        run_all(threads)
        coord.join(threads)
        assert session.run(variable) == 0 and runner.exceptions_raised == []


def test_a_stop_cancels_what_waits(tf):
    queue = tf.FIFOQueue(1, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue((1.0,))])
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        runner.create_threads(session, coord, start=True)
        session.run(queue.dequeue())
        coord.request_stop()
        coord.join()  # the registered threads


class FailingOp:
    name = "failing"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_errors_without_a_coordinator_are_kept(tf):
    variable, count = counter(tf, 3)
    runner = tf.train.QueueRunner(tf.FIFOQueue(10, tf.float32), [count, FailingOp()])
    with tf.Session() as session:
        session.run(variable.initializer)
        for _ in range(2):  # each round forgets the errors of the one before
            run_all(runner.create_threads(session))
            (error,) = runner.exceptions_raised
            assert isinstance(error, TypeError)


def test_errors_go_to_the_coordinator(tf):
    runner = tf.train.QueueRunner(tf.FIFOQueue(10, tf.float32), [FailingOp()])
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        threads = runner.create_threads(session, coord, start=True)
        with pytest.raises(TypeError):
            coord.join(threads)
        assert runner.exceptions_raised == []


def test_a_failure_that_closes_a_queue_is_told(lab, caplog):
    """TensorFlow leaves it to `join`; a dequeue before that learns only that the queue is closed."""
    queue = lab.FIFOQueue(10, lab.string, name="examples")
    runner = lab.train.QueueRunner(queue, [queue.enqueue(lab.read_file("nowhere"))])
    coord = lab.train.Coordinator()
    with caplog.at_level(logging.WARNING, "tensorflow"), lab.Session() as session:
        threads = runner.create_threads(session, coord, start=True)
        with pytest.raises(lab.errors.NotFoundError):
            coord.join(threads)
    (line,) = (record.getMessage() for record in caplog.records)
    assert re.match(r"A thread .* runner of examples failed.*coord\.join\(threads\).*NotFoundError: .*nowhere", line)


def test_the_end_of_a_session_is_no_failure(lab, caplog):
    queue = lab.FIFOQueue(1, lab.float32)
    runner = lab.train.QueueRunner(queue, [queue.enqueue(1.0)])
    coord = lab.train.Coordinator()
    with caplog.at_level(logging.WARNING, "tensorflow"):
        with lab.Session() as session:
            threads = runner.create_threads(session, coord, start=True)
            session.run(queue.dequeue())
        assert coord.wait_for_stop(30)
        for thread in threads:
            thread.join(30)
    assert not caplog.records


def test_one_set_of_threads_per_session(tf):
    queue = tf.FIFOQueue(1, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue((1.0,))])
    coord = tf.train.Coordinator()
    with tf.Session() as first, tf.Session() as second:
        threads = runner.create_threads(first, coord)
        assert len(threads) == 2 and runner.create_threads(first, coord) == []
        others = runner.create_threads(second, coord)
        assert len(others) == 2
        for thread in threads + others:
            thread.start()
        coord.request_stop()
        coord.join()


def test_threads_are_named_after_queue_and_op(tf):
    queue = tf.FIFOQueue(1, tf.float32, name="q")
    runner = tf.train.QueueRunner(queue, [tf.no_op(name="a"), tf.no_op(name="b")])
    assert runner.name == "q"
    with tf.Session() as session:
        threads = runner.create_threads(session, tf.train.Coordinator(), daemon=True)
        assert [t.name for t in threads] == [f"QueueRunnerThread-q-{n}" for n in ("a", "b", "close_on_stop")]
        assert all(t.daemon for t in threads)
        assert not any(t.daemon for t in tf.train.QueueRunner(queue, [tf.no_op()]).create_threads(session))


def test_closed_means_what_the_program_says(tf):
    queue = tf.FIFOQueue(1, tf.float32)
    error = tf.errors.OutOfRangeError
    assert tf.train.QueueRunner(queue, [tf.no_op()]).queue_closed_exception_types == (error,)
    both = (error, tf.errors.CancelledError)
    assert tf.train.QueueRunner(queue, [tf.no_op()], queue_closed_exception_types=both).to_proto() is not None
    for types in ([error], (), (1,), 5):
        assert raised(lambda t=types: tf.train.QueueRunner(queue, [tf.no_op()], queue_closed_exception_types=t))[0] == (
            "TypeError"
        )
    for arguments in ({}, {"queue": queue}, {"queue": queue, "enqueue_ops": []}, {"enqueue_ops": [tf.no_op()]}):
        assert raised(lambda a=arguments: tf.train.QueueRunner(**a)) == (
            "ValueError",
            "Must provide queue and enqueue_ops.",
        )


def test_a_runner_travels_as_a_message(tf):
    with tf.name_scope("scope"):
        queue = tf.FIFOQueue(10, tf.float32, name="queue")
        fill = tf.no_op(name="fill")
        error = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
        runner = tf.train.QueueRunner(queue, [fill], queue_closed_exception_types=error)
    message = runner.to_proto()
    assert [message.queue_name, list(message.enqueue_op_name), message.close_op_name, message.cancel_op_name] == [
        "scope/queue", ["scope/fill"], "scope/queue_Close", "scope/queue_Close_1",
    ]  # fmt: skip
    assert list(message.queue_closed_exception_types) == [11, 1]
    assert runner.to_proto("other") is None and runner.to_proto("scope").queue_name == "queue"
    again = tf.train.QueueRunner.from_proto(message)
    assert (again.queue.name, again.enqueue_ops, again.close_op) == ("scope/queue", [fill], runner.close_op)
    assert again.cancel_op is runner.cancel_op and again.queue_closed_exception_types == error
    inside = tf.train.QueueRunner.from_proto(runner.to_proto("scope"), import_scope="scope")
    assert inside.to_proto() == message
    del message.queue_closed_exception_types[:]
    old = tf.train.QueueRunner(queue_runner_def=message)
    assert old.queue_closed_exception_types == (tf.errors.OutOfRangeError,)
    assert raised(lambda: tf.train.QueueRunner(queue, queue_runner_def=message)) == (
        "ValueError",
        "queue_runner_def and queue are mutually exclusive.",
    )


# -- start_queue_runners ----------------------------------------------------------------------------------------


def test_all_runners_of_the_graph_are_started(tf):
    (one, to_one), (two, to_two) = counter(tf, 3), counter(tf, 4)
    queue = tf.FIFOQueue(10, tf.float32, name="q")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [to_one]))
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [to_two]), "others")
    assert len(tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS, "q")) == 1
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert len(tf.train.start_queue_runners(start=False, collection="others")) == 1
        threads = tf.train.start_queue_runners(session)
        for thread in threads:
            thread.join(30)
        assert session.run([one, two]) == [3, 0] and all(t.daemon for t in threads)


def test_what_start_queue_runners_refuses(tf):
    assert raised(tf.train.start_queue_runners) == (
        "ValueError",
        (
            "Cannot start queue runners: No default session is registered. Use `with sess.as_default()` or pass an "
            "explicit session to tf.start_queue_runners(sess=sess)"
        ),
    )
    assert raised(lambda: tf.train.start_queue_runners(5)) == (
        "TypeError",
        "sess must be a `tf.Session` object. Given class: <class 'int'>",
    )
    monitored = type("MonitoredSession", (), {})
    assert tf.train.start_queue_runners(monitored()) == []


def test_a_start_of_nothing_is_worth_a_warning(tf, caplog):
    logger = logging.getLogger("tensorflow")
    propagate, logger.propagate = logger.propagate, True
    try:
        with tf.Session() as session:
            assert tf.train.start_queue_runners(session) == []
    finally:
        logger.propagate = propagate
    assert "no queue runners were defined" in caplog.text


# -- basic_train_loop -------------------------------------------------------------------------------------------


class OneSession:
    """A supervisor as far as the loop sees it: managed sessions, and a stop after `steps` steps."""

    def __init__(self, tf, steps=1000):
        self.tf, self.left, self.masters = tf, steps, []

    def managed_session(self, master):
        self.masters.append(master)
        return self.tf.Session(master)

    def should_stop(self):
        self.left -= 1
        return self.left < 0


def test_a_loop_runs_until_the_supervisor_stops(tf):
    supervisor, calls = OneSession(tf, steps=3), []
    tf.train.basic_train_loop(supervisor, lambda s, *a, **k: calls.append((type(s), a, k)), ("y",), {"a": "A"})
    assert calls == [(tf.Session, ("y",), {"a": "A"})] * 3 and supervisor.masters == [""]


def test_a_loop_goes_on_after_a_restart_and_ends_with_another_error(tf):
    supervisor, outcomes = OneSession(tf), iter("aAaE")

    def step(session):
        outcome = next(outcomes)
        if outcome == "A":
            raise tf.errors.AbortedError(None, None, "a server was restarted")
        if outcome == "E":
            raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        tf.train.basic_train_loop(supervisor, step)
    assert supervisor.masters == ["", ""]
