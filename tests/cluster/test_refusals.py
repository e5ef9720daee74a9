"""Requests that a server or a process cluster refuses, and the errors that its children get."""

from __future__ import annotations

import socket

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.timeouts import Timeouts


def test_an_occupied_port_is_an_error_each_time():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        for _ in range(2):
            with pytest.raises(errors.UnavailableError, match=f"/job:ps/replica:0/task:0 at {address} ended with"):
                tf.Cluster({"ps": [address]}, engine="process")


def test_processes_need_loopback_addresses():
    with pytest.raises(ValueError, match=r"needs loopback addresses.*machine-a\.example\.com:2222"):
        tf.Cluster({"ps": ["machine-a.example.com:2222"]}, engine="process")


def test_a_stopped_server_stays_stopped():
    server = tf.train.Server({"a": ["localhost:0"]})
    server.stop()
    with pytest.raises(errors.FailedPreconditionError, match="make a new one"):
        server.start()


def test_protocol_and_task_index():
    with pytest.raises(errors.NotFoundError, match="foo"):
        tf.train.Server({"a": ["localhost:0"]}, protocol="foo")
    with pytest.raises(ValueError, match="Must specify an explicit `task_index`"):
        tf.train.Server({"a": ["localhost:0", "localhost:1"]})


def test_children_get_the_parent_s_timeouts(monkeypatch):
    mine = Timeouts()
    mine.tasks = 3.5
    for name, value in mine.as_environment().items():
        monkeypatch.setenv(name, value)
    assert vars(Timeouts()) == vars(mine)


def test_sessions_share_the_state_and_the_cluster_of_their_server():
    cluster = tf.train.ClusterSpec({"a": ["localhost:1"]}).as_cluster_def()
    server = tf.train.Server.create_local_server()
    for config in (tf.ConfigProto(isolate_session_state=True), tf.ConfigProto(cluster_def=cluster)):
        with tf.Graph().as_default():
            a = tf.constant(1.0)
            with tf.Session(server.target, config=config) as session, pytest.raises(errors.UnimplementedError):
                session.run(a)
            with tf.Session(config=config) as session:  # a session of its own shares nothing
                assert session.run(a) == 1.0
    server.stop()
