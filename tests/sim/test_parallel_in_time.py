"""Model and pipeline parallelism in virtual time: bubbles, transfers and idle time are measured, not assumed."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab import model_parallel, sim
from dtflab.hardware.machines import machines_for
from dtflab.sim import formulas
from dtflab.sim.models import build
from dtflab.sim.models.seq2seq import seq2seq

TASK = "/job:worker/replica:0/task:0"
FREE = sim.Bus("free", 1e30, 0.0, "made up", peer_bandwidth=1e30)
SOFT = tf.ConfigProto(allow_soft_placement=True)


def gpus(count):
    return [f"/gpu:{i}" for i in range(count)]


def step(build_it, feed, count, bus="pcie3"):
    """A traced virtual step on one host with `count` GPUs, and the kernels of it that the cluster's log has on them."""
    with tf.Graph().as_default(), tf.Cluster(worker=1, gpus=count, gpu="K40", bus=bus, clock="virtual") as cluster:
        x = tf.placeholder(tf.float32, feed.shape)
        fetches = build_it(x, gpus(count))
        with tf.Session(cluster.target, config=SOFT) as session:
            session.run(tf.global_variables_initializer())
            asked = sim.what_if(session, fetches=fetches, feed_dict={x: feed})
            before = cluster.log().count
            session.run(fetches, {x: feed})
        new = list(cluster.log().lines)[before - cluster.log().count :]
    return asked, [line for line in new if not line.target and "GPU" in line.where]


def idle_share(lines, count):
    """The share of time that devices lose from the first kernel to the last one's end."""
    whole = max(line.ended for line in lines) - min(line.started for line in lines)
    return 1 - sum(line.ended - line.started for line in lines) / (whole * count)


# -- pipelines --------------------------------------------------------------------------------------------------------


def pipeline(micro_batches, units=256):
    """Stages of one multiplication each; the batch is cut on the CPU."""

    def stage(value):
        return tf.matmul(value, tf.get_variable("weights", [units, units]))

    def build_it(x, devices):
        with tf.device("/cpu:0"):
            return model_parallel.pipeline([stage] * len(devices), x, devices, micro_batches)

    return build_it, np.ones([64, units], np.float32)


@pytest.mark.parametrize("stages, micro_batches", [(2, 1), (2, 4), (4, 1), (4, 4), (4, 16), (8, 8)])
def test_the_bubble_of_equal_stages_is_the_formula(stages, micro_batches):
    asked, lines = step(*pipeline(micro_batches), stages, bus=FREE)
    assert len(lines) == stages * micro_batches
    expected = formulas.pipeline_bubble(stages, micro_batches)
    assert idle_share(lines, stages) == pytest.approx(expected, rel=1e-9)
    assert asked.base.bubble(gpus(stages)) == pytest.approx(expected, rel=1e-9)


def test_the_bubble_of_cores_counts_time_once():
    """A CPU computes on several cores at once; a stage idles while none of them does."""
    with tf.Graph().as_default(), tf.Cluster(worker=3, clock="virtual") as cluster:
        devices = [f"/job:worker/task:{i}" for i in range(3)]
        outputs = pipeline(4)[0](tf.ones([64, 256]), devices)
        train = tf.gradients(outputs, tf.trainable_variables(), colocate_gradients_with_ops=True)
        base = sim.what_if(train, cluster).base
    spans = [span for own in base.schedule.spans.values() for span in own]
    whole = max(span.end for span in spans) - min(span.start for span in spans)
    waited = sum(idle * base.makespan - (base.makespan - whole) for idle in base.idle.values())
    assert base.bubble(devices) == pytest.approx(waited / whole / 3)
    assert base.bubble(devices) > 1 - sum(base.busy.values()) / whole / 3, "more than one core computes"
    with pytest.raises(ValueError, match="several different devices"):
        base.bubble(["/job:worker/task:0", "/job:worker/task:0/cpu:0"])
    with pytest.raises(ValueError, match="/cpu:0 means 3 devices"):
        base.bubble(["/cpu:0"])


def test_transfers_make_the_bubble_larger_and_are_seen():
    asked, _ = step(*pipeline(4), 4)
    bubbles = [asked.run(bus=bus).bubble(gpus(4)) for bus in (0.01, 1.0, 100.0, FREE)]
    assert bubbles == sorted(bubbles, reverse=True) and bubbles[0] > 2 * bubbles[-1]
    assert bubbles[-1] == pytest.approx(formulas.pipeline_bubble(4, 4), rel=1e-9)
    slow = asked.run(bus=0.01)
    hops = {(m.source_device[-5:], m.target_device[-5:]) for m in slow.messages}
    assert {("GPU:0", "GPU:1"), ("GPU:1", "GPU:2"), ("GPU:2", "GPU:3")} < hops
    picture = tf.viz.timeline(slow.step_stats())
    for number in range(4):
        idle = slow.idle[f"{TASK}/device:GPU:{number}"]
        assert f"worker:0 GPU:{number} {100 * idle:.0f}% idle" in picture.sentence
    assert "from GPU" not in picture.sentence and "transfers" in picture.sentence


def test_a_slow_stage_sets_the_pace():
    """The slowest of unequal stages works without a break, once the first part has come."""
    asked, _ = step(*pipeline(8), 4, bus=FREE)
    slow = asked.run(bus=FREE, stragglers={"/gpu:2": 3.0})
    seconds = asked.base.busy[f"{TASK}/device:GPU:0"] / 8
    whole = (2 + 8 * 3 + 1) * seconds  # two stages before, eight times the slow one, one after
    spans = slow.schedule.spans
    first, last = (spans[f"{TASK}/device:GPU:{n}"] for n in (0, 3))
    assert last[-1].end - first[0].start == pytest.approx(whole, rel=1e-9)


