import html
import itertools
import re
import sys

import numpy as np
import pytest
from pytest import approx

import dtflab as tf
from dtflab import viz
from dtflab.protos.config_pb2 import RunMetadata
from dtflab.protos.step_stats_pb2 import StepStats
from dtflab.viz.bands import IDLE_ROOM, LABEL_GAP, Bands
from dtflab.viz.data import step_trace as trace
from dtflab.viz.drawing.names import readable, shorter
from dtflab.viz.drawing.style import room
from dtflab.viz.drawing.svg import text_width
from tests.viz.programs import PS, mlp, traced, worker
from tests.viz.watched import texts

TF_LABEL = "[25600B] [588.505737Mb/s] edge_7_hidden/weights/read from {} to {}"


WORKER = worker()


def step(*spans, device=WORKER, label=""):
    """A trace of spans (name, start, end) in microseconds."""
    stats = StepStats()
    one = stats.dev_stats.add(device=device)
    for name, start, end in spans:
        one.node_stats.add(
            node_name=name, timeline_label=label or f"{name} = NoOp()", all_start_micros=1000 + start,
            all_end_rel_micros=end - start,
        )  # fmt: skip
    return stats


def test_reads_what_tensorflow_writes():
    stats = step(("RecvTensor", 10, 30), label=TF_LABEL.format(PS, worker()))
    stats.MergeFrom(step(("_SOURCE", 0, 5), ("hidden/MatMul", 30, 90), device=worker()))
    read = trace.read(RunMetadata(step_stats=stats))
    assert read.transfers == [trace.Transfer("hidden/weights/read", PS, worker(), 0.0, 20.0, 25600)]
    assert read.events == [trace.Event("hidden/MatMul", "NoOp", worker(), "thread 0", 20.0, 80.0, 0)]
    assert read.total == 80


def test_nanoseconds_are_used_where_they_are_written():
    stats = step(("a", 0, 0))
    node = stats.dev_stats[0].node_stats[0]
    node.all_start_nanos, node.all_end_rel_nanos = 1_700_000_000_000_000_123, 2500
    assert trace.read(stats).events[0].duration == 2.5


def test_bars_lie_in_their_band_and_do_not_overlap():
    bands = Bands(trace.read(traced(mlp() + mlp(task=1, prefix="b/"))), 880)
    assert [band.look.label for band in bands.bands] == ["ps:0", "worker:0", "worker:1"]
    for band, after in itertools.pairwise(bands.bands):
        assert band.y + band.height < after.y
    for band in bands.bands:
        for row in band.rows:
            assert band.y < row.y and row.y + row.height < band.y + band.height
            spans = [bands.extent(one) for each in row.rows for one in [*each.events, *each.transfers]]
            assert all(bands.left <= x and x + width <= bands.right + 0.01 for x, width in spans)
            for each in row.rows:
                spans = [bands.extent(one) for one in [*each.events, *each.transfers]]
                assert all(a[0] + a[1] <= b[0] + 1.6 for a, b in itertools.pairwise(spans))


def test_ops_at_the_same_time_have_rows_of_their_own():
    (band,) = Bands(trace.read(step(("a", 0, 50), ("b", 25, 75), ("c", 75, 100))), 880).bands
    assert [[event.name for event in row.events] for row in band.rows] == [["a", "c"], ["b"]]


def test_threads_have_rows_and_names():
    stats = step(("a", 0, 50), ("b", 25, 75))
    stats.dev_stats[0].node_stats[1].thread_id = 1
    stats.dev_stats[0].thread_names.update({0: "client", 1: "pool-1"})
    (band,) = Bands(trace.read(stats), 880).bands
    assert [(row.label, row.idle) for row in band.rows] == [("client", approx(1 / 3)), ("pool-1", approx(1 / 3))]


def with_idle_threads():
    """A thread that works, two that hardly do, and one for what chaos did."""
    names = ["client", "memcpy", "pool-1"]
    stats = step(("a", 0, 2), ("b", 3, 5), ("c", 5, 1000))
    for number, (node, name) in enumerate(zip(stats.dev_stats[0].node_stats, names, strict=True)):
        node.thread_id = number
        stats.dev_stats[0].thread_names[number] = name
    stats.MergeFrom(step(("stop", 0, 1), device=f"{WORKER}/chaos"))
    return stats


