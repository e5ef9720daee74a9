"""import_graph_def: TensorFlow's results, TensorFlow's refusals, and graphs that TensorFlow built."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf
from google.protobuf import text_format

import dtflab
from dtflab.base import errors
from dtflab.graph import graph_def as graph_defs
from tests.graph.oracle.test_graph import facts, tried
from tests.oracle.graph_defs import both, nodes

real_tf.disable_v2_behavior()
FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
SOURCE = 'node { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }'


def sample(tf):
    """A GraphDef with data, control and colocation edges, devices and shapes."""
    with tf.Graph().as_default() as graph:
        a = tf.constant([1.0, 2.0], name="a")
        b = tf.identity(a, name="b")
        with tf.device("/cpu:0"):
            c = tf.add(a, b, name="c")
        with tf.control_dependencies([b]):
            tf.no_op(name="d")
        with tf.colocate_with(c):
            tf.identity(c, name="e")
    return graph.as_graph_def(add_shapes=True)


def picture():
    """A function that tells all about the operations of the default graph, whichever library's."""

    def tell(tf):
        ops = tf.get_default_graph().get_operations()
        return [(facts(op), op.colocation_groups(), sorted(op.node_def.attr)) for op in ops]

    return tell


IMPORTS = {
    "plain": lambda tf: tf.import_graph_def(sample(tf)),
    "twice": lambda tf: [tf.import_graph_def(sample(tf)) for _ in range(2)],
    "twice without a prefix": lambda tf: [tf.import_graph_def(sample(tf), name="") for _ in range(2)],
    "in a scope again": lambda tf: [tf.import_graph_def(sample(tf), name="s/") for _ in range(2)],
    "scopes": lambda tf: inside(tf, [tf.name_scope("o"), tf.device("/job:ps"), tf.container("box")]),
    "device function": lambda tf: inside(tf, [tf.device(lambda op: f"{op.device}/task:1")]),
    "no device": lambda tf: inside(tf, [tf.device("/job:ps"), tf.device(None)]),
    "control dependencies": lambda tf: inside(tf, [tf.control_dependencies([tf.no_op(name="before")])]),
    "colocation": lambda tf: inside(tf, [tf.colocate_with(tf.no_op(name="there"))]),
    "tensor mapped": lambda tf: tf.import_graph_def(sample(tf), {"a:0": tf.ones([2])}),
    "tensor mapped, name alone": lambda tf: tf.import_graph_def(sample(tf), {b"b": tf.ones([2])}),
    "value mapped": lambda tf: tf.import_graph_def(sample(tf), {"a:0": [3.0, 4.0]}, name="q"),
    "control mapped": lambda tf: tf.import_graph_def(sample(tf), {"^b": tf.constant(1, name="mine")}),
}


def inside(tf, blocks):
    import contextlib

    with contextlib.ExitStack() as stack:
        for block in blocks:
            stack.enter_context(block)
        tf.import_graph_def(sample(tf))


@pytest.mark.parametrize("run", IMPORTS.values(), ids=IMPORTS)
def test_same_operations(run):
    theirs, ours = both(lambda tf: (run(tf), picture()(tf))[1])
    assert ours == theirs


@pytest.mark.parametrize("elements", [["c:0", "d", "e"], [b"a", "a:0", "a:0"], ("e:0",), [], None, "ab"], ids=str)
def test_same_return_elements(elements):
    def run(tf):
        found = tf.import_graph_def(sample(tf), {"a:0": tf.ones([2], name="mapped")}, elements)
        return found if found is None else [f.name for f in found]

    theirs, ours = both(run)
    assert ours == theirs


