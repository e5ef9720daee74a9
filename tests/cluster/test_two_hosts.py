"""A process cluster of two hosts: what the one says is typed on the other. The hosts are two network namespaces."""

from __future__ import annotations

import contextlib
import html
import shlex
import shutil
import subprocess
import sys

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.credentials import PLAIN, Credentials
from dtflab.cluster import addresses, attached, cluster as cluster_module, engines
from dtflab.cluster.addresses import free_addresses, is_here
from dtflab.cluster.attached import AwaitedTask
from dtflab.cluster.serve import command
from tests.cluster.test_attached import elsewhere

HERE, THERE = "10.7.0.1", "10.7.0.2"
SPEC = {"ps": [f"{HERE}:2222"], "worker": [f"{HERE}:2223", f"{THERE}:2222"]}
PROGRAM = f"""
import dtflab as tf
tf.timeouts.notice = 600
with tf.Cluster({SPEC}, engine="process", insecure=True, timeout=300) as cluster:
    with tf.device("/job:ps"):
        v = tf.Variable(2.0)
    with tf.device("/job:worker/task:1"):
        y = v * 3.0
    with tf.Session(cluster.target) as session:
        session.run(v.initializer)
        print(session.run(y), cluster.status())
"""


@pytest.fixture
def hosts():
    """Two hosts with a cable between them: each is the beginning of a command that runs there."""
    tools = ("unshare", "nsenter", "ip")
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        pytest.skip(f"{missing[0]} is not installed")
    with contextlib.ExitStack() as each:
        pids = []
        for _ in range(2):
            holder = ["unshare", "-n", "sh", "-c", "ip link set lo up && echo up && exec sleep 3600"]
            process = each.enter_context(subprocess.Popen(holder, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            each.callback(process.kill)
            if process.stdout.readline() != b"up\n":
                pytest.skip(f"this account may make no network namespaces: {process.stderr.read().decode().strip()}")
            pids.append(str(process.pid))
        found = [["nsenter", "-t", pid, "-n"] for pid in pids]
        cable = f"ip link add va type veth peer name vb && ip link set vb netns {pids[1]}"
        made = subprocess.run([*found[0], "sh", "-c", cable], capture_output=True, text=True)
        if made.returncode:
            pytest.skip(f"no cable between network namespaces: {made.stderr.strip()}")
        for host, device, address in zip(found, ("va", "vb"), (HERE, THERE), strict=True):
            up = f"ip addr add {address}/24 dev {device} && ip link set {device} up"
            subprocess.run([*host, "sh", "-c", up], check=True)
        yield found


def test_the_line_that_is_shown_starts_the_task_on_the_other_host(hosts):
    here, there = hosts
    python = [sys.executable, "-c", PROGRAM]
    shell = f'dtflab() {{ exec {shlex.quote(sys.executable)} -m dtflab "$@"; }}; '
    with subprocess.Popen([*here, *python], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            line = program.stderr.readline()
            assert line.startswith(
                f"still waiting for /job:worker/task:1 at {THERE}:2222. Start it on {THERE}: dtflab "
            )
            typed = line.partition(f"Start it on {THERE}: ")[2]
            with subprocess.Popen([*there, "sh", "-c", shell + typed]) as other:
                try:
                    out, err = program.communicate(timeout=300)
                finally:
                    other.terminate()
            assert out.startswith("6.0 <Cluster") and f"on {THERE}: {typed.strip()}" in out
            assert err.startswith("cluster1 is detached from /job:worker/task:1")
        finally:
            program.kill()


def test_the_line_says_what_the_cluster_was_given():
    spec = tf.train.ClusterSpec({"ps": ["a:1"], "it's": {3: "b:2"}})
    assert command(spec, "it's", 3, PLAIN, True) == (
        """dtflab serve --cluster '{"ps": ["a:1"], "it'"'"'s": {"3": "b:2"}}' --job 'it'"'"'s' --task 3 --insecure"""
    )
    line = command(spec, "ps", 0, Credentials(token="a-token-of-this-test"), False, "/data")
    assert line.endswith("--job ps --task 0 --credentials FOLDER --allow-files /data") and "a-token" not in line


def test_a_task_of_another_host_is_awaited(monkeypatch):
    said = []
    monkeypatch.setattr(attached, "say", said.append)
    (address,) = free_addresses(1)
    task = AwaitedTask("/job:worker/replica:0/task:0", address, PLAIN, "dtflab serve …")
    with pytest.raises(
        errors.UnavailableError, match=r"refused[^$]* come up within 0 s. Start it on localhost: dtflab"
    ):
        task.wait_ready(0.0)
    with (
        elsewhere({"ps": [address]}, "ps"),
        pytest.raises(ValueError, match=r"should be at .*, but /job:ps/.* is there"),
    ):
        task.wait_ready(60.0)
    with elsewhere({"worker": [address]}, "worker"):
        task.wait_ready(60.0)
    with pytest.raises(errors.FailedPreconditionError, match="can't be killed from here"):
        task.kill()
    task.stop()
    assert task.state == "detached"


def test_all_tasks_that_are_awaited_are_named(monkeypatch):
    said = []
    monkeypatch.setattr(attached, "say", said.append)
    monkeypatch.setattr(tf.timeouts, "notice", 0.0)
    monkeypatch.setattr(addresses, "is_here", lambda address: False)
    monkeypatch.setattr(engines, "is_loopback", lambda address: False)
    spec = {"worker": free_addresses(2)}
    with pytest.raises(errors.UnavailableError) as raised:
        tf.Cluster(spec, engine="process", timeout=1, token=None)
    for number, address in enumerate(spec["worker"]):
        assert any(line.startswith(f"still waiting for /job:worker/task:{number} at {address}.") for line in said)
        assert f"--task {number}" in raised.value.message.splitlines()[number]
    assert raised.value.message.count("did not come up within 1 s") == 2


def test_a_notebook_shows_the_line_that_starts_a_task_elsewhere(monkeypatch):
    monkeypatch.setattr(cluster_module, "await_all", lambda *_: None)
    monkeypatch.setattr(addresses, "is_here", lambda address: False)
    monkeypatch.setattr(engines, "is_loopback", lambda address: False)
    with tf.Cluster({"worker": free_addresses(1)}, engine="process", token=None) as cluster:
        (line,) = cluster.commands()
        assert html.escape(line) in cluster._repr_html_()


def test_which_addresses_are_here():
    assert is_here("127.0.0.1:1") and is_here("localhost:1")
    assert not is_here("192.0.2.1:1") and not is_here("nobody.invalid:1")
