"""TensorFlow clients at tasks that ask for more than they have."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.cluster import certs
from tests.interop.peer import PeerError


def test_a_client_without_the_token_learns_how_it_is_admitted(any_tensorflow):
    with tf.Cluster(worker=1, engine="process") as cluster, pytest.raises(PeerError) as refused:
        any_tensorflow.run("devices", target=cluster.target)
    assert refused.value.kind == "UnauthenticatedError"
    assert "asks each caller for its token" in refused.value.text and "token=None" in refused.value.text


def test_a_client_waits_at_a_task_that_speaks_tls(tensorflow, tmp_path):
    """TensorFlow has no TLS, and no words for what it meets."""
    pytest.importorskip("cryptography")
    certs.make(tmp_path)
    credentials = tf.Credentials.load(tmp_path / "server")
    with tf.Cluster(worker=1, engine="process", credentials=credentials) as cluster, pytest.raises(PeerError) as late:
        tensorflow.run("patient", target=cluster.target, timeout_in_ms=2000)
    assert late.value.kind == "DeadlineExceededError"
