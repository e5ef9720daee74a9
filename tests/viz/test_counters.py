"""The picture of a step that stands still, and what a notebook shows of it."""

from __future__ import annotations

import contextlib
import re
import xml.etree.ElementTree as ET

import pytest

import dtflab as tf
from dtflab.graph.node_names import readable
from dtflab.viz.counters import MOST, counters, frames
from dtflab.viz.drawing.palette import look
from dtflab.viz.steps import _Answer, _scenes, record_html, steps_html

MEANINGS = {"has run", "dead: does not run", "ready: runs next", "asked of another device", "waits for n inputs"}
OF_STILL = 'class="dtf-of-still">(.*?)<'


@pytest.fixture
def steps():
    with tf.Graph().as_default() as graph:
        p = tf.placeholder(tf.bool, [], name="p")
        x = tf.placeholder(tf.float32, [], name="x")
        out = tf.cond(p, lambda: tf.negative(x, name="yes"), lambda: tf.exp(x, name="no"))
    with tf.Session(graph=graph) as session:
        yield session.step_through(out, {p: True, x: 2.0})


def states(steps):
    return {node.name: node.state for node in steps.nodes}


def test_nodes_go_from_waiting_over_ready_to_done(steps):
    assert states(steps)["_arg_x_0_1"] == "ready" and states(steps)["cond/yes"] == "waits"
    steps.next()
    assert states(steps)["_arg_x_0_1"] == "done"
    steps.finish()
    assert states(steps)["cond/no"] == "dead" and set(states(steps).values()) == {"dead", "done"}