def test_idle_threads_fold_into_one_line_but_for_the_busiest_and_faults():
    bands = Bands(trace.read(with_idle_threads()), 880)
    (band,) = bands.bands
    chaos, pool, fold = band.rows
    assert [(row.label, row.folded) for row in (chaos, pool)] == [("chaos", []), ("pool-1", [])]
    assert [event.name for event in fold.events] == ["a", "b"] and fold.label == "client, memcpy"
    assert fold.idle == approx(0.996) and fold.height < 15 < fold.folded[0].height
    assert [(row.label, [event.name for event in row.events], row.y - fold.y) for row in fold.folded] == [
        ("client", ["a"], 0), ("memcpy", ["b"], approx(22)),
    ]  # fmt: skip
    idle = with_idle_threads()
    del idle.dev_stats[0].node_stats[-1]  # the op in `pool-1`
    idle.dev_stats[0].node_stats[1].all_end_rel_micros += 1
    idle.MergeFrom(step(("c", 5, 1000), device=PS))
    rows = Bands(trace.read(idle), 880).bands[1].rows
    assert [(row.label, len(row.folded)) for row in rows] == [("chaos", 0), ("memcpy", 0), ("client", 1)]
    picture = viz.timeline(with_idle_threads())
    assert "<title>idle: client, memcpy</title>" in picture.svg and picture.svg.count("a = NoOp") == 1


def test_many_names_of_idle_threads_are_counted():
    stats = step(("busy", 0, 10_000), *((f"op{i}", i, i + 1) for i in range(9)))
    for number, node in enumerate(stats.dev_stats[0].node_stats):
        node.thread_id = number
        stats.dev_stats[0].thread_names[number] = f"a thread with a name {number}"
    (band,) = Bands(trace.read(stats), 880).bands
    assert [row.label for row in band.rows] == ["a thread with a name 0", "9 idle rows"]


def with_parts():
    """A on one thread, its second part on another, and a copy to the device."""
    device = "/job:localhost/replica:0/task:0/device:GPU:0"
    stats = step(("A", 0, 100), ("B", 10, 40), device=device)
    stats.MergeFrom(step(("A", 5, 55), device=device + "/intra-op", label="A = MatMul(x, y) part 1 of 2"))
    stats.MergeFrom(step(("A", 6, 50), device=device + "/intra-op", label="A = MatMul(x, y) part 2 of 2"))
    stats.MergeFrom(step(("x:MEMCPYHtoD", 0, 3), device=device + "/memcpy"))
    names = {0: "GPU:0 inter-op 1", 1: "GPU:0 inter-op 2", 2: "GPU:0 intra-op 1"}
    for one in stats.dev_stats:
        one.thread_names.update(names)
    stats.dev_stats[0].node_stats[1].thread_id, stats.dev_stats[2].node_stats[0].thread_id = 1, 2
    return stats


def test_parts_and_copies_are_bars_of_their_device_and_no_ops():
    bands = Bands(trace.read(with_parts()), 880)
    (band,) = bands.bands
    assert band.look.label == "GPU:0"
    rows = [(row.label, [event.called(event.name) for event in row.events]) for row in band.rows]
    assert rows == [
        ("inter-op 1", ["A"]), ("", ["A 1/2"]), ("inter-op 2", ["B"]), ("intra-op 1", ["A 2/2"]),
        ("memcpy", ["x:MEMCPYHtoD"]),
    ]  # fmt: skip
    assert [bands.name_inside(event) for row in band.rows for event in row.events][:4] == ["A", "A 1/2", "B", "A 2/2"]


def test_the_picture_counts_no_part_and_names_it():
    picture = viz.timeline(with_parts())
    assert "2 ops on 1 device" in repr(picture) and "part of an op" in picture.svg
    assert "A = MatMul, part 2 of 2\n44 µs, from 6 µs to 50 µs" in picture.svg
    assert "part of an op" not in viz.timeline(step(("A", 0, 100))).svg


