import itertools

import networkx
import pytest

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


def test_graph_def():
    graph_def = GraphDef()
    graph_def.node.add(name="a", op="Split", device=PS)
    graph_def.node.add(name="b", op="AddV2", input=["a:1", "a", "^a"])
    graph = viz.digraph(graph_def)
    assert graph.edges["a", "b"]["tensor"] == "a:1, a:0" and graph.nodes["a"]["device"] == PS


def test_fetches_stand_for_what_they_need():
    import dtflab as tf

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
    path = viz.critical_path(viz.digraph(nodes, step_stats=traced(nodes)))
    graph = viz.digraph(nodes)
    assert path[-1] == "GradientDescent" and not list(graph.predecessors(path[0]))
    assert all(graph.has_edge(a, b) for a, b in itertools.pairwise(path))


def test_wrong_input():
    with pytest.raises(ValueError, match="the graph is empty"):
        viz.digraph([])
    with pytest.raises(TypeError, match="a graph, nodes or fetches are needed, not float"):
        viz.digraph(3.5)
    with pytest.raises(ValueError, match="give digraph\\(\\) the step_stats of a traced step"):
        viz.critical_path(viz.digraph(mlp()))
    with pytest.raises(ValueError, match="the trace is empty"):
        viz.digraph(mlp(), step_stats=StepStats())
