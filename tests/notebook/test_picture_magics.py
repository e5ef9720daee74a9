"""`%dtf_placement`, `%dtf_timeline`, `%dtf_memory`: what they draw, of which session, of which names."""

from __future__ import annotations

import re

import pytest
from IPython.core.error import UsageError
from IPython.utils.capture import capture_output

from dtflab import viz
from dtflab.base import errors
from dtflab.cluster.master_stub import MasterStub
from dtflab.machine.hosts import simulate_gpus
from dtflab.runtime.session import BaseSession
from dtflab.viz import Picture
from dtflab.viz.data import step_trace
from tests.notebook.cells import MODEL, cell, magic


def test_placement(model):
    picture = magic(model, "%dtf_placement", "picture")
    assert isinstance(picture, Picture)
    assert "v/Assign" in picture.text
    picture = magic(model, "%dtf_placement y", "picture")
    assert "v/Assign" not in picture.text and "2 devices" in picture.text


def test_timeline(model):
    feeds = ["{x: [1.0, -2.0]}", "{x: [ -1.0, float('1')]}", "feed", "{'x:0': (3, 4)}", "dict([(x, [1.0, 2.0])])"]
    model.user_ns["feed"] = {model.user_ns["x"]: [1.0, 2.0]}
    for feed in feeds:
        assert "transfer" in magic(model, f"%dtf_timeline y --feed {feed}", "picture").text
    picture = magic(model, "%dtf_timeline [y, v] --session sess --feed feed", "picture")
    assert "transfer" in picture.text
    model.run_cell("traced = sess.trace(y, feed)").raise_error()
    assert isinstance(magic(model, "%dtf_timeline traced", "picture"), Picture)
    assert magic(model, "%dtf_memory traced", "picture").sentence.startswith("Memory of one step")


def test_placement_in_another_process(shell):
    magic(shell, "%dtf_cluster --ps 1 --worker 2 --engine process", "cluster")
    shell.run_cell(MODEL).raise_error()
    for line in ("%dtf_placement", "%dtf_placement y"):
        text = magic(shell, line, "picture").text
        assert re.search(r"/job:ps/replica:0/task:0/device:CPU:0 .*v/read", text)
        assert re.search(r"/job:worker/replica:0/task:1/device:CPU:0 .*x, y", text)
        assert ("v/Assign" in text) == (line == "%dtf_placement")


def test_asking_a_master_of_tensorflow(shell, monkeypatch):
    """Here, one of dtflab that does not know the questions either."""
    call = MasterStub._call

    def of_tensorflow(stub, method, *rest):
        if method in ("Placed", "Reasons"):
            raise errors.UnimplementedError.of(method)
        return call(stub, method, *rest)

    monkeypatch.setattr(MasterStub, "_call", of_tensorflow)
    magic(shell, "%dtf_cluster --ps 1 --worker 2 --engine process", "cluster")
    shell.run_cell(MODEL).raise_error()
    for line in ("%dtf_placement", "%dtf_placement y"):
        assert "dtflab's rules place" in cell(shell, f"picture = {line}")
        text = shell.user_ns["picture"].text
        assert re.search(r"/job:ps/replica:0/task:0/device:CPU:0 .*v/read", text)
        assert re.search(r"/job:worker/replica:0/task:1/device:CPU:0 .*x, y", text)
        assert ("v/Assign" in text) == (line == "%dtf_placement")
    text = magic(shell, "%dtf_placement y --feed {x: [1.0, 2.0]}", "picture").text
    assert re.search(r"/job:ps/replica:0/task:0/device:CPU:0 .*v/read", text)
    assert re.search(r"/job:worker/replica:0/task:1/device:CPU:0 .*y", text)
    assert re.search(r"/job:worker/replica:0/task:0/device:CPU:0 .*x", text), "where the feed came in"
    assert "transfer" in magic(shell, "%dtf_timeline y --feed {x: [1.0, 2.0]}", "picture").text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%dtf_timeline", "Name what to run.*%dtf_timeline train --feed"),
        ("%dtf_timeline y --fed {x: [1.0, 2.0]}", "Unknown option --fed. Did you mean --feed?"),
        ("%dtf_timeline y --feed", "--feed needs a value"),
        ("%dtf_timeline y --feed [1.0, 2.0]", r"--feed \[1.0, 2.0\] must be a dict, not a list"),
        ("%dtf_memory", "Name what to run.*%dtf_memory train --feed"),
        ("%dtf_placement y --session cluster", "--session cluster is not a session but a Cluster"),
        ("%dtf_timeline y", "You must feed.*fed like this: %dtf_timeline train --feed {"),
    ],
)
def test_pictures_that_cannot_be_drawn(model, line, says):
    assert re.search(says, cell(model, line).replace("\n", " "))


