"""Functions: traced, written, read again; libraries; what is put in the place of a call."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import text_format

import dtflab as tf
from dtflab.base import errors
from dtflab.graph.apply_op import apply_op
from dtflab.graph.function import Library
from dtflab.graph.graph_def import nodes_from_proto, nodes_to_proto
from dtflab.graph.inlining import inline
from dtflab.graph.node import by_name
from dtflab.graph.tracing import trace
from dtflab.protos.function_pb2 import FunctionDef
from dtflab.protos.graph_pb2 import GraphDef

SCALAR, PAIR = (tf.float32, tf.TensorShape([])), (tf.float32, tf.TensorShape([2]))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def call(traced, *arguments, **more):
    """The results of a call, each by a session of its own."""
    outputs = called(traced, *arguments)
    with tf.Session() as session:
        return session.run(outputs, **more)


def called(traced, *arguments):
    types = [dtype for _, dtype in traced.function.results]
    return apply_op("PartitionedCall", None, args=[*arguments, *traced.captures], f=traced.function, Tout=types)


# -- tracing ------------------------------------------------------------------------------------------------------


def test_arguments_captures_and_results():
    outside = tf.constant(10.0, name="outside")
    traced = trace(lambda x, y: {"a": x * y + outside, "b": (tf.reduce_sum(x), 7)}, [PAIR, SCALAR], "f")
    assert repr(traced.function) == (
        "<function f(args_0: float32, args_1: float32, outside: float32) -> "
        "(result_0: float32, result_1: float32, result_2: int32)>"
    )
    assert traced.captures == [outside]
    assert traced.structure["a"].shape.as_list() == [2] and traced.structure["b"][1].dtype == tf.int32
    a, b, c = call(traced, [1.0, 2.0], 3.0)
    assert (a.tolist(), b, c) == ([13.0, 16.0], 3.0, 7)


def test_a_tensor_is_captured_once_and_through_all_functions_around():
    outside = tf.constant([1.0, 2.0])

    def outer(x):
        inner = trace(lambda y: y * outside + x, [SCALAR], "inner")
        assert [t is outside or t is x for t in inner.captures] == [True, True]
        (result,) = called(inner, x)
        return result + outside

    traced = trace(outer, [SCALAR], "outer")
    assert traced.captures == [outside]
    assert call(traced, 3.0)[0].tolist() == [7.0, 11.0]


def test_names_are_unique_in_a_graph():
    names = [trace(lambda x: x, [SCALAR], "f").function.name for _ in range(3)]
    assert names == ["f", "f_1", "f_2"]


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_are_captured(use_resource):
    v = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=use_resource)
    traced = trace(lambda x: tf.convert_to_tensor(v) * x, [SCALAR], "f")
    assert traced.structure.shape.as_list() == [2]
    outputs = called(traced, 3.0)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(outputs)[0].tolist() == [3.0, 6.0]


def test_side_effects_happen_in_their_order_and_once():
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    def body(x):
        v.assign_add(x)
        v.assign(v.read_value() * 10.0)
        tf.constant("nobody needs this")
        return x

    traced = trace(body, [SCALAR], "f")
    assert b"nobody" not in traced.function.definition.SerializeToString()
    outputs = called(traced, 2.0)
    with tf.Session() as session:
        session.run(v.initializer)
        for expected in (30.0, 320.0):
            session.run(outputs)
            assert session.run(v) == expected


def test_what_is_outside_is_waited_for_and_colocated_with_by_the_call_alone():
    outside = tf.constant(1.0, name="outside")

    def body(x):
        with tf.control_dependencies([outside.op]), tf.colocate_with(outside.op), tf.device("/cpu:0"):
            return tf.identity(x, name="inside")

    function = trace(body, [SCALAR], "f").function
    inside = by_name(function.nodes)["inside"]
    assert (inside.controls, inside.attrs.get("_class"), inside.device) == ([], None, "/device:CPU:0")


def test_control_flow_in_a_body():
    outside = tf.constant(3.0)

    def body(x):
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * outside), [0, x])
        return tf.cond(y > 0.0, lambda: y, lambda: outside)

    traced = trace(body, [SCALAR], "f")
    assert [call(traced, x)[0] for x in (2.0, -2.0)] == [54.0, 3.0]


def test_captured_by_value():
    x = tf.constant([1.0, 2.0]) * 3.0
    traced = trace(lambda y: x + y, [SCALAR], "f", capture_by_value=True)
    assert traced.captures == [] and call(traced, 1.0)[0].tolist() == [4.0, 7.0]
    fed = tf.placeholder(tf.float32, name="fed")
    with pytest.raises(ValueError, match=r"'fed'.*can't be captured by value"):
        trace(lambda y: fed + y, [SCALAR], "g", capture_by_value=True)


def test_a_tensor_of_another_program_is_refused():
    with tf.Graph().as_default():
        strange = tf.constant(1.0)
    with pytest.raises(ValueError, match="neither of the function's own graph nor of one around it"):
        trace(lambda x: x + strange, [SCALAR], "f")


# -- written and read ---------------------------------------------------------------------------------------------


def test_a_function_comes_back_from_its_message():
    inner = trace(lambda x: tf.split(x, 2), [PAIR], "inner")

    def body(x, y):
        first, second = called(inner, x)
        with tf.control_dependencies([first]):
            return second * y, x

    function = trace(body, [PAIR, SCALAR], "f").function
    again = Library(function.library.to_proto()).function("f", {})
    assert (list(again.arguments), list(again.results)) == (list(function.arguments), list(function.results))
    assert list(again.controls) == list(function.controls)
    ours, theirs = by_name(function.nodes), by_name(again.nodes)
    assert ours.keys() == theirs.keys()
    for name, node in ours.items():
        assert (theirs[name].inputs, sorted(theirs[name].controls)) == (node.inputs, sorted(node.controls))
        assert theirs[name].output_types == node.output_types


def test_functions_travel_with_the_nodes_that_call_them(graph):
    inner = trace(lambda x: x * 2.0, [SCALAR], "inner")
    outer = trace(lambda x: called(inner, x)[0] + 1.0, [SCALAR], "outer")
    trace(lambda x: x, [SCALAR], "unused")
    result = called(outer, 3.0)[0]
    sent = GraphDef.FromString(nodes_to_proto(graph.nodes()).SerializeToString())
    assert sorted(f.signature.name for f in sent.library.function) == ["inner", "outer"]
    calls = [node for node in nodes_from_proto(sent) if node.op == "PartitionedCall"]
    assert [node.attrs["f"].function.name for node in calls] == ["outer"]
    with tf.Session() as session:
        assert session.run(result) == 7.0
    assert result.op.get_attr("f").name == "outer"


def test_a_function_can_be_kept_without_a_call(graph):
    graph.add_function(trace(lambda x: x, [SCALAR], "kept").function)
    assert [f.signature.name for f in graph.as_graph_def().library.function] == ["kept"]
    assert trace(lambda x: x, [SCALAR], "kept").function.name == "kept_1"


GENERAL = """
signature {
  name: "general"
  input_arg { name: "x" type_attr: "T" }
  input_arg { name: "more" type_attr: "T" number_attr: "N" }
  output_arg { name: "sum" type_attr: "T" }
  output_arg { name: "all" type_list_attr: "types" }
  attr { name: "T" type: "type" }
  attr { name: "N" type: "int" }
  attr { name: "types" type: "list(type)" }
  attr { name: "axis" type: "int" default_value { i: 0 } }
}
node_def { name: "pack" op: "Pack" input: "more:0" input: "more:1"
           attr { key: "T" value { placeholder: "T" } } attr { key: "N" value { placeholder: "N" } }
           attr { key: "axis" value { placeholder: "axis" } } }
