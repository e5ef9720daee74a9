"""A step that `what_if` is asked about."""

from __future__ import annotations

import contextlib

import pytest

import dtflab as tf
from dtflab import sim
from tests.sim.questions import cluster, images, train_on_servers


@pytest.fixture(scope="module")
def question():
    """The step of one worker, asked of its session."""
    with tf.Graph().as_default() as graph:
        x, fetches = train_on_servers()
        initialize = tf.global_variables_initializer()
    with cluster() as made, contextlib.closing(tf.Session(made.target, graph=graph)) as session:
        session.run(initialize)
        yield sim.what_if(session, fetches=fetches, feed_dict={x: images(32)})
