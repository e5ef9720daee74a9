"""Summaries and event files: the same programs on both, and what TensorBoard finds in our files."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from dtflab.protos.summary_pb2 import Summary
from tests.oracle.events import decoded, facts, shown
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs
from tests.oracle.trainings import failure

program = Programs()


def answers(run: Callable[..., Any], *arguments: Any) -> tuple[Any, Any]:
    return both(lambda tf: run(tf, *arguments))


@program.each()
def test_same_answer(run):
    theirs, ours = answers(run)
    assert ours == theirs


def ran(tf: Any, *summaries: Any) -> list[str]:
    """The text of each summary, its pictures as pixels; or the class and message of its error."""
    found = []
    with tf.Session() as session:
        for summary in summaries:
            try:
                found.append(shown(session.run(summary() if callable(summary) else summary)))
            except Exception as error:
                found.append(f"{type(error).__name__}: {kernels_words(getattr(error, 'message', str(error)))}")
    return found


def kernels_words(message: str) -> str:
    """The message without the places in the program, which each tells in its way."""
    inner = re.search(r"^Node: '.*'\n((?:.|\n)*?)\n\t", message, re.M)
    return (inner[1] if inner else message.split("\n")[0]).strip()


# -- ops -----------------------------------------------------------------------------------------------------------


@program
def pictures(tf):
    random = np.random.default_rng(1)
    found = []
    for channels in (1, 3, 4):
        values = random.normal(size=(4, 5, 7, channels))
        broken = values.copy()
        broken[0, 1, 2, channels // 2], broken[1, 0, 0, 0] = np.nan, np.inf
        batches = [values, broken, 1 + np.maximum(values, 0), np.abs(broken), values * 0, values * 1e-9]
        for batch in batches:
            found += [tf.summary.image("i", batch.astype(kind)) for kind in (np.float32, np.float64, np.float16)]
        found += [tf.summary.image("u", random.integers(0, 256, (2, 3, 4, channels)).astype(np.uint8))]
        found += [tf.summary.image("n", np.full((1, 2, 2, channels), np.nan, np.float32))]
    found += [tf.summary.image("one", values.astype("f"), max_outputs=n, family="f") for n in (1, 2, 9)]
    return ran(tf, *found, tf.summary.image("none", np.zeros((0, 3, 3, 1), np.float32)))


@program
def values_of_all_kinds(tf):
    v = tf.Variable(42.0, use_resource=True)
    with tf.Session() as session:
        session.run(v.initializer)
        found = [shown(session.run(tf.summary.scalar("variable", v)))]
    with tf.name_scope("outer"):
        found += ran(
            tf,
            tf.summary.scalar("s", 3),
            tf.summary.scalar("s", np.float64(1e300), family="family"),
            tf.summary.histogram("h", np.arange(-50, 50, dtype=np.int8)),
            tf.summary.histogram(None, [1.5, 1.5, 1e-20]),
            tf.summary.audio("a", np.array([[0.5, -0.25], [2, 0]], "f"), 8000, max_outputs=1),
            tf.summary.text("t", tf.constant([["one", "*two*"]])),
            tf.summary.tensor_summary("x", tf.constant([[1, 2]]), "about", display_name="shown", family="f"),
            tf.summary.tensor_summary("b", tf.constant([True, False])),
            tf.summary.tensor_summary("bf", tf.constant([1.5], tf.bfloat16)),
            tf.summary.tensor_summary("m", 5, summary_metadata=tf.SummaryMetadata(display_name="given")),
        )
    return found


@program
def what_is_refused(tf):
    s, f = tf.summary, np.zeros
    calls = [
        lambda: s.scalar("s", [1.0, 2.0]), lambda: s.scalar("s", [1.0]), lambda: s.scalar("s", "x"),
        lambda: s.scalar("s", True), lambda: s.scalar("", 1.0), lambda: s.histogram("h", [np.nan, 1.0]),
        lambda: s.histogram("h", [1.0, -np.inf, np.nan]), lambda: s.image("i", f((3, 3, 3), "f")),
        lambda: s.image("i", f((3, 3, 3, 2), "f")), lambda: s.image("i", f((2, 0, 3, 1), "f")),
        lambda: s.image("i", f((2, 2, 2, 1), "f"), max_outputs=0), lambda: s.image("i", f((2, 2, 2, 1), "i")),
        lambda: s.audio("a", f((3,), "f"), 1), lambda: s.audio("a", f((3, 2), "f"), [1.0, 2.0]),
        lambda: s.audio("a", f((3, 2), "f"), 0.0), lambda: s.audio("a", f((3, 2), "f"), 5e9),
        lambda: s.audio("a", f((1, 1, 70000), "f"), 1), lambda: s.merge([tf.constant("x")]),
        lambda: s.merge([s.scalar("q", 1.0), tf.constant(Summary(value=[{"tag": "q"}]).SerializeToString())]),
        lambda: s.merge([]), lambda: s.text("t", tf.constant(1)),
        lambda: s.get_summary_description(tf.NodeDef(op="TensorSummaryV2")),
    ]  # fmt: skip
    return ran(tf, *calls)


def test_bad_color_is_checked():
    """An attribute that no function of tf.summary sets; only a GraphDef has it."""

    def imported(tf, bad_color):
        image, tag = tf.placeholder(tf.float32, name="image"), tf.placeholder(tf.string, name="tag")
        node = tf.NodeDef(name="s", op="ImageSummary", input=["tag", "image"])
        node.attr["T"].type, node.attr["max_images"].i = tf.float32.as_datatype_enum, 1
        if bad_color is not None:
            node.attr["bad_color"].tensor.ParseFromString(dtflab.make_tensor_proto(bad_color).SerializeToString())
        tf.import_graph_def(tf.GraphDef(node=[node]), {"tag": tag, "image": image}, name="")
        feed = {image: np.full((1, 1, 1, 3), np.nan), tag: "t"}
        with tf.Session() as session:
            try:
                return shown(session.run("s:0", feed))
            except tf.errors.InvalidArgumentError as error:
                return kernels_words(error.message)

    for color in (None, np.array([1, 2, 3, 4], np.uint8), np.array([1, 2], np.uint8), np.uint8(1), np.zeros(4, "f")):
        theirs, ours = answers(imported, color)
        assert ours == theirs


@program
def summaries_merged(tf):
    a, b = tf.summary.scalar("a", 1.0), tf.summary.scalar("b", 2.0, collections=["mine"])
    with tf.name_scope("inner"):
        c = tf.summary.histogram("c", [1.0])
    both = tf.summary.merge([a, b, c], collections=["merged"], name="both")
    return [
        tf.summary.merge_all("nothing"), tf.get_collection("merged") == [both],
        [t.name for t in tf.get_collection(tf.GraphKeys.SUMMARIES)],
        ran(tf, both, tf.summary.merge_all(), tf.summary.merge_all("mine"), tf.summary.merge_all(scope="inner")),
    ]  # fmt: skip


def test_description_of_a_node(real_tf):
    for tf in (real_tf, dtflab):
        node = tf.NodeDef(op="TensorSummary")
        node.attr["description"].s = b'{"typeHint": "scalar"}'
        assert tf.summary.get_summary_description(node).type_hint == "scalar"


def test_graphs_are_tensorflows():
    def build(tf):
        x = tf.placeholder(tf.float32, [2, 4, 4, 3])
        for _ in range(2):
            with tf.name_scope("tower"):
                tf.summary.scalar("loss", tf.reduce_sum(x))
                tf.summary.scalar("with spaces & signs", 1, family="family one")
                tf.summary.histogram("/x", x, family="family")
                tf.summary.histogram(None, [1.0])
                tf.summary.image("images", x, max_outputs=2)
                tf.summary.audio("sound", x[0], 44100)
                tf.summary.text("words", tf.constant("a"))
                tf.summary.tensor_summary("t", x, "d", display_name="n", family="f")
        tf.summary.merge_all()
        tf.summary.merge_all(name="all of them")

    assert_same_graph(build)


# -- files ---------------------------------------------------------------------------------------------------------


def write(tf: Any, logdir: str) -> None:
    """One of everything."""
    with tf.Graph().as_default() as graph:
        step = tf.placeholder_with_default(2.0, [], name="step")
        tf.summary.scalar("loss", step)
        tf.summary.histogram("weights", [1.0, 2.0, 3.0])
        tf.summary.image("picture", np.eye(4, dtype=np.float32).reshape(1, 4, 4, 1))
        tf.summary.audio("sound", np.zeros([1, 10], np.float32), 8000)
        tf.summary.text("words", tf.constant("hello"))
        merged = tf.summary.merge_all()
    with tf.summary.FileWriter(logdir, graph, filename_suffix=".here") as writer:
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START, msg="go"), 0)
        with tf.Session(graph=graph) as session:
            for i in range(3):
                writer.add_summary(session.run(merged, {step: i / 2}), np.int64(i))
            metadata = tf.RunMetadata()
            session.run(merged, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
        writer.add_run_metadata(metadata, "traced", 3)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=7)]), 4)
        writer.add_event(tf.Event(step=5, wall_time=1.0))


def read(tf: Any, logdir: Any) -> list[Any]:
    (path,) = logdir.glob("events.out.tfevents.*.here")
    return list(tf.train.summary_iterator(str(path)))


def test_events_are_tensorflows(tmp_path, real_tf):
    """Read by either, what either wrote is the same."""
    found = []
    for writer in (real_tf, dtflab):
        write(writer, str(tmp_path / writer.__name__))
        found += [[facts(event) for event in read(reader, tmp_path / writer.__name__)] for reader in (real_tf, dtflab)]
    assert found[1] == found[0] and found[3] == found[2], "read alike"
    assert found[2] == found[0], "written alike"


@pytest.mark.usefixtures("real_tf")  # which brings TensorBoard
def test_tensorboard_reads_our_files(tmp_path):
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    write(dtflab, str(tmp_path))
    everything = dict.fromkeys(["images", "tensors", "histograms"], 0)
    board = event_accumulator.EventAccumulator(str(tmp_path), everything)
    board.Reload()
    assert [(e.step, e.value) for e in board.Scalars("loss")] == [(0, 0.0), (1, 0.5), (2, 1.0), (4, 7.0)]
    assert [h.histogram_value.num for h in board.Histograms("weights")] == [3.0] * 3
    picture = board.Images("picture/image/0")[0]
    assert (decoded(picture.encoded_image_string)[..., 0] == 255 * np.eye(4)).all()
    assert board.Audio("sound/audio/0")[0].length_frames == 10
    assert board.Tensors("words")[0].tensor_proto.string_val[:] == [b"hello"]
    assert board.PluginTagToContent("text") == {"words": b""}
    assert {"loss", "step"} <= {node.name for node in board.Graph().node}
    assert board.MetaGraph().meta_info_def is not None
    assert board.RunMetadata("traced").step_stats.dev_stats
    assert board.file_version == 2.0


@program
def writers_that_are_misused(tf):
    found = []

    def tried(call):
        try:
            found.append(call())
        except Exception as error:
            found.append((type(error).__name__, str(error).split("<")[0]))

    with pytest.MonkeyPatch.context() as patch:
        import tempfile

        logdir = tempfile.mkdtemp()
        patch.chdir(logdir)
        writer = tf.summary.FileWriter("logs")
        graph = tf.Graph()
        tried(lambda: writer.add_graph(5))
        tried(lambda: writer.add_graph(graph, graph_def=graph.as_graph_def()))
        tried(lambda: writer.add_meta_graph(5))
        tried(lambda: writer.add_run_metadata(tf.RunMetadata(), "again"))
        tried(lambda: writer.add_run_metadata(tf.RunMetadata(), "again"))
        tried(writer.get_logdir)
        writer.close()
        writer.close()
        for call in (writer.flush, lambda: writer.add_summary(b""), lambda: writer.add_event(tf.Event())):
            with pytest.warns(UserWarning, match="closed FileWriter"):
                tried(call)
        open("file", "w").close()
        tried(lambda: tf.summary.FileWriter("file/x"))
        tried(lambda: next(tf.train.summary_iterator("nowhere")))
    return found


@program
def a_folder_that_is_deleted(tf):
    import shutil
    import tempfile

    logdir = tempfile.mkdtemp()
    writer = tf.summary.FileWriter(logdir)
    for step in range(2):
        writer.add_event(tf.Event(step=step))
        writer.flush()
        shutil.rmtree(logdir, ignore_errors=True)
    writer.close()
    return os.path.exists(logdir)


def test_assets_of_plugins(tmp_path):
    theirs, ours = answers(assets, tmp_path)
    assert ours == theirs


def assets(tf, folder):
    home = folder / tf.__name__
    package = "dtflab.train.summaries" if tf is dtflab else "tensorflow.python.summary"
    plugin_asset = importlib.import_module(f"{package}.plugin_asset")

    class Words(plugin_asset.PluginAsset):
        plugin_name = "words"

        def assets(self):
            return {"a.txt": "one", "b.txt": "two"}

    class Others(Words):
        plugin_name = "others"

    class Nameless(Words):
        plugin_name = None

    class Same(plugin_asset.PluginAsset):
        plugin_name = "words"

    graph = tf.get_default_graph()
    assert plugin_asset.get_all_plugin_assets() == []
    made = [plugin_asset.get_plugin_asset(Words), plugin_asset.get_plugin_asset(Others, graph)]
    assert plugin_asset.get_plugin_asset(Words) is made[0] and plugin_asset.get_all_plugin_assets(graph) == made
    assert plugin_asset.get_all_plugin_assets(tf.Graph()) == []
    refused = [failure(functools.partial(plugin_asset.get_plugin_asset, kind)) for kind in (Nameless, Same)]
    tf.summary.FileWriter(str(home), graph).close()
    files = {str(file.relative_to(home)): file.read_text() for file in home.glob("plugins/*/*")}
    return files, refused, sorted(graph.get_all_collection_keys())


def test_a_writer_of_what_is_no_graph(tmp_path):
    """TensorFlow refuses as well, and leaves its thread behind."""
    with pytest.raises(TypeError, match="must be an instance of `Graph`"):
        dtflab.summary.FileWriter(str(tmp_path), "graph")


# -- tf.logging ----------------------------------------------------------------------------------------------------


@program
def log_lines(tf):
    import logging

    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = tf.get_logger()
    logger.addHandler(handler)
    before = tf.logging.get_verbosity()
    found = [logger.name, logger.propagate, logger is logging.getLogger("tensorflow"), before]
    try:
        tf.logging.set_verbosity(tf.logging.INFO)
        found.append(tf.logging.get_verbosity())
        for i in range(5):
            tf.logging.debug("never")
            tf.logging.info("info %d", i)
            tf.logging.log_if(tf.logging.ERROR, "if %d", i > 3, i)
        for log in (tf.logging.warn, tf.logging.warning, tf.logging.error):
            log("%s", "text")
        tf.logging.TaskLevelStatusMessage("status")
        tf.logging.vlog(tf.logging.INFO, "v %s", 1)
        tf.logging.log(55, "level")
        tf.logging.set_verbosity("ERROR")
        tf.logging.warn("not shown")
    finally:
        logger.setLevel(logging.NOTSET)
        logger.removeHandler(handler)
    first = records[0].lineno  # the rest count from there, so that lines may be added above this program
    return found, [(r.levelno, r.getMessage(), r.funcName, r.lineno - first, r.name) for r in records]


def test_what_is_logged_where_nothing_is_configured(tmp_path):
    """In a program of its own: warnings and worse on stderr."""
    lines = """
