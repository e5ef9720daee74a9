"""`dtflab serve`: tasks of a cluster that a shell starts, and what it says of wrong options."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys

import pytest

import dtflab as tf
from dtflab.cluster.addresses import free_addresses


def command(*options):
    return [sys.executable, "-m", "dtflab", "serve", *options]


@contextlib.contextmanager
def served(*options):
    """The process, once it serves."""
    with subprocess.Popen(command(*options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            process.first = process.stdout.readline()
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("as_file", [True, False])
def test_a_cluster_of_two_programs(tmp_path, as_file):
    ps, worker = free_addresses(2)
    spec = json.dumps({"ps": [ps], "worker": {"3": worker}})
    if as_file:
        (tmp_path / "spec.json").write_text(spec)
        spec = str(tmp_path / "spec.json")
    with (
        served("--cluster", spec, "--job", "ps") as one,
        served("--cluster", spec, "--job", "worker", "--task", "3") as two,
    ):
        assert one.first == f"/job:ps/replica:0/task:0 serves at {ps}; Ctrl-C ends it.\n"
        assert "/job:worker/replica:0/task:3" in two.first
        with tf.Graph().as_default(), tf.Session(f"grpc://{worker}") as session:
            with tf.device("/job:ps/task:0"):
                w = tf.Variable(2.0)
            with tf.device("/job:worker/task:3"):
                y = w * 3.0
            session.run(w.initializer)
            assert session.run(y) == 6.0


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_it_ends_when_it_is_asked_to(name):
    (address,) = free_addresses(1)
    with served("--cluster", json.dumps({"ps": [address]}), "--job", "ps") as process:
        process.send_signal(getattr(signal, name))
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--cluster", "{", "--job", "ps"], "--cluster is not JSON"),
        (["--cluster", "nowhere.json", "--job", "ps"], "nowhere.json: No such file or directory"),
        (["--cluster", "[1]", "--job", "ps"], "[1]: No such file"),
        (["--cluster", '{"ps": ["localhost:1"]}', "--job", "sp"], '"sp" was not defined in cluster; its jobs are ps'),
        (["--cluster", '{"ps": ["localhost:1"]}', "--job", "ps", "--task", "7"], "Task 7 was not defined in job"),
        (["--cluster", '{"ps": ["localhost"]}', "--job", "ps"], "host-port pair"),
        (["--cluster", '{"ps": 5}', "--job", "ps"], "job 'ps' must be a list or a dictionary"),
        (["--job", "ps"], "--cluster"),
        (["--cluster", '{"ps": ["localhost:1"]}', "--job", "ps", "--bind", "nohost"], '"nohost" as a host-port pair'),
        (
            ["--cluster", '{"ps": ["localhost:1"]}', "--job", "ps", "--allow-files", "/nonexist"],
            "allow_files must name an existing folder, in which the server may open files; create it first: /nonexist",
        ),
        (["--cluster", '{"ps": ["10.0.0.1:2222"]}', "--job", "ps"], "10.0.0.1:2222 is beyond this machine"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_answered_by_a_sentence(options, says):
    done = subprocess.run(command(*options), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