def test_an_arrow_starts_at_the_op_and_not_at_a_part_of_it():
    stats = with_parts()
    stats.MergeFrom(step(("RecvTensor", 100, 110), label=TF_LABEL.replace("hidden/weights/read", "A").format(
        stats.dev_stats[0].device, WORKER
    )))  # fmt: skip
    bands = Bands(trace.read(stats), 880)
    x, row = bands.origin(bands.trace.transfers[0])
    assert [event.called(event.name) for event in row.events] == ["A"] and x == approx(bands.x(100), abs=1.1)


def test_idle_counts_time_not_ops():
    (band,) = Bands(trace.read(step(("a", 0, 50), ("b", 25, 50), ("c", 90, 100))), 880).bands
    assert band.idle == pytest.approx(0.4)


def idle_in_percent(spans, total):
    """The share of `total` microseconds in which no span runs, in percent: counted one by one."""
    busy = {moment for start, end in spans for moment in range(start, end)}
    rounded = f"{100 * (total - len(busy)) / total:.0f}"
    return ">99" if busy and rounded == "100" else rounded


def test_the_drawn_idle_of_devices_and_threads_is_that_of_the_trace():
    total, names = 400, {0: "client", 1: "inter-op 1"}
    ran = {  # by device and thread
        PS: {0: [(0, 31), (17, 60)], 1: [(58, 90), (300, 303)]},
        worker(0): {0: [(60, 331)], 1: [(70, 90), (90, 120)]},
        worker(1): {0: [(100, 101)], 1: [(40, 399)]},
        worker(2): {0: [(0, 400)], 1: [(5, 205)]},
    }
    stats = StepStats()
    for device, threads in ran.items():
        stats.MergeFrom(step(*((f"op{a}", a, b) for spans in threads.values() for a, b in spans), device=device))
        stats.dev_stats[-1].thread_names.update(names)
        for node, thread in zip(stats.dev_stats[-1].node_stats, (t for t in threads for _ in threads[t]), strict=True):
            node.thread_id = thread
    picture = viz.timeline(stats)
    devices = [
        idle_in_percent([span for spans in threads.values() for span in spans], total) for threads in ran.values()
    ]
    assert devices == ["77", "32", "10", "0"]
    assert re.findall(r'class="s11 end right b">(\d+)% idle<', picture.svg) == devices
    assert re.findall(r'class="s11 end right soft">(\S+)% idle<', html.unescape(picture.svg)) == [
        share
        for threads in ran.values()
        for share in sorted((idle_in_percent(spans, total) for spans in threads.values()), key=lambda s: s == ">99")
    ]  # what is idle is folded, below the others
    assert re.findall(r"(\d+)% idle", picture.sentence) == devices
    assert [line.split()[2] for line in str(picture).splitlines()[2:]] == [f"{share}%" for share in devices]


def test_an_arrow_starts_where_the_tensor_was_made():
    bands = Bands(trace.read(traced(mlp())), 880)
    transfer = next(t for t in bands.trace.transfers if t.tensor == "layer1/weights/read")
    x, row = bands.origin(transfer)
    event = next(e for e in row.events if e.name == "layer1/weights/read")
    assert event.device == PS and x == pytest.approx(sum(bands.extent(event)))


def turns(count, apart=100, size=400):
    """A loop: in each turn the server makes x, which a worker asks for early."""
    stats = step(*(("x", apart * i, apart * i + 10) for i in range(count)), device=PS)
    for i in range(count):
        label = f"[{size}B] edge_1_x from {PS} to {WORKER}"
        stats.MergeFrom(step(("RecvTensor", 5, apart * i + 20), label=label))
    return stats


def test_an_arrow_starts_in_the_turn_of_the_loop_that_made_the_tensor():
    bands = Bands(trace.read(turns(5)), 880)
    starts = [bands.origin(t)[0] for t in sorted(bands.trace.transfers, key=lambda t: t.end)]
    assert starts == [approx(bands.x(100 * i + 10), abs=1.1) for i in range(5)]


