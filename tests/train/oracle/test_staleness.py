"""Staleness is in the graph: TensorFlow, which knows nothing of StalenessOptimizer, runs it to the same log."""

from __future__ import annotations

import threading
from typing import Any

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab as tf
from dtflab.train.replicas.staleness_log import StalenessLog

CURES: dict[str, dict[str, Any]] = {"none": {}, "drop": {"drop_above": 1}, "scale": {"scale": True}}


def worker(number: int, cures: dict[str, Any]) -> Any:
    """A worker whose gradient of w is 4, if it is let go: (train, begun, go, rows)."""
    given, begun = (tf.FIFOQueue(10, tf.float32, shapes=(), name=f"{what}_{number}") for what in ("given", "begun"))
    w, step = tf.global_variables()
    optimizer = tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(1.0), number, **cures)
    train = optimizer.minimize(w * given.dequeue(), var_list=[w], global_step=step)
    computed = next(op for op in reversed(tf.get_default_graph().get_operations()) if op.name.endswith("/computed"))
    with tf.control_dependencies([computed]):
        tell = begun.enqueue(0.0)
    return tf.group(train, tell), begun.dequeue(), given.enqueue(4.0), optimizer._rows


def program(cures: dict[str, Any]) -> tuple[Any, list[list[str]]]:
    """Two workers in one graph: (the graph, names of what to run)."""
    with tf.Graph().as_default() as graph:
        tf.Variable(0.0, name="w")
        tf.train.create_global_step()
        names = [[part.name for part in worker(number, cures)] for number in (0, 1)]
        names.append([tf.global_variables_initializer().name, "w/read:0", "global_step/read:0"])
    return graph, names


def play(session: Any, names: list[list[str]]) -> tuple[Any, float, int]:
    """The first worker's gradient arrives after two steps of the second one: (log, w, step)."""
    (late, begun, go, rows), (train, _, let, _), (init, w, step) = names
    session.run(init)
    thread = threading.Thread(target=session.run, args=(late,))
    thread.start()
    session.run(begun)
    for _ in range(2):
        session.run(let)
        session.run(train)
    session.run(go)
    thread.join(60)
    assert not thread.is_alive()
    log, again = (StalenessLog.of_rows(session.run(rows)) for _ in range(2))
    assert len(log) == len(again) == 3
    return log, *session.run([w, step])


@pytest.mark.parametrize("cure", CURES)
def test_tensorflow_notes_and_cures_alike(cure):
    graph, names = program(CURES[cure])
    with tf.Session(graph=graph) as session:
        ours, *our_state = play(session, names)
    with real_tf.Graph().as_default() as real_graph:
        real_tf.import_graph_def(real_tf.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        with real_tf.Session(graph=real_graph) as session:
            theirs, *their_state = play(session, names)
    assert ours.staleness.tolist() == theirs.staleness.tolist() == [0, 0, 2]
    assert ours.worker.tolist() == theirs.worker.tolist() == [1, 1, 0]
    assert ours.used.tolist() == theirs.used.tolist() == [True, True, cure != "drop"]
    assert our_state == their_state == {"none": [-12.0, 3], "drop": [-8.0, 2], "scale": [-10.0, 3]}[cure]
    assert (theirs.seconds >= 0).all() and len(set(theirs.seconds)) == 3
