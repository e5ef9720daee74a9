import itertools

import networkx
import numpy as np
import pytest

import dtflab as tf
from dtflab import viz
from dtflab.graph.node import Node
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.protos.step_stats_pb2 import StepStats
from tests.viz.programs import PS, mlp, traced, worker


def test_nodes_carry_what_is_known():
    nodes = mlp()
    graph = viz.digraph(nodes, step_stats=traced(nodes))
    assert isinstance(graph, networkx.DiGraph) and len(graph) == len(nodes)
    data = graph.nodes["layer1/MatMul"]
    assert (data["op"], data["device"], data["scope"], data["line"]) == ("MatMul", worker(), "layer1", "")
    assert data["end_us"] - data["start_us"] == pytest.approx(60)
    assert data["bytes"] == 4000
    assert networkx.is_directed_acyclic_graph(graph)


def test_edges_carry_tensor_kind_and_bytes():
    nodes = mlp()
    graph = viz.digraph(nodes, step_stats=traced(nodes))
    sent = graph.edges["layer1/weights/read", "layer1/MatMul"]
    assert sent == {"tensor": "layer1/weights/read:0", "kind": "transfer", "bytes": 4000}
    assert graph.edges["layer1/MatMul", "layer1/add"]["kind"] == "data"
    assert graph.edges["GradientDescent/update", "GradientDescent/value"] == {
        "tensor": "^GradientDescent/update", "kind": "control", "bytes": None
    }  # fmt: skip


def test_placement_overrides_what_was_asked():
    nodes = [Node("a", "Const", device="/job:ps"), Node("b", "Neg", [("a", 0)])]
    assert viz.digraph(nodes).edges["a", "b"]["kind"] == "data"  # nobody knows yet where b goes
    assert viz.digraph(nodes, placement={"b": worker()}).edges["a", "b"]["kind"] == "transfer"
    graph = viz.digraph(nodes, placement={"a": PS, "b": PS})
    assert graph.edges["a", "b"]["kind"] == "data" and graph.nodes["b"]["device"] == PS


def unpinned():
    """Two tensors of [2, 3] and [2, 1] from a split on ps, one used there, both by ops that name no device."""
    with tf.device("/job:ps/task:0"):
        both = tf.placeholder(tf.float32, [2, 4], name="both")
        wide, narrow = tf.split(both, [3, 1], axis=1, name="split")
        tf.negative(narrow, name="here")
    with tf.device("/job:worker"):
        square = tf.square(wide, name="square")
    return tf.subtract(square, narrow, name="there"), both


@pytest.fixture(scope="module")
def step():
    """The graph of a step on a ps and three workers, its fetches and its trace."""
    with tf.Graph().as_default() as graph, tf.Cluster(ps=1, worker=3) as cluster:
        there, both = unpinned()
        fetches = [there, graph.get_operation_by_name("here")]
        with tf.Session(cluster.target) as sess:
            metadata, options = tf.RunMetadata(), tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            sess.run(fetches, {both: np.ones([2, 4])}, options, metadata)
    return fetches, metadata


def test_without_a_trace_devices_are_those_asked_for(step):
    graph = viz.digraph(step[0])
    assert [graph.nodes[op]["device"] for op in ("split", "square", "there")] == ["/job:ps/task:0", "/job:worker", ""]
    assert graph.edges["split", "there"] == {"tensor": "split:1", "kind": "data", "bytes": 8}  # float32 of [2, 1]


def test_a_trace_names_the_device_where_nothing_was_pinned(step):
    graph = viz.digraph(step[0], step_stats=step[1])
    device = dict(graph.nodes(data="device"))
    assert device["split"] == device["here"] == PS
    assert device["square"] == device["there"] == worker()
    assert device["both"] == "/job:ps/task:0"  # what is fed never ran


def test_a_trace_tells_which_edges_crossed(step):
    kinds = {(a, b): kind for a, b, kind in viz.digraph(step[0], step_stats=step[1]).edges(data="kind")}
    assert kinds["split", "square"] == kinds["split", "there"] == "transfer"
    assert kinds["split", "here"] == kinds["square", "there"] == "data"
    assert kinds["both", "split"] == "data"  # all that is known of the device of `both` agrees with that of `split`


def test_bytes_of_an_edge_are_those_of_its_one_tensor(step):
    graph = viz.digraph(step[0], step_stats=step[1])
    size = {(a, b): size for a, b, size in graph.edges(data="bytes")}
    assert size["split", "square"] == size["square", "there"] == 24  # float32 of [2, 3]: sent; on one device
    assert size["split", "there"] == size["split", "here"] == 8  # of [2, 1]
    assert size["both", "split"] == graph.nodes["split"]["bytes"] == 32  # what is fed: as its shape says


