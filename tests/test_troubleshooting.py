"""Each error of docs/troubleshooting.md is provoked here, and has the words under which it stands there."""

from __future__ import annotations

import contextlib
import io
import re
import socket
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import dtflab as tf
from dtflab.cluster import certs, shared_memory
from dtflab.cluster.connection import Connection
from dtflab.cluster.dask_engine import Dask, Worker, _no_room
from dtflab.cluster.engines import Options
from dtflab.cluster.silence import Pulse
from dtflab.files import atomic
from dtflab.grading.catalogue import find
from dtflab.grading.grade import grade, grade_all
from dtflab.notebook.magics import DtfMagics
from dtflab.runtime.session import open_sessions
from dtflab.train.sessions.wrapped_session import _RecoverableSession
from tests.cluster.test_limits import partial_constant
from tests.cluster.two_tasks import cluster_over, lab_over
from tests.files.test_full_disk import Disk
from tests.house import ROOT

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
HEADINGS = [text for text in re.findall(r"^### (.*)$", PAGE, re.M) if text != "Something else"]


def uninitialized():
    tf.Session().run(tf.Variable(1.0))


def not_fed():
    tf.Session().run(tf.placeholder(tf.float32) * 2)


def other_graph():
    a = tf.constant(1)
    with tf.Graph().as_default():
        tf.Session().run(a)


def old_session():
    tf.constant(0)
    sess = tf.Session()
    tf.reset_default_graph()
    sess.run(tf.constant(1))


def closed():
    with tf.Session() as sess:
        pass
    sess.run(tf.constant(1))


def twice():
    for _ in range(2):
        tf.get_variable("w", [1])


def like_tensorflow_2():
    tf.constant(1.0).numpy()


def finalized():
    tf.constant(1)
    with tf.train.MonitoredTrainingSession():
        tf.constant(2)


def shapes():
    tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))


def no_kernel():
    tf.simulate_gpus(1)
    with tf.device("/gpu:0"):
        tf.Session().run(tf.Variable(1).initializer)


def out_of_memory():
    tf.simulate_gpus(1, memory="64MiB")
    with tf.device("/gpu:0"):
        tf.Session().run(tf.fill([4096, 4096], 1.0) + 1.0)


def other_cards():
    first = tf.Cluster({"worker": ["host-a:1"]}, gpus=1, gpu="K40")
    with first:
        tf.Cluster({"worker": ["host-a:2"]}, gpus=2, gpu="K80")


def nobody():
    with socket.socket() as reserved:  # bound, and nobody listens
        reserved.bind(("127.0.0.1", 0))
        tf.Session(f"grpc://localhost:{reserved.getsockname()[1]}").run(tf.constant(1))


def no_certificates():
    certs.make(Path("certs"))
    with cluster_over("grpc", worker=1, credentials=tf.Credentials.load("certs/server")) as cluster:
        tf.Session(cluster.target).run(tf.constant(1))


def no_token():
    with cluster_over("grpc", worker=1, credentials=tf.Credentials(token="a-token-of-the-test")) as cluster:
        tf.Session(cluster.target).run(tf.constant(1))


def no_worker_for_tasks():
    engine = Dask(Options(allow_files="no/such/folder"))
    with mock.patch.multiple(Dask, _other_versions=lambda *_: {"tcp://host:1": "python is 3.10, here 3.11"}):
        engine._examine([Worker("tcp://host:1", "host", 0)])


def no_gpu_of_dask():
    raise _no_room([Worker("tcp://host:1", "host", 0)], [])


def stopped():
    with socket.create_server(("127.0.0.1", 0)) as never_accepts:
        tf.Session(f"grpc://localhost:{never_accepts.getsockname()[1]}").run(tf.constant(1))


def never_asks():
    with tf.viz.live("loss", show=False) as live:
        live(1.0)
        live.stop()
        raise AssertionError(live._status()["status"])


def silent():
    with lab_over("link") as lab, lab.session() as sess, mock.patch.object(Connection, "ping"):
        a = tf.constant(1)
        sess.run(a)
        pulse, connection = Pulse(), sess._master._wire._connection
        connection.calls[a] = str
        for _ in range(3):
            pulse.look(connection, tf.timeouts.silence)
        with contextlib.closing(connection.channel):  # nobody pings over it
            sess.run(a)


def blocked():
    with (
        contextlib.redirect_stderr(io.StringIO()) as said,
        contextlib.suppress(tf.errors.DeadlineExceededError),
        mock.patch.object(tf.timeouts, "notice", 0.001),
    ):
        nobody_fills()
    raise AssertionError(said.getvalue())


