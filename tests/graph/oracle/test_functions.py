"""Graphs with functions that TensorFlow made: dtflab imports and runs them, and TensorFlow those of dtflab."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import function as legacy
from tensorflow.python.ops import control_flow_util

import dtflab
from dtflab.base import errors
from dtflab.graph.apply_op import apply_op
from dtflab.graph.tracing import trace

PAIR = np.array([0.5, 0.25], np.float32)


@pytest.fixture(autouse=True)
def modern(monkeypatch):
    """TensorFlow as it is without `disable_v2_behavior()`: functions in place of Switch, Merge and Enter."""
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", True)


def x_of(*shape, dtype=tf.float32):
    return tf.placeholder(dtype, shape, name="x")


def variable(value, name):
    return tf.get_variable(name, initializer=np.asarray(value, np.float32), use_resource=True)


def cond():
    x = x_of(2)
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x) * 2.0, lambda: tf.stack([7.0, x[0]]))
    return [y, tf.gradients(y, x)[0]]


def chain_of_conds():
    x = x_of(2)
    y = tf.cond(x[0] > x[1], lambda: tf.cond(x[0] > 0.4, lambda: x * x, lambda: x), lambda: -x)
    return [tf.cond(y[0] > 0, lambda: tf.exp(y), lambda: y), tf.gradients(y, x)[0]]


def loop():
    x = x_of(2)
    i, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * y + x), [tf.constant(0), x])
    return [i, y, tf.gradients(y, x)[0]]


def loop_in_a_loop_with_a_cond():
    x = x_of(2)

    def body(i, y):
        y = tf.cond(tf.reduce_sum(y) > 1.0, lambda: y * x * 0.5, lambda: tf.exp(y))
        _, y = tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, tf.tanh(z) * 1.5), [0, y])
        return i + 1, y

    i, y = tf.while_loop(lambda i, y: i < 4, body, [tf.constant(0), x])
    return [i, y, tf.gradients(y, x)[0]]


def a_loop_that_never_turns():
    x = x_of(2)
    return tf.while_loop(lambda i, y: i < 0, lambda i, y: (i + 1, y * 2.0), [tf.constant(0), x])


def function():
    x = x_of(2)

    @tf2.function
    def inner(a):
        return tf.cond(a[0] > 0, lambda: a * 3.0, lambda: a)

    @tf2.function
    def outer(a, b):
        return inner(a) * b + 1.0, tf.reduce_sum(a)

    y, z = outer(x, x * 2)
    return [y, z, tf.gradients(y, x)[0]]


def function_that_changes_a_variable():
    x, v = x_of(2), variable([1.0, 2.0], "v")

    @tf2.function
    def add(a):
        v.assign_add(a)
        return v * 2.0

    y = add(x)
    with tf.control_dependencies([y]):
        return [y, v.read_value()]


def loop_over_a_variable():
    x, v = x_of(2), variable([1.0, 2.0], "v")

    @tf2.function
    def run():
        for i in tf.range(3):
            v.assign_add(x * tf.cast(i, tf.float32))
        return v.read_value()

    return [run()]


def case():
    x = x_of(2)
    branches = [lambda: x, lambda: x * 2.0, lambda: tf.ones([2])]
    return [tf.switch_case(tf.constant(i), branches) for i in (-1, 0, 1, 2, 3)]


def arrays():
    x = x_of(2)
    y = tf.map_fn(lambda r: r * x, tf.reshape(x, [2, 1]))
    z = tf.scan(lambda a, r: a * 0.5 + r, x)
    return [y, z, *tf.gradients([y, z], x)]


def growing_array():
    x = x_of(2)
    read = tf.TensorArray(tf.float32, size=2).unstack(x)
    write = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[1])
    _, write = tf.while_loop(
        lambda i, t: i < 2, lambda i, t: (i + 1, t.write(i, tf.reshape(read.read(i), [1]))), [0, write]
    )
    return [write.stack(), write.concat(), tf.gradients(write.stack(), x)[0]]


def conditions_that_are_no_bools():
    x = x_of(2)
    then, other = (_concrete(f) for f in (lambda a: a * 2.0, lambda a: -a))
    conditions = [0, 2, -0.5, 0.0, "", "yes", [], [0], [[1.0]]]
    return [
        tf.raw_ops.StatelessIf(cond=tf.constant(c), input=[x], Tout=[tf.float32], then_branch=then, else_branch=other)[
            0
        ]
        for c in conditions
    ]


def _concrete(f):
    concrete = tf2.function(f, input_signature=[tf2.TensorSpec([2], tf.float32)]).get_concrete_function()
    concrete.add_to_graph()
    return concrete


def call_by_the_functions_name():
    @legacy.Defun(tf.float32, tf.float32)
    def product(a, b):
        return a * b, a + b

    x = x_of(2)
    first, second = product(x, 2.0 * x)
    return [first, second]


def training():
    x = x_of(2)
    w = variable([[0.1, 0.2], [0.3, 0.4]], "w")
    _, h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, x[None]])
    h = tf.cond(tf.reduce_mean(h) > 0.0, lambda: h * 2.0, lambda: h * w[0, 0])
    loss = tf.reduce_mean(tf.square(h - 1.0))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    with tf.control_dependencies([train]):
        return [tf.identity(loss)]


PROGRAMS = [cond, chain_of_conds, loop, loop_in_a_loop_with_a_cond, a_loop_that_never_turns, function,
            function_that_changes_a_variable, loop_over_a_variable, case, arrays, growing_array,
            conditions_that_are_no_bools, call_by_the_functions_name, training]  # fmt: skip


def built(program):
    """(GraphDef, names of what it fetches, name of what initializes, the values of three steps in TensorFlow)."""
    with tf.Graph().as_default() as graph:
        fetches = [t.name for t in program()]
        init = tf.global_variables_initializer().name
        with tf.Session() as session:
            session.run(init)
            values = [session.run(fetches, {"x:0": PAIR * scale}) for scale in (1, -1, 2)]
    return graph.as_graph_def(), fetches, init, values


def steps(message, fetches, init):
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        dtflab.import_graph_def(message, name="")
        session.run(init)
        return [session.run(fetches, {"x:0": PAIR * scale}) for scale in (1, -1, 2)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_graph_with_functions_gives_tensorflows_values(program):
    message, fetches, init, wanted = built(program)
    assert len(message.library.function) > 0
    for ours, theirs in zip(steps(message, fetches, init), wanted, strict=True):
        for our, their in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(our, their, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", [cond, loop_in_a_loop_with_a_cond, call_by_the_functions_name])
def test_an_imported_graph_goes_back_to_tensorflow(program):
    message, fetches, _, wanted = built(program)
    with dtflab.Graph().as_default() as ours:
        dtflab.import_graph_def(message, name="")
    again = tf.GraphDef.FromString(ours.as_graph_def().SerializeToString())
    assert sorted(f.signature.name for f in again.library.function) == sorted(
        f.signature.name for f in message.library.function
    )
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(again, name="")
        for our, their in zip(session.run(fetches, {"x:0": PAIR}), wanted[0], strict=True):
            np.testing.assert_allclose(our, their, rtol=1e-6)


def test_tensorflow_runs_a_function_that_dtflab_traced():
    with dtflab.Graph().as_default() as graph:
        x, outside = dtflab.placeholder(dtflab.float32, [2], name="x"), dtflab.constant(2.0)

        def body(a, b):
            i = trace(lambda c: c + outside, [(dtflab.float32, dtflab.TensorShape([]))], "inner")
            (inner,) = apply_op("PartitionedCall", "inner", args=[b, *i.captures], f=i.function, Tout=[dtflab.float32])
            return a * inner, dtflab.reduce_sum(a)

        traced = trace(body, [(dtflab.float32, x.shape), (dtflab.float32, dtflab.TensorShape([]))], "body")
        arguments = [x, dtflab.constant(3.0), *traced.captures]
        apply_op("PartitionedCall", "call", args=arguments, f=traced.function, Tout=[dtflab.float32] * 2)
        with dtflab.Session() as session:
            ours = session.run(["call:0", "call:1"], {x: PAIR})
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(tf.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        theirs = session.run(["call:0", "call:1"], {"x:0": PAIR})
    np.testing.assert_array_equal(ours[0], [2.5, 1.25])
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(our, their)


# -- what is fetched, fed, waited for ---------------------------------------------------------------------------------


def call_of(message):
    return next(node.name for node in message.node if "Call" in node.op)


def test_results_of_a_call_are_fetched_and_fed_by_its_name():
    message, fetches, _, _ = built(function)
    call = call_of(message)
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        dtflab.import_graph_def(message, name="")
        np.testing.assert_allclose(session.run(f"{call}:0", {"x:0": [1.0, 2.0]}), [7.0, 25.0])
        assert session.run(fetches[1], {f"{call}:1": 42.0}) == 42.0


def test_whoever_takes_a_result_gets_the_side_effects_too():
    message, _, init, _ = built(function_that_changes_a_variable)
    call = call_of(message)
    read = next(n.name for n in message.node if n.op == "ReadVariableOp" and not any(i[0] == "^" for i in n.input))
    with dtflab.Graph().as_default() as graph, dtflab.Session() as session:
        dtflab.import_graph_def(message, name="")
        session.run(init)
        session.run(graph.get_tensor_by_name(f"{call}:0"), {"x:0": PAIR})
        session.run(graph.get_operation_by_name(call), {"x:0": PAIR})
        np.testing.assert_allclose(session.run(f"{read}:0"), [2.0, 2.5])


# -- what is wrong -------------------------------------------------------------------------------------------


def test_an_error_inside_names_the_calls_around_it():
    with tf.Graph().as_default() as graph:
        x = x_of(2)
        check = tf2.function(lambda a: tf.cond(a[1] > 0, lambda: tf.check_numerics(a, "bad"), lambda: a))
        y = check(x)
    with dtflab.Graph().as_default() as ours, dtflab.Session() as session:
        dtflab.import_graph_def(graph.as_graph_def(), name="")
        with pytest.raises(errors.InvalidArgumentError, match="bad : Tensor had NaN") as caught:
            session.run(y.name, {"x:0": [np.nan, 1.0]})
        assert f"node {y.op.name}/cond/then/_0/CheckNumerics" in caught.value.message
        assert caught.value.op is ours.get_operation_by_name(y.op.name)


def test_a_function_that_lacks_is_named():
    message, fetches, _, _ = built(function)
    lost = next(node.attr["f"].func.name for node in message.node if node.name == call_of(message))
    kept = [f for f in message.library.function if f.signature.name != lost]
    del message.library.function[:]
    message.library.function.extend(kept)
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        dtflab.import_graph_def(message, name="")
        with pytest.raises(errors.NotFoundError, match=f"Function {lost} is not defined"):
            session.run(fetches[0], {"x:0": PAIR})


def test_a_function_that_calls_itself_is_refused():
    message, fetches, _, _ = built(call_by_the_functions_name)
    (product,) = message.library.function
    again = product.node_def.add(name="again", op=product.signature.name, input=["a", "b"])
    again.input[:] = [arg.name for arg in product.signature.input_arg]
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        dtflab.import_graph_def(message, name="")
        with pytest.raises(errors.InvalidArgumentError, match=r"calls itself \(product.* → product"):
            session.run(fetches)


def test_what_an_uncalled_function_uses_is_nobodys_business():
    message, fetches, init, wanted = built(cond)
    message.library.function.add().signature.name = "nobody"
    message.library.function[-1].node_def.add(name="n", op="NoSuchOp")
    np.testing.assert_allclose(steps(message, fetches, init)[0][0], wanted[0][0], rtol=1e-6)


def test_two_functions_of_one_name_are_refused():
    message, *_ = built(call_by_the_functions_name)
    with dtflab.Graph().as_default():
        dtflab.import_graph_def(message)
        message.library.function[0].attr["other"].i = 1
        with pytest.raises(ValueError, match="a different function with the same name"):
            dtflab.import_graph_def(message)


def test_a_gradient_that_would_need_new_functions_says_what_to_do():
    message, fetches, _, _ = built(loop)
    with dtflab.Graph().as_default() as graph:
        dtflab.import_graph_def(message, name="")
        x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name(fetches[1])
        with pytest.raises(NotImplementedError, match=r"no gradient of 'while'.*let the client that made it"):
            dtflab.gradients(y, x)


def test_a_saved_model_of_tensorflow_2(tmp_path):
    with context.eager_mode():
        module = tf2.Module()
        module.w = tf2.Variable([[1.0, 2.0], [3.0, 4.0]])

        @tf2.function(input_signature=[tf2.TensorSpec([None, 2], tf2.float32, name="x")])
        def run(x):
            y = tf2.matmul(x, module.w)
            for _ in tf2.range(3):
                y = tf2.cond(tf2.reduce_sum(y) > 4.0, lambda: y * 0.5, lambda: y - 1.0)  # noqa: B023 - called at once
            return {"y": y}

        tf2.saved_model.save(module, str(tmp_path), signatures=run)
        wanted = run(tf2.constant([[1.0, 1.0]]))["y"].numpy()
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        meta = dtflab.saved_model.load(session, ["serve"], str(tmp_path))
        signature = meta.signature_def["serving_default"]
        found = session.run(signature.outputs["y"].name, {signature.inputs["x"].name: [[1.0, 1.0]]})
    np.testing.assert_allclose(found, wanted)