def test_after_a_plain_run_devices_are_those_where_it_ran_and_bytes_those_of_shapes():
    with tf.Graph().as_default() as graph, tf.Cluster(ps=1, worker=1) as cluster, tf.Session(cluster.target) as sess:
        there, both = unpinned()
        rows = tf.placeholder(tf.float32, [None, 2], name="rows")
        assert viz.digraph(there).nodes["there"]["device"] == ""
        sess.run(there, {both: np.ones([2, 4])})
        after = viz.digraph(there)
        assert {device for _, device in after.nodes(data="device")} == {PS, worker()}
        assert after.nodes["square"]["end_us"] <= after.nodes["there"]["start_us"] < after.nodes["there"]["end_us"]
        assert after.nodes["there"]["bytes"] == 24
        assert after.edges["split", "square"] == {"tensor": "split:0", "kind": "transfer", "bytes": 24}
        assert (
            viz.digraph(rows).nodes["rows"]["bytes"] is None
            and viz.digraph(graph.as_graph_def()).nodes["there"]["bytes"] is None
        )
        with tf.Session(cluster.target) as other:
            sess.trace(there, {both: np.ones([2, 4])})
            other.run(there, {both: np.ones([2, 4])})
            assert viz.digraph(there).nodes["there"]["start_us"] is not None  # a trace knows more than a later run


def test_a_session_says_where_its_ops_are_and_when_they_ran():
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1) as cluster:
        there, both = unpinned()
        with tf.Session(cluster.target) as session:
            session.trace(there, {both: np.ones([2, 4], np.float32)})
            found = viz.digraph(there, session)
            assert found.nodes["square"]["device"].startswith("/job:worker/replica:0/task:0")
            assert found.nodes["square"]["end_us"] > found.nodes["square"]["start_us"]
            with tf.Graph().as_default(), pytest.raises(ValueError, match="The session has another graph"):
                viz.digraph(tf.constant(1.0), session)


def test_bytes_of_an_edge_from_what_has_no_trace_are_those_sent():
    nodes = [Node("switch", "Switch", device=PS), Node("neg", "Neg", [("switch", 1)], device=worker())]
    step = StepStats()
    stats = step.dev_stats.add(device=worker()).node_stats
    stats.add(node_name="RecvTensor", timeline_label=f"[12B] edge_7_switch from {PS} to {worker()}")
    stats.add(node_name="neg", timeline_label="neg = Neg(switch:1)", all_end_rel_nanos=1000)
    assert viz.digraph(nodes, step_stats=step).edges["switch", "neg"]["bytes"] == 12


def test_graph_def():
    graph_def = GraphDef()
    graph_def.node.add(name="a", op="Split", device=PS)
    graph_def.node.add(name="b", op="AddV2", input=["a:1", "a", "^a"])
    graph = viz.digraph(graph_def)
    assert graph.edges["a", "b"]["tensor"] == "a:1, a:0" and graph.nodes["a"]["device"] == PS


def test_fetches_stand_for_what_they_need():
    with tf.Graph().as_default():
        a = tf.constant(1.0, name="a")
        b = tf.add(a, a, name="b")
        tf.negative(b, name="unused")
        assert list(viz.digraph({"sum": [b]})) == ["a", "b"]
        assert list(viz.digraph("b:0")) == ["a", "b"]
        assert list(viz.digraph()) == ["a", "b", "unused"]
        assert viz.digraph(b.op).nodes["b"]["line"].endswith(", in test_fetches_stand_for_what_they_need")
        variable = tf.Variable(1.0, name="v")
        assert "v" in viz.digraph(variable)


def test_critical_path():
    nodes = mlp()
    path = viz.critical_path(viz.digraph(nodes, traced(nodes)))  # a trace may come second
    graph = viz.digraph(nodes)
    assert path[-1] == "GradientDescent" and not list(graph.predecessors(path[0]))
    assert all(graph.has_edge(a, b) for a, b in itertools.pairwise(path))


def test_wrong_input():
    with pytest.raises(ValueError, match=r"The graph is empty\. Add operations"):
        viz.digraph([])
    with pytest.raises(TypeError, match=r"Pass a graph, nodes or fetches, not a value of type float\."):
        viz.digraph(3.5)
    with pytest.raises(TypeError, match=r"A RunMetadata or StepStats is needed, not float\. Trace a step"):
        viz.digraph(mlp(), 3.5)
    with pytest.raises(ValueError, match=r"The graph has no times\. Trace a step"):
        viz.critical_path(viz.digraph(mlp()))
    with pytest.raises(ValueError, match="The trace is empty"):
        viz.digraph(mlp(), step_stats=StepStats())