def test_a_receive_waits_for_its_send():
    with tf.Graph().as_default() as graph, tf.device("/cpu:1"):
        y = tf.negative(tf.placeholder_with_default(1.0, [], name="x"), name="y")
    with tf.Session(graph=graph, config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        steps = session.step_through(y)
        steps.next()
        receive = next(node for node in steps.nodes if node.name.endswith("/recv"))
        assert receive.state == "asked" and receive.sources == [receive.name.replace("/recv", "/send")]


def test_every_node_is_drawn_with_its_counter(steps):
    steps.next()
    root = ET.fromstring(counters(steps.nodes, live={}).svg.split("\n", 1)[1])
    drawn = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert all(
        any(node.name.rpartition("/")[2][:4] in text for text in drawn) for node in steps.nodes if node.state == "waits"
    )
    assert {"✓", "0", "has run", "ready: runs next"} <= set(drawn)
    assert sum(node.state == "done" for node in steps.nodes) + 1 == drawn.count("✓"), "one is in the legend"


def test_the_legend_is_smaller_than_the_nodes(steps):
    root = ET.fromstring(counters(steps.nodes, live={}).svg.split("\n", 1)[1])
    boxes = [float(one.get("height")) for one in root.iter() if one.get("class") == "box"]
    *legend, names = boxes[:5], boxes[5:]
    assert len(names) == len(steps.nodes) and 1.5 * max(*legend) < min(names)
    meaning = next(one for one in root.iter() if one.text == "ready: runs next")
    assert meaning.get("class") == "s11 soft", "a name has 12 units"


def test_a_still_explains_only_what_it_shows(steps):
    def explained(nodes):
        return {one.text for one in ET.fromstring(counters(nodes).svg.split("\n", 1)[1]).iter()} & MEANINGS

    assert explained(steps.nodes) == {"ready: runs next", "waits for n inputs"}
    steps.finish()
    assert explained(steps.nodes) == {"has run", "dead: does not run"}


def test_an_edge_that_is_order_only_is_dashed():
    with tf.Graph().as_default() as graph:
        x, y = (tf.placeholder_with_default(1.0, [], name) for name in "xy")
        with tf.control_dependencies([x]):
            tf.negative(y, name="z")
    described = graph.as_graph_def()
    described.node[-1].input.append("^y")  # which it reads, too
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(described, name="")
    with tf.Session(graph=graph) as session:
        nodes = session.step_through("z:0").nodes
    assert {node.name: [*node.controls] for node in nodes if node.controls} == {"z": ["x"]}
    drawn = counters(nodes).svg
    assert drawn.count('class="e c"') == 2 and ">order only<" in drawn


def test_two_inputs_from_one_node_are_a_line_with_a_number():
    """The same number as that of the counter: 2, also of two outputs of one node."""
    with tf.Graph().as_default(), tf.Session() as session:
        first, second = tf.unstack(tf.placeholder(tf.float32, [2], name="x"), name="pair")
        with session.step_through(tf.add(first, second, name="sum")) as steps:
            counts = {node.name: (node.sources, node.waits_for) for node in steps.nodes}
            assert counts["sum"] == (["pair", "pair"], 2)
            assert counters(steps.nodes).svg.count("×2") == 1


def test_colours_are_those_of_devices(steps):
    drawn = counters(steps.nodes).svg
    assert set(re.findall(r'fill="(#\w+)"', drawn)) == {look(steps.nodes[0].device).colour.fill}


def test_every_set_can_be_shown_again(steps):
    seen = [(states(steps), {node.name: node.waits_for for node in steps.nodes})]
    while not steps.over:
        steps.next()
        seen.append((states(steps), {node.name: node.waits_for for node in steps.nodes}))
    names = [node.name for node in steps.nodes]
    for frame, (state, counts) in zip(frames(steps), seen, strict=True):
        assert dict(zip(names, frame.states, strict=True)) == state
        waits = {n: b for n, s, b in zip(names, frame.states, frame.badges, strict=True) if s == "waits"}
        assert waits == {name: str(counts[name]) for name in waits}


def test_the_buttons_of_a_step_run_its_sets(steps):
    told = []
    answer = _Answer(steps)
    answer({"run": "next", "has": 0}, told.append)
    assert len(steps.records) == 1 and len(told[-1]["frames"]) == 2 and not told[-1]["over"]
    answer({"run": "all", "has": 2}, told.append)
    assert steps.over and told[-1]["over"] and told[-1]["error"] == ""
    answer({"run": "next", "has": 2}, told.append)  # pressed once more
    assert told[-1]["frames"] == told[-2]["frames"]


def test_a_step_that_fails_says_so_to_its_buttons():
    with tf.Graph().as_default() as graph:
        y = tf.reshape(tf.placeholder(tf.float32, name="x"), [3])
    with tf.Session(graph=graph) as session:
        told = []
        _Answer(session.step_through(y, {"x:0": [1.0, 2.0]}))({"run": "all", "has": 0}, told.append)
    assert "reshape" in told[0]["error"].lower() and told[0]["over"]


def test_nothing_to_draw_is_an_error():
    with pytest.raises(ValueError, match="no nodes"):
        counters([])


def test_a_notebook_shows_picture_and_tables(steps):
    before = steps_html(steps)
    record = steps.next()
    after = steps_html(steps)
    assert re.findall(OF_STILL, before) == [", not begun", "Ready first: feed p, feed x."]
    assert ">Step<" in after and "<svg" in after
    place, ran = re.findall(OF_STILL, after)  # hidden where the picture moves
    assert place == " after set 1" and ran.startswith("Ran: ")
    assert "Counters that fell:" in after and "Counters that fell" in record_html(record)
    assert "no sets" in after and after.count("<table") == 1


def training(layers):
    """A step of two workers that train a network with biases."""
    with tf.device("/job:ps/task:0"):
        weights = [tf.Variable(tf.zeros([4, 4]), name=f"weights{layer}") for layer in range(layers)]
        biases = [tf.Variable(tf.zeros([4]), name=f"bias{layer}") for layer in range(layers)]
    trains = []
    for worker in range(2):
        with tf.device(f"/job:worker/task:{worker}"), tf.name_scope(f"worker{worker}"):
            y = tf.ones([3, 4])
            for weight, bias in zip(weights, biases, strict=True):
                y = tf.nn.relu(tf.matmul(y, weight) + bias)
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[0, 1, 2], logits=y)
            trains.append(tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_mean(loss)))
    return trains


