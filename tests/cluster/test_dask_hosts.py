"""A Dask cluster on three hosts with addresses of their own: network namespaces, where the system has them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("distributed")
HOSTS = ["10.77.0.11", "10.77.0.12", "10.77.0.13"]
APART = [
    "unshare", *(["--map-root-user"] if hasattr(os, "getuid") and os.getuid() else []),
    "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def namespaces():
    """Skip where this user can't make networks, or the tools are missing."""
    try:
        tried = subprocess.run([*APART, "ip", "link", "add", "br0", "type", "bridge"], capture_output=True, text=True)
    except FileNotFoundError as missing:
        pytest.skip(f"three hosts take network namespaces, and {missing.filename} is missing")
    if tried.returncode:
        pytest.skip(f"three hosts take network namespaces, which can't be made here: {tried.stderr.strip()}")


def on_three_hosts(folder, scenario):
    command = [*APART, sys.executable, "-m", "tests.cluster.three_hosts", str(folder), scenario]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def hosts_of(placed):
    return [address.rpartition(":")[0] for address in placed.values()]


def test_a_training_outlives_a_host(tmp_path):
    found = on_three_hosts(tmp_path, "plain")
    assert "in plain text: give credentials=" in found["exposed"] and "insecure=True" in found["exposed"]
    assert all(host in found["exposed"] for host in HOSTS)
    assert re.findall(r"tcp://([\d.]+):", found["without the folder"]) == HOSTS[2:]
    assert f"the folder {tmp_path} is not there what it is here" in found["without the folder"]
    assert sorted(hosts_of(found["placed"])) == HOSTS
    lost = hosts_of(found["placed"])[0]  # the ps's
    assert lost not in hosts_of(found["placed then"]) and sorted({*hosts_of(found["placed then"]), lost}) == HOSTS
    assert found["seen"] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]  # the checkpoint had each step


def test_tls_for_dask_and_for_the_tasks(tmp_path):
    pytest.importorskip("cryptography")
    found = on_three_hosts(tmp_path, "tls")
    assert found["value"] == 6.0 and sorted(hosts_of(found["placed"])) == HOSTS
    assert "it speaks TLS, and this program has no certificates" in found["plain"]
