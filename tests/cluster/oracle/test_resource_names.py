"""Resources of one name and of different kinds live side by side, as in TensorFlow."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab


def one_name_for_everything(tf, target):
    queue = tf.FIFOQueue(5, tf.float32, shapes=[[]], shared_name="x")
    gradients = tf.ConditionalAccumulator(tf.float32, shape=[], shared_name="x")
    reader = tf.IdentityReader()
    reference = tf.Variable(2.0, name="x", use_resource=False)
    with tf.Graph().as_default():
        resource = tf.Variable(3.0, name="x", use_resource=True)
        with tf.Session(target) as other:
            other.run(resource.initializer)
    with tf.Session(target) as sess:
        sess.run([queue.enqueue(1.0), gradients.apply_grad(4.0), reference.initializer, reader.num_records_produced()])
        return [float(v) for v in sess.run([queue.dequeue(), gradients.take_grad(1), reference])]


def test_kinds_share_no_names():
    theirs = real_tf.train.Server.create_local_server()
    ours = dtflab.train.Server.create_local_server()
    try:
        answers = []
        for tf, target in ((real_tf, theirs.target), (dtflab, ours.target)):
            with tf.Graph().as_default():
                answers.append(one_name_for_everything(tf, target))
        assert answers == [[1.0, 4.0, 2.0]] * 2
    finally:
        ours.stop()
