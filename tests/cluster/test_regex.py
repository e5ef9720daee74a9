"""A pattern that backtracks for ages does not keep a server from answering others, with RE2 or without."""

from __future__ import annotations

import threading

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.worker_stub import WorkerStub

SLOW = b"(a+)+b"


def ask(target):
    """The result of `SLOW` on 40 letters there; an error counts, too."""
    with tf.Graph().as_default(), tf.Session(target) as session:
        text = tf.placeholder(tf.string, [])
        replaced = tf.regex_replace(text, SLOW, "c")
        try:
            return session.run(replaced, {text: b"a" * 40}, options=tf.RunOptions(timeout_in_ms=60_000))
        except errors.OpError as error:
            return error


@pytest.mark.parametrize("engine", ["RE2", "re"])
def test_a_server_answers_while_it_matches(engine, monkeypatch, tmp_path):
    if engine == "RE2":
        pytest.importorskip("re2")
    else:
        (tmp_path / "re2.py").write_text("raise ImportError")
        monkeypatch.syspath_prepend(tmp_path)  # the children's, too
    found = []
    with tf.Cluster(worker=1, engine="process") as cluster:
        (task,) = cluster.tasks
        stub = WorkerStub.at(task.name, task.address)
        client = threading.Thread(target=lambda: found.append(ask(cluster.target)))
        client.start()
        while client.is_alive():
            assert stub.get_status(timeout=60)
            client.join(0.05)
        stub.close()
        if engine == "RE2":
            assert found == [b"a" * 40]
        else:
            assert isinstance(found[0], errors.InvalidArgumentError) and "pip install google-re2" in found[0].message
        task._process.stdin.close()
        assert task._process.wait(60) == 0  # the end of its parent is the end of it