node_def { name: "plus" op: "AddV2" input: "pack:output:0" input: "x" attr { key: "T" value { placeholder: "T" } } }
node_def { name: "both" op: "IdentityN" input: "x" input: "plus:z:0"
           attr { key: "T" value { placeholder: "types" } } }
ret { key: "sum" value: "plus:z:0" }
ret { key: "all_0" value: "both:output:0" }
ret { key: "all_1" value: "both:output:1" }
"""


def general(**attrs):
    library = Library()
    library.add(text_format.Parse(GENERAL, FunctionDef()))
    return library.function("general", attrs)


def test_attributes_of_a_function_fill_its_body():
    function = general(T=tf.int32, N=2, types=[tf.int32, tf.int32])
    assert [name for name, _ in function.arguments] == ["x", "more_0", "more_1"]
    assert [(name, dtype.name) for name, dtype in function.results] == [
        ("sum", "int32"), ("all_0", "int32"), ("all_1", "int32")
    ]  # fmt: skip
    nodes = by_name(function.nodes)
    assert nodes["pack"].inputs == [("more_0", 0), ("more_1", 0)]
    assert nodes["pack"].attrs["axis"] == 0 and nodes["plus"].output_types == [tf.int32]
    result = apply_op("PartitionedCall", None, args=[1, [2, 3], [4, 5]], f=function.as_attr(), Tout=[tf.int32] * 3)
    assert result[0].dtype == tf.int32
    assert general(T=tf.int64, N=2, types=[tf.int64] * 2, axis=1) is not function


@pytest.mark.parametrize(
    "change, text",
    [
        (("", ""), "Attr T is not found from call of function general"),
        (('"pack:output:0"', '"pack:result:0"'), "node 'pack' has no output result, in function general"),
        (('input: "x" attr', 'input: "y" attr'), "input y is not found, in function general"),
        (('key: "sum"', 'key: "som"'), "return sum missing, in function general"),
        (('op: "AddV2"', 'op: "NoSuchOp"'), "Op type not registered 'NoSuchOp'.*in function general"),
    ],
)
def test_what_is_wrong_with_a_function_is_said(change, text):
    library = Library()
    library.add(text_format.Parse(GENERAL.replace(*change), FunctionDef()))
    attrs = {} if change == ("", "") else {"T": tf.int32, "N": 2, "types": [tf.int32, tf.int32]}
    with pytest.raises(errors.OpError, match=text):
        library.function("general", attrs)


# -- in the place of a call -----------------------------------------------------------------------------------------


def test_devices_of_a_body_are_kept_and_completed_by_those_of_the_call():
    def body(x):
        with tf.device("/gpu:1"):
            y = tf.identity(x, name="chosen")
        return tf.negative(y, name="free")

    traced = trace(body, [SCALAR], "f")
    with tf.device("/job:worker/task:1/cpu:0"):
        output = called(traced, 1.0)[0]
    nodes = by_name(inline(tf.get_default_graph().nodes()))
    assert nodes["PartitionedCall/chosen"].device == "/job:worker/task:1/device:GPU:1"
    assert nodes["PartitionedCall/free"].device == "/job:worker/task:1/device:CPU:0"
    assert nodes[output.op.name].op == "Identity"


def test_nodes_without_inputs_wait_for_the_call():
    traced = trace(lambda x: tf.constant(1.0, name="one"), [SCALAR], "f")
    x = tf.constant(2.0, name="x")
    with tf.control_dependencies([tf.no_op(name="before")]):
        called(traced, x)
    nodes = by_name(inline(tf.get_default_graph().nodes()))
    gate = nodes["PartitionedCall/one"].controls[0]
    assert gate == "PartitionedCall/_argument_0"
    assert nodes[gate].controls == ["before"] and nodes[gate].inputs == [("x", 0)]


def test_colocation_inside_a_body_stays_inside():
    def body(x):
        y = tf.identity(x, name="first")
        with tf.colocate_with(y.op):
            return tf.negative(y, name="second")

    called(trace(body, [SCALAR], "f"), 1.0)
    nodes = by_name(inline(tf.get_default_graph().nodes()))
    assert nodes["PartitionedCall/second"].colocated_with() == ["PartitionedCall/first"]


def test_a_graph_without_calls_stays_as_it_is(graph):
    tf.constant(1.0)
    nodes = graph.nodes()
    assert inline(nodes) == nodes


def test_a_session_grows_by_calls(graph):
    traced = trace(lambda x: x * 2.0, [SCALAR], "double")
    with tf.Session() as session:
        y = called(traced, 3.0)[0]
        assert session.run(y) == 6.0
        z = called(traced, y)[0]
        assert session.run([z, y]) == [12.0, 6.0]
        assert session.run(z, {y: 10.0}) == 20.0


def test_a_call_of_a_wrong_number_of_arguments_is_refused():
    traced = trace(lambda x: x, [SCALAR], "f")
    y = apply_op("PartitionedCall", None, args=[1.0, 2.0], f=traced.function, Tout=[tf.float32])
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError, match=r"takes 1 arguments.*gives 2"):
        session.run(y)


def test_functions_come_through_meta_graphs_and_saved_models(graph, tmp_path):
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.identity(called(trace(lambda a: a * 2.0, [SCALAR], "double"), x)[0], name="y")
    meta = tf.train.export_meta_graph(str(tmp_path / "graph.meta"))
    assert len(meta.graph_def.library.function) == 1
    with tf.Session() as session:
        tf.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": y})
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(str(tmp_path / "graph.meta"), import_scope="again")
        assert session.run("again/y:0", {"again/x:0": 4.0}) == np.float32(8.0)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, [tf.saved_model.tag_constants.SERVING], str(tmp_path / "model"))
        assert session.run("y:0", {"x:0": 5.0}) == np.float32(10.0)


@pytest.mark.parametrize("taken", [True, False])
def test_a_call_in_a_branch_that_is_not_taken_does_nothing(taken):
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    handle = v.handle

    def body(h, x):
        apply_op("AssignAddVariableOp", None, resource=h, value=tf.constant(5.0))
        return x * 2.0

    traced = trace(body, [(tf.resource, tf.TensorShape([])), SCALAR], "f")
    y = tf.cond(tf.constant(taken), lambda: called(traced, handle, 3.0)[0], lambda: tf.constant(0.0))
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(y) == (6.0 if taken else 0.0)
        assert session.run(v) == (6.0 if taken else 1.0)


def test_a_call_in_every_turn_of_a_loop():
    traced = trace(lambda x: x * tf.constant(2.0) + tf.cond(x > 3.0, lambda: 1.0, lambda: 0.0), [SCALAR], "f")

    def turn(i, y):
        return i + 1, tf.ensure_shape(called(traced, y)[0], [])

    _, y = tf.while_loop(lambda i, y: i < 4, turn, [0, 1.0])
    with tf.Session() as session:
        assert session.run(y) == 19.0