tf.logging.info("no")
tf.logging.fatal("one")
tf.get_logger().error("two")
for i in range(5):
    tf.logging.log_every_n(tf.logging.WARN, "every %d", 2, i)
"""
    found = []
    for name in ("tensorflow.compat.v1", "dtflab"):
        script = f"import {name} as tf\n{lines}"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
        found.append([line for line in done.stderr.splitlines() if ":tensorflow:" in line] + [done.stdout])
    every = [f"WARNING:tensorflow:every {i}" for i in (0, 2, 4)]
    assert found[1] == found[0] == ["CRITICAL:tensorflow:one", "ERROR:tensorflow:two", *every, ""]


def test_an_interactive_interpreter_shows_infos_as_output():
    script = "import sys; sys.ps1 = '>'\nimport dtflab as tf\ntf.logging.info('shown')\ntf.logging.debug('not')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    assert (done.stdout, done.stderr) == ("INFO:tensorflow:shown\n", "")


def test_each_line_of_a_program_has_a_count_of_its_own(caplog):
    """As TensorFlow says; in it, all lines of a file share one count."""
    for i in range(5):
        dtflab.logging.log_first_n(dtflab.logging.ERROR, "first %d", 2, i)
        dtflab.logging.log_every_n(dtflab.logging.ERROR, "every %d", 3, i)
    assert caplog.messages == ["first 0", "every 0", "first 1", "every 3"]


def test_flush_writes_what_handlers_hold(tmp_path):
    """In TensorFlow it is not implemented."""
    import logging
    import logging.handlers

    target = logging.FileHandler(tmp_path / "log")
    handler = logging.handlers.MemoryHandler(100, logging.CRITICAL, target)
    dtflab.get_logger().addHandler(handler)
    try:
        dtflab.logging.error("kept")
        assert (tmp_path / "log").read_text() == ""
        dtflab.logging.flush()
        assert (tmp_path / "log").read_text() == "kept\n"
    finally:
        dtflab.get_logger().removeHandler(handler)
        handler.close()
        target.close()


# -- signatures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", ["summary", "logging"])
def test_signatures_are_tensorflows(namespace, real_tf):
    theirs, ours = (getattr(tf, namespace) for tf in (real_tf, dtflab))
    later = {"all_v2_summary_ops", "initialize"}  # of TensorFlow 2's writers in the graph
    names = [n for n in dir(theirs) if not n.startswith("_") and n not in later]
    assert [n for n in names if not hasattr(ours, n)] == []
    for name in names:
        their, our = getattr(theirs, name), getattr(ours, name)
        if inspect.isfunction(their):
            assert arguments(our) == arguments(their), name
    assert arguments(dtflab.summary.FileWriter.__init__) == arguments(real_tf.summary.FileWriter.__init__)


def arguments(function: Any) -> list[tuple[str, Any]]:
    return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]
