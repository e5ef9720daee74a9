"""explain: what it says beforehand is what a run then does."""

from __future__ import annotations

import copy
import html.parser

import pytest
from hypothesis import given, settings

import dtflab as tf
from dtflab.cluster.master_stub import MasterStub
from dtflab.viz.explain import MOST_ROWS
from tests.graphs import build, recipes
from tests.viz.programs import PS, worker


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def control_dependencies():
    """The book's graph: x and y only after a and b."""
    a = tf.constant(1.0, name="a")
    b = tf.add(a, 2.0, name="b")
    with tf.control_dependencies([a, b]):
        x = tf.constant(3.0, name="x")
        y = tf.constant(4.0, name="y")
    return tf.add(x, y, name="z")


# -- what a step is ------------------------------------------------------------------------------------------------


def test_the_books_graph():
    story = tf.explain(control_dependencies())
    assert story.folded == ["a", "b/y"] and story.unread == ["b"]
    assert story.sets == [["b"], ["x", "y"], ["z"], ["_retval_z_0_0"]]
    assert {op.name: op.waits_for for op in story.ops} == {"b": 0, "x": 1, "y": 1, "z": 2, "_retval_z_0_0": 1}
    assert [(op.name, op.reason) for op in story.known] == [("a", "the only device"), ("b/y", "the only device")]
    assert "0    0  the only device" in repr(story)
    assert story.critical_path == ["b", "x", "z", "_retval_z_0_0"] or story.critical_path[1] == "y"
    assert story.crossings == [] and story.dropped == {}


def test_what_pruning_left_and_why():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.negative(x, name="y")
    z = tf.exp(y, name="z")
    tf.tanh(x, name="other")
    story = tf.explain(z, {y: None})
    assert story.kept == ["z"] and story.graph_size == 4
    assert story.dropped == {"x": "needed only for what is fed", "y": "fed instead",
                            "other": "not needed for what is fetched"}  # fmt: skip
    assert "1 of 4 ops" in repr(story) and "Pruned, fed instead: 1 op (y)." in repr(story)


def test_what_must_be_fed_is_named():
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.negative(x, name="y")
    assert tf.explain(y).unfed == ["x"] and "Feed x: without a value the step fails." in repr(tf.explain(y))
    assert tf.explain(y, [x]).unfed == []


def test_crossings_have_sizes_and_ops_have_reasons():
    with tf.Cluster(ps=1, worker=2) as cluster:
        with tf.device(PS):
            w = tf.Variable([[1.0, 2.0]], name="w")
        with tf.device(worker(0)):
            x = tf.placeholder(tf.float32, [None, 1], name="x")
            y = tf.matmul(x, w, name="y")
        with tf.device(worker(1)), tf.control_dependencies([y]):
            z = tf.constant(1.0, name="z")
        with tf.Session(cluster.target):
            story = tf.explain([y, z], [x])
    sent = [(c.tensor, c.nbytes, c.only_order) for c in story.crossings]
    assert ("w/read", 8, False) in sent and ("z", 4, False) in sent
    assert ("y", 0, True) in sent
    why = {op.name: op.reason for op in story.ops}
    assert "pinned to /job:worker/task:0" in why["y"] and "/job:ps/task:0" in why["w/read"]


def test_a_tensor_of_unknown_shape_has_no_size():
    x = tf.placeholder(tf.float32, [None], name="x")
    with tf.device("/cpu:1"):
        y = tf.negative(x, name="y")
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        story = tf.explain(y, [x], session)
    assert {(c.tensor, c.nbytes) for c in story.crossings} == {("_arg_x_0_0", None), ("y", None)}
    assert "shape unknown" in repr(story) and "at least 0 B" in repr(story)


def test_loops_and_branches_are_told_once():
    p = tf.placeholder(tf.bool, [], name="p")
    story = tf.explain(tf.cond(p, lambda: tf.constant(1.0), lambda: tf.constant(2.0)), [p])
    assert story.branches and "Both branches" in repr(story)
    assert all(op.set for op in story.ops)


@pytest.mark.parametrize("reports", [True, False])
def test_a_master_in_another_process(reports, monkeypatch):
    """One of TensorFlow does not report where nodes are."""

    def unknown(*request):
        raise NotImplementedError

    if not reports:
        monkeypatch.setattr(MasterStub, "placed", unknown)
    with tf.Cluster(worker=1, engine="process") as cluster, tf.Session(cluster.target) as session:
        story = tf.explain(tf.negative(tf.constant(1.0), name="n"), session=session)
    assert story.from_master == reports and ("dtflab's rules" in repr(story)) != reports
    assert {op.device for op in story.ops} == {"/job:worker/replica:0/task:0/device:CPU:0"}
    assert "test_explain.py" in next(op.line for op in story.ops if op.name == "n")


def test_fetches_that_are_not_there():
    with pytest.raises(TypeError):
        tf.explain(None)
    control_dependencies()
    with pytest.raises(ValueError, match="nothing"):
        tf.explain("nothing:0")


# -- what is said beforehand happens ----------------------------------------------------------------------------------

STRAIGHT = recipes.map(lambda recipe: [line for line in recipe if line.kind not in ("loop", "cond")])


@given(STRAIGHT.filter(bool))
@settings(max_examples=60)
def test_the_sets_are_those_of_a_step_through(recipe):
    built = build(recipe, lambda place: f"/cpu:{place % 3}")
    with tf.Session(graph=built.graph, config=tf.ConfigProto(device_count={"CPU": 3})) as session:
        if built.initializers:
            session.run(built.initializers)
        story = tf.explain(built.values, session=session)
        steps = session.step_through(built.values)
        ran = [{r.name for r in record.ran if r.state != "came"} for record in steps]
        assert ran == list(map(set, story.sets))
        assert {name for names in ran for name in names} == {op.name for op in story.ops}


def test_explaining_runs_nothing():
    v = tf.Variable(1.0)
    with tf.Session() as session:
        session.run(v.initializer)
        tf.explain(v.assign_add(1.0), session=session)
        assert session.run(v) == 1.0


# -- how it is shown --------------------------------------------------------------------------------------------------


def test_a_long_graph_is_told_by_scopes_and_all_of_it_on_request():
    x = tf.placeholder(tf.float32, [3], name="x")
    for layer in range(4):
        with tf.name_scope(f"layer{layer}"):
            for _ in range(20):
                x = tf.negative(x)
    story = tf.explain(x)
    short, whole = repr(story), story.everything
    assert "layer2/…" in short and "layer2/Neg_7" not in short and ".everything has them" in short
    assert all(op.name in whole for op in story.ops if op.op == "Neg") and ".everything" not in whole
    assert len(short.splitlines()) < 2 * MOST_ROWS + 20


def test_a_notebook_shows_tables_that_fold():
    page = tf.explain(control_dependencies())._repr_html_()
    seen = []

    class Reader(html.parser.HTMLParser):
        def handle_starttag(self, tag, attrs):
            seen.append(tag)

    Reader().feed(page)
    assert seen.count("details") >= 2 and seen.count("summary") == seen.count("details") == seen.count("table")
    assert "script" not in seen


def test_names_are_escaped():
    control_dependencies()
    story = tf.explain("z:0")
    story.story.fetches[:] = ["<b>&"]
    assert "&lt;b&gt;&amp;" in story._repr_html_() and "<b>" not in story._repr_html_()


def test_an_explanation_can_be_copied_and_says_what_it_has():
    story = tf.explain(tf.constant(1.0))
    assert copy.copy(story).sets == story.sets
    with pytest.raises(AttributeError, match=r"no 'colour'. It has fetches, fed,"):
        _ = story.colour