@pytest.fixture
def begun():
    """A function that begins the step of `training`, on a cluster."""
    with tf.Graph().as_default(), contextlib.ExitStack() as stack:

        def begin(layers):
            trains = training(layers)
            session = stack.enter_context(tf.Session(stack.enter_context(tf.Cluster(ps=1, worker=2)).target))
            session.run(tf.global_variables_initializer())
            return stack.enter_context(session.step_through(trains))

        yield begin


def test_a_training_of_two_workers_with_biases_is_a_picture(begun):
    steps = begun(layers=1)
    assert len(steps.nodes) > 60 and "<svg" in steps_html(steps) and "no picture" not in steps_html(steps)


def test_a_label_is_the_end_of_a_name(begun):
    root = ET.fromstring(counters(begun(layers=1).nodes).svg.split("\n", 1)[1])
    drawn = [one.text for one in root.iter() if one.get("class") == "name"]
    assert {"worker0/MatMul", "MatMul_grad/MatMul_1", "send weights0/read", "tuple/group_deps"} <= set(drawn)
    assert not {"send", "receive"} & set(drawn), "of what?"


def test_transfers_of_one_tensor_are_told_apart(begun):
    steps = begun(layers=1)
    while not any(readable(name) == "send weights0/read" for name in steps.ready):
        steps.next()
    ready = frames(steps)[-1].says.partition("Ready next")[2]
    assert "send weights0/read to worker:0, " in ready and "send weights0/read to worker:1" in ready
    assert "send weights0/read to worker:1" in repr(steps)
    steps.next()
    record = steps.records[-1]
    assert "send weights0/read to worker:0" in str(record) and "send weights0/read to worker:1" in record_html(record)
    steps.finish()
    assert any("receive weights0/read on worker:0 (float32 [4, 4])" in frame.says for frame in frames(steps))
    assert "receive weights0/read on worker:1: done" in counters(steps.nodes).svg


def drawn_in(svg):
    return dict(re.findall(r"<title>(.*?): (\w+)", svg))


def test_a_large_step_is_one_picture_too_of_the_nodes_where_it_stands(begun):
    steps, told = begun(layers=3), []
    count = len(steps.nodes)
    for _ in range(3):
        steps.next()
    shown, ready = steps_html(steps), {*map(readable, steps.ready)}
    assert count > MOST and shown.count("<table") == 1
    assert (
        f"Of {count} nodes the picture shows up to 60: those that ran last, those that are ready or asked, and" in shown
    )
    still = drawn_in(shown.partition("<svg")[2])
    assert {*still.values()} >= {"done", "ready", "waits"} and len(still) <= 60
    _Answer(steps)({"run": "all", "has": 4}, told.append)
    (says,) = told
    assert says["first"] == 4 and len(says["frames"]) == len(steps.records) - 3, "the page has the others"
    assert drawn_in(_scenes(steps)[3].drawing) == still, "as it was shown"
    for frame, record in zip(_scenes(steps)[1:], steps.records, strict=True):
        found = drawn_in(frame.drawing)
        assert [*found.values()].count("ready") == min(len(record.ready), 60) and len(found) <= 60
        assert all(found.get(readable(ran.name), "done") in ("done", "asked") for ran in record.ran)
    assert ready <= {name for name, state in still.items() if state == "ready"}


def test_a_sentence_stays_short_in_a_large_step(begun):
    steps = begun(layers=2)
    steps.finish()
    for frame, record in zip(frames(steps)[1:], steps.records, strict=True):
        ran = frame.says.removeprefix("Ran: ").partition(". Counters")[0]
        assert (f" and {len(record.ran) - 5} more" in ran) == (len(record.ran) > 5)
    assert max(len(record.ran) for record in steps.records) > 5
