"""Requests that a server or a process cluster refuses, and the errors that its children get."""

from __future__ import annotations

import re
import socket

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.timeouts import Timeouts
from dtflab.cluster import process


def test_an_occupied_port_is_an_error_each_time():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        for _ in range(2):
            with pytest.raises(errors.UnavailableError, match=f"/job:ps/replica:0/task:0 at {address} ended with"):
                tf.Cluster({"ps": [address]}, engine="process")


@pytest.mark.parametrize(
    ("jobs", "options", "says"),
    [
        ({"ps": ["machine-a.invalid:2222"]}, {}, "machine-a.invalid:2222 is beyond loopback: give credentials=…"),
        ({"ps": ["machine-a.invalid:2222"]}, {"insecure": True}, "None of the addresses machine-a.invalid:2222 is of"),
        (
            {"ps": ["localhost:2222"], "worker": ["machine-a.invalid:2222"]}, {"insecure": True},
            "/job:ps/task:0 is at localhost:2222, which tasks of other hosts can't reach",
        ),
    ],
)  # fmt: skip
def test_processes_of_several_hosts_must_be_reached_and_one_must_be_here(jobs, options, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        tf.Cluster(jobs, engine="process", **options)


@pytest.mark.parametrize("options", [{"insecure": True}, {"allow_files": "."}])
def test_tensorflow_servers_have_no_such_options(options):
    with pytest.raises(ValueError, match="know neither insecure=… nor allow_files=…"):
        tf.Cluster(worker=1, engine="tensorflow", **options)


def test_tensorflow_servers_are_on_loopback(monkeypatch):
    monkeypatch.setattr(process.importlib.util, "find_spec", lambda name: object())  # as if it were there
    with pytest.raises(ValueError, match=r"engine='tensorflow' needs loopback addresses.*machine-a\.invalid:2222"):
        tf.Cluster({"ps": ["machine-a.invalid:2222"]}, engine="tensorflow")


def test_tensorflow_that_is_not_installed_is_named_with_the_extra(monkeypatch):
    monkeypatch.setattr(process.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(errors.FailedPreconditionError) as caught:
        tf.Cluster(worker=1, engine="tensorflow")
    assert caught.value.message == (
        "engine='tensorflow' needs the package tensorflow, which is not installed. Install it "
        "(pip install 'dtflab[tensorflow]'), or choose engine='process'."
    )


def test_tensorflow_has_neither_simulated_gpus_nor_virtual_time(monkeypatch):
    monkeypatch.setattr(process.importlib.util, "find_spec", lambda name: True)
    with pytest.raises(ValueError, match="gpus=… simulates GPUs, which TensorFlow servers can't have"):
        tf.Cluster(worker=1, gpus=2, engine="tensorflow")
    with pytest.raises(ValueError, match="needs all tasks in this process"):
        tf.Cluster(worker=1, clock="virtual", engine="tensorflow")


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
