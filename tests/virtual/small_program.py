"""A program in virtual time, to be run in processes of its own: it prints what must be the same in all of them.

Without seeds: its random numbers, the order of its shuffles and its stragglers come from the cluster's. Its costs are
those of parts that say all themselves, so that they depend on no machine.
"""

from __future__ import annotations

import sys

import dtflab as tf
from dtflab.hardware.parts import Network, Nic, Processor

MADE_UP = "made up for a test"
CPU = Processor("a CPU", "CPU", {"float32": 1e9, "float64": 5e8}, 1 << 36, 1e9, 1e-6, 4, MADE_UP)
GPU = Processor("a GPU", "GPU", {"float32": 1e11, "float64": 5e10}, 1 << 30, 1e10, 1e-5, 1, MADE_UP)
NETWORK = Network(Nic("a NIC", 1e8, 1e-5, MADE_UP), switch_latency_s=1e-6, per_message_cpu_s=1e-5)


def client_program(client):
    """Asynchronous training on rows that come in a random order, with a queue of examples, dropout and a loop."""
    device = tf.train.replica_device_setter(
        cluster=client.cluster_spec, ps_device="/job:ps/cpu:0", worker_device=f"{client.device}/gpu:0"
    )
    with tf.device(f"{client.device}/cpu:0"):
        rows = tf.data.Dataset.range(40).shuffle(10).repeat().batch(4).prefetch(2)
        row = tf.data.make_one_shot_iterator(rows).get_next()
        queue = tf.RandomShuffleQueue(20, 2, [tf.float32], [[]])
        enqueue = queue.enqueue_many([tf.cast(row, tf.float32)])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue]))
    with tf.device(device):
        weights = tf.get_variable("w", [4, 3])
        step = tf.train.get_or_create_global_step()
        batch = tf.nn.dropout(tf.reshape(queue.dequeue_many(4), [1, 4]), keep_prob=0.5)
        loss = tf.reduce_sum(tf.square(tf.matmul(batch, weights) + tf.random_normal([1, 3])))
        loss = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 0.9), [0, loss])[1]
        train_op = tf.train.GradientDescentOptimizer(1e-5).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=150)]
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief, hooks=hooks) as session:
        losses = []
        while not session.should_stop():
            losses.append(float(session.run([loss, train_op])[0]))
        return losses


def run(seed=1, stragglers=None, program=client_program, **hardware):
    """(losses of the workers, seconds, lines of the log, hash of the log)"""
    hardware = {"cpu": CPU, "gpu": GPU, "gpus": 1, "network": NETWORK, "ps": 1, "worker": 3, **hardware}
    with tf.Cluster(**hardware, clock="virtual", seed=seed, stragglers=stragglers) as cluster:
        losses = cluster.run(program)
        return losses, cluster.now(), [str(line) for line in cluster.log().lines], cluster.log().hash()


if __name__ == "__main__":
    losses, seconds, lines, digest = run(stragglers=tf.sim.uniform(0.5))
    print(f"{seconds:.9f}", digest)
    print(losses)
    if len(sys.argv) > 1:
        print("\n".join(lines))
