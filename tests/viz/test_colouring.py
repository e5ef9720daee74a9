"""Colours by device, job, time or phase: legends, texts and tables follow, and no colour stands alone."""

from __future__ import annotations

import re

import pytest

from dtflab import viz
from dtflab.viz import colouring
from dtflab.viz.data.graph_ops import ops_of
from dtflab.viz.drawing import palette
from tests.viz.programs import mlp, traced

NODES = mlp()


def heads(picture):
    return {title: heads for title, heads, _ in picture.tables}


@pytest.mark.parametrize("by", colouring.WAYS)
def test_every_way_has_a_letter_for_each_op_and_the_legend_all_of_them(by):
    way = colouring.colouring(by, NODES, traced(NODES))
    looks = colouring.of_ops(way, ops_of(NODES))
    legend = way.order(looks.values())
    assert set(legend) == set(looks.values()) and len({one.letter for one in legend}) == len(legend)
    assert all(one.letter and one.label for one in legend)


@pytest.mark.parametrize("by", colouring.WAYS)
def test_placement_and_timeline_say_in_words_what_their_colours_say(by):
    step = traced(NODES)
    pictures = viz.placement(NODES, color_by=by, step=step), viz.timeline(step, color_by=by, graph=NODES)
    way = colouring.colouring(by, NODES, step)
    for picture in pictures:
        for one in way.order(colouring.of_ops(way, ops_of(NODES)).values()):
            said = one.label if by != "device" else one.device
            if said != "did not run":
                assert said in picture.text and one.label in picture.sentence and one.label in picture.svg
        table = picture.tables[0]
        assert (by in table[1]) and (by == "device" or one.label in {row[table[1].index(by)] for row in table[2]})


def test_the_default_is_by_device():
    step = traced(NODES)
    assert viz.placement(NODES).svg == viz.placement(NODES, color_by="device").svg
    assert viz.timeline(step).svg == viz.timeline(step, color_by="device").svg


def test_jobs_have_the_colour_of_their_first_task():
    ps, worker = (palette.job_look(f"/job:{job}/replica:0/task:3/device:GPU:1") for job in ("ps", "worker"))
    assert (ps.letter, worker.letter, ps.label) == ("P", "W", "/job:ps")
    assert ps.colour != worker.colour and ps == palette.job_look("/job:ps/task:0")
    assert palette.job_look("").label == "not placed"


def test_classes_of_time_are_decades_and_the_longest_is_the_last():
    classes = colouring._classes([0.0, 0.4, 7.0, 30.0, 2e6])
    assert [one.letter for _, one in classes] == ["1", "2", "3", "4", "5"]
    assert [one.label for _, one in classes] == [
        "less than 1 ms", "1 ms to 10 ms", "10 ms to 100 ms", "100 ms to 1 s", "1 s to 10 s",
    ]  # fmt: skip
    (only,) = colouring._classes([30.0, 40.0])
    assert only[1].label == "less than 100 µs" and only[1].colour == classes[-1][1].colour
    assert [one.label for _, one in colouring._classes([0.0, 0.0])]


def test_an_op_has_the_time_that_was_measured_all_turns_together():
    step = traced(NODES)
    way = colouring.colouring("time", step=step)
    assert way.of("layer1/MatMul", "").label == "10 µs to 100 µs" and way.of("x", "").label == "less than 10 µs"
    assert way.of("never", "").label == "did not run"
    twice = type(step)()
    twice.CopyFrom(step)
    for device in twice.dev_stats:
        device.node_stats.extend([n for n in device.node_stats if n.node_name == "layer1/MatMul"])
    assert colouring.colouring("time", step=twice).of("layer1/MatMul", "").label == "100 µs to 1 ms"


def test_bars_by_phase_show_their_letter_and_devices_give_their_colour_away():
    svg = viz.timeline(traced(NODES), color_by="phase", graph=NODES).svg
    inside = re.findall(r'class="s11 mid" style="fill:[^"]*">([^<]*)<', svg)
    assert [text for text in inside if "MatMul" in text] and all(text[0] in "IFLBU" for text in inside)
    badges = svg[svg.index('class="band wide"') :]
    assert "#8C959F" in badges[: badges.index("</text>")]


def test_a_way_that_is_not_there_or_has_not_what_it_needs_is_told():
    with pytest.raises(ValueError, match="color_by='speed': choose one of device, job, time, phase"):
        viz.placement(NODES, color_by="speed")
    with pytest.raises(ValueError, match="needs a traced step: step=run_metadata"):
        viz.placement(NODES, color_by="time")
    with pytest.raises(ValueError, match=r"needs the graph that was run: viz.timeline\(…, graph=sess.graph\)"):
        viz.timeline(traced(NODES), color_by="phase", graph=mlp(prefix="other/"))


def test_phases_may_be_given():
    picture = viz.placement(NODES, color_by="phase", phases={op.name: "loss" for op in NODES})
    assert "loss" in picture.sentence and "forward" not in picture.sentence


def test_what_is_sent_and_fetched_is_of_the_phase_of_who_made_it():
    way = colouring.colouring("phase", NODES)
    names = "layer1/MatMul/to_job_ps_replica_0_task_0_device_CPU_0/0/send", "_retval_loss/Mean_0_0", "_arg_x_0_0", "?"
    assert [way.of(name, "").label for name in names] == ["forward", "loss", "input", "other"]
