"""Credentials for a server that asks for a token, in each way in which a training program gets a session."""

from __future__ import annotations

from typing import Any

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.credentials import Credentials
from tests.cluster.two_tasks import cluster_over

TOKEN = Credentials(token="a-token-of-the-test")


def by_supervisor(target: str, is_chief: bool, credentials: Credentials | None) -> Any:
    return tf.train.Supervisor(is_chief=is_chief, credentials=credentials).managed_session(target)


def by_creator(target: str, is_chief: bool, credentials: Credentials | None) -> Any:
    kind = tf.train.ChiefSessionCreator if is_chief else tf.train.WorkerSessionCreator
    return tf.train.MonitoredSession(kind(master=target, credentials=credentials))


WAYS = {
    "MonitoredTrainingSession": lambda target, is_chief, credentials: tf.train.MonitoredTrainingSession(
        target, is_chief=is_chief, credentials=credentials
    ),
    "SingularMonitoredSession": lambda target, is_chief, credentials: tf.train.SingularMonitoredSession(
        master=target, credentials=credentials
    ),
    "MonitoredSession": by_creator,
    "Supervisor": by_supervisor,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_training_program_has_the_credentials_of_its_server(way):
    with cluster_over("grpc", worker=1, credentials=TOKEN) as cluster:
        for is_chief in (True, False):
            with tf.Graph().as_default():
                with tf.device("/job:worker"):
                    step = tf.train.get_or_create_global_step() + 1
                with WAYS[way](cluster.target, is_chief, TOKEN) as session:
                    assert session.run(step) == 1
        with (
            tf.Graph().as_default(),
            pytest.raises(errors.UnauthenticatedError, match="asks each caller for its token"),
        ):
            tf.train.get_or_create_global_step()
            with WAYS[way](cluster.target, True, None):
                pass