def run_again():
    class Session:
        def __init__(self, *errors):
            self._errors = list(errors)

        def run(self, fetch):
            if self._errors:
                raise self._errors.pop()
            return fetch

        def close(self):
            """Nothing is open."""

    sessions = iter([Session(tf.errors.UnavailableError(None, None, "the master died")), Session()])
    creator = SimpleNamespace(create_session=lambda: next(sessions))
    with contextlib.redirect_stderr(io.StringIO()) as said:
        assert _RecoverableSession(creator).run(1) == 1
    raise AssertionError(said.getvalue())


def address_taken():
    with tf.Cluster(worker=1) as cluster:
        tf.train.Server(cluster.spec, "worker", 0)


def bring(job):
    """Run a step in a cluster of which the server is task 0 of that job, or no task."""
    server = tf.train.Server.create_local_server()
    try:
        addresses = [server.target.removeprefix("grpc://")] if job else ["localhost:1"]
        brought = tf.train.ClusterSpec({job or "worker": addresses}).as_cluster_def()
        tf.Session(server.target, config=tf.ConfigProto(cluster_def=brought)).run(tf.constant(1))
    finally:
        server.stop()


def not_in_its_cluster():
    bring("")


def named_as_at_its_start():
    bring("localhost")


def task_gone():
    with tf.Cluster(worker=1) as cluster:
        sess = tf.Session(cluster.target)
        sess.run(tf.constant(1))
        cluster.restart()
        sess.run(tf.constant(1))


def too_few_tasks():
    tf.train.Server({"worker": ["host-b:1"]}, "worker", 1)


def too_large():
    with mock.patch.object(tf.limits, "expanded_bytes", 100):
        tf.import_graph_def(partial_constant(1000))


def no_shared_memory():
    shared_memory._told.clear()
    with contextlib.redirect_stderr(io.StringIO()) as said:
        shared_memory.Leaving("no Unix socket joins the two processes").offer(1)
    raise AssertionError(said.getvalue())


def file_outside():
    server = tf.train.Server({"worker": ["some.name.invalid:1"]}, bind="0.0.0.0:0", insecure=True, allow_files=".")
    try:
        tf.Session(server.target).run(tf.read_file("../text"))
    finally:
        server.stop()


def port_0():
    tf.Session("grpc://localhost:0").run(tf.constant(1))


def end_of_data():
    queue, sess = tf.FIFOQueue(1, tf.float32), tf.Session()
    sess.run(queue.close())
    sess.run(queue.dequeue())


def nobody_fills():
    tf.Session().run(tf.FIFOQueue(1, tf.float32).dequeue(), options=tf.RunOptions(timeout_in_ms=20))


def deadlock():
    with tf.Cluster(worker=1, clock="virtual") as cluster:
        cluster.run(lambda client: tf.Session(client.target).run(tf.FIFOQueue(1, tf.float32).dequeue()))


def no_checkpoint():
    tf.Variable(1.0)
    tf.train.Saver().restore(tf.Session(), "nowhere/model-1")


def disk_full():
    with mock.patch.object(atomic, "open", Disk(room=10).open, create=True):
        tf.Session().run(
            tf.raw_ops.SaveV2(prefix="m", tensor_names=["v"], shape_and_slices=[""], tensors=[tf.zeros([9])])
        )


def contrib():
    tf.contrib.layers  # noqa: B018


def unwritten():
    def answer(*args):
        raise NotImplementedError()

    question = find("placement/q1")
    raise AssertionError(grade_all([question], {question.answer: answer}).text)


def no_question():
    grade("placement/q99")


def no_session():
    for session in open_sessions():  # of tests before this one
        session.close()
    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.register_magics(DtfMagics(shell, {}))
    shell.run_line_magic("dtf_timeline", "None or []")


PROGRAMS = [
    uninitialized, not_fed, other_graph, old_session, closed, twice, like_tensorflow_2, finalized, shapes, no_kernel,
    out_of_memory, other_cards, never_asks,
    nobody, no_certificates, no_token, no_worker_for_tasks, no_gpu_of_dask, stopped, silent, blocked, run_again,
    address_taken, not_in_its_cluster, named_as_at_its_start, task_gone, too_few_tasks, too_large, file_outside, port_0,
    no_shared_memory, end_of_data, nobody_fills, deadlock, no_checkpoint, disk_full, contrib, unwritten, no_question,
    no_session,
]  # fmt: skip


def test_each_has_a_program():
    assert len(HEADINGS) == len(PROGRAMS)


@pytest.mark.parametrize("heading, program", [*zip(HEADINGS, PROGRAMS)], ids=[one.__name__ for one in PROGRAMS])
def test_the_error_has_these_words(heading, program, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tf.timeouts, "connect", 0.1)
    if program is no_certificates:
        pytest.importorskip("cryptography")
    with pytest.raises(BaseException) as caught:
        program()
    assert heading in str(caught.value), f"{type(caught.value).__name__}: {caught.value}"
