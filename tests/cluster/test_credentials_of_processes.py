"""Tasks in processes of their own: what they ask callers for, who has it, and where it does not show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import grpc
import pytest

import dtflab as tf
from dtflab.base import credentials as the_credentials, errors
from dtflab.base.credentials import PLAIN, Credentials
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.cluster.process import ProcessTask
from tests.cluster.test_credentials import LINE, one_plus_one, trained
from tests.house import ROOT

TRAIN = """
import sys
import dtflab as tf
from tests.cluster.test_credentials import trained
print(*trained(sys.argv[1]))
"""


def in_a_program(target: str, environment: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    """Train in another program, which knows the target and its environment alone."""
    command = [sys.executable, "-c", TRAIN, target]
    return subprocess.run(command, cwd=ROOT, env=dict(environment), capture_output=True, text=True)


def weights(done: subprocess.CompletedProcess[str]) -> list[float]:
    assert done.returncode == 0, done.stderr
    return [float(text) for text in done.stdout.split()]


@pytest.mark.processes
def test_a_task_that_chooses_its_port_is_remembered_there_and_nowhere_else():
    task = ProcessTask(ClusterSpec({"worker": ["localhost:0"]}), "worker", 0, credentials=Credentials(token="t" * 32))
    try:
        task.wait_ready(60)
        assert the_credentials.at(task.address).token == "t" * 32
        assert the_credentials.at("localhost:0") == PLAIN
    finally:
        task.stop()
    assert the_credentials.at(task.address) == PLAIN


def test_each_cluster_has_a_token_of_its_own(tmp_path):
    with tf.Cluster(ps=1, worker=1, engine="process") as cluster, tf.Cluster(worker=1, engine="process") as other:
        assert cluster.credentials.token and cluster.credentials != other.credentials
        assert trained(cluster.target) == LINE
        assert {call.method for call in cluster.calls()} >= {"RunGraph", "RecvTensor"}
        assert "CPU:0" in cluster.status()
        refused = in_a_program(cluster.target)
        assert refused.returncode == 1 and "asks each caller for its token, and this call has none" in refused.stderr
        cluster.credentials.save(tmp_path)
        admitted = in_a_program(cluster.target, os.environ | {"DTFLAB_CREDENTIALS": str(tmp_path)})
        assert weights(admitted) == LINE
        with pytest.raises(errors.UnauthenticatedError, match="does not prove that it has the token"):
            one_plus_one(cluster.target, other.credentials)
        cluster.kill("ps")
        cluster.restart("ps")
        assert trained(cluster.target) == LINE
        shown = "\n".join(["", cluster.status(), repr(cluster), refused.stderr, *cluster.tasks[0].log])
        shown += "".join(seen_by_ps(task.pid) for task in cluster.tasks)
        assert cluster.credentials.token not in shown
        address = cluster.tasks[0].address
        assert address.rpartition(":")[2] not in seen_by_ps(cluster.tasks[1].pid)
    assert the_credentials.at(address) is PLAIN


def seen_by_ps(pid: int) -> str:
    """The command line and the environment of a process, where the system shows them."""
    files = [Path(f"/proc/{pid}/{name}") for name in ("cmdline", "environ")]
    return "".join(file.read_text() for file in files if file.exists())


def test_a_cluster_that_admits_everybody():
    with tf.Cluster(worker=1, engine="process", token=None) as cluster:
        assert cluster.credentials == PLAIN
        with grpc.insecure_channel(cluster.tasks[0].address) as channel:
            assert channel.unary_unary("/tensorflow.WorkerService/GetStatus")(b"", timeout=60)


def test_processes_train_over_tls(tls):
    with tf.Cluster(ps=1, worker=1, engine="process", credentials=tls.server) as cluster:
        assert cluster.credentials == tls.server
        assert trained(cluster.target) == LINE
        assert trained(cluster.target, tls.client) == LINE
        with pytest.raises(errors.UnauthenticatedError, match="it speaks TLS, and this program has no certificates"):
            one_plus_one(cluster.target, PLAIN)


PS = """
import sys
import dtflab as tf
server = tf.train.Server({"ps": [sys.argv[1]], "worker": [sys.argv[2]]}, sys.argv[3], 0)
print("serves", flush=True)
sys.stdin.read()
"""


def test_programs_that_know_nothing_of_credentials_use_tls(tls):
    """Two servers and a client, as of TF1: each takes the folder that its environment names."""
    addresses = free_addresses(2)

    def environment(who: str) -> dict[str, str]:
        return os.environ | {"DTFLAB_CREDENTIALS": f"{tls.folder}/{who}"}

    servers = [
        subprocess.Popen(
            [sys.executable, "-c", PS, *addresses, job], cwd=ROOT, env=environment("server"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for job in ("ps", "worker")
    ]  # fmt: skip
    try:
        for server in servers:
            assert server.stdout.readline() == "serves\n"
        target = f"grpc://{addresses[1]}"
        assert weights(in_a_program(target, environment("client"))) == LINE
        refused = in_a_program(target)
        assert refused.returncode == 1 and "it speaks TLS" in refused.stderr
    finally:
        for server in servers:
            server.communicate()


def test_a_token_may_be_given():
    with tf.Cluster(worker=1, engine="process", token="a-token-of-the-test") as cluster:
        assert cluster.credentials == Credentials(token="a-token-of-the-test")
        assert one_plus_one(cluster.target) == 2


def test_the_environments_credentials_are_a_clusters(tmp_path, monkeypatch):
    Credentials(token="a-token-of-the-test").save(tmp_path)
    monkeypatch.setenv("DTFLAB_CREDENTIALS", str(tmp_path))
    for engine in ("inprocess", "process"):
        with tf.Cluster(worker=1, engine=engine) as cluster:
            assert cluster.credentials.token == "a-token-of-the-test"
            assert one_plus_one(cluster.target) == 2
        with tf.Cluster(worker=1, engine=engine, token=None) as cluster:
            assert cluster.credentials == PLAIN
            assert one_plus_one(cluster.target) == 2
