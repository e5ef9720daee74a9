"""Programs that train, alone or two clients together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.interop.programs.site import PS, WORKER, Site

STEPS = 8


def adam(tf: Any, site: Site) -> list[list[float]]:
    """Train an MLP on embedded words by Adam: the losses, with reference and with resource variables."""
    return [_losses(tf, site, lambda: tf.train.AdamOptimizer(0.05), resources) for resources in (False, True)]


def momentum(tf: Any, site: Site) -> list[list[float]]:
    """Train the same MLP by Nesterov's momentum."""

    def optimizer() -> Any:
        return tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True)

    return [_losses(tf, site, optimizer, resources) for resources in (False, True)]


def _losses(tf: Any, site: Site, optimizer: Callable[[], Any], use_resource: bool) -> list[float]:
    random = np.random.RandomState(0)
    words, classes = random.randint(0, 20, (30, 5)).astype(np.int32), random.randint(0, 3, 30).astype(np.int32)
    with tf.Graph().as_default(), tf.container(site.name), _on_both(tf):
        x, y = tf.placeholder(tf.int32, [None, 5]), tf.placeholder(tf.int32, [None])
        with tf.variable_scope("resources" if use_resource else "references", use_resource=use_resource):

            def weights(name: str, *shape: int) -> Any:
                value = random.uniform(-0.5, 0.5, shape).astype(np.float32)
                return tf.get_variable(name, initializer=tf.constant(value))

            embedded = tf.reduce_mean(tf.nn.embedding_lookup(weights("table", 20, 4), x), 1)  # gradients of rows
            hidden = tf.nn.relu(tf.matmul(embedded, weights("w1", 4, 8)) + weights("b1", 8))
            logits = tf.nn.bias_add(tf.matmul(hidden, weights("w2", 8, 3)), weights("b2", 3))
            step = tf.get_variable("step", [], tf.int64, initializer=tf.zeros_initializer(), trainable=False)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train = optimizer().minimize(loss, step)
        with tf.Session(site.target) as sess:
            sess.run(tf.global_variables_initializer())
            feed = {x: words, y: classes}
            losses = [float(sess.run([loss, train], feed)[0]) for _ in range(STEPS)]
            return [*losses, float(sess.run(loss, feed)), float(sess.run(step))]


def _on_both(tf: Any) -> Any:
    """Variables on the ps, the rest on the worker."""
    return tf.device(tf.train.replica_device_setter(ps_tasks=1, ps_device="/job:ps", worker_device=WORKER))


def replica(tf: Any, site: Site, index: int) -> list[float]:
    """One of two clients that make each step together: SyncReplicasOptimizer; replica 0 is the chief."""
    features = np.float32([[1, 2], [3, -1]])[index : index + 1]
    with _on_both(tf):
        w = tf.get_variable("w", initializer=tf.constant([[0.0], [0.0]]))
        step = tf.train.get_or_create_global_step()
        error = tf.square(tf.matmul(tf.constant(features), w) - [[1.0]])
        plain = tf.train.GradientDescentOptimizer(0.02)
        optimizer = tf.train.SyncReplicasOptimizer(plain, replicas_to_aggregate=2, total_num_replicas=2)
        train = optimizer.minimize(tf.reduce_sum(error), step)
    with tf.device(PS):
        ready = tf.FIFOQueue(1, tf.bool, [[]], shared_name="ready")
        made = [tf.FIFOQueue(1, tf.bool, [[]], shared_name=f"made_{replica}") for replica in (0, 1)]
    say, hear = made[index].enqueue(True), made[1 - index].dequeue()
    coordinator, threads = tf.train.Coordinator(), []
    with tf.Session(site.target) as sess:
        if index == 0:
            sess.run(tf.global_variables_initializer())
            sess.run([optimizer.chief_init_op, optimizer.get_init_tokens_op(0)])
            runner = optimizer.get_chief_queue_runner()
            threads = runner.create_threads(sess, coordinator, daemon=True, start=True)
            sess.run(ready.enqueue(True))
        else:
            sess.run(ready.dequeue())
            sess.run(optimizer.local_step_init_op)
        found = []
        for _ in range(4):
            sess.run(train)
            found.append(float(sess.run(step)))
            sess.run(say)
            sess.run(hear)  # else who is fast may take the other's token, and make its step
        found += sess.run(w)[:, 0].tolist()
        coordinator.request_stop()
    coordinator.join(threads)
    return found


def monitored(tf: Any, site: Site) -> list[Any]:
    """MonitoredTrainingSession: four steps, and three more from the checkpoint of these."""
    with _on_both(tf):
        step = tf.train.get_or_create_global_step()
        total = tf.get_variable("total", [], initializer=tf.zeros_initializer())
        counted = tf.assign_add(step, 1)
        with tf.control_dependencies([counted]):
            train = tf.assign_add(total, 2.0)
        tf.summary.scalar("total", total)
    found: list[Any] = []
    for last in (4, 7):
        hooks = [tf.train.StopAtStepHook(last_step=last)]
        with tf.train.MonitoredTrainingSession(
            site.target, checkpoint_dir=site.folder, hooks=hooks, log_step_count_steps=None
        ) as session:
            while not session.should_stop():
                found.append(float(session.run(train)))
        found.append(tf.train.latest_checkpoint(site.folder).rpartition("-")[2])
    return found
