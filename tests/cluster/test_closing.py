"""The end of a session's `with` block: the error of the body is the one that is raised, whatever closing meets."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager, nullcontext

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.addresses import free_addresses
from tests.cluster.two_tasks import lab_over
from tests.house import ROOT

# A worker that stands still at its end, when Python has closed what is closed by finalizers, and still answers.
ENDING = """
import atexit, sys
import dtflab as tf
from dtflab.cluster import server

def hold():
    print("ending", flush=True)
    sys.stdin.read()

atexit.register(hold)
ps, worker = sys.argv[1:]
server = tf.train.Server({"ps": [ps], "worker": [worker]}, "worker", 0)
print("serving", flush=True)
sys.stdin.readline()
"""


class Mine(Exception):
    """An error that the body of a test raises."""


ERRORS = pytest.mark.parametrize("error", [Mine(), None], ids=["error", "no error"])


def use_and_end(session, fetched, lose, error):
    """Use a session and lose its target; an error of the body comes out, and nothing else is raised."""
    with nullcontext() if error is None else pytest.raises(Mine), session:
        session.run(fetched)
        lose()
        if error is not None:
            raise error


@pytest.mark.parametrize("wire", ["direct", "grpc", "link"])
def test_closing_that_fails(wire, monkeypatch, caplog):
    def fails(handle, error=None):
        raise errors.InternalError(None, None, "can't close")

    with lab_over(wire) as lab:
        monkeypatch.setattr(lab.tasks[0].master, "close_session", fails)
        use_and_end(lab.session(), tf.constant(1), lambda: None, Mine())
        assert caplog.messages == ["Session failed to close: can't close"]
        with pytest.raises(errors.InternalError, match="can't close"):
            use_and_end(lab.session(), tf.constant(1), lambda: None, None)


@ERRORS
@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_a_target_that_has_died(engine, error):
    with tf.Cluster(worker=3, engine=engine) as cluster:
        use_and_end(tf.Session(cluster.target), tf.constant(1), lambda: cluster.kill("worker", 0), error)


@contextmanager
def ending_worker(ps, worker):
    """The process of `ENDING`."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENDING, ps, worker], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "serving\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@ERRORS
def test_a_target_that_is_at_its_end(error):
    ps, worker = free_addresses(2)
    server = tf.train.Server({"ps": [ps], "worker": [worker]}, "ps", 0)
    with tf.device("/job:ps"):
        value = tf.constant(1) + tf.constant(2)
    try:
        with ending_worker(ps, worker) as process:

            def end():
                process.stdin.write("\n")
                process.stdin.flush()
                assert process.stdout.readline() == "ending\n"

            use_and_end(tf.Session(f"grpc://{worker}"), value, end, error)
    finally:
        server.stop()
