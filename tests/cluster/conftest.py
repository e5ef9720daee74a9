"""Two tasks over gRPC on loopback, a client that sends them anything, and a graph of the test's own."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import dtflab as tf
from dtflab.cluster import certs
from tests.cluster.raw_client import Raw
from tests.cluster.two_tasks import lab_over


@pytest.fixture(params=["grpc", "link"])
def lab(request):
    with lab_over(request.param) as lab:
        yield lab


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
