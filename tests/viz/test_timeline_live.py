"""Data of a live timeline: the same bars as its still, why devices were idle, and the critical path."""

from __future__ import annotations

import itertools

import dtflab
import dtflab as tf
from dtflab.viz.bands import MOST_RECEIVING, Bands
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


def test_bars_of_one_device_have_names_that_differ():
    bars = [event(f"layer_{n}/MatMul", ZERO, 10 * n, 10 * n + 9) for n in range(4)]
    bands = Bands(trace.Trace([*bars, event("other/MatMul", ONE, 0, 10)], [], 40.0), 560.0)
    drawn = [*map(bands.name_inside, bars)]
    assert len({*drawn}) == 4 and "layer_0/MatMul" not in drawn
    written = data(bands, lambda event: look(event.device), lambda sent: look(PS), 0.0, None)
    forms = [[written["texts"][form] for form in written["forms"][bar["name"]]] for bar in rows_of(written["bars"])]
    assert [own[-1] for own in forms] == ["MatMul"] * 5
    assert all(name in own for name, own in zip(drawn, forms, strict=False))
    assert forms[4] == ["other/MatMul", "MatMul"], "nothing on its device ends so"


def test_parts_faults_and_copies_are_bars_of_other_kinds():
    part = event("a", ZERO, 40, 50)._replace(part=(1, 2))
    fault = event("stopped", ZERO, 0, 30)._replace(thread="chaos")
    wired = event("w", ZERO, 0, 10)._replace(op="sent", thread="wire", source=PS)
    copied = event("w", ZERO, 0, 5)._replace(op="copied", thread="memcpy")
    bands = Bands(STEP._replace(details=[part, fault, wired, copied]), 880)
    found = rows_of(data(bands, lambda e: look(e.device), lambda t: look(t.source), 0, None)["bars"])
    kinds = {(bar["start"], bar["end"]): bar["kind"] for bar in found if bar["kind"]}
    assert kinds == {(0, 10): 3, (40, 50): 1, (0, 30): 2, (0, 5): 4} and len(found) == len(STEP.events) + 4


def test_idle_rows_are_folded_and_have_rows_of_their_own_when_open():
    busy, first, second = (event(name, PS, *span) for name, *span in (("a", 0, 1000), ("b", 0, 2), ("c", 5, 6)))
    threads = [busy, first._replace(thread="client"), second._replace(thread="copy")]
    bands = Bands(trace.Trace(threads, [], 1000.0), 880)
    found = data(bands, lambda e: look(e.device), lambda t: look(t.source), 0, None)
    assert found["folds"] == [{"row": 1, "rows": [2, 3]}]
    assert [row["label"] for row in found["rows"]] == ["thread", "client, copy", "client", "copy"]
    assert found["rows"][1]["y"] == found["rows"][2]["y"] < found["rows"][3]["y"]
    assert [(bar["start"], bar["row"]) for bar in rows_of(found["bars"])] == [(0, 0), (0, 2), (5, 3)]


def test_tensors_for_which_there_is_no_room_are_in_a_row_that_is_not_drawn():
    crowd = [sent(f"t{i}:0", PS, ZERO, 0, 900 + i) for i in range(20)]
    wired = [event(f"t{i}", ZERO, 0, 900)._replace(op="sent", thread="wire", source=PS) for i in range(20)]
    busy = [event("a", PS, 0, 1000), event("b", ZERO, 950, 1000)]
    bands = Bands(trace.Trace(busy, crowd, 1000.0, wired), 880)
    found = data(bands, lambda e: look(e.device), lambda t: look(t.source), 0, None)
    hidden = [i for i, row in enumerate(found["rows"]) if not row["height"]]
    assert len(hidden) == 1 and found["rows"][hidden[0]]["device"] == "worker:0"
    for kind, count in (("waits", 20), ("bars", 22)):
        rows = found[kind]["row"]
        assert (len(rows), sum(row in hidden for row in rows)) == (count, 20 - MOST_RECEIVING)
    assert {row["thread"] for row in found["rows"] if row["height"]} == {"thread", "to worker:0", ""}


def test_a_bar_knows_the_line_that_made_its_op():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.square(tf.constant(2.0), name="squared")
        data = live(sess.trace("squared:0"), graph=graph)
    (line,) = {data["texts"][bar["line"]] for bar in rows_of(data["bars"]) if data["texts"][bar["name"]] == "squared"}
    assert line.partition(":")[0].endswith("test_timeline_live.py") and "squared" not in line