def test_of_many_transfers_the_largest_are_drawn():
    stats = turns(100, size=0)
    stats.MergeFrom(step(("RecvTensor", 5, 900), label=f"[8000B] edge_2_x from {PS} to {WORKER}"))
    picture, bands = viz.timeline(stats), Bands(trace.read(stats), 880)
    assert "101 transfers, 8.0 kB (the 16 largest are drawn)" in picture.sentence
    assert picture.svg.count('class="wire" stroke') == 16 and len(picture.tables[1][2]) == 101
    assert max(bands.drawn, key=lambda t: t.bytes).bytes == 8000
    (folded,) = (row for band in bands.bands for row in band.rows if row.transfers)
    assert len(folded.folded) == 16 and len(folded.transfers) == 16
    stripes = picture.svg.count('class="stripe"') - viz.timeline(step(("x", 0, 9))).svg.count('class="stripe"')
    assert stripes == 2, "the longest, and the sample of the legend: what lies on it has a frame"


def test_says_what_it_shows():
    picture = viz.timeline(step(("a", 0, 600), ("b", 600, 1500)))
    assert picture.sentence == (
        "Timeline of one step, 1.50 ms: 2 ops on 1 device. worker:0 0% idle. "
        "From the first op to the end of the last; ops that take no time count, too."
    )
    assert "0.25 ms" in picture.svg and "b = NoOp\n900 µs, from 600 µs to 1.5 ms" in picture.svg
    assert picture.tables[0][2][1] == ["b", "NoOp", "worker:0", "thread 0", "600.0", "900.0"]
    assert picture.tables[-1] == ("By op", ("op", "times", "duration, µs"), [["NoOp", "2", "1500.0"]])
    assert repr(picture).splitlines()[2].split()[:4] == [worker(), "2", "0%", "0"]


def test_times_at_the_pointer_are_those_of_the_live_card():
    """Expected are the texts of units.ts for the same numbers: four digits, more if the end would read as the start."""
    stats = step(("long", 0, 98_765), ("a", 50_000, 50_001), ("b", 1366, 1380))
    stats.MergeFrom(step(("RecvTensor", 0, 1234), label=f"[400B] edge_1_x from {PS} to {WORKER}"))
    svg = viz.timeline(stats).svg
    assert "a = NoOp\n1 µs, from 50 ms to 50.001 ms" in svg and "b = NoOp\n14 µs, from 1.366 ms to 1.38 ms" in svg
    assert "long = NoOp\n98.77 ms, from 0 µs to 98.77 ms" in svg
    assert "asked for and received in 1.234 ms, at 1.234 ms" in svg


def test_transfers_are_drawn_and_listed():
    picture = viz.timeline(traced(mlp()))
    title, heads, rows = picture.tables[1]
    assert title == "Transfers" and heads[3] == "bytes"
    assert picture.svg.count('class="wire" stroke') == len(rows) > 5


def test_of_many_tensors_on_the_wire_the_largest_are_drawn():
    stats = step(("x", 0, 5), device=PS)
    for i in range(100):
        stats.MergeFrom(step((f"w{i}", 5, 900 + i), device=f"{WORKER}/wire"))
        stats.dev_stats[-1].node_stats[0].output.add().tensor_description.allocation_description.requested_bytes = i + 1
    bands = Bands(trace.read(stats), 880)
    drawn = {event.name for band in bands.bands for row in band.rows for event in row.events if event.is_sent}
    assert drawn == {f"w{i}" for i in range(84, 100)} and bands.height < 600
    assert len(viz.timeline(stats).tables[1][2]) == 100


def test_long_traces_stay_small_and_show_all_bars():
    stats = step(*((f"op{i}", 2 * i, 2 * i + 1 + 500 * (i == 9999)) for i in range(20_000)))
    picture = viz.timeline(stats)
    assert len(picture.svg) < 300_000 and "op9999 = NoOp" in picture.svg
    assert "several bars in one pixel" in texts(picture)
    assert "several bars in one pixel" not in texts(viz.timeline(step(("a", 0, 1), ("b", 1, 2)))), "none is merged"
    merged = re.findall(r'<path d="(M[^"q]*v18h-[^"q]*z)"', picture.svg)
    bands = Bands(trace.read(stats), room())
    runs = [(float(x), float(x) + float(w)) for x, w in re.findall(r"M([\d.]+) [\d.]+h([\d.]+)", "".join(merged))]
    assert min(runs)[0] == approx(bands.left, abs=1) and max(runs)[1] == approx(bands.right, abs=2)
    assert len(picture.tables[0][2]) == 1000 and picture.tables[0][0] == "Ops, the first 1,000 of 20,000"


