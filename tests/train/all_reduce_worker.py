"""A worker of a between-graph program, server and client in one process: `python -m tests.train.all_reduce_worker`.

Arguments: its number, how many steps, then the addresses of all workers. Prints a line after the first step, and one
after the last with the weights, as JSON of their bits.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import dtflab as tf


def model(index: int) -> tuple[tf.Tensor, list[tf.Variable]]:
    """A loss on the worker's own data, and its variables; they begin differently on each worker."""
    rng = np.random.default_rng(index)
    x, y = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
    w = tf.Variable(rng.normal(size=(3, 2)), name="w")
    b = tf.Variable(np.zeros(2), name="b", use_resource=True)
    return tf.reduce_mean(tf.square(tf.matmul(tf.constant(x), w) + b - y)), [w, b]


def main(index: int, steps: int, *addresses: str) -> None:
    cluster = tf.train.ClusterSpec({"worker": list(addresses)})
    server = tf.train.Server(cluster, "worker", index)
    with tf.device(f"/job:worker/task:{index}"):
        step = tf.train.get_or_create_global_step()
        loss, weights = model(index)
        optimizer = tf.train.AllReduceOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), cluster, index, timeout=300)
        train = optimizer.minimize(loss, global_step=step)
        with tf.control_dependencies([train]):
            after = [weight.read_value() for weight in weights]
    hooks = [optimizer.make_session_run_hook(), tf.train.StopAtStepHook(steps)]
    with tf.train.MonitoredTrainingSession(server.target, is_chief=True, hooks=hooks) as session:
        values = session.run(after)
        print("training", flush=True)
        while not session.should_stop():
            values = session.run(after)
    print(json.dumps([value.tobytes().hex() for value in values]))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
