"""The book's kind of programs: a convolutional and a recurrent net learn the digits, on one task and split over two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab as tf
from dtflab import model_parallel
from dtflab.datasets import digits

WORKERS = ["/job:worker/task:0", "/job:worker/task:1"]
BATCH = 50
# Colocated gradients of a loop over two devices need it, in TensorFlow, too.
SOFT = tf.ConfigProto(allow_soft_placement=True)
Net = Callable[[Any, list[str]], Any]


def convolutional(images: Any, devices: list[str]) -> Any:
    """Two convolutions with pooling and two dense layers; the first is cut by image rows, the next by filters."""
    x = tf.reshape(images, [-1, 8, 8, 1])
    x = model_parallel.conv2d(x, 16, 3, devices, "rows", padding="SAME", activation=tf.nn.relu, name="conv1")
    x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    x = model_parallel.conv2d(x, 32, 3, devices, "channels", padding="SAME", activation=tf.nn.relu, name="conv2")
    x = tf.layers.flatten(tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"))
    x = model_parallel.dense(x, 64, devices, "columns", tf.nn.relu, name="hidden")
    return model_parallel.dense(x, 10, devices, "rows", name="logits")


def recurrent(images: Any, devices: list[str]) -> Any:
    """An image is read row by row by two layers of LSTM, each on its device."""
    cells = [tf.nn.rnn_cell.BasicLSTMCell(64) for _ in range(2)]
    layers = model_parallel.rnn_layers(cells, [devices[0], devices[-1]])
    outputs, _ = tf.nn.dynamic_rnn(layers, tf.reshape(images, [-1, 8, 8]), dtype=tf.float32)
    return tf.layers.dense(outputs[:, -1], 10, name="logits")


def train(net: Net, devices: list[str], steps: int, rate: float, start: Any) -> tuple[list[float], float, set[str]]:
    """The losses of so many steps, the accuracy on the test digits at the end, and the devices that multiplied.

    The first training saves the values that its variables begin with as `start`; the next one begins with them.
    """
    data = digits()
    with tf.Cluster(worker=2) as cluster, tf.Graph().as_default():
        tf.set_random_seed(7)
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, devices)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        weights = tf.trainable_variables()
        # Slower and slower: else the last few batches, and what another CPU rounds otherwise, move the accuracy.
        done = tf.train.get_or_create_global_step()
        adam = tf.train.AdamOptimizer(tf.train.polynomial_decay(rate, done, steps, rate / 10))
        step = adam.minimize(loss, done, colocate_gradients_with_ops=True)
        saver, losses, traced = tf.train.Saver(weights), [], tf.RunMetadata()
        with tf.Session(cluster.target, config=SOFT) as session:
            session.run(tf.global_variables_initializer())
            if start.with_suffix(".index").exists():
                saver.restore(session, str(start))
            else:
                saver.save(session, str(start))
            for _ in range(steps):
                batch = data.train.next_batch(BATCH)
                losses.append(session.run([loss, step], {images: batch[0], labels: batch[1]})[0])
            test = {images: data.test.images, labels: data.test.labels}
            score = session.run(accuracy, test, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), traced)
    return losses, float(score), _busy(traced)


def _busy(traced: Any) -> set[str]:
    """The tasks that computed products or convolutions."""
    return {
        device.device.replace("/replica:0", "").partition("/device")[0]
        for device in traced.step_stats.dev_stats
        if any("= MatMul(" in node.timeline_label or "= Conv2D(" in node.timeline_label for node in device.node_stats)
    }


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("net", "steps", "rate", "bar"), [(convolutional, 400, 0.003, 0.97), (recurrent, 400, 0.02, 0.95)]
)
def test_digits(tmp_path, net, steps, rate, bar):
    one, accuracy, busy = train(net, WORKERS[:1], steps, rate, tmp_path / "start")
    assert accuracy >= bar and busy == {WORKERS[0]}
    two, as_well, both = train(net, WORKERS, steps, rate, tmp_path / "start")
    assert as_well >= bar and both == set(WORKERS)
    few = steps // 8  # later, what is rounded differently has been multiplied
    np.testing.assert_allclose(two[:few], one[:few], rtol=1e-3)
    np.testing.assert_allclose(two, one, rtol=0.1)
    assert np.mean(one[-20:]) < 0.2 * one[0]