def test_of_thousands_of_transfers_those_with_room_are_drawn():
    stats = step(*(("x", 100 * i, 100 * i + 10) for i in range(5000)), device=PS)
    label = f"[400B] edge_1_x from {PS} to {WORKER}"
    stats.MergeFrom(step(*(("RecvTensor", 100 * i + 5, 100 * i + 20) for i in range(5000)), label=label))
    picture, bands = viz.timeline(stats), Bands(trace.read(stats), 800)
    wires = picture.svg.count('class="wire" stroke')
    assert 150 < wires == len(bands.drawn) <= 250 and f"(the {wires} largest are drawn)" in picture.sentence
    assert len(picture.svg) < 300_000
    left = sorted(bands.x(transfer.start) for transfer in bands.drawn)
    assert left[0] < bands.left + 10 and left[-1] > bands.right - 60, "from the beginning to the end"


def test_of_a_very_long_step_the_beginning_is_drawn_and_it_says_so(monkeypatch):
    stats = step(*((f"op{i}", 10 * i, 10 * i + 10) for i in reversed(range(500))))
    whole = viz.timeline(stats)
    monkeypatch.setattr(sys.modules["dtflab.viz.timeline"], "MOST_RECORDS", 100)
    picture = viz.timeline(stats)
    said = "the first 1.00 ms of a step of 5.00 ms with 500 records: 100 ops on 1 device"
    assert said in picture.sentence and said in picture.svg and said in picture.text
    assert "op99" in repr(picture.tables) and "op100" not in repr(picture.tables)
    assert "one step, 5.00 ms: 500 ops" in whole.sentence


@pytest.mark.parametrize(
    ("stats", "error", "message"),
    [
        (StepStats(), ValueError, "The trace is empty. Run the step with options=tf.RunOptions"),
        (RunMetadata(), ValueError, "The trace is empty"),
        (step(("_SOURCE", 0, 1)), ValueError, "The trace is empty"),
        (step(("a", 0, 0), ("b", 0, 0)), ValueError, "all times of the trace are equal"),
        ([], TypeError, "A RunMetadata or StepStats is needed, not list. Trace a step: sess.trace"),
    ],
)
def test_nothing_to_show_is_an_error(stats, error, message):
    with pytest.raises(error, match=message):
        viz.timeline(stats)


def test_the_last_bar_ends_before_the_words_on_idle_time():
    assert all(text_width(f"{text} idle", 11, bold=True) + LABEL_GAP < IDLE_ROOM for text in ("100%", ">99%"))


def test_a_device_that_ran_an_op_is_not_idle_for_all_of_the_time():
    picture = viz.timeline(step(("a", 0, 1), ("b", 999_999, 1)))
    assert "worker:0 >99% idle" in picture.sentence and ">99%" in picture.text and "&gt;99% idle<" in picture.svg
    unmeasured = step(("a", 0, 0), ("b", 9, 9))
    unmeasured.MergeFrom(step(("c", 0, 20), device=PS))
    assert "ps:0 0% idle, worker:0 >99% idle" in viz.timeline(unmeasured).sentence


def test_too_narrow():
    with pytest.raises(ValueError, match="A timeline needs a width of at least 400 pixels, not 72"):
        viz.timeline(step(("a", 0, 1)), width=100)


def test_names_that_partitioning_made_are_said_in_words():
    assert readable("_arg_x_0_0") == "feed x"
    assert readable("_retval_loss/Mean_0_0") == "fetch loss/Mean"
    assert readable("w/read/to_job_worker_replica_0_task_0_device_CPU_0/0/send") == "send w/read"
    assert readable("_arg_x_0_0/to_job_worker_replica_0_task_0_device_CPU_0/0/send") == "send x"
    assert readable("hidden/MatMul") == "hidden/MatMul"
    assert [*shorter("a/b/c")] == ["a/b/c", "b/c", "c"]
    sent = "w/read/to_job_worker_replica_0_task_0_device_CPU_0/0/send"
    assert [*shorter(sent)] == ["send w/read", "send read", "send"]


