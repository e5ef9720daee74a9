"""tf.graph_util, side by side with TensorFlow."""

from __future__ import annotations

from typing import Any

import dtflab
from tests.oracle.checkpoints import plain, tried
from tests.oracle.graph_defs import nodes
from tests.oracle.programs import Programs

program = Programs()
test_same_answer = program.same_answers()


def shown(graph_def: Any) -> Any:
    """The nodes of a GraphDef, in order, in a form that can be compared."""
    message = dtflab.GraphDef.FromString(graph_def.SerializeToString())
    return [n.name for n in message.node], nodes(message, gradients=True), str(message.versions)


def model(tf: Any, use_resource: bool) -> Any:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.variable_scope("layer", use_resource=use_resource):
        w = tf.get_variable("w", [2, 3], initializer=tf.ones_initializer())
        b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
        table = tf.get_variable("table", [4, 3], initializer=tf.ones_initializer())
    h = tf.nn.relu(tf.matmul(x, w) + b, name="h")
    g = tf.gather(table, [1, 3], name="g")
    with tf.control_dependencies([h]):
        out = tf.identity(h + tf.reduce_sum(g), name="out")
    tf.gradients(out, [w])
    return out


@program
def freezing(tf):
    found = []
    for use_resource in (False, True):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            model(tf, use_resource)
            session.run(tf.global_variables_initializer())
            for options in ({}, {"variable_names_whitelist": ["layer/w"]}, {"variable_names_blacklist": ["layer/w"]}):
                for wanted in (["out"], ["h", "layer/b"], ["x"]):
                    frozen = tf.graph_util.convert_variables_to_constants(
                        session, graph.as_graph_def(), wanted, **options
                    )
                    found.append(shown(frozen))
            frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(add_shapes=True), ["out"])
            found.append(tried(lambda g=graph: tf.graph_util.convert_variables_to_constants(
                session, g.as_graph_def(), ["nowhere"]), "is not in graph"))  # fmt: skip
        with tf.Graph().as_default(), tf.Session() as session:
            (out,) = tf.graph_util.import_graph_def(frozen, return_elements=["out:0"], name="")
            found.append(plain(session.run(out, {"x:0": [[1.0, 2.0]]})))
    return found


@program
def freezing_behind_conditionals(tf):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        v = tf.get_variable("v", [2], initializer=tf.ones_initializer(), use_resource=True)
        p = tf.placeholder(tf.bool, [], name="p")
        tf.identity(tf.cond(p, lambda: v * 2.0, lambda: tf.gather(v, [0, 0])), name="out")
        session.run(v.initializer)
        frozen = tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["out"])
    found = shown(frozen)[1]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(frozen, name="")
        return found, [plain(session.run("out:0", {"p:0": value})) for value in (True, False)]


@program
def sub_graphs(tf):
    model(tf, False)
    graph_def = tf.get_default_graph().as_graph_def()
    extract = tf.graph_util.extract_sub_graph
    found = [shown(extract(graph_def, wanted)) for wanted in (["h"], ["g", "x"], ["layer/w/Assign"], [], ("out",))]
    words = ("must be an iterable of strings", "must be a graph_pb2.GraphDef", "nowhere is not in graph")
    for given in ((graph_def, "h"), ("graph", ["h"]), (graph_def, ["nowhere"])):
        found.append(tried(lambda given=given: extract(*given), *words))
    return found


@program
def nodes_of_training(tf):
    x = tf.constant([1.0, 2.0], name="x")
    checked = tf.check_numerics(x, "bad", name="check")
    with tf.control_dependencies([checked]):
        y = tf.multiply(x, 2.0, name="y")
    a = tf.identity(tf.stop_gradient(tf.identity(y, name="i1"), name="stop"), name="i2")
    with tf.control_dependencies([checked]):
        b = tf.identity(a, name="waits")
    with tf.control_dependencies([tf.identity(x, name="awaited")]):
        c = tf.add(a, b, name="c")
    with tf.colocate_with(tf.identity(c, name="beside").op):
        d = tf.identity(c, name="d")
    parts = tf.split(d, 2)
    tf.identity(tf.identity(parts[1], name="second"), name="out")
    graph_def = tf.get_default_graph().as_graph_def()
    remove = tf.graph_util.remove_training_nodes
    return [shown(remove(graph_def)), shown(remove(graph_def, ["out", "check", "i1"]))]


@program
def small_questions(tf):
    tensors = [
        tf.constant(1), tf.constant(1.0), tf.constant("a"), tf.cast(tf.constant(1), tf.float32), tf.Variable(1.0).op,
        tf.cast(tf.constant(1.0), tf.int32), tf.dynamic_stitch([[0]], [[1]]), tf.dynamic_stitch([[0]], [[1.0]]),
    ]  # fmt: skip
    ops = [getattr(t, "op", t) for t in tensors]
    ask = tf.graph_util.must_run_on_cpu
    found = [(ask(o), ask(o.node_def), ask(o, pin_variables_on_cpu=True)) for o in ops]
    tf.placeholder(tf.float32, [None, 3], name="p")
    tf.split(tf.ones([4, 2]), 2, axis=1, name="s")
    shape = tf.graph_util.tensor_shape_from_node_def_name
    graph = tf.get_default_graph()
    return found, [shape(graph, name).as_list() for name in ("p", "p:0", "s:1")], tried(lambda: shape(graph, "none"))
