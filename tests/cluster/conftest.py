"""Two tasks over gRPC on loopback, a client that sends them anything, and a graph of the test's own."""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.cluster.raw_client import Raw
from tests.cluster.two_tasks import lab_over


@pytest.fixture(params=["grpc", "link"])
def lab(request):
    with lab_over(request.param) as lab:
        yield lab


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def raw(lab):
    return Raw(lab.addresses[0])
