"""Steps that `what_if` is asked about, and the virtual clusters that they would run on."""

from __future__ import annotations

import numpy as np

import dtflab as tf

WORKER = "/job:worker/replica:0/task:0"

PRECISION = 1e-9  # relative: moments of a long run are sums, and the trace has nanoseconds


def cluster(workers=1, **hardware):
    hardware = {"gpu": "K40", "network": "10Gb/s", "gpus": 1} | hardware
    return tf.Cluster(ps=2, worker=workers, clock="virtual", seed=1, **hardware)


def train_on_servers(worker=WORKER, batch=None):
    """Three layers whose variables are on two servers: placeholder and fetches."""
    spec = tf.train.ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1"]})
    setter = tf.train.replica_device_setter(cluster=spec, ps_device="/job:ps/cpu:0", worker_device=f"{worker}/gpu:0")
    with tf.device(setter):
        x = h = tf.placeholder(tf.float32, [batch, 200], name="x")
        for i, units in enumerate((300, 150, 10)):
            weights = tf.get_variable(f"w{i}", [h.shape[1].value, units])
            h = tf.nn.relu(tf.matmul(h, weights) + tf.get_variable(f"b{i}", [units]))
        loss = tf.reduce_mean(tf.square(h), name="loss")
        return x, [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)]


def images(batch):
    return np.ones([batch, 200], np.float32)


# ---- the base ----


def in_one_graph():
    """Three workers in one graph, whose loss comes from all of them."""
    x = tf.placeholder(tf.float32, [32, 64])
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", [64, 64])
    losses = []
    for i in range(3):
        with tf.device(f"/job:worker/task:{i}/gpu:0"):
            losses.append(tf.reduce_mean(tf.square(tf.matmul(x, weights))))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses), colocate_gradients_with_ops=True)
    return [losses, step], {x: np.ones([32, 64], np.float32)}


def flat(fetches):
    return [one for each in fetches for one in (each if isinstance(each, list) else [each])]