REFUSED = {
    "duplicate": 'node { name: "a" op: "NoOp" } node { name: "a" op: "NoOp" }',
    "unknown op": 'node { name: "a" op: "Foo" }',
    "unknown input": f'node {{ name: "a" op: "Identity" input: "zz" {FLOAT} }}',
    "unknown output": f'node {{ name: "n" op: "NoOp" }} node {{ name: "a" op: "Identity" input: "n" {FLOAT} }}',
    "unknown control input": 'node { name: "a" op: "NoOp" input: "^zz" }',
    "too few inputs": f'node {{ name: "a" op: "Identity" {FLOAT} }}',
    "too many inputs": f'{SOURCE} node {{ name: "a" op: "Identity" input: "p" input: "p" {FLOAT} }}',
    "missing attribute": 'node { name: "a" op: "Placeholder" }',
    "wrong input type": f'{SOURCE} node {{ name: "a" op: "LogicalNot" input: "p" }}',
    "cycle": "".join(f'node {{ name: "{a}" op: "Identity" input: "{b}" {FLOAT} }}' for a, b in ("ab", "ba")),
    "its own input": f'node {{ name: "a" op: "Identity" input: "a" {FLOAT} }}',
    "bad name": 'node { name: "_a" op: "NoOp" }',
    "control before data": f'{SOURCE} node {{ name: "a" op: "Identity" input: "^p" input: "p" {FLOAT} }}',
    "of a distant future": "versions { producer: 99999 min_consumer: 99999 }",
    "unknown colocation": 'node { name: "n" op: "NoOp" attr { key: "_class" value { list { s: "loc:@z" } } } }',
    "attribute of another kind": 'node { name: "p" op: "Placeholder" attr { key: "dtype" value { i: 3 } } }',
    "type that is not allowed": 'node { name: "p" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }'
    ' node { name: "a" op: "Neg" input: "p" attr { key: "T" value { type: DT_STRING } } }',
    "number below the minimum": f'node {{ name: "a" op: "AddN" attr {{ key: "N" value {{ i: 0 }} }} {FLOAT} }}',
    "shapes that disagree": f'{SOURCE} node {{ name: "a" op: "Identity" input: "p" {FLOAT} '
    'attr { key: "_output_shapes" value { list { shape { dim { size: 3 } } } } } }'
    f' node {{ name: "b" op: "L2Loss" input: "a" {FLOAT}'
    ' attr { key: "_output_shapes" value { list { shape { dim { size: 3 } } } } } }',
}
ACCEPTED = {
    "attribute nobody knows": 'node { name: "a" op: "NoOp" attr { key: "foo" value { i: 3 } } }',
    "note": 'node { name: "a" op: "NoOp" attr { key: "_foo" value { list { f: 1.5 f: 2 } } } }',
    "empty note": 'node { name: "a" op: "NoOp" attr { key: "_foo" value { list { } } } }',
    "control input twice": 'node { name: "n" op: "NoOp" } node { name: "a" op: "NoOp" input: "^n" input: "^n" }',
    "later producer": 'node { name: "a" op: "NoOp" } versions { producer: 99999 }',
    "consumer first": f'node {{ name: "a" op: "Identity" input: "p" {FLOAT} }} {SOURCE}',
    "other group": 'node { name: "n" op: "NoOp" attr { key: "_class" value { list { s: "foo" s: "loc:@n" } } } }',
}


def parsed(tf, text):
    return text_format.Parse(text, tf.GraphDef())


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_same_refusal(text):
    theirs, ours = both(lambda tf: outcome(lambda: tf.import_graph_def(parsed(tf, text))))
    assert ours == theirs != "accepted"