def test_without_a_session(shell):
    for name in ("placement", "timeline"):
        text = cell(shell, f"%dtf_{name} tf.constant(1)")
        assert text.startswith("UsageError: No session is open. Open one: sess = tf.Session(cluster.target)")
    cell(shell, "%dtf_cluster --worker 1")  # `cluster` is not a name yet
    assert "Open one: cluster = %dtf_cluster status, then sess =" in cell(shell, "%dtf_placement tf.constant(1)")


def test_fetches_of_another_graph(model):
    model.run_cell("with tf.Graph().as_default():\n    z = tf.constant(1)\n    other = tf.Session()").raise_error()
    for name, feed in (("placement", ""), ("timeline", " --feed {x: [1.0, 2.0]}")):
        with pytest.raises(UsageError, match=r"another graph than \[y\]. Name the right one: \[y\] --session sess"):
            magic(model, f"%dtf_{name} [y]{feed}")
        assert isinstance(magic(model, f"%dtf_{name} [y]{feed} --session sess", "picture"), Picture)
        assert isinstance(magic(model, f"%dtf_{name} z", "picture"), Picture)
    model.run_cell("del sess\ntf.Session(graph=tf.Graph())").raise_error()
    with pytest.raises(UsageError, match=r"has another graph than y\. There are two graphs, as after tf\.reset"):
        magic(model, "%dtf_placement y")


NAMED = """with tf.name_scope("conv1"):
    kernel = tf.placeholder_with_default([1.0, 2.0], [2], name="kernel")
    loss = tf.reduce_sum(kernel * 2.0, name="Sum")
step = tf.identity(loss, name="step")
conv1 = "in Python something else"
sess = tf.Session()
"""


@pytest.mark.parametrize("what", ["conv1/Sum", "conv1/Sum:0", "[conv1/Sum, step]", "conv1/Sum step", "loss, conv1/Sum"])
@pytest.mark.parametrize("name", ["explain", "placement", "timeline", "memory", "step"])
def test_names_of_the_picture_are_fetches(shell, name, what):
    shell.run_cell(NAMED).raise_error()
    shown = magic(shell, f"%dtf_{name} {what}", "shown")
    if name == "step":
        assert shown.ready == ["conv1/kernel"] and "conv1/Sum" in shown.counts
    elif name == "memory":
        assert shown.sentence.startswith("Memory of one step")
    else:
        assert "Sum" in repr(shown.ops if name == "explain" else shown.tables)


def test_python_comes_before_names(shell):
    shell.run_cell(NAMED + "step = loss").raise_error()
    assert magic(shell, "%dtf_explain step", "story").fetches == ["conv1/Sum:0"]
    assert magic(shell, "%dtf_explain step:0", "story").fetches == ["step:0"]


def test_two_fetches_need_no_brackets(shell):
    shell.run_cell(NAMED).raise_error()
    assert magic(shell, "%dtf_explain loss step", "story").fetches == ["conv1/Sum:0", "step:0"]
    text = cell(shell, "%dtf_timeline loss nobody")
    assert text.startswith("UsageError: ") and "'nobody' is not an op or tensor of the graph" in text
    assert len(text.splitlines()) == 1


def test_a_misspelt_fetch_gets_its_nearest(shell):
    shell.run_cell(NAMED + "training_step = loss").raise_error()
    said = "is not an op or tensor of the graph. Did you mean {}?\n"
    assert cell(shell, "%dtf_timeline trainign_step").endswith(said.format("training_step"))
    assert cell(shell, "%dtf_placement conv1/Sun").endswith(said.format("conv1/Sum"))


def test_names_in_the_graph_of_the_named_session(shell):
    shell.run_cell("with tf.Graph().as_default() as g:\n    tf.constant(1, name='a/b')\nsess = tf.Session(graph=g)")
    assert "a/b" in magic(shell, "%dtf_placement a/b --session sess", "picture").text
    text = cell(shell, "%dtf_timeline a/b --session sess")
    assert text == "UsageError: There is nothing to draw: all times of the trace are equal. Trace a longer step.\n"
    text = cell(shell, "%dtf_timeline a/b")
    assert text == "UsageError: In 'a/b': name 'a' is not defined. And 'a/b' is not an op or tensor of the graph.\n"


