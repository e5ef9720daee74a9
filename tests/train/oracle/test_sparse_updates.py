"""Rows of embeddings on several parameter servers: graphs and trained values are those of TensorFlow in one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab
from tests.oracle.graph_defs import assert_same_graph

IDS = [0, 6, 4, 4, 2, 9]
TABLE = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)
OPTIMIZERS: dict[str, Any] = {
    "GradientDescent": lambda tf: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9),
    "Nesterov": lambda tf: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adagrad": lambda tf: tf.train.AdagradOptimizer(0.1),
    "AdagradDA": lambda tf: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
    "Adadelta": lambda tf: tf.train.AdadeltaOptimizer(0.5),
    "RMSProp": lambda tf: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "CenteredRMSProp": lambda tf: tf.train.RMSPropOptimizer(0.1, centered=True),
    "Ftrl": lambda tf: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "ProximalGradientDescent": lambda tf: tf.train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.01),
    "ProximalAdagrad": lambda tf: tf.train.ProximalAdagradOptimizer(0.1, l2_regularization_strength=0.01),
    "Adam": lambda tf: tf.train.AdamOptimizer(0.1),
}
each_optimizer = pytest.mark.parametrize("optimizer", OPTIMIZERS)


def program(tf: Any, optimizer: str, strategy: str, use_resource: bool, max_norm: float | None) -> tuple[Any, Any]:
    """A table in three parts on two parameter servers, and a step that trains it: (step, parts)."""
    setter = tf.train.replica_device_setter(cluster={"ps": ["a:1", "b:1"], "worker": ["c:1"]})
    with tf.device(setter):
        starts = np.cumsum([0, 4, 3]).tolist()
        rows = [list(range(i, 10, 3)) if strategy == "mod" else list(range(s, s + n))
                for i, (s, n) in enumerate(zip(starts, (4, 3, 3)))]  # fmt: skip
        parts = [tf.Variable(TABLE[r], name=f"part{i}", use_resource=use_resource) for i, r in enumerate(rows)]
        found = tf.nn.embedding_lookup(parts, tf.constant(IDS), partition_strategy=strategy, max_norm=max_norm)
        loss = tf.reduce_sum(tf.square(found) * tf.constant(TABLE[:6]))
        step = OPTIMIZERS[optimizer](tf).minimize(loss, global_step=tf.train.get_or_create_global_step())
    return step, parts


def trained(tf: Any, target: str, *what: Any) -> list[np.ndarray]:
    with tf.Graph().as_default():
        step, parts = program(tf, *what)
        graph_def = tf.get_default_graph().as_graph_def()
        if not target:
            for node in graph_def.node:
                node.device = ""
    with tf.Graph().as_default():
        tf.import_graph_def(graph_def, name="")
        with tf.Session(target) as session:
            for variable in [n.name for n in graph_def.node if n.name.endswith("/Assign")]:
                session.run(variable)
            for _ in range(4):
                session.run(step.name)
            read = "Read/ReadVariableOp" if what[2] else "read"
            return session.run([f"{part.op.name}/{read}:0" for part in parts])


@each_optimizer
@pytest.mark.parametrize(
    ("strategy", "use_resource", "max_norm"), [("mod", False, None), ("div", True, None), ("div", False, 1.0)]
)
def test_training_on_parameter_servers(optimizer, strategy, use_resource, max_norm):
    what = optimizer, strategy, use_resource, max_norm
    assert_same_graph(lambda tf: program(tf, *what))
    with dtflab.Cluster(ps=2, worker=1) as cluster:
        ours = trained(dtflab, cluster.target, *what)
    for a, b, start in zip(ours, trained(real_tf, "", *what), (0, 4, 7), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)
        assert strategy == "mod" or not np.array_equal(a, TABLE[start : start + len(a)])
