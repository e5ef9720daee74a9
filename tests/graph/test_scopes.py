"""Scopes of a graph: they end where their block ends, also by an exception, and belong to their own graph."""

from __future__ import annotations

import threading

import pytest

from dtflab.graph import scopes
from dtflab.graph.convert import constant
from dtflab.graph.graph import Graph
from dtflab.ops.control.functions import no_op


@pytest.fixture(autouse=True)
def graph():
    with Graph().as_default() as g:
        yield g


BLOCKS = {
    "name_scope": lambda: scopes.name_scope("s"),
    "device": lambda: scopes.device("/job:ps"),
    "control_dependencies": lambda: scopes.control_dependencies([no_op(name="before")]),
    "no dependencies": lambda: scopes.control_dependencies(None),
    "container": lambda: scopes.container("c"),
    "colocate_with": lambda: scopes.colocate_with(no_op(name="there")),
    "gradient_override_map": lambda: scopes.get_default_graph().gradient_override_map({"NoOp": "Other"}),
    "as_default": lambda: Graph().as_default(),
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_a_block_ends_with_an_exception(graph, block):
    with pytest.raises(ZeroDivisionError), block():
        no_op()
        raise ZeroDivisionError
    after = no_op(name="after")
    assert after.graph is graph
    assert (after.name, after.device, after.control_inputs, after.attrs) == ("after", "", [], {})


def test_a_refused_scope_name_leaves_the_scope_as_it_was(graph):
    with scopes.name_scope("outer"):
        with pytest.raises(ValueError, match="'a b' is not a valid scope name"), scopes.name_scope("a b"):
            pass
        assert graph.get_name_scope() == "outer"
    assert graph.get_name_scope() == ""


def test_blocks_of_one_graph_do_not_reach_another(graph):
    with scopes.name_scope("s"), scopes.device("/job:ps"), scopes.control_dependencies([no_op()]):
        with Graph().as_default():
            there = no_op(name="x")
        here = no_op(name="x")
    assert (there.name, there.device, there.control_inputs) == ("x", "", [])
    assert (here.name, here.device, len(here.control_inputs)) == ("s/x", "/job:ps", 1)


def test_gradient_override_marks_operations(graph):
    with graph.gradient_override_map({"Const": "Mine"}):
        marked = constant(1.0)
        with graph.gradient_override_map({"Const": "Inner", "NoOp": "Other"}):
            inner = constant(1.0), no_op()
    assert marked.op.get_attr("_gradient_op_type") == b"Mine"
    assert [getattr(t, "op", t).get_attr("_gradient_op_type") for t in inner] == [b"Inner", b"Other"]


def test_device_function_that_returns_nothing_says_what_to_return(graph):
    with scopes.device(lambda op: None), pytest.raises(TypeError, match=r"must return a device string, not None.*'x'"):
        no_op(name="x")


def test_a_device_is_checked_when_the_block_opens(graph):
    with pytest.raises(ValueError, match="Unknown attribute 'foo'"), scopes.device("/foo:1"):
        pass


def test_a_variable_like_object_is_waited_for_without_reading_it(graph):
    class Variable:
        op = no_op(name="handle")

        def _as_graph_element(self):
            return constant(1.0, name="read")

    with scopes.control_dependencies([Variable()]):
        assert [c.name for c in no_op().control_inputs] == ["handle"]
    assert "read" not in [op.name for op in graph.get_operations()]


def test_blocks_of_one_thread_after_the_switch():
    graph = Graph()
    seen = {}

    def make(name):
        with graph.as_default():
            seen[name] = constant(0.0, name=name).op

    def in_thread(name):
        thread = threading.Thread(target=make, args=(name,))
        thread.start()
        thread.join()

    with graph.as_default(), graph.device("/job:ps"):
        with graph.device("/cpu:0"), graph.container("before"):
            in_thread("shared")
        graph.switch_to_thread_local()
        graph.switch_to_thread_local()
        with graph.device("/cpu:1"), graph.name_scope("mine"), graph.control_dependencies([constant(1.0)]):
            in_thread("own")
            make("here")
    assert seen["shared"].device == "/job:ps/device:CPU:0"
    assert seen["own"].device == "/job:ps" and seen["own"].name == "own" and not seen["own"].control_inputs
    assert seen["here"].device == "/job:ps/device:CPU:1" and seen["here"].name == "mine/here"
    assert seen["here"].control_inputs
