"""The trace of a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.interop.programs.site import PS, WORKER, Site


def traced(tf: Any, site: Site) -> dict[str, Any]:
    """FULL_TRACE: the nodes of both tasks, what crossed between them, and the graphs that each was given."""
    x = tf.placeholder(tf.float32, [30, 30])
    with tf.device(PS):
        a = tf.matmul(x, x, name="made_on_ps")
    with tf.device(WORKER):
        b = tf.nn.softmax(a, name="made_on_worker")
    with tf.device(PS):
        c = tf.reduce_sum(b, name="used_on_ps")
    names = {a.op.name, b.op.name, c.op.name}
    metadata = tf.RunMetadata()
    crossed: set[str] = set()
    with tf.Session(site.target) as sess:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        for _ in range(6):  # TensorFlow's workers report a transfer by a log, where it may come too late for its step
            total = sess.run(c, {x: np.zeros((30, 30), np.float32)}, options=options, run_metadata=metadata)
            crossed.update(*(_crossings(stats, names) for stats in metadata.step_stats.dev_stats))
    return {
        "value": float(total),
        "ran": sorted(
            [stats.device, node.node_name, node.all_end_rel_micros >= 0, node.all_start_micros > 0]
            for stats in metadata.step_stats.dev_stats
            for node in stats.node_stats
            if node.node_name in names
        ),
        "crossed": sorted(crossed),
        "given": sorted(
            [node.device, node.name] for part in metadata.partition_graphs for node in part.node if node.name in names
        ),
        "ends": _ends(metadata.partition_graphs),
    }


def _crossings(stats: Any, names: set[str]) -> list[str]:
    """Which of the values have been received, and where."""
    labels = [node.timeline_label for node in stats.node_stats if node.node_name == "RecvTensor"]
    return [f"{name} to {stats.device}" for name in names for label in labels if f"_{name} from " in label]


def _ends(parts: Any) -> list[str]:
    """Sends between tasks without a Recv, and the other way round."""
    ends: dict[str, set[tuple[Any, ...]]] = {"_Send": set(), "_Recv": set()}
    for node in (node for part in parts for node in part.node):
        kind = node.op.replace("_Host", "_")
        if kind in ends and not node.attr["client_terminated"].b:
            key = tuple(node.attr[attr].s.decode() for attr in ("send_device", "recv_device", "tensor_name"))
            ends[kind].add(key)
    return [str(key) for key in ends["_Send"] ^ ends["_Recv"]]


def summaries(tf: Any, site: Site) -> list[str]:
    """The summaries of a worker's values, made on the ps."""
    x = tf.placeholder(tf.float32, [3])
    with tf.device(WORKER):
        doubled = x * 2.0
    with tf.device(PS):
        merged = tf.summary.merge(
            [tf.summary.scalar("sum", tf.reduce_sum(doubled)), tf.summary.histogram("all", doubled)]
        )
    with tf.Session(site.target) as sess:
        summary = tf.Summary.FromString(sess.run(merged, {x: [1, 2, 3]}))
    return [f"{value.tag} {value.simple_value} {value.histo.num} {value.histo.sum}" for value in summary.value]