def test_gaps_say_which_tensor_was_waited_for_and_what_the_link_carried():
    gaps = {(gap.device, gap.start, gap.end): gap.why for gap in Idle(STEP).gaps()}
    assert gaps == {
        (PS, 10, 95): "waited 85.0 µs for b:0 from worker:1, 80.0 µs of it until it was made",
        (ZERO, 0, 40): "waited 40.0 µs for w:0 from ps:0, whose link carried 2 pulls",
        (ZERO, 60, 100): "nothing was left to do here",
        (ONE, 0, 50): "waited 50.0 µs for w:0 from ps:0, whose link carried 2 pulls",
        (ONE, 90, 100): "nothing was left to do here",
    }


def test_a_link_carries_what_has_been_made_and_leaves_its_task():
    """Not what was asked for and not there yet, nor a copy to a GPU of the same task."""
    gpu = PS.replace("CPU", "GPU")
    later = [event("late", PS, 60, 65), event("on", gpu, 50, 99)]
    asked = [sent("late:0", PS, ONE, 0, 95), sent("w:0", PS, gpu, 0, 50)]
    step = STEP._replace(events=STEP.events[:2] + later, transfers=[STEP.transfers[0], *asked])
    gaps = {(gap.device, gap.end): gap.why for gap in Idle(step).gaps()}
    assert gaps[ZERO, 40] == "waited 40.0 µs for w:0 from ps:0"
    assert gaps[gpu, 50] == "waited 50.0 µs for w:0 from ps:0"


def test_a_bar_has_the_input_that_was_there_last():
    read = trace.read(traced(mlp() + mlp(task=1, prefix="b/")))
    idle, of = Idle(read), {event.name: event for event in read.events}
    first = of["layer1/MatMul"]
    ends = {transfer.end for transfer in read.transfers if transfer.tensor == "layer1/weights/read"}
    assert first.inputs == "x, layer1/weights/read" and idle.last_input(first)[0] == "layer1/weights/read from ps:0"
    assert idle.last_input(first)[1] in ends
    assert idle.last_input(of["layer1/Relu"]) == ("layer1/add", of["layer1/add"].end)
    assert idle.last_input(of["x"]) is None


def test_the_last_input_of_a_turn_is_of_the_same_turn():
    spans = [event("a", ZERO, 0, 5), event("b", ZERO, 9, 10), event("a", ZERO, 20, 24), event("b", ZERO, 25, 30)]
    turns = [each._replace(inputs="a") if each.name == "b" else each for each in spans]
    idle = Idle(trace.Trace(turns, [], 30.0))
    assert [idle.last_input(turn) for turn in turns[1::2]] == [("a", 5), ("a", 24)]


def test_inputs_are_read_as_the_runtime_writes_them():
    with tf.Graph().as_default(), dtflab.Cluster(ps=1, worker=1) as cluster, tf.Session(cluster.target) as sess:
        with tf.device("/job:ps"):
            w = tf.constant(2.0, name="w")
        with tf.device("/job:worker"):
            tf.add(w, tf.constant(1.0, name="one"), name="sum")
        read = trace.read(sess.trace("sum:0"))
    (total,) = (event for event in read.events if event.name == "sum")
    assert total.inputs.startswith("w/to_job") and total.inputs.endswith(", one")
    assert Idle(read).last_input(total)[0] in ("w from ps:0", "one")


def test_a_gap_without_a_tensor_says_that_nothing_was_ready():
    step = trace.Trace([event("a", ZERO, 0, 10), event("b", ZERO, 50, 60)], [], 60.0)
    (gap,) = Idle(step).gaps()
    assert gap.why == "nothing was ready here before b"


def test_a_gap_before_the_first_op_says_that_the_part_began_with_it():
    """A ps task is idle, for example, until a worker asks for its part: a variable is never not ready."""
    (gap,) = Idle(trace.Trace([event("w", ZERO, 50, 60)], [], 60.0)).gaps()
    assert gap.why == "its part of the step began only then, with w, which needs no input"
    (gap,) = Idle(trace.Trace([event("b", ZERO, 50, 60)._replace(inputs="a")], [], 60.0)).gaps()
    assert gap.why == "nothing was ready here before b"