def test_without_a_trace_the_times_are_those_of_the_first_step_that_ran_the_fetches():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
        twice = tf.multiply(v, 2.0, name="twice")
        with pytest.raises(tf.errors.FailedPreconditionError):
            sess.run(twice)  # such a step does not count
        sess.run(v.initializer)
        assert viz.digraph(twice).nodes["twice"]["end_us"] is None
        metadata = tf.RunMetadata()
        sess.run(twice, run_metadata=metadata)
        assert not metadata.step_stats.dev_stats, "nobody asked for a trace"
        first = dict(viz.digraph(twice).nodes(data="end_us"))
        sess.run(twice)
        assert first["twice"] > 0 and dict(viz.digraph(twice).nodes(data="end_us")) == first
        assert viz.digraph(graph).nodes["v/Assign"]["end_us"] > 0, "of a whole graph, the newest kind of step"
        assert dict(viz.digraph(twice, sess).nodes(data="end_us")) == first
        assert viz.critical_path(viz.digraph(twice))[-1] == "twice"
        sess.run(v)
        assert viz.digraph(twice).nodes["twice"]["end_us"] == first["twice"], "of the newest kind that ran it"


def test_a_loop_that_adds_ops_is_not_traced_in_every_turn():
    with tf.Graph().as_default(), tf.Session() as sess:
        ops = [tf.constant(float(i)) * 2.0 for i in range(21)]
        for op in ops:
            sess.run(op)
        ends = [viz.digraph(op).nodes[op.op.name]["end_us"] for op in ops]
        assert None not in ends[:20] and ends[20] is None


def test_in_virtual_time_a_first_step_is_traced_and_goes_as_without():
    def happened(options):
        stragglers = tf.sim.lognormal(0.3)
        with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1, clock="virtual", stragglers=stragglers) as cluster:
            there, both = unpinned()
            with tf.Session(cluster.target) as sess:
                for _ in range(2):
                    sess.run(there, {both: np.ones([2, 4])}, options)
                return viz.digraph(there), cluster.world.log.hash()

    (first, timed), (without, untimed) = happened(None), happened(tf.RunOptions())
    there = first.nodes["there"]
    assert there["device"] == worker() and there["end_us"] > first.nodes["square"]["end_us"] > 0
    assert without.nodes["there"]["start_us"] is None and timed == untimed
    assert str(first).startswith("DiGraph named 'times of a step' with ")


def test_a_step_that_is_only_listened_to_gives_no_times():
    with tf.Graph().as_default(), tf.Session() as sess, tf.watch([].append):  # each node is heard of, none is kept
        sess.run(one := tf.negative(1.0, name="one"), options=tf.RunOptions())
        assert viz.digraph(one).nodes["one"]["start_us"] is None


@pytest.mark.processes
def test_where_the_master_is_in_another_process_the_graph_says_how_to_get_times():
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1, engine="process") as cluster:
        there, both = unpinned()
        with tf.Session(cluster.target) as sess:
            sess.run(there, {both: np.ones([2, 4])})
            found = viz.digraph(there)
            assert found.nodes["there"]["device"] == worker() and found.nodes["there"]["end_us"] is None
            assert found.name == "no step was timed: sess.trace(fetches) gives times"
            sess.trace(there, {both: np.ones([2, 4])})
            found = viz.digraph(there)
            assert found.nodes["there"]["end_us"] > 0 and found.name == "times of a step"


def test_the_newest_traced_step_is_known_without_being_passed():
    with tf.Graph().as_default() as graph, tf.Cluster(ps=1, worker=1) as cluster:
        with tf.device("/job:ps"):
            far = tf.ones([2, 3], name="far")
        near = tf.negative(far, name="near")
        with tf.Session(cluster.target) as sess:
            assert viz.digraph(near).nodes["near"]["device"] == ""
            sess.run(near)
            assert viz.digraph(near).nodes["near"]["start_us"] > 0, "a first step is traced"
            step = sess.trace(near)
            for what in (near, graph, None):
                found = viz.digraph(what)
                assert found.nodes["near"]["device"] == worker() and found.nodes["far"]["device"] == PS
                assert found.nodes["near"]["start_us"] is not None
                assert found.edges["far", "near"] == {"tensor": "far:0", "kind": "transfer", "bytes": 24}
            assert viz.digraph(near, step_stats=step).nodes["near"]["device"] == worker()
            with tf.Graph().as_default():
                assert viz.digraph(tf.constant(1.0, name="near")).nodes["near"]["device"] == ""
        assert viz.digraph(near).nodes["near"]["device"] == "", "the session is closed"
