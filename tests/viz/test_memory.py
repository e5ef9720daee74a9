"""The picture of memory, from traces made by hand, by dtflab and by TensorFlow."""

from __future__ import annotations

import importlib
import re
import xml.etree.ElementTree as ElementTree

import pytest

import dtflab as tf
from dtflab import viz
from dtflab.machine.hosts import simulate_gpus
from dtflab.protos.step_stats_pb2 import StepStats
from dtflab.viz.data import step_trace as trace, usage
from dtflab.viz.data.graph_ops import ops_of
from dtflab.viz.drawing.units import memory_size
from tests.viz.programs import worker
from tests.viz.watched import live

MIB = 1 << 20
GPU = worker().replace("CPU", "GPU")


def step(*tensors, device=GPU, allocator="GPU_0_bfc", before=0, ends=100):
    """A trace of tensors (name, bytes, made, freed or None), times in microseconds, that ends after `ends`."""
    stats = StepStats()
    one = stats.dev_stats.add(device=device)
    in_use = before
    for name, nbytes, made, freed in tensors:
        node = one.node_stats.add(node_name=name, timeline_label=f"{name} = Fill(n)", all_start_micros=1000)
        node.all_end_rel_micros = made
        in_use += nbytes
        memory = node.memory.add(allocator_name=allocator, allocator_bytes_in_use=in_use if before else 0)
        memory.allocation_records.add(alloc_micros=1000 + made, alloc_bytes=nbytes)
        if freed is not None:
            memory.allocation_records.add(alloc_micros=1000 + freed, alloc_bytes=-nbytes)
        output = node.output.add().tensor_description
        output.dtype = tf.float32.as_datatype_enum
        output.shape.dim.add(size=nbytes // 4)
        output.allocation_description.requested_bytes = nbytes
    one.node_stats.add(node_name="end", timeline_label="end = NoOp()", all_start_micros=1000, all_end_rel_micros=ends)
    return stats


OVERLAPPING = (("a", 4 * MIB, 10, 50), ("b", 2 * MIB, 30, 60), ("c", 3 * MIB, 70, None))


def test_the_peak_and_what_it_consists_of():
    (one,) = usage.read(step(*OVERLAPPING))
    assert one.peak() == (30, 6 * MIB)
    assert [(held.name, held.op, held.what) for held in one.held_at_peak()] == [
        ("a", "Fill", f"float32 [{MIB}]"),
        ("b", "Fill", f"float32 [{MIB // 2}]"),
    ]
    assert one.changes[-1] == (70, 3 * MIB) and one.tensors[2].end is None


def test_what_was_there_before_is_part_of_the_peak():
    (one,) = usage.read(step(*OVERLAPPING, before=5 * MIB))
    assert one.before == 5 * MIB and one.peak() == (30, 11 * MIB)


def test_memory_is_taken_before_other_is_freed_in_the_same_microsecond():
    (one,) = usage.read(step(("a", 100, 10, 20), ("b", 200, 20, 30)))
    assert one.peak() == (20, 300) and [held.name for held in one.held_at_peak()] == ["b", "a"]


def test_in_virtual_time_the_peak_is_what_the_allocator_had():
    """A node takes memory at its beginning, in the very moment in which the one before gives its inputs back."""
    with tf.Graph().as_default(), tf.Cluster(worker=1, gpus=1, gpu_memory="64MiB", clock="virtual") as cluster:
        with tf.device("/job:worker/task:0/gpu:0"):
            x = tf.ones([512, 512])
            for _ in range(5):
                x = tf.tanh(tf.matmul(x, x))
        with tf.Session(cluster.target) as session:
            trace = session.trace(x.op)
    (one,) = (each for each in usage.read(trace) if "GPU" in each.device)
    records = [memory for each in trace.step_stats.dev_stats for node in each.node_stats for memory in node.memory]
    assert one.peak()[1] == max(memory.allocator_bytes_in_use for memory in records) > 2 * MIB
    assert sum(held.bytes for held in one.held_at_peak()) + one.before == one.peak()[1]


def test_outputs_in_host_memory_are_the_cpus():
    stats = step(("on_card", 8, 1, 2))
    stats.MergeFrom(step(("on_host", 8, 1, 2), allocator="cpu"))
    assert [(one.device, one.allocator) for one in usage.read(stats)] == [(worker(), "cpu"), (GPU, "GPU_0_bfc")]


def test_a_trace_without_allocations_is_an_error_that_says_so():
    with pytest.raises(ValueError, match=r"The trace has no allocations: .* Trace a step that makes arrays"):
        viz.memory(step())
    with pytest.raises(ValueError, match=r"The trace is empty\. Run the step with"):
        viz.memory(StepStats())


# ---- the picture ----


def rectangles(picture):
    """The rectangles of each layer, by what its title says first."""
    found = {}
    for path in ElementTree.fromstring(picture.svg.split("\n", 1)[1]).iter("{http://www.w3.org/2000/svg}path"):
        title = path.find("{http://www.w3.org/2000/svg}title")
        if title is not None:
            numbers = [[float(n) for n in re.findall(r"-?[\d.]+", piece)] for piece in path.get("d").split("z")[:-1]]
            found[title.text.split()[0]] = [(x, y, w, h) for x, y, w, h, _ in numbers]
    return found


def test_layers_have_the_areas_of_their_tensors():
    layers = rectangles(viz.memory(step(*OVERLAPPING)))
    area = {name: sum(w * h for _, _, w, h in pieces) for name, pieces in layers.items()}
    assert area["a"] / area["b"] == pytest.approx(4 * 40 / (2 * 30), rel=0.02)
    assert area["1"] / area["b"] == pytest.approx(3 * 30 / (2 * 30), rel=0.02), "c, which is not at the peak"


def test_layers_never_overlap():
    pieces = [p for layer in rectangles(viz.memory(step(*OVERLAPPING, before=MIB))).values() for p in layer]
    for i, (x, y, w, h) in enumerate(pieces):
        for u, v, m, n in pieces[i + 1 :]:
            assert x + w <= u + 0.05 or u + m <= x + 0.05 or y + h <= v + 0.05 or v + n <= y + 0.05


def test_words_and_tables_say_what_the_drawing_shows():
    picture = viz.memory(step(*OVERLAPPING, before=MIB))
    assert picture.sentence == (
        "Memory of one step, 100 µs: 3 tensors on 1 device. worker:0 GPU:0 (simulated: NumPy timings) has its peak of "
        "7.00 MiB at 30.0 µs: 4.00 MiB from a, 2.00 MiB from b, 1.00 MiB from before the step."
    )
    assert "simulated: NumPy timings" in picture.svg and "peak 7.00 MiB at 30.0 µs" in picture.svg
    (peak, heads, rows), (_, _, all_rows) = picture.tables
    assert peak == "worker:0 GPU:0, GPU_0_bfc: the peak of 7,340,032 bytes at 30 µs" and heads[3] == "bytes"
    assert [row[0] for row in rows] == ["a", "b", ""] and [row[0] for row in all_rows] == ["a", "b", "c"]
    assert all_rows[2][5] == "after the step"
    assert "4.00 MiB  a                     Fill  float32 [1048576]" in picture.text.splitlines()


def test_many_tensors_make_one_layer_of_small_ones():
    many = [(f"t{i}", (20 - i) * MIB, i + 1, 80) for i in range(20)]
    picture = viz.memory(step(*many))
    assert len(rectangles(picture)) == 8 and "13 more tensors" in picture.svg
    assert len(picture.tables[0][2]) == 20


def test_a_device_with_next_to_nothing_is_in_the_tables_only():
    stats = step(("large", 100 * MIB, 1, 2))
    stats.MergeFrom(step(("tiny", 4, 1, 2), device=worker(), allocator="cpu"))
    picture = viz.memory(stats)
    assert "tiny" not in picture.svg.split("</style>")[1].replace(picture.sentence, "")
    assert "tiny" in picture.text and len(picture.tables) == 4


def test_names_in_the_list_differ_where_their_ends_are_alike():
    names = [f"gradients/tower/layer_{i}/MatMul_grad/MatMul_1/of_the_input" for i in range(5)]
    picture = viz.memory(step(*((name, MIB, 1, 80) for name in names)))
    cut = [text for text in re.findall(r"<text[^>]*>([^<]*)<", picture.svg) if "…" in text]
    assert len(cut) == len({*cut}) == 5


def test_names_are_escaped():
    picture = viz.memory(step(("<b>&", MIB, 1, 2)))
    assert "<b>&" not in picture.svg and "&lt;b&gt;&amp;" in picture.svg


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (MIB, "1.00 MiB"), (20 * MIB, "20.0 MiB"),
     (586 * 1024, "586 KiB"), (612 * 1024 + 512, "613 KiB"), (3928915968, "3.66 GiB")],
)  # fmt: skip
def test_sizes_in_binary_units(count, text):
    assert memory_size(count) == text