def test_a_placement_may_begin_with_few_boxes(model):
    few, all_ = (magic(model, f"%dtf_placement --max-boxes {most}", "p").svg for most in (1, 50))
    assert few.count('class="box"') < all_.count('class="box"')
    for wrong in ("0", "nine"):
        text = cell(model, f"%dtf_placement y --max-boxes {wrong}")
        assert text == (
            f"UsageError: --max-boxes must be a number from 1, not {wrong}. "
            "For example: %dtf_placement loss --max-boxes 9\n"
        )


def test_of_several_steps_the_one_of_median_length_is_drawn(model, monkeypatch):
    drawn, lengths, trace = [], iter((90, 20, 30, 900, 10)), BaseSession.trace

    def traced(session, fetches, feed):
        metadata = trace(session, fetches, feed)
        length = next(lengths)
        for node in (node for device in metadata.step_stats.dev_stats for node in device.node_stats):
            node.all_end_rel_nanos = length * 10**9
        return metadata

    monkeypatch.setattr(BaseSession, "trace", traced)
    monkeypatch.setattr(viz, "timeline", lambda step, **how: drawn.append(step_trace.read(step).total))
    cell(model, "%dtf_timeline y --feed {x: [1.0, 2.0]} --steps 5")
    assert [round(total / 1e6) for total in drawn] == [30]
    assert "--steps must be a number from 1, not few. For example: %dtf_timeline train" in cell(
        model, "%dtf_timeline y --steps few"
    )


def test_a_scope_that_is_not_there(model):
    text = cell(model, "%dtf_placement y --scope nope")
    assert text.startswith("UsageError: No op of this graph is in the scope 'nope'") and len(text.splitlines()) == 1


def test_colours_by_phase_job_or_time(model):
    model.run_cell("w = tf.Variable(2.0, name='w'); loss = tf.square(w - 1.0, name='loss')")
    model.run_cell("train = tf.train.GradientDescentOptimizer(0.1).minimize(loss); sess.run(w.initializer)")
    placed = magic(model, "%dtf_placement loss --color-by phase", "p")
    assert "loss 1 op" in placed.sentence  # of the whole graph: the gradients are not among what loss needs
    assert "By phase" in magic(model, "%dtf_timeline train --color-by phase", "p").sentence
    assert "/job:ps" in magic(model, "%dtf_placement --color-by job", "p").sentence
    timed = magic(model, "%dtf_placement y --color-by time --feed {x: [1.0, 2.0]}", "p")
    classes = r"less than \d+ .?s|\d .?s to \d+ .?s"  # the shortest event of a step need not be one of these ops
    assert "By time" in timed.sentence and re.search(classes, timed.text)
    model.run_cell("metadata = sess.trace(train)")
    assert "update" in magic(model, "%dtf_timeline metadata --color-by phase", "p").sentence
    assert "--color-by can't be 'hue'. Choose device, job, time, phase." in cell(model, "%dtf_placement --color-by hue")
    assert "Name what to run" in cell(model, "%dtf_placement --color-by time")


FULL = """simulate_gpus(1, memory="80MiB")
with tf.device("/gpu:0"):
    kept = tf.Variable(tf.ones([1 << 20]), name="kept")
    large = tf.reduce_sum(tf.tile(kept, [8], name="large"))
sess = tf.Session()
sess.run(kept.initializer)
"""


def test_memory_draws_the_way_to_an_error(shell, monkeypatch):
    """In place of a step that cannot be traced; the error stays one, and one that was caught is drawn, too."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    shell.user_ns["simulate_gpus"] = simulate_gpus
    shell.run_cell(FULL).raise_error()
    with capture_output() as shown:
        ran = shell.run_cell("%dtf_memory large")
    assert isinstance(ran.error_in_exec, errors.ResourceExhaustedError)
    assert "32.0 MiB are asked for" in shown.outputs[0].data["text/html"]
    shell.user_ns["full"] = ran.error_in_exec
    assert "32.0 MiB were asked for" in magic(shell, "%dtf_memory full", "picture").sentence
