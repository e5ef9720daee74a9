"""The state that servers hold for their sessions, and their refusals, side by side with TensorFlow's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle.graph_defs import both
from tests.oracle.programs import Programs

program = Programs()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a TensorFlow session that never was
@program.each()
def test_same_answer(run):
    theirs, ours = both(run)
    assert ours == theirs


def tried(call: Callable[[], Any]) -> Any:
    """The result of a call, or the class of its error."""
    try:
        return call()
    except Exception as error:
        return f"raises {type(error).__name__}"


def local_server(tf: Any, **options: Any) -> Any:
    """A server; in dtflab it ends with the test."""
    return tf.train.Server.create_local_server(config=tf.ConfigProto(**options))


def stop(server: Any) -> None:
    getattr(server, "stop", lambda: None)()


@program
def the_servers_time_limit_is_that_of_its_sessions(tf):
    """The step is known there when it has to wait: one whose time is up before it begins hangs in TensorFlow."""
    server = local_server(tf, operation_timeout_in_ms=2000)
    queue = tf.FIFOQueue(1, tf.float32)
    put, taken = queue.enqueue(1.0), queue.dequeue()
    with tf.Session(server.target) as session:
        session.run(put)
        found = [tried(lambda: session.run(taken)) for _ in range(2)]
    stop(server)
    return found


@program
def nobody_to_reset_within_the_time_limit(tf):
    config = tf.ConfigProto(operation_timeout_in_ms=50)
    return tried(lambda: tf.Session.reset("grpc://localhost:1", ["a"], config=config))


@program
def addresses_without_a_port(tf):
    jobs = [{"a": ["localhost"]}, {"a": ["localhost:0", "localhost:x"]}, {"a": ["localhost:0"], "b": ["c"]}]
    return [tried(lambda job=job: tf.train.Server(job, job_name="a", task_index=0)) for job in jobs]


@program
def closing_a_session_ends_what_it_runs(tf):
    server = local_server(tf)
    queue = tf.FIFOQueue(1, tf.float32)
    begun = tf.FIFOQueue(1, tf.bool)
    put, has_begun = queue.enqueue(1.0), begun.dequeue()
    with tf.control_dependencies([begun.enqueue(True)]):
        taken = queue.dequeue()
    session = tf.Session(server.target)
    session.run(put)
    session.run([taken, has_begun])
    found = []

    def wait() -> None:
        try:
            session.run([taken])
        except tf.errors.CancelledError as error:
            found.append("Session::Close" in error.message)

    thread = threading.Thread(target=wait)
    thread.start()
    session.run(has_begun)  # a session closed before that would refuse the step otherwise
    session.close()
    thread.join()
    stop(server)
    return found
