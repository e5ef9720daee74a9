"""Phases of training, found in real programs: what people would say, and laws that hold for any graph."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab import viz
from dtflab.viz.phases import PHASES
from tests.viz.programs import mlp
from tests.viz.training import PROGRAMS, SAID


def graph_of(program):
    with tf.Graph().as_default() as graph:
        PROGRAMS[program](tf)
    return graph


@pytest.mark.parametrize("program", PROGRAMS)
def test_ops_are_in_the_phase_that_people_would_say(program):
    found = viz.phases(graph_of(program))
    said = {name: phase for phase, names in SAID[program].items() for name in names.split()}
    assert {name: found[name] for name in said} == said


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_op_has_one_phase_and_a_step_needs_no_other(program):
    graph = graph_of(program)
    found = viz.phases(graph)
    assert found.keys() == {op.name for op in graph.get_operations()} and set(found.values()) == set(PHASES)
    needed, todo = set(), [graph.get_operation_by_name("train")]
    while todo:
        op = todo.pop()
        if op.name not in needed:
            needed.add(op.name)
            todo += [*(t.op for t in op.inputs), *op.control_inputs]
    assert "other" not in {found[name] for name in needed}


@pytest.mark.parametrize("program", PROGRAMS)
def test_tensors_of_a_step_flow_from_earlier_phases_to_later_ones(program):
    """But where a loop reads its input: its counter and its frame come from the forward phase."""
    graph = graph_of(program)
    found = viz.phases(graph)
    back = [
        (t.name, op.name)
        for op in graph.get_operations()
        for t in op.inputs
        if "other" not in (found[op.name], found[t.op.name])
        and PHASES.index(found[t.op.name]) > PHASES.index(found[op.name])
    ]
    assert back == ([("loop/Identity:0", "loop/read")] if program == "rnn" else [])


def test_two_towers_with_names_of_their_own_for_gradients():
    with tf.Graph().as_default() as graph:
        w = tf.Variable(1.0, name="w")
        for tower in "ab":
            with tf.name_scope(tower):
                x = tf.placeholder(tf.float32, name="x")
                loss = tf.square(w * x - 1.0, name="loss")
                (slope,) = tf.gradients(loss, [w.value()], name="slopes")
                tf.assign_sub(w, 0.1 * slope, name="step")
    found = viz.phases(graph)
    for tower in "ab":
        assert {found[f"{tower}/{name}"] for name in ("loss", "sub")} == {"loss"}
        assert (found[f"{tower}/x"], found[f"{tower}/mul"], found[f"{tower}/step"]) == ("input", "forward", "update")
        assert {phase for name, phase in found.items() if name.startswith(f"{tower}/slopes/")} == {"backward"}


def test_a_graph_without_gradients_has_input_and_forward_only():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        tf.add(tf.Variable([1.0, 2.0], name="v"), x * 2, name="y")
    found = viz.phases(graph)
    assert (found["x"], found["mul"], found["v"], found["y"]) == ("input", "input", "forward", "forward")
    assert set(found.values()) == {"input", "forward", "other"}


def test_nodes_do_as_well_as_a_graph():
    found = viz.phases(mlp())
    assert found["layer1/MatMul"] == found["layer2/weights"] == "forward"
    assert found["loss/xent"] == found["loss/Mean"] == "loss"
    assert found["gradients/layer2/MatMul_grad/MatMul_1"] == "backward"
    assert found["GradientDescent"] == found["global_step"] == "update"


def test_a_parabola_and_data_in_a_variable_that_is_not_trained():
    with tf.Graph().as_default() as graph:
        w = tf.Variable(2.0, name="w")
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(w - 1.0, name="loss"), name="train")
    found = viz.phases(graph)
    assert (found["w"], found["sub"], found["loss"], found["train"]) == ("forward", "forward", "loss", "update")
    with tf.Graph().as_default() as graph:
        data, target = (tf.Variable([[1.0]], trainable=False, name=name) for name in ("data", "target"))
        product = tf.matmul(data, tf.Variable([[2.0]], name="w"), name="product")
        loss = tf.reduce_sum(tf.subtract(product, target, name="error"), name="loss")
        tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
    found = viz.phases(graph)
    assert (found["data"], found["target/read"], found["w"], found["product"]) == ("input", "input", *["forward"] * 2)
    assert (found["error"], found["loss"]) == ("loss", "loss")


def test_what_synchronous_workers_gather_is_the_update():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")
        loss = tf.reduce_sum(tf.Variable([1.0, 2.0], name="w") * x, name="loss")
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2)
        optimizer.minimize(loss, global_step=tf.train.get_or_create_global_step(), name="train")
    found = viz.phases(graph)
    kinds = {op.name: op.type for op in graph.get_operations()}
    for kind in (
        "ResourceAccumulatorApplyGradient",
        "ResourceAccumulatorTakeGradient",
        "FIFOQueueV2",
        "QueueDequeueV2",
    ):
        assert {found[name] for name in kinds if kinds[name] == kind} == {"update"}, kind
    assert (found["x"], found["w"], found["loss"]) == ("input", "forward", "loss")