def test_bands_of_simulated_gpus_say_whose_times_they_show():
    tf.simulate_gpus(1)
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            picture = viz.timeline(session.trace(tf.random_normal([4]) * 2.0))
    finally:
        tf.simulate_gpus(None)
    assert picture.svg.count("simulated: NumPy timings") == 1
    assert "device:GPU:0 (simulated: NumPy timings)" in repr(picture)


def test_rows_of_what_is_moved_say_what():
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1, gpus=1, gpu="K40", clock="virtual") as cluster:
        with tf.device("/job:ps/task:0"):
            weights = tf.constant(np.ones([500, 500], np.float32), name="weights")
        with tf.device("/job:worker/task:0/gpu:0"):
            product = tf.matmul(weights, weights, name="product")
        with tf.Session(cluster.target) as session:
            metadata = session.trace(product)
    moved = {(event.name, event.op, event.thread) for event in trace.read(metadata).details}
    assert ("weights", "sent", "wire") in moved and ("weights:MEMCPYHtoD", "copied", "memcpy") in moved
    picture = viz.timeline(metadata)
    assert ">weights</text>" in picture.svg and "NoOp" not in picture.svg
    (wire,) = (row for _, _, rows in picture.tables for row in rows if row[1] == "sent" and "weights" in row[0])
    assert wire[3] == "wire"
    assert (
        ">to worker:0 GPU:0</text>" in picture.svg and "weights, 1.0 MB, on the wire to worker:0 GPU:0" in picture.svg
    )
    (sent,) = (event for event in trace.read(metadata).details if event.is_sent and event.name == "weights")
    assert "/job:ps/" in sent.source and "/job:worker/" in sent.device
    busy = [event for event in trace.read(metadata).details if not event.is_sent]
    ends = sum(event.duration for event in [*busy, *trace.read(metadata).events] if event.device == sent.device)
    assert sent.duration > ends and float(re.search(r"worker:0 GPU:0 (\d+)% idle", picture.sentence)[1]) > 50


def test_ops_are_counted_as_a_placement_does_and_what_is_added_is_said_apart():
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1, clock="virtual") as cluster:
        with tf.device("/job:ps/task:0"):
            x = tf.random_uniform([9], name="x")
        with tf.device("/job:worker/task:0"):
            y = tf.square(x, name="y")
        with tf.Session(cluster.target) as session:
            step, placed = session.trace(y), viz.placement(y, session)
    ops = placed.text.partition(" on ")[0]
    for way in ("device", "job", "phase"):
        picture = viz.timeline(step, color_by=way, graph=y.graph)
        assert f": {ops} (and 2 that send or fetch) on 2 devices, 1 transfer" in picture.sentence  # _Send, _Retval
    counts = [int(n) for n in re.findall(r"^/job:\S+ +(\d+) ", viz.timeline(step).text, re.MULTILINE)]
    assert len(counts) == 2 and f"{sum(counts)} ops" == ops


def test_an_arrow_ends_where_the_wait_does():
    """An arrow's tip is at the bar's right end, where the tensor is there, not where somebody began to wait for it."""
    stats = step(("weights", 0, 300), device=PS)
    stats.MergeFrom(step(("RecvTensor", 100, 400), label=TF_LABEL.replace("hidden/weights/read", "weights").format(
        PS, WORKER
    )))  # fmt: skip
    bands = Bands(trace.read(stats), room(880))
    (transfer,) = bands.trace.transfers
    svg = viz.timeline(stats, width=880).svg
    d = re.search(r'</title><path d="M(\S+) \S+C[^"]* (\S+) \S+" class="wire"', svg)
    x, width = bands.extent(transfer)
    assert float(d[1]) == approx(bands.x(300), abs=1.1) and float(d[2]) == approx(x + width - 3, abs=0.1)
    assert width > 100
