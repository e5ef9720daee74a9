"""Graph and Operation: what no comparison with TensorFlow shows."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from dtflab.graph import default_stacks, op_registry, scopes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.graph import Graph
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.protos.attr_value_pb2 import AttrValue


@pytest.fixture(autouse=True)
def graph():
    with Graph().as_default() as g:
        yield g


def names(graph: Graph) -> list[str]:
    return [op.name for op in graph.get_operations()]


def test_default_graph_is_per_thread(graph):
    seen = {}

    def look():
        seen["before"] = scopes.get_default_graph()
        with Graph().as_default() as mine:
            seen["inside"] = scopes.get_default_graph() is mine

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen["inside"] and seen["before"] is not graph and scopes.get_default_graph() is graph


def test_threads_may_add_operations_to_one_graph(graph):
    def add():
        for _ in range(200):
            graph.create_op("NoOp", [], name="n")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names(graph))) == 800 and [op._id for op in graph.get_operations()] == list(range(800))


def test_defaults_nested_in_the_wrong_order_are_an_error(graph):
    first, second = Graph().as_default(), Graph().as_default()
    first.__enter__()
    second.__enter__()
    with pytest.raises(AssertionError, match="Nesting violated"):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    default_stacks.default_graph_stack.stack.pop()


def test_duplicate_name_says_which(graph):
    control.no_op(name="a/")
    with pytest.raises(ValueError, match="Duplicate node name in graph: 'a'"):
        control.no_op(name="a/")


def test_shape_error_names_the_operation_and_leaves_nothing(graph):
    x = arrays.placeholder("float32", [2, 3], name="x")
    with pytest.raises(ValueError, match=r"node bad.*Reshape.*input shapes: \[2,3\]"):
        apply_op("Reshape", "bad", tensor=x, shape=[5])
    assert [n for n in names(graph) if n == "bad"] == [] and x.consumers() == []


def test_create_op_as_tf1_programs_call_it(graph):
    x = constant(1.0)
    by_message = graph.create_op("Identity", [x], ["float32"], name="y", attrs={"T": AttrValue(type=1)})
    by_inputs = graph.create_op("Identity", [x])
    assert by_message.attrs == by_inputs.attrs and by_message.outputs[0].dtype.name == "float32"


def test_required_attribute_is_missing(graph):
    with pytest.raises(ValueError, match="missing attr 'dtype' from Op<name=Placeholder>"):
        graph.create_op("Placeholder", [])


def test_unknown_op_is_named(graph):
    from dtflab.base.errors import NotFoundError

    with pytest.raises(NotFoundError, match="Op type not registered 'Matmul'"):
        apply_op("Matmul", a=1.0, b=2.0)


def test_line_of_the_program_is_recorded(graph):
    op = control.no_op()
    code, line = op.line
    assert code is test_line_of_the_program_is_recorded.__code__
    assert line == code.co_firstlineno + 1
    assert f"test_graph.py:{line}, in test_line" in op.traceback[0]


def test_an_op_that_no_line_of_the_program_made_has_none(graph):
    thread = threading.Thread(target=graph.create_op, args=("NoOp", []))
    thread.start()
    thread.join(60)
    (op,) = graph.get_operations()
    assert op.line is None and op.traceback == []


def test_an_operation_taken_by_a_session_can_not_change(graph):
    a, b = control.no_op(name="a"), control.no_op(name="b")
    graph.nodes()
    with pytest.raises(RuntimeError, match="'a' was changed after it was run"):
        a._add_control_input(b)
    with pytest.raises(RuntimeError, match="changed after"):
        a._set_device("/cpu:0")


def test_node_is_a_snapshot(graph):
    with graph.device("/job:ps"):
        x = constant(1.0, name="x")
    y = arrays.identity(x, name="y")
    node = y.op.node()
    y.op.attrs["_later"] = 1
    assert (node.inputs, node.controls, node.device, "_later" in node.attrs) == ([("x", 0)], [], "", False)
    assert repr(x.op.node()) == "x = Const() @ /job:ps" and repr(node) == "y = Identity(x)"


def test_feeding_and_fetching_can_be_forbidden(graph):
    x = constant(1.0)
    assert graph.is_feedable(x) and graph.is_fetchable(x) and graph.is_fetchable(x.op)
    graph.prevent_feeding(x)
    graph.prevent_fetching(x.op)
    assert not graph.is_feedable(x) and not graph.is_fetchable(x) and not graph.is_fetchable(x.op)


def test_get_collection_returns_a_copy(graph):
    graph.add_to_collection("c", 1)
    graph.get_collection("c").append(2)
    assert graph.get_collection("c") == [1]


# -- the interface grammar ----------------------------------------------------------------------------------------


def test_interface_is_parsed():
    op_def = op_registry.parse_interface(
        """Demo(a: N * T, b: Ref(T), c: L, d: resource) -> (x: T, y: L)
           N: int >= 2
           T: {float, int32} = int32, L: list(type) >= 1
           mode: {'a', 'b'} = 'b', sizes: list(int) = [1, -2], shape: shape = [2, ?]
           any: shape = unknown
           eps: float = 1e-3
           name: string = ''
           flag: bool = true"""
    )
    a, b, c, d = op_def.inputs
    assert (a.number_attr, a.type_attr, a.is_list) == ("N", "T", True)
    assert (b.is_ref, c.type_list_attr, d.type.name) == (True, "L", "resource")
    defaults = op_def.with_defaults({"N": 2, "L": []})
    assert defaults["mode"] == b"b" and defaults["sizes"] == [1, -2] and defaults["flag"] is True
    assert str(defaults["shape"]) == "(2, ?)" and defaults["any"].ndims is None and defaults["eps"] == np.float32(1e-3)
    assert op_def.attrs["N"].minimum == 2 and op_def.attrs["mode"].allowed == (b"a", b"b")
    assert [t.name for t in op_def.input_types({**defaults, "L": [op_registry.dtypes.bool]})] == [
        "int32", "int32", "int32_ref", "bool", "resource",
    ]  # fmt: skip


def test_an_interface_may_be_one_line():
    lines = op_registry.parse_interface("Demo(a: T) -> (b: T)\nT: {float, int32}\nsizes: list(int) = [1, 2]")
    assert (
        op_registry.parse_interface("Demo(a: T) -> (b: T) where T: {float, int32}, sizes: list(int) = [1, 2]") == lines
    )


@pytest.mark.parametrize("text", ["Demo(a) -> (b: T)", "Demo", "Demo(a: T) -> (b: T)\n T float", "Demo() -> () x"])
def test_interface_that_is_none(text):
    with pytest.raises((ValueError, TypeError)):
        op_registry.parse_interface(text)


def test_an_op_is_registered_once():
    with pytest.raises(ValueError, match="'NoOp' is registered twice"):
        op_registry.op("NoOp() -> ()")(type("NoOp", (op_registry.Op,), {}))
