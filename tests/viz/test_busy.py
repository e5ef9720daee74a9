"""The picture of busy devices: as full as kernels ran, with shares that are those of the machines' own counters."""

from __future__ import annotations

import itertools
import re

import pytest

import dtflab as tf
from dtflab.base.events import Happened
from dtflab.virtual.event_log import EventLog
from dtflab.viz.drawing.palette import look
from tests.viz.texts import clipped, overlapping

GPU = "/job:worker/replica:0/task:{}/device:GPU:0"


def ran(start, end, task=0, what="MatMul"):
    return Happened(start, end, 1, what, GPU.format(task))


def table(picture):
    return {row[0]: row[1:] for row in picture.tables[0][2]}


def heights(picture):
    """For each row's area, the parts (from, to, height), as shares of the row's width and height."""
    left, width = map(float, re.search(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="20" class="whole"',
                                       picture.svg).groups())  # fmt: skip
    found = []
    for d in re.findall(r'<path d="(M[^"]*Z)" class="busy"', picture.svg):
        base = float(re.match(r"M\S+ ([\d.]+)", d)[1])
        steps = [(float(x), float(y)) for x, y in re.findall(r"H([\d.]+)V([\d.]+)", d)]
        spans = itertools.pairwise(steps)
        found.append([((x - left) / width, (x2 - left) / width, (base - y) / 20) for (x, y), (x2, _) in spans])
    return found


def test_a_row_is_full_while_a_kernel_runs_and_flat_while_none_does():
    picture = tf.viz.busy([ran(0.0, 0.25), ran(0.25, 0.5), ran(0.75, 1.0), ran(0.0, 1.0, 1)])
    first, second = ([part for part in row if part[1] - part[0] > 0.01] for row in heights(picture))
    assert [share for *_, share in first] == [1, 0, 1] and [share for *_, share in second] == [1]
    assert [x for x, *_ in first] == pytest.approx([0, 0.5, 0.75], abs=0.01)
    assert table(picture) == {"worker:0 GPU:0": ["75%", "0.750000", 3], "worker:1 GPU:0": ["100%", "1.000000", 1]}


def test_pieces_that_are_too_short_to_be_seen_count_by_their_share():
    picture = tf.viz.busy([ran(i / 5000, (i + 0.5) / 5000) for i in range(5000)], until=1.0)
    assert all(0.4 < share < 0.6 for *_, share in heights(picture)[0])
    assert table(picture)["worker:0 GPU:0"][0] == "50%"
    areas = [(x2 - x) * share for x, x2, share in heights(picture)[0]]
    assert sum(areas) == pytest.approx(0.5, abs=0.01)


def test_kernels_side_by_side_count_once():
    cpu = [Happened(0.0, 1.0, 1, "a", "/job:ps/replica:0/task:0/device:CPU:0")] * 2
    assert table(tf.viz.busy([*cpu, cpu[0]._replace(started=0.5, ended=2.0)], until=4.0))["ps:0"] == [
        "50%",
        "2.000000",
        3,
    ]


def test_a_part_of_the_time_and_of_the_devices():
    lines = [ran(0.0, 1.0), ran(1.0, 3.0), ran(2.0, 3.0, 1), Happened(0.0, 5.0, 1, "send", GPU.format(0), "there", 9)]
    cpu = Happened(0.0, 3.0, 1, "a", "/job:ps/replica:0/task:0/device:CPU:0")
    picture = tf.viz.busy([*lines, cpu], since=0.5, until=2.5, device="/gpu:0")
    assert table(picture) == {"worker:0 GPU:0": ["100%", "2.000000", 2], "worker:1 GPU:0": ["25%", "0.500000", 1]}
    assert "2 devices in 2.00 s" in picture.sentence and "worker:1 GPU:0 25%" in picture.sentence
    assert "2 devices in 2.00 s" in picture.text and ">25% busy<" in picture.svg


def test_shares_are_those_of_the_machines_counters():
    def train(client):
        with tf.device(f"{client.device}/gpu:0"):
            product = tf.matmul(tf.ones([200 * (client.index + 1)] * 2), tf.ones([200 * (client.index + 1)] * 2))
        with tf.Session(client.target) as sess:
            for _ in range(5):
                sess.run(product.op)

    with tf.Cluster(worker=3, gpus=1, clock="virtual") as cluster:
        cluster.run(train)
        loads = {look(load.devices[0]).label: load for load in cluster.loads().processors if "GPU" in load.devices[0]}
        shown = table(tf.viz.busy(cluster.log(), until=cluster.now(), device="/gpu:0"))
    assert len(shown) == 3
    for label, (share, seconds, _) in shown.items():
        assert (share, seconds) == (f"{100 * loads[label].share:.0f}%", f"{loads[label].busy:.6f}")


def test_of_very_many_devices_the_first_are_drawn():
    picture = tf.viz.busy([ran(0.0, 1.0, task) for task in range(50)])
    assert len(heights(picture)) == 40 and len(table(picture)) == 50
    assert "50 devices (the first 40 are drawn)" in picture.sentence


@pytest.mark.parametrize("style", ["default", "projector"])
def test_nothing_is_clipped(style):
    tf.viz.style(style)
    try:
        for lines in ([ran(0.0, 1e-6)], [ran(0.0, 9e5)], [ran(3.0, 3.007, t) for t in range(12)]):
            svg = tf.viz.busy(lines).svg
            assert clipped(svg) == overlapping(svg) == []
    finally:
        tf.viz.style("default")


def test_what_cannot_be_drawn_is_told():
    with pytest.raises(ValueError, match="No kernel ran between 0 and 0 s"):
        tf.viz.busy([])
    with pytest.raises(ValueError, match="No kernel ran on /gpu:1 between 0 and 0 s"):
        tf.viz.busy([ran(0.0, 1.0)], device="/gpu:1")
    with pytest.raises(ValueError, match="No kernel ran between 5 and 3 s"):
        tf.viz.busy([ran(0.0, 9.0)], since=5.0, until=3.0)
    log = EventLog(size=2)
    for start in range(3):
        log.add(*ran(float(start), start + 1.0))
    with pytest.raises(ValueError, match="keeps the last 2 events, since 2 s"):
        tf.viz.busy(log)
    assert table(tf.viz.busy(log, since=2.0))["worker:0 GPU:0"][0] == "100%"
