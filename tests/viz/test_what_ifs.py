"""Pictures of what-ifs: steps on one scale of time, curves over the setting that was changed."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

import dtflab as tf
from dtflab import sim, viz
from dtflab.sim.what_ifs.outcomes import HEADS
from dtflab.viz.drawing.style import DEFAULT, MARGIN
from tests.viz.texts import clipped, overlapping


@pytest.fixture(scope="module")
def question():
    """A step of one worker with a server, never run."""
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1, gpus=1, gpu="K40", clock="virtual") as cluster:
        with tf.device("/job:ps/task:0"):
            weights = tf.get_variable("weights", [500, 500])
        with tf.device("/job:worker/task:0/gpu:0"):
            x = tf.placeholder(tf.float32, [None, 500])
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
            train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return sim.what_if([loss, train], cluster, batch=64)


def bars(picture):
    """(x, width) of the bars, by what they say."""
    root = ET.fromstring(picture.svg.partition("\n")[2])
    name = "{http://www.w3.org/2000/svg}"
    found = [(group.find(f"{name}title"), group.find(f"{name}rect")) for group in root.iter(f"{name}g")]
    return [(title.text, float(r.get("x")), float(r.get("width"))) for title, r in found if title is not None]


def test_bars_are_as_long_as_they_took_on_one_scale(question):
    base, slow = question.base, question.run(network="1Gb/s")
    picture = viz.what_if([base, slow], links=10)
    drawn = sorted(width for words, _, width in bars(picture) if words == "weights/read")
    took = [taken(one) for one in (base, slow)]
    room = max(drawn) / max(took[1]) * slow.makespan
    assert room == pytest.approx(DEFAULT.width - 2 * MARGIN - 256, abs=0.1)
    expected = sorted(seconds / slow.makespan * room for seconds in took[0] + took[1])
    assert drawn == pytest.approx(expected, abs=0.02)


def taken(outcome):
    """For how long the weights took each link of their way."""
    (message,) = (message for message in outcome.messages if message.source == "weights/read")
    return [hop.end - hop.start for hop in message.hops]


def test_it_says_in_words_what_it_shows(question):
    outcomes = {"now": question.base, "with more": question.run(workers=3, gpu="V100")}
    picture = viz.what_if(outcomes, title="More")
    for name, one in outcomes.items():
        assert f"{name}: {one.sentence}" in picture.sentence
        assert f">{name}</text>" in picture.svg and f">{one.sentence}</text>" in picture.svg
    (title, heads, rows), (path, _, parts), _ = picture.tables
    assert path == "Critical path: now" and parts == question.base.path_rows
    assert (title, heads, [row[0] for row in rows]) == ("More", HEADS, ["now", "with more"])
    assert picture.svg.count(">worker:2 GPU:0</text>") == 1
    assert " of process " not in picture.svg + picture.text
    ET.fromstring(picture.svg.partition("\n")[2])


def test_bases_of_several_questions_have_no_speedup(question):
    """Each is 1.00 times itself, however much faster one is than another."""
    ((_, heads, rows), *_), base = viz.what_if({"a": question.base, "b": question.base}).tables, question.base
    assert "speedup" not in heads and {len(row) for row in rows} == {len(heads)} == {len(HEADS) - 1}
    ((_, heads, rows), *_) = viz.what_if([base, question.run(network="1Gb/s")]).tables
    assert tuple(heads) == HEADS and rows[0][HEADS.index("speedup")] == "1.00"


def test_one_outcome_is_a_picture(question):
    assert viz.what_if(question.base).text == viz.what_if([question.base]).text
    assert viz.timeline(question.base).text == viz.timeline(question.base.step_stats()).text


def test_the_demo_of_two_steps_fits_a_projectors_window_below_its_sliders(question):
    steps = {"the base": question.base, "what if": question.run(workers=16, network="1Gb/s")}
    viz.style("projector")
    try:
        high, low = (viz.what_if(steps, devices=2, links=1, title=title) for title in ("What if", ""))
    finally:
        viz.style("default")
    size = [float(re.search(r' height="([\d.]+)"', picture.svg)[1]) for picture in (high, low)]
    assert size[1] < 500 < size[0] and "What if" not in low.svg and low.sentence.startswith("Steps. the base: ")
    for picture in (high, low):
        assert ">dashed: the end of the step</text>" in picture.svg
        assert clipped(picture.svg) == overlapping(picture.svg) == []


def test_what_can_not_be_seen_apart_is_drawn_together(question):
    many = viz.what_if([question.run(workers=16, network="1Gb/s")], devices=3, links=1)
    drawn = bars(many)
    together = [words for words, *_ in drawn if re.match(r"\d+ ops, ", words)]
    assert together and all(width >= 0.5 for *_, width in drawn)
    assert len(re.findall(r">(?:&gt;)?\d+% idle</text>", many.svg)) == 3


def test_the_drawn_idle_of_a_device_is_that_of_its_spans(question):
    one = question.run(workers=3)
    picture = viz.what_if(one, devices=9)
    expected = []
    for device in (device for device, spans in one.schedule.spans.items() if spans):
        moments = sorted({moment for span in one.schedule.spans[device] for moment in (span.start, span.end)})
        busy = sum(
            end - start
            for start, end in itertools.pairwise(moments)
            if any(span.start <= start and end <= span.end for span in one.schedule.spans[device])
        )
        expected.append(f"{100 * (1 - busy / one.makespan):.0f}")
    assert len(expected) == 4
    assert sorted(re.findall(r">(\d+)% idle</text>", picture.svg)) == sorted(expected)


def test_what_ran_a_little_is_not_said_to_be_wholly_idle(question):
    one = question.run(workers=9, network=1e-3)
    assert all(0.995 < one.idle[device] < 1 for device, busy in one.busy.items() if busy)
    picture = viz.what_if(one)
    assert "&gt;99% idle</text>" in picture.svg and "more devices, &gt;99% idle each" in picture.svg
    assert "100% idle" not in picture.svg
    assert one.row[HEADS.index("idle")] == ">99%"
    devices = repr(one).partition("\nlink")[0].splitlines()[2:]
    assert {(line.split()[-2] != "0.000", line.split()[-1]) for line in devices} == {(True, ">99%"), (False, "100%")}


def test_it_says_how_much_is_not_drawn(question):
    def remarks(one, **limits):
        return re.findall(r">(and [^<]*)</text>", viz.what_if(one, **limits).svg)

    one = question.run(workers=9)
    (gpus,) = {f"{100 * idle:.0f}" for device, idle in one.idle.items() if "GPU" in device}
    (ps,) = (f"{100 * idle:.0f}" for device, idle in one.idle.items() if "/job:ps/" in device)
    loads = list(one.link_load.values())
    links = f"{len(loads) - 3} more links, taken {100 * max(loads[3:]):.0f}% at most"
    assert remarks(one) == [f"and 2 more devices, {gpus}% idle each; {links}"]
    assert remarks(one, devices=9, links=99) == [f"and 1 more device, {gpus}% idle"]
    assert remarks(one, devices=0, links=99) == [f"and 10 more devices, {ps} to {gpus}% idle"]
    assert remarks(one, devices=10) == [f"and {links}"] and remarks(one, devices=10, links=99) == []
    drawn = re.findall(r">(ps|worker):(\d+)[^<]*</text>", viz.what_if(one).svg)
    assert drawn == [("ps", "0"), *(("worker", f"{n}") for n in range(7))]  # of equally busy ones the first


def test_a_curve_over_what_was_changed(question):
    workers = {gpu: [question.run(workers=n) for n in (1, 2, 4)] for gpu in ("a", "b")}
    axes = viz.sweep(workers, "throughput").axes[0]
    (line, _) = axes.lines
    assert axes.get_xscale() == "log"
    assert line.get_xdata().tolist() == [1, 2, 4]
    assert line.get_ydata().tolist() == [one.throughput for one in workers["a"]]
    lines = {net: question.sweep(workers=[1, 4], network=net) for net in ("1Gb/s", "10Gb/s")}
    axes = viz.sweep(lines, "throughput").axes[0]
    assert (axes.get_xlabel(), [line.get_label() for line in axes.lines]) == ("workers", ["1Gb/s", "10Gb/s"])
    assert axes.get_ylabel() == "examples per second"
    steps = [replace(one, batch=None) for one in question.sweep(workers=[1, 4])]
    assert viz.sweep(steps, "throughput").axes[0].get_ylabel() == "steps per second"
    with pytest.raises(ValueError, match=r"'a' counts examples per second, 'b' steps.*batch="):
        viz.sweep({"a": question.sweep(workers=[1, 4]), "b": steps}, "throughput")
    assert len(viz.sweep({"a": question.sweep(workers=[1, 4]), "b": steps}, "speedup").axes[0].lines) == 2
    axes = viz.sweep(question.sweep(network=["1Gb/s", "10Gb/s"])).axes[0]
    assert (axes.get_xlabel(), axes.lines[0].get_xdata().tolist()) == ("network, Gbit/s", [1, 10])
    assert axes.get_xscale() == "log" and [tick.get_text() for tick in axes.get_xticklabels()] == ["1", "10"]
    assert viz.sweep(question.sweep(network=["1Gb/s", "5Gb/s"])).axes[0].get_xscale() == "linear"
    assert viz.sweep(question.sweep(workers=[1, 20])).axes[0].get_xscale() == "linear"  # a number of things
    assert viz.sweep(question.sweep(gpu=[1.0, 2.0]), "speedup").axes[0].get_xlabel() == "gpu, × the base"


def test_what_can_not_be_drawn(question):
    with pytest.raises(ValueError, match="nothing to draw"):
        viz.what_if([])
    with pytest.raises(ValueError, match="nothing to draw"):
        viz.sweep({})
    for wrong in (question, [question.base, 3]):
        with pytest.raises(TypeError, match="Give what WhatIf"):
            viz.what_if(wrong)
        with pytest.raises(TypeError, match="Give what WhatIf"):
            viz.sweep(wrong)
    with pytest.raises(ValueError, match="is not a number"):
        viz.sweep(question.sweep(gpu=["K40", "V100"]))
    with pytest.raises(ValueError, match="of must be one of step, throughput, speedup, not"):
        viz.sweep(question.sweep(workers=[1, 2]), "speed")
    with pytest.raises(ValueError, match="one thing that was changed"):
        viz.sweep([question.base, question.run(workers=2)])
    with pytest.raises(ValueError, match="not over the same"):
        viz.sweep({"a": question.sweep(workers=[1, 2]), "b": question.sweep(workers=[1, 3])})