# ---- real traces ----


def test_a_step_on_a_simulated_gpu(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(1)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [MIB // 4], name="x")
        fetch = tf.reduce_sum(tf.tile(x, [2], name="twice"))
        metadata = session.trace(fetch, {x: [1.0] * (MIB // 4)})
    simulate_gpus(None)
    cpu, gpu = usage.read(metadata)
    assert [(held.name, held.op, held.bytes) for held in gpu.held_at_peak()] == [
        ("twice", "Tile", 2 * MIB),
        ("_arg_x_0_0", "received", MIB),
    ]
    assert gpu.peak()[1] == 3 * MIB + gpu.before and gpu.simulated and not cpu.simulated
    assert viz.memory(metadata).text.count("simulated: NumPy timings") == 1


def test_a_trace_of_tensorflow():
    """Written as TensorFlow 2.21 does: labels with sizes, host memory without a count of bytes in use."""
    stats = step(("grow", 2 * MIB, 5, 9), device=worker(), allocator="cpu")
    stats.dev_stats[0].node_stats.add(node_name="_SOURCE", timeline_label="_SOURCE = NoOp()", all_start_micros=990)
    stats.dev_stats[0].node_stats[0].timeline_label = "[cpu 2.0MB 2.0MB] grow = Fill(n, value)"
    (one,) = usage.read(stats)
    assert [(held.name, held.op, held.start) for held in one.tensors] == [("grow", "Fill", 5)] and not one.simulated
    assert [(event.name, event.op) for event in trace.read(stats).events] == [("grow", "Fill"), ("end", "NoOp")]


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_variables_are_there_from_the_beginning(clock):
    """The variables of a parameter server count, even those that the step does not use."""
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1, clock=clock) as cluster:
        with tf.device("/job:ps/task:0"):
            w, v, _ = (tf.get_variable(name, [1000], initializer=tf.ones_initializer(), use_resource=name == "v")
                       for name in ("w", "v", "unused"))  # fmt: skip
            update = v.assign(w * 2.0, name="update")
        with tf.Session(cluster.target) as session:
            session.run(tf.global_variables_initializer())
            step = session.trace(update.op)
    (one,) = usage.read(step)
    assert {held.name: (held.start, held.end is None) for held in one.tensors if held.op == "Variable"} == {
        "variable w": (0, True), "variable v": (0, False), "variable unused": (0, True),
    }  # fmt: skip
    assert (one.before, one.peak()[1]) == (0, 16_000)
    assert all("unused" not in event.name for event in trace.read(step).events)
    assert "unused" not in tf.python.client.timeline.Timeline(step.step_stats).generate_chrome_trace_format()
    assert any("3.9 KiB, from the beginning to after the step" in text for text in live(viz.memory(step))["texts"])


def test_variables_that_a_trace_of_tensorflow_does_not_list():
    stats = step(("grow", 2 * MIB, 5, 9), device=worker(), allocator="cpu")
    assert "TensorFlow" not in viz.memory(stats).sentence
    for name, op in (("_SOURCE", "NoOp"), ("w", "VarHandleOp")):
        stats.dev_stats[0].node_stats.add(node_name=name, timeline_label=f"{name} = {op}()", all_start_micros=1000)
    assert "TensorFlow's trace does not list the variables of worker:0" in viz.memory(stats).text


def test_it_says_for_whom_a_tensor_is_kept():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [MIB // 4], name="x")
        twice = tf.multiply(x, 2.0, name="twice")
        first = tf.reduce_sum(twice, name="first")
        with tf.control_dependencies([first]):
            last = tf.reduce_max(twice, name="last")
        metadata = session.trace([first, last], {x: [1.0] * (MIB // 4)})
    (one,) = usage.read(metadata, ops_of(graph))
    assert {held.name: held.until for held in one.held_at_peak()}["twice"] == "last"
    picture = viz.memory(metadata, graph=graph)
    assert "for last" in picture.svg and "from twice, kept for last" in picture.sentence
    row = next(row for row in picture.tables[1][2] if row[0] == "twice")
    assert (
        row[-2:] == ["", "last"] and picture.tables[1][1][-1] == "kept for" and re.search("twice .* last", picture.text)
    )
    assert "kept for last" not in viz.memory(metadata).sentence  # the default graph is another one


def test_a_received_copy_is_kept_for_the_readers_on_its_own_device():
    with tf.Graph().as_default() as graph, tf.Cluster(ps=1, worker=2, gpus=1, gpu="K40", clock="virtual") as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.Variable(tf.ones([1000, 100]), name="w")
        outs = []
        for i in range(2):
            with tf.device(f"/job:worker/task:{i}/gpu:0"), tf.name_scope(f"w{i}"):
                outs.append(tf.reduce_sum(tf.matmul(tf.ones([100, 1000]), w, name="matmul")))
        with tf.Session(cluster.target) as session:
            session.run(w.initializer)
            found = usage.read(session.trace(outs), ops_of(graph))
    until = {one.device: held.until for one in found for held in one.tensors if held.name == "w/read"}
    assert until == {worker(i).replace("CPU", "GPU"): f"w{i}/matmul" for i in range(2)}


def test_it_says_who_wrote_over_a_tensor():
    """Tanh runs in place: at the peak its output lies where the product was. An Identity only hands it on."""
    simulate_gpus(1)
    with tf.Graph().as_default() as graph, tf.device("/gpu:0"):
        x = tf.placeholder(tf.float32, [512, 512], name="x")
        layer = tf.tanh(tf.matmul(x, x, name="product"), name="layer")
        other = tf.matmul(tf.identity(layer, name="same"), x, name="next")
        with tf.Session() as session:
            metadata = session.trace([layer.op, other.op], {x: [[1e-3] * 512] * 512})
    simulate_gpus(None)
    gpu = usage.read(metadata, ops_of(graph))[-1]
    (held,) = (held for held in gpu.held_at_peak() if held.name == "product")
    assert [name for _, name in held.over] == ["layer"]
    assert held.output_of(gpu.peak()[0]) == "layer" and held.output_of(held.start - 1) == "product"
    picture = viz.memory(metadata, graph=graph)
    assert ">layer over product</text>" in picture.svg and "from layer over product" in picture.sentence
    row = next(row for row in picture.tables[-2][2] if row[0] == "product")
    assert row[picture.tables[-2][1].index("written over by")] == "layer"
    assert "written over by layer" in picture.svg
    assert not next(one for one in gpu.tensors if one.name == "next").over


def test_the_smaller_tensors_of_the_peak_are_one_line_with_their_sum():
    sizes = [16, 15, 14, 13, 12, 11, 10, 5, 3, 1]
    picture = viz.memory(step(*((f"t{i}", size * MIB, 1 + i, 90) for i, size in enumerate(sizes))))
    root = ElementTree.fromstring(picture.svg.split("\n", 1)[1])
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[texts.index("3 more tensors") - 1] == memory_size(9 * MIB)
    assert re.search(rf"{memory_size(9 * MIB)} +3 more tensors", picture.text)


# -- in a live page ---------------------------------------------------------------------------------------------


def test_a_live_picture_knows_every_tensor_by_its_number_in_the_list():
    picture = viz.memory(step(*OVERLAPPING, before=MIB))
    data = live(picture)
    (band,) = data["bands"]
    assert (data["view"], data["total"], band["before"], band["peak"], band["held"]) == ("memory", 100, MIB, 30, [0, 1])
    tensors = band["tensors"]
    assert (tensors["start"], tensors["end"], tensors["number"]) == ([10, 30, 70], [50, 60, -1], [1, 2, 0])
    assert [data["texts"][i] for i in tensors["name"]] == ["a", "b", "c"]
    drawn = ElementTree.fromstring(picture.svg.encode()).iter()
    blocks = {(part.get("class"), part.get("data-block")) for part in drawn if part.get("data-block")}
    assert {key for kind, key in blocks if kind == "entry"} == {"0-1", "0-2"}
    assert {key for kind, key in blocks if kind == "layer"} == {"0-0", "0-1", "0-2"}


def test_the_card_of_a_tensor_names_the_line_that_made_its_op():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        made = tf.reduce_sum(tf.fill([2000], 2.0, name="made") * 3.0)
        picture = viz.memory(sess.trace(made), graph=graph)
    assert [text for text in live(picture)["texts"] if "test_memory.py" in text and "7.8 KiB" in text]


def test_of_very_many_tensors_there_is_the_still(monkeypatch):
    monkeypatch.setattr(importlib.import_module("dtflab.viz.memory"), "_MOST_LIVE", 2)
    assert viz.memory(step(*OVERLAPPING)).living_data == {"view": "still"}