def test_a_gap_before_an_op_that_was_ready_says_so():
    a, b = event("a", ZERO, 0, 10), event("b", ZERO, 50, 60)
    step = trace.Trace([a, b._replace(inputs="a")], [], 60.0)
    (gap,) = Idle(step).gaps()
    assert gap.why == "b was ready, but no thread began it for 40.0 µs"


def path(step):
    """The critical path; tensors have the name that they have as outputs."""
    parts = [
        (p.what.name if isinstance(p.what, trace.Event) else p.what.tensor, p.start, p.end)
        for p in Idle(step).critical_path()
    ]
    assert all(end <= start for (_, _, end), (_, start, _) in itertools.pairwise(parts)), "parts overlap"
    return parts


SLOWEST = [("w", 0, 10), ("w:0", 10, 50), ("b", 50, 90), ("b:0", 90, 95), ("sum", 95, 100)]


def test_the_critical_path_goes_back_over_the_slowest_worker_and_its_transfers():
    """A transfer counts from when its tensor was made, not from when it was asked for."""
    assert path(STEP) == SLOWEST


def test_the_critical_path_goes_on_behind_an_op_that_takes_no_time():
    ended = STEP._replace(events=[*STEP.events, event("train", PS, 100, 100)])
    assert path(ended) == [*SLOWEST, ("train", 100, 100)]


def test_the_critical_path_stays_on_a_device_where_no_tensor_was_waited_for():
    step = trace.Trace([event("a", ZERO, 0, 10), event("b", ZERO, 10, 30), event("x", ONE, 0, 5)], [], 30.0)
    assert path(step) == [("a", 0, 10), ("b", 10, 30)]


def test_the_critical_path_leaves_out_what_was_waiting():
    """The tensor is asked for late, at 20, and no thread takes the last op at once."""
    events = [event("w", PS, 2, 10), event("a", ZERO, 41, 60)]
    step = trace.Trace(events, [sent("w:0", PS, ZERO, 20, 40)], 60.0)
    assert path(step) == [("w", 2, 10), ("w:0", 20, 40), ("a", 41, 60)]


def test_the_critical_path_of_a_tensor_that_was_asked_for_late_goes_over_what_ran_until_then():
    events = [event("w", PS, 0, 5), event("before", ZERO, 3, 20), event("a", ZERO, 40, 60)]
    step = trace.Trace(events, [sent("w:0", PS, ZERO, 20, 40)], 60.0)
    assert path(step) == [("before", 3, 20), ("w:0", 20, 40), ("a", 40, 60)]


def test_the_critical_path_allows_for_clocks_that_know_a_quarter_of_a_microsecond():
    """The op before the last ends, by the times since 1970 that a trace has, after that one has begun."""
    events = [event("early", ZERO, 0, 10), event("late", ZERO, 5, 50.4), event("end", ZERO, 50, 60)]
    assert path(trace.Trace(events, [], 60.0)) == [("late", 5, 50), ("end", 50, 60)]


def test_the_critical_path_ends_with_the_transfer_that_the_step_ends_with():
    step = trace.Trace([event("w", PS, 0, 10)], [sent("w:0", PS, ZERO, 0, 40)], 40.0)
    assert path(step) == [("w", 0, 10), ("w:0", 10, 40)]


def test_the_critical_path_goes_on_where_a_tensor_was_asked_for_that_no_op_made():
    events = [event("a", ZERO, 0, 10), event("b", ZERO, 30, 40)]
    assert path(trace.Trace(events, [sent("fed:0", PS, ZERO, 10, 30)], 40.0)) == [
        ("a", 0, 10), ("fed:0", 10, 30), ("b", 30, 40),
    ]  # fmt: skip


def test_a_picture_knows_the_bars_of_its_critical_path():
    data = live(traced(mlp()))
    for part in rows_of(data["critical"]):
        of = rows_of(data["waits" if part["is_wait"] else "bars"])[part["index"]]
        assert of["start"] <= part["start"] <= part["end"] <= of["end"]
    times = [part["end"] - part["start"] for part in rows_of(data["critical"])]
    assert round(sum(times), 3) == data["total"], "nothing waits in a step whose ops start when their inputs are there"
    assert {*data["critical"]["is_wait"]} == {0, 1}
