"""The Chrome trace of a step: what a viewer needs is there, and TensorFlow's own code reads our StepStats alike."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine.pools import IntraOpPool
from dtflab.python.client import timeline

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module")
def step_stats():
    with tf.Graph().as_default():
        with tf.device(PS):
            w = tf.Variable(tf.ones([10, 10]), name="w")
        with tf.device(WORKER):
            x = tf.matmul(w, w, name="x")
            y = tf.reduce_sum(x, name="y")
        with tf.Cluster(ps=1, worker=1) as cluster, tf.Session(cluster.target) as sess:
            sess.run(w.initializer)
            return sess.trace(y).step_stats


def events_of(text: str, phase: str) -> list[dict]:
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == phase]


def titles_of(text: str) -> dict[int, str]:
    return {e["pid"]: e["args"]["name"] for e in events_of(text, "M") if e["name"] == "process_name"}


def test_every_node_is_a_bar_in_a_lane_of_its_device(step_stats):
    text = timeline.Timeline(step_stats).generate_chrome_trace_format()
    titles = titles_of(text)
    bars = {e["args"]["name"]: titles[e["pid"]] for e in events_of(text, "X")}
    assert bars["x"] == "/job:worker/replica:0/task:0/device:CPU:0 Compute"
    assert bars["w"] == "/job:ps/replica:0/task:0/device:CPU:0 Compute"
    assert {e["name"] for e in events_of(text, "X")} >= {"MatMul", "Sum", "VariableV2", "RecvTensor"}
    assert all(e["dur"] >= 1 for e in events_of(text, "X"))


def test_bars_of_a_lane_do_not_overlap(step_stats):
    free: dict[tuple[int, int], int] = {}
    for e in sorted(
        events_of(timeline.Timeline(step_stats).generate_chrome_trace_format(), "X"), key=lambda e: e["ts"]
    ):
        assert e["ts"] >= free.get((e["pid"], e["tid"]), 0)
        free[e["pid"], e["tid"]] = e["ts"] + e["dur"]


def test_arrows_begin_and_end(step_stats):
    text = timeline.Timeline(step_stats).generate_chrome_trace_format()
    starts, ends = events_of(text, "s"), events_of(text, "t")
    assert [e["id"] for e in starts] == [e["id"] for e in ends]
    assert all(s["ts"] <= t["ts"] + 1 for s, t in zip(starts, ends, strict=True))
    without = timeline.Timeline(step_stats).generate_chrome_trace_format(show_dataflow=False)
    assert events_of(without, "s") == []


def test_memory_is_what_the_tensors_take(step_stats):
    analysis = timeline.Timeline(step_stats).analyze_step_stats()
    maximum = analysis.allocator_maximums["cpu"]
    assert maximum.num_bytes >= 400 and maximum.timestamp > 0 and "x" in maximum.tensors
    levels = [e["args"]["cpu"] for e in events_of(analysis.chrome_trace.format_to_string(), "C")]
    assert max(levels) == maximum.num_bytes and levels[-1] == 0 and min(levels) >= 0
    assert events_of(timeline.Timeline(step_stats).generate_chrome_trace_format(), "C") == []


def test_lanes_are_those_of_threads_and_parts_take_no_arrows(monkeypatch):
    shard, together = IntraOpPool.shard, threading.Barrier(2)  # both parts of a product are at work at once

    def at_once(self, total, cost, work):
        shard(self, total, cost, lambda *part: (together.wait(30), work(*part)))

    monkeypatch.setattr(IntraOpPool, "shard", at_once)
    x = np.ones((600, 600), np.float32)
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=2)) as sess:
        value = tf.placeholder(tf.float32, x.shape)
        a = tf.matmul(value, value, name="a")
        b = tf.matmul(a, value, name="b")
        text = timeline.Timeline(sess.trace(b, {value: x}).step_stats).generate_chrome_trace_format()
    titles = titles_of(text)
    lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events_of(text, "M") if e["name"] == "thread_name"}
    assert set(lanes.values()) == {"client", "CPU:0 intra-op 1"}
    parts = {e["args"]["name"]: e for e in events_of(text, "X") if titles[e["pid"]].endswith("/intra-op Compute")}
    threads = {name: lanes[e["pid"], e["tid"]] for name, e in parts.items()}
    assert threads == {
        f"{name} part {i} of 2": thread for name in "ab" for i, thread in ((1, "client"), (2, "CPU:0 intra-op 1"))
    }
    pids = {e["pid"] for e in parts.values()}
    assert pids.isdisjoint(e["pid"] for phase in "st" for e in events_of(text, phase))


def test_an_unknown_time_is_refused(step_stats):
    with pytest.raises(ValueError, match="op_time"):
        timeline.Timeline(step_stats).generate_chrome_trace_format(op_time="wall")


def test_tensorflow_draws_the_same(step_stats, real_tf):
    from tensorflow.core.framework.step_stats_pb2 import StepStats
    from tensorflow.python.client.timeline import Timeline

    theirs = Timeline(StepStats.FromString(step_stats.SerializeToString()))
    ours = timeline.Timeline(step_stats)

    def bars(text: str) -> set:
        titles = titles_of(text)
        return {(titles[e["pid"]], e["name"], e["ts"]) for e in events_of(text, "X") if e["name"] != "RecvTensor"}

    found = bars(theirs.generate_chrome_trace_format())  # variables of before the step are dtflab's own line
    assert bars(ours.generate_chrome_trace_format()) == {bar for bar in found if "/variables" not in bar[0]}
    most, expected = ours.analyze_step_stats().allocator_maximums, theirs.analyze_step_stats().allocator_maximums
    assert most.keys() == expected.keys()
