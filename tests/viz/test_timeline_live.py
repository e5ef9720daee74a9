"""Data of a live timeline: the same bars as its still, why devices were idle, and the critical path."""

from __future__ import annotations

import dtflab as tf
from dtflab.viz.bands import Bands
from dtflab.viz.data import step_trace as trace
from dtflab.viz.data.why_idle import Idle
from dtflab.viz.drawing.palette import look
from dtflab.viz.timeline_live import data
from tests.viz.programs import PS, mlp, traced, worker

ZERO, ONE = worker(), worker(1)


def live(step, **arguments):
    return tf.viz.timeline(step, **arguments)._live


def rows_of(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def event(name, device, start, end):
    return trace.Event(name, "NoOp", device, "thread", start, end, 0)


def sent(tensor, source, device, start, end):
    return trace.Transfer(tensor, source, device, start, end, 100)


# ps:0 ends `w` at 10; worker:0 has it at 40 and computes until 60; worker:1 has it at 50 and computes until 90.
STEP = trace.Trace(
    [event("w", PS, 0, 10), event("a", ZERO, 40, 60), event("b", ONE, 50, 90), event("sum", PS, 95, 100)],
    [sent("w:0", PS, ZERO, 0, 40), sent("w:0", PS, ONE, 0, 50), sent("b:0", ONE, PS, 0, 95)],
    100.0,
)


def test_the_bars_are_those_of_the_trace():
    step = traced(mlp() + mlp(task=1, prefix="b/"))
    data, read = live(step), trace.read(step)
    bars = rows_of(data["bars"])
    drawn = sorted((bar["start"], bar["end"]) for bar in bars)
    assert drawn == sorted((round(e.start, 3), round(e.end, 3)) for e in [*read.events, *read.details])
    assert {data["rows"][bar["row"]]["device"] for bar in bars} == {"ps:0", "worker:0", "worker:1"}
    assert len(data["waits"]["start"]) == len(read.transfers)
    for wait in rows_of(data["waits"]):
        maker = bars[wait["maker"]]
        assert data["texts"][wait["tensor"]].startswith(data["texts"][maker["name"]])


def test_parts_and_faults_are_bars_of_other_kinds():
    part = event("a", ZERO, 40, 50)._replace(part=(1, 2))
    fault = event("stopped", ZERO, 0, 30)._replace(thread="chaos")
    wired = event("w", ZERO, 0, 10)._replace(op="sent", thread="wire", source=PS)
    bands = Bands(STEP._replace(details=[part, fault, wired]), 880)
    found = rows_of(data(bands, lambda e: look(e.device), lambda t: look(t.source), 0, None)["bars"])
    kinds = {(bar["start"], bar["end"]): bar["kind"] for bar in found if bar["kind"]}
    assert kinds == {(0, 10): 3, (40, 50): 1, (0, 30): 2} and len(found) == len(STEP.events) + 3


def test_idle_rows_are_folded_and_have_rows_of_their_own_when_open():
    busy, first, second = (event(name, PS, *span) for name, *span in (("a", 0, 1000), ("b", 0, 2), ("c", 5, 6)))
    threads = [busy, first._replace(thread="client"), second._replace(thread="copy")]
    bands = Bands(trace.Trace(threads, [], 1000.0), 880)
    found = data(bands, lambda e: look(e.device), lambda t: look(t.source), 0, None)
    assert found["folds"] == [{"row": 1, "rows": [2, 3]}]
    assert [row["label"] for row in found["rows"]] == ["thread", "client, copy", "client", "copy"]
    assert found["rows"][1]["y"] == found["rows"][2]["y"] < found["rows"][3]["y"]
    assert [(bar["start"], bar["row"]) for bar in rows_of(found["bars"])] == [(0, 0), (0, 2), (5, 3)]


def test_a_bar_knows_the_line_that_made_its_op():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.square(tf.constant(2.0), name="squared")
        data = live(sess.trace("squared:0"), graph=graph)
    (line,) = {data["texts"][bar["line"]] for bar in rows_of(data["bars"]) if data["texts"][bar["name"]] == "squared"}
    assert line.partition(":")[0].endswith("test_timeline_live.py") and "squared" not in line


def test_gaps_say_which_tensor_was_waited_for_and_what_its_sender_did():
    gaps = {(gap.device, gap.start, gap.end): gap.why for gap in Idle(STEP).gaps()}
    assert gaps == {
        (PS, 10, 95): "waited 85.0 µs for b:0 from worker:1",
        (ZERO, 0, 40): "waited 40.0 µs for w:0 from ps:0, which was sending 2 tensors in that time",
        (ZERO, 60, 100): "nothing was left to do here",
        (ONE, 0, 50): "waited 50.0 µs for w:0 from ps:0, which was sending 2 tensors in that time",
        (ONE, 90, 100): "nothing was left to do here",
    }


def test_a_gap_without_a_tensor_says_that_nothing_was_ready():
    step = trace.Trace([event("a", ZERO, 0, 10), event("b", ZERO, 50, 60)], [], 60.0)
    (gap,) = Idle(step).gaps()
    assert gap.why == "nothing was ready here before b"


def test_the_critical_path_goes_back_over_the_slowest_worker():
    assert [event.name for event in Idle(STEP).critical_path()] == ["w", "b", "sum"]


def test_the_critical_path_goes_on_behind_an_op_that_takes_no_time():
    ended = STEP._replace(events=[*STEP.events, event("train", PS, 100, 100)])
    assert [event.name for event in Idle(ended).critical_path()] == ["w", "b", "sum", "train"]


def test_the_critical_path_stays_on_a_device_where_no_tensor_was_waited_for():
    step = trace.Trace([event("a", ZERO, 0, 10), event("b", ZERO, 10, 30), event("x", ONE, 0, 5)], [], 30.0)
    assert [event.name for event in Idle(step).critical_path()] == ["a", "b"]