def outcome(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "accepted"


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_same_graph_again(text):
    def run(tf):
        tf.import_graph_def(parsed(tf, text))
        return nodes(tf.get_default_graph().as_graph_def())

    theirs, ours = both(run)
    assert ours == theirs


def test_same_refusal_of_arguments():
    def run(tf):
        message = sample(tf)
        calls = [
            lambda: tf.import_graph_def("abc"),
            lambda: tf.import_graph_def(message.node[0]),
            lambda: tf.import_graph_def(message, [1]),
            lambda: tf.import_graph_def(message, {1: 2}),
            lambda: tf.import_graph_def(message, {"a:x": tf.ones([2])}),
            lambda: tf.import_graph_def(message, {"zz:0": tf.ones([2])}),
            lambda: tf.import_graph_def(message, {"a:1": tf.ones([2])}),
            lambda: tf.import_graph_def(message, {"^zz": tf.constant(1)}),
            lambda: tf.import_graph_def(message, {"a:0": tf.ones([2], tf.int32)}),
            lambda: tf.import_graph_def(message, {"a:0": tf.ones([3])}),
            lambda: tf.import_graph_def(message, {"a:0": [1.0, 2.0]}, name=""),
            *(lambda n=n: tf.import_graph_def(message, None, [n]) for n in ("zz", "zz:0", "a:1", "d:0", "a:x", 1)),
        ]
        return [tried(call) for call in calls]

    theirs, ours = both(run)
    assert ours == theirs


def test_refused_graph_leaves_nothing():
    with dtflab.Graph().as_default() as graph:
        for text in REFUSED.values():
            if "_output_shapes" not in text:
                assert outcome(lambda text=text: dtflab.import_graph_def(parsed(dtflab, text))) != "accepted"
        assert [op.type for op in graph.get_operations() if op.type != "Placeholder"] == []


def test_messages_say_what_is_wrong():
    with dtflab.Graph().as_default():
        for text, match in [
            (REFUSED["unknown op"], "Op type not registered 'Foo'"),
            (REFUSED["cycle"], "2 nodes in a cycle, among them a, b"),
            (REFUSED["unknown input"], "Node 'a': Unknown input node 'zz'"),
            (
                REFUSED["too few inputs"],
                "expected inputs 'float' do not match 0 inputs.*signature=input:T -> output:T",
            ),
            (REFUSED["attribute of another kind"], "value with type 'int' when 'type' expected.*node p"),
        ]:
            with pytest.raises((ValueError, errors.NotFoundError), match=match):
                dtflab.import_graph_def(parsed(dtflab, text))


def test_producer_op_list_removes_what_is_new_and_default():
    text = 'node { name: "n" op: "NoOp" attr { key: "new" value { i: 3 } } attr { key: "other" value { i: 4 } } }'
    op_list = 'op { name: "NoOp" attr { name: "%s" type: "int" default_value { i: 3 } } }'
    from tensorflow.core.framework import op_def_pb2

    known = text_format.Parse(op_list % "new" + " " + op_list % "other", op_def_pb2.OpList())

    def run(tf):
        tf.import_graph_def(parsed(tf, text), producer_op_list=known)
        return nodes(tf.get_default_graph().as_graph_def())

    theirs, ours = both(run)
    assert ours == theirs


# -- what TensorFlow built ---------------------------------------------------------------------------------------


def loop():
    i = real_tf.placeholder(real_tf.int32, [], name="start")
    total = real_tf.while_loop(
        lambda i, s: i < 10, lambda i, s: (i + 1, s + real_tf.cast(i, real_tf.float32)), [i, 0.0], name="loop"
    )
    real_tf.gradients(total[1] * 2.0, [real_tf.constant(1.0)])


def conditional():
    x = real_tf.placeholder(real_tf.float32, [2], name="x")
    y = real_tf.cond(real_tf.reduce_sum(x) > 0, lambda: x * 2, lambda: real_tf.exp(x))
    real_tf.gradients(y, x)


def training():
    x = real_tf.placeholder(real_tf.float32, [None, 4], name="x")
    w = real_tf.Variable(real_tf.ones([4, 2]), name="w", use_resource=True)
    loss = real_tf.reduce_mean(real_tf.square(real_tf.matmul(x, w)))
    real_tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    real_tf.global_variables_initializer()


@pytest.mark.parametrize("build", [loop, conditional, training])
def test_graph_that_tensorflow_built(build):
    """The graph survives the way in and out, and TensorFlow takes it back; shapes are found again or were noted."""
    with real_tf.Graph().as_default() as theirs:
        build()
    for message in (theirs.as_graph_def(), theirs.as_graph_def(add_shapes=True)):
        with dtflab.Graph().as_default() as ours:
            dtflab.import_graph_def(message, name="")
        assert nodes(ours.as_graph_def(), True) == nodes(theirs.as_graph_def(), True)
    for op in theirs.get_operations():
        for tensor in op.outputs:
            mine = ours.get_tensor_by_name(tensor.name)
            assert str(mine.shape) == str(dtflab.TensorShape(tensor.shape.as_proto())), tensor.name
    with real_tf.Graph().as_default():
        real_tf.import_graph_def(real_tf.GraphDef.FromString(ours.as_graph_def().SerializeToString()))


def test_loop_is_closed():
    with real_tf.Graph().as_default() as theirs:
        loop()
    with dtflab.Graph().as_default() as ours:
        dtflab.import_graph_def(theirs.as_graph_def())
    merge = ours.get_operation_by_name("import/loop/Merge")
    assert [t.op.type for t in merge.inputs] == ["Enter", "NextIteration"]
    assert merge in merge.inputs[1].consumers()


def test_values_of_an_imported_graph():
    with real_tf.Graph().as_default() as theirs:
        training()
    feeds = {"x:0": np.arange(8, dtype=np.float32).reshape(2, 4)}
    results = []
    for tf in (real_tf, dtflab):
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(theirs.as_graph_def(), name="")
            with tf.Session(graph=graph) as session:
                session.run("init")
                for _ in range(3):
                    session.run("GradientDescent", feeds)
                results.append(session.run("w/Read/ReadVariableOp:0"))
    np.testing.assert_allclose(results[1], results[0], 1e-6)


def test_functions_are_kept():
    @real_tf.function
    def double(x):
        return x * 2

    with real_tf.Graph().as_default() as theirs:
        double(real_tf.constant(1.0))
    message = theirs.as_graph_def()
    assert message.library.function
    with dtflab.Graph().as_default() as ours:
        dtflab.import_graph_def(message)
        dtflab.import_graph_def(message)
    assert [f.signature.name for f in ours.as_graph_def().library.function] == [
        f.signature.name for f in message.library.function
    ]


def test_nodes_travel_between_master_and_worker():
    with real_tf.Graph().as_default() as theirs:
        loop()
    sent = dtflab.GraphDef.FromString(theirs.as_graph_def().SerializeToString())
    again = graph_defs.nodes_to_proto(graph_defs.nodes_from_proto(sent))
    assert nodes(again, True) == nodes(theirs.as_graph_def(), True)


def imported_names(tf, *names, prefix=""):
    def message():
        with tf.Graph().as_default() as graph:
            for name in names:
                tf.no_op(name)
        return graph.as_graph_def()

    return [op.name for op in tf.import_graph_def(message(), return_elements=list(names), name=prefix)]


@pytest.mark.parametrize("taken", ["", "a", "A", "a/b/c", "a_1"])
def test_names_are_taken_by_operations_and_their_scopes(taken):
    def tell(tf):
        with tf.Graph().as_default(), tf.name_scope("scope"):
            pass
        with tf.Graph().as_default():
            with tf.name_scope("unused"):
                pass
            if taken:
                tf.no_op(taken)
            found = [imported_names(tf, "a", "a_1"), imported_names(tf, "unused", "a/b"), imported_names(tf, "A")]
            return [*found, tf.no_op("a").name, tf.no_op("unused").name]

    ours, theirs = both(tell)
    assert ours == theirs
