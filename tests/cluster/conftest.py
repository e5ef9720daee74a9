"""Two tasks over gRPC on loopback, a client that sends them anything, and a graph of the test's own."""

from __future__ import annotations

import subprocess
import sys
from subprocess import PIPE
from typing import NamedTuple

import pytest

import dtflab as tf
from dtflab.cluster import certs
from dtflab.cluster.addresses import free_addresses
from tests.cluster.raw_client import Raw
from tests.cluster.two_tasks import lab_over


@pytest.fixture(params=["grpc", "link"])
def lab(request):
    with lab_over(request.param) as lab:
        yield lab


@pytest.fixture
def ps_elsewhere():
    """A worker in this process, and the ps of its cluster in another one."""
    spec = dict(zip(("ps", "worker"), ([address] for address in free_addresses(2)), strict=True))
    program = f"import dtflab as tf; tf.train.Server({spec}, 'ps', 0); print('up', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True) as ps:
        assert ps.stdout.readline() == "up\n"
        server = tf.train.Server(spec, "worker", 0)
        try:
            yield server, spec
        finally:
            server.stop()
            ps.stdin.close()


class Tls(NamedTuple):
    """Credentials of one authority, and a client's of another one."""

    folder: str
    server: tf.Credentials
    client: tf.Credentials
    stranger: tf.Credentials


@pytest.fixture(scope="session")
def tls(tmp_path_factory):
    pytest.importorskip("cryptography")
    ours, others = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("others")
    for folder in (ours, others):
        certs.make(folder)
    load = tf.Credentials.load
    return Tls(str(ours), load(ours / "server"), load(ours / "client"), load(others / "client"))


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def raw(lab):
    return Raw(lab.addresses[0])