def test_gradients_fill_bubbles():
    """Forward and back: what a layer's own weights need is waited for by nobody and fits into the holes."""

    def build_it(x, devices):
        forward, _ = pipeline(4)
        losses = [tf.reduce_sum(part) for part in forward(x, devices)]
        return tf.gradients(losses, tf.trainable_variables(), colocate_gradients_with_ops=True)

    _, lines = step(build_it, np.ones([64, 256], np.float32), 4, bus=FREE)
    products = [line for line in lines if "/MatMul" in line.what and "gradients" in line.what]
    assert len(products) == 4 * (4 + 3), "weights on each stage, inputs on all but the first"
    assert 0 < idle_share(lines, 4) < formulas.pipeline_bubble(4, 4)


# -- layers over devices ----------------------------------------------------------------------------------------------


def dense(by):
    return lambda x, devices: model_parallel.dense(x, 4096, devices, by)


def conv(by):
    return lambda x, devices: model_parallel.conv2d(x, 64, 3, devices, by, padding="SAME")


@pytest.mark.parametrize(
    "split, shape",
    [
        (dense("columns"), (256, 4096)),
        (dense("rows"), (256, 4096)),
        (conv("channels"), (32, 64, 64, 32)),
        (conv("rows"), (32, 64, 64, 32)),
    ],
    ids=["dense by columns", "dense by rows", "conv by channels", "conv by rows"],
)
def test_a_split_layer_computes_in_parts_at_once(split, shape):
    feed = np.ones(shape, np.float32)
    one, _ = step(split, feed, 1)
    four, _ = step(split, feed, 4)
    kernel = "MatMul" if len(shape) == 2 else "Conv2D"
    whole, parts = _kernels(one.base, kernel), _kernels(four.base, kernel)
    assert len(whole) == 1 and sorted(span.device[-5:] for span in parts) == [f"GPU:{i}" for i in range(4)]
    launch = one.machines.processor(f"{TASK}/device:GPU:0")[0].launch_s
    work = whole[0].end - whole[0].start - launch
    for span in parts:
        assert span.end - span.start - launch == pytest.approx(work / 4, rel=0.05), "and the border rows"
    at_once = four.run(bus=FREE)
    starts = [span.start for span in _kernels(at_once, kernel)]
    assert max(starts) < min(span.end for span in _kernels(at_once, kernel))
    assert four.run(bus=0.01).makespan > four.base.makespan > at_once.makespan


def _kernels(outcome, op):
    """The spans of the nodes of a type."""
    nodes = outcome.asked.step.by_name
    return [span for own in outcome.schedule.spans.values() for span in own if nodes[span.name].op == op]


def test_layers_of_cells_run_at_different_times_at_once():
    """Two layers on two GPUs: while the upper one is at a word, the lower one is at a later one."""

    def build_it(x, devices):
        cells = [tf.nn.rnn_cell.LSTMCell(256) for _ in range(2)]
        cell = model_parallel.rnn_layers(cells, [devices[0], devices[-1]])
        return tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)[0]

    feed = np.ones([32, 8, 256], np.float32)
    (one, _), (two, _) = step(build_it, feed, 1, bus=FREE), step(build_it, feed, 2, bus=FREE)
    products = _kernels(two.base, "MatMul")
    lower, upper = ([span for span in products if span.device.endswith(f"GPU:{layer}")] for layer in (0, 1))
    assert len(lower) == len(upper) == 8
    assert all(early.end <= late.start for early, late in zip(lower, upper, strict=True))
    assert all(next_.start < late.end for next_, late in zip(lower[1:], upper, strict=False))
    gain = one.base.makespan / two.base.makespan
    assert 1.6 < gain <= 2 * 8 / (8 + 1), "a pipeline of two stages and eight words"


# -- attention --------------------------------------------------------------------------------------------------------


def translation(attention, layers, spread):
    """A training step of a translator, its layers over as many GPUs or all on one, never run."""
    machines = machines_for({TASK: "host"}, gpus=layers, gpu="K80", bus="pcie3")
    last = layers - 1 if spread else 0
    where = gpus(layers) if spread else gpus(1) * layers
    model = build(
        seq2seq, 128, layers=layers, units=512, vocabulary=8000, attention=attention, steps=6, devices=where,
        device=lambda op: op.device or f"/gpu:{last if op.name.startswith('decoder/projection') else 0}",
    )  # fmt: skip
    with model.graph.as_default():
        train = tf.train.GradientDescentOptimizer(0.1).minimize(model.loss, colocate_gradients_with_ops=True)
    return sim.what_if([model.loss, train], machines)


@pytest.mark.parametrize("layers, kinds", [(4, (None, "standard", "gnmt")), (8, ("standard", "gnmt"))])
@pytest.mark.timeout(300)
def test_who_asks_the_attention_decides_what_runs_at_once(layers, kinds):
    """From the graph alone: the next word's bottom layer waits for the top one's answer, or it does not."""
    alone = {kind: translation(kind, layers, spread=False).base for kind in kinds}
    spread = {kind: translation(kind, layers, spread=True).base for kind in kinds}
    speedup = {kind: alone[kind].makespan / spread[kind].makespan for kind in kinds}
    assert speedup["standard"] < 0.75 * speedup["gnmt"]
    assert speedup["gnmt"] > 0.9 * speedup.get(None, 0), "nearly as without attention"
    idle = {kind: np.mean([share for device, share in spread[kind].idle.items() if "GPU" in device]) for kind in kinds}
    assert idle["standard"] > idle["gnmt"] + 0.1
