"""get_variable and variable scopes, side by side with TensorFlow: names, reuse, defaults, getters, errors, graphs."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.oracle.graph_defs import assert_same_graph
from tests.oracle.programs import Programs

program = Programs()  # What the function returns is the same, and the graph that it leaves
GRAPHS: list[Callable[[Any], Any]] = []


test_same_answer = program.same_answers()


@program.each()
def test_same_graph(run):
    assert_same_graph(run)


def tried(call: Callable[[], Any]) -> Any:
    """The result of a call, or its error with the first line of the text."""
    try:
        return shown(call())
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0].partition(" Originally")[0]


def shown(value: Any) -> Any:
    """A variable by its name, shape and dtype."""
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if hasattr(value, "_get_partitions"):
        return value.name, value.shape.as_list(), value.dtype.name, list(value._get_partitions()), shown(list(value))
    if hasattr(value, "dtype") and hasattr(value, "op"):
        return value.name, value.op.name, value.shape.as_list(), value.dtype.name, hasattr(value, "handle")
    return value


@program
def names_and_reuse(tf):
    seen = [tf.get_variable("v", [2, 3])]
    with tf.variable_scope("a") as a:
        seen += [tf.get_variable("w", [2]), tf.get_variable("i", [2], tf.int32), tf.get_variable("t", [], tf.string)]
        with tf.variable_scope("b"):
            seen += [tf.get_variable("w", []), tf.Variable(1.0), tf.constant(1.0)]
    with tf.variable_scope("a", reuse=True):
        seen += [tf.get_variable("w"), tf.get_variable("w", [2]), tf.constant(2.0)]
        with tf.variable_scope("b"):
            seen += [tf.get_variable("w")]
    with tf.variable_scope(a, reuse=tf.AUTO_REUSE) as again:
        seen += [tf.get_variable("w"), tf.get_variable("new", [4]), tf.get_variable("new"), tf.constant(3.0)]
        reuses = [a.reuse, again.reuse == tf.AUTO_REUSE, again.name, again.original_name_scope]
    with tf.variable_scope(""):
        seen += [tf.constant(4.0), tf.get_variable("root", [1])]
    return shown(seen), reuses, [v.name for v in tf.trainable_variables()]


@program
def refusals(tf):
    tf.get_variable("v", [2])
    calls = [
        lambda: tf.get_variable("v", [2]),
        lambda: tf.get_variable("x"),
        lambda: tf.get_variable("x", [2], initializer=1.0),
        lambda: tf.get_variable("x", initializer=1.0, dtype=tf.int32),
        lambda: tf.get_variable("x", [None, 2]),
        lambda: tf.get_variable("x", [2], dtype=tf.complex64),
        lambda: tf.get_variable("x", [2], custom_getter=3),
        lambda: tf.get_variable("x", [2], partitioner=3),
        lambda: tf.get_variable("x", initializer=tf.zeros_initializer()),
        lambda: tf.get_variable("bad name", [2]),
        lambda: tf.get_variable("x", [2], synchronization="no"),
        lambda: tf.get_variable("x", [2], aggregation="no"),
        lambda: tf.get_variable("x", [2], collections="no"),
        lambda: tf.variable_scope(None),
        lambda: tf.variable_scope("a", reuse=1.5),
        lambda: tf.variable_scope("a", auxiliary_name_scope=1),
        lambda: tf.variable_scope(5).__enter__(),
        lambda: tf.variable_scope(None, "a", reuse=True).__enter__(),
    ]
    with tf.variable_scope("", reuse=True):
        reused = [
            tried(call)
            for call in (
                lambda: tf.get_variable("v", [3]), lambda: tf.get_variable("v", [2], tf.int32),
                lambda: tf.get_variable("other", [2]), lambda: tf.get_variable("v"),
            )
        ]  # fmt: skip
    return [tried(call) for call in calls], reused


@program
def default_names(tf):
    seen = []
    for _ in range(2):
        with tf.variable_scope(None, "layer") as outer:
            seen += [outer.name, tf.get_variable("w", [1]).name, tf.constant(1.0).name]
            for _ in range(2):
                with tf.variable_scope(None, "inner") as inner:
                    seen += [inner.name, inner.original_name_scope, tf.get_variable("w", [1]).name]
    with tf.variable_scope("named", default_name="unused"):
        seen.append(tf.get_variable("w", [1]).name)
    with tf.variable_scope(None, "layer", [tf.constant(1.0)]):
        seen.append(tf.get_variable("w", [1]).name)
    return seen


@program
def scopes_without_name_scopes(tf):
    seen = []
    with tf.name_scope("outer"), tf.variable_scope("s", auxiliary_name_scope=False) as s:
        seen += [s.name, s.original_name_scope, tf.constant(1.0).name, tf.get_variable("w", [1]).name]
        with tf.variable_scope("t", auxiliary_name_scope=False):
            seen += [tf.constant(1.0).name, tf.get_variable("w", [1]).name]
    with tf.variable_scope(s, auxiliary_name_scope=False) as again:
        seen += [again.original_name_scope, tf.constant(1.0).name]
    with tf.variable_scope(None, default_name="d", auxiliary_name_scope=False) as d:
        seen += [d.name, d.original_name_scope, tf.constant(1.0).name, tf.get_variable("w", [1]).name]
    with tf.variable_scope("u"), tf.variable_scope(s, auxiliary_name_scope=False):
        seen += [tf.constant(1.0).name, tf.get_variable("new", [1]).name]
    return seen


@program
def entering_again(tf):
    scope = tf.variable_scope("a")
    seen = []
    with scope:
        seen += [tf.get_variable("v", [1]).name, tf.constant(1.0).name]
    with scope:
        seen += [tf.get_variable("w", [1]).name, tf.constant(1.0).name]
    with tf.variable_scope("b"), scope as inside:
        seen += [inside.name, tf.get_variable("w", [1]).name]
    with scope as object_:
        pass
    with tf.variable_scope("c"), tf.variable_scope(object_) as inside:
        seen += [inside.name, inside.original_name_scope, tf.constant(1.0).name, tf.get_variable("x", [1]).name]
        with tf.variable_scope("d"):
            seen += [tf.get_variable("x", [1]).name, tf.constant(1.0).name]
    with tf.variable_scope("outer"), tf.name_scope("n"):
        seen += [tf.get_variable("x", [1]).name, tf.Variable(1.0).name]
    return seen


@program
def defaults_of_scopes(tf):
    seen = []
    init = tf.constant_initializer(0.3)
    with tf.variable_scope("a", initializer=init, dtype=tf.float64, use_resource=True, caching_device="/cpu:0") as a:
        seen += [tf.get_variable("v", [2]), tf.get_variable("w", [2], tf.float32, use_resource=False)]
        seen += [tf.Variable(1.0, name="plain")]
        with tf.variable_scope("b", initializer=tf.ones_initializer()) as b:
            seen += [tf.get_variable("v", [2])]
            defaults = [b.dtype.name, b.use_resource, b.caching_device, b.initializer is init]
            b.set_dtype(tf.int32)
            b.set_use_resource(False)
            b.set_caching_device(None)
            b.set_initializer(tf.zeros_initializer)
            seen += [tf.get_variable("u", [2])]
        with tf.variable_scope(a) as again:
            defaults += [again.initializer is init, again.dtype.name]
            seen += [tf.get_variable("x", [2])]
    with tf.variable_scope("local"):
        seen += [tf.get_local_variable("l", [1]), tf.get_local_variable("m", initializer=3, collections=["mine"])]
    with tf.variable_scope("reusing") as reusing:
        tf.get_variable("v", [1])
        reusing.reuse_variables()
        seen += [tf.get_variable("v"), tried(lambda: tf.get_variable("w", [1]))]
    scope = tf.get_variable_scope()
    kept = [scope.name, scope.reuse, [v.name for v in scope.local_variables()]]
    kept += [[v.name for v in a.global_variables()], [v.name for v in a.trainable_variables()]]
    return shown(seen), defaults, kept, [v.name for v in tf.get_collection("mine")]


@program
def initial_values(tf):
    tf.get_variable("number", initializer=3.5)
    tf.get_variable("list", initializer=[1, 2])
    tf.get_variable("tensor", initializer=tf.fill([2, 2], 1.5))
    tf.get_variable("function", initializer=lambda: tf.zeros([3]))
    tf.get_variable("shaped", [2, 2], initializer=lambda shape, dtype: tf.ones(shape, dtype))
    tf.get_variable("class", [2, 2], initializer=tf.zeros_initializer)
    tf.get_variable("array", initializer=np.eye(2))
    tf.get_variable("constant", [4], initializer=tf.constant_initializer([1, 2]))
    tf.get_variable("seeded", [4], initializer=tf.random_normal_initializer(seed=1), trainable=False)
    tf.get_variable("bool", [2], tf.bool)
    tf.get_variable("res", [2], use_resource=True)
    tf.get_variable("unknown", initializer=tf.placeholder(tf.float32), validate_shape=False)
    with tf.device("/job:ps"), tf.variable_scope("s"), tf.name_scope("n"):
        tf.get_variable("v", [2])


@program
def regularizers(tf):
    def l2(value):
        return tf.reduce_sum(tf.square(value), name="loss")

    with tf.variable_scope("a", regularizer=l2):
        tf.get_variable("v", [2])
        tf.get_variable("w", [2], regularizer=tf.no_regularizer)
        with tf.variable_scope("b"):
            tf.get_variable("v", [2], regularizer=lambda v: tf.reduce_max(v))
            tf.get_variable("r", [2], use_resource=True)
    with tf.variable_scope("a", reuse=True):
        tf.get_variable("v", [2])
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    found = [(loss.name, loss.op.type, loss.dtype.name, loss.shape.as_list()) for loss in losses]
    total = tf.add_n(losses)
    more = losses[0] * 2 + losses[1] + 1
    with tf.Session() as session:
        session.run([v.assign(tf.ones_like(v)) for v in tf.global_variables()])
        values = [float(value) for value in session.run([*losses, total, more])]
        return found, values, [float(loss.eval(session=session)) for loss in losses[:1]]


@program
def custom_getters(tf):
    calls = []

    def getter(getter, name, *args, **kwargs):
        calls.append((name, sorted(kwargs), kwargs["trainable"], kwargs["reuse"] == tf.AUTO_REUSE))
        return getter(f"{name}_got", *args, **kwargs)

    def twice(getter, name, *args, **kwargs):
        return tf.identity(getter(name, *args, **kwargs) * 2, name="twice")

    def strict(getter, name, shape, dtype, initializer, **kwargs):
        kwargs.pop("constraint")
        return getter(name, shape, dtype, initializer, **kwargs)

    seen = [tf.get_variable("v", [1], custom_getter=getter)]
    with tf.variable_scope("a", custom_getter=getter) as a:
        seen.append(tf.get_variable("v", [1]))
        with tf.variable_scope("b", custom_getter=twice):
            seen.append(tf.get_variable("v", [1], constraint=tf.abs))
        with tf.variable_scope(a, custom_getter=strict, reuse=tf.AUTO_REUSE):
            seen.append(tf.get_variable("v", [1]))
        seen.append(tf.get_variable("w", [1], custom_getter=functools.partial(strict)))
    return shown(seen), calls


@program
def creators(tf):
    calls = []

    def creator(next_creator, **kwargs):
        calls.append(sorted(kwargs.keys() - {"experimental_enable_variable_lifting"}))  # of TensorFlow 2
        kwargs["name"] = f"made_{kwargs['name']}"
        return next_creator(**kwargs)

    def zero(next_creator, **kwargs):
        calls.append(kwargs["name"])
        return next_creator(**{**kwargs, "initial_value": [0.0]})

    with tf.variable_creator_scope(creator):
        seen = [tf.Variable(1.0, name="v"), tf.get_variable("w", [1])]
        with tf.variable_creator_scope(zero):
            seen += [tf.Variable(2.0, name="x"), tf.get_variable("y", [1], use_resource=True)]
        with tf.Graph().as_default():
            seen += [tf.Variable(3.0, name="elsewhere")]
    seen.append(tf.Variable(4.0, name="z"))
    return shown(seen), calls


@program
def old_form(tf):
    with tf.variable_op_scope([tf.constant(1.0)], None, "default") as scope:
        tf.get_variable("v", [1])
    with tf.variable_op_scope([], "name", "default", reuse=False):
        tf.get_variable("v", [1])
    return scope.name


@program
def scopes_of_threads(tf):
    graph, names = tf.get_default_graph(), []

    def work():
        with graph.as_default():
            names.append(tf.get_variable_scope().name)
            with tf.variable_scope("inside"):
                names.append(tf.get_variable("v", [1]).name)

    with tf.variable_scope("outside"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(60)
        names.append(tf.get_variable("v", [1]).name)
    return names


@program
def wrong_nesting(tf):
    def creator(next_creator, **arguments):
        return next_creator(**arguments)

    seen = []
    outer = tf.variable_creator_scope(creator)
    outer.__enter__()
    with tf.variable_creator_scope(creator):
        seen.append(tried(lambda: outer.__exit__(None, None, None)))
    first = tf.variable_scope("b")
    first.__enter__()
    with tf.variable_scope("c"):
        seen.append(tried(lambda: first.__exit__(None, None, None)))
    first.__exit__(None, None, None)
    return seen, tf.get_variable("v", [1]).name, tried(lambda: tf.get_variable("x", initializer={}))[0]


@program
def inside_branches(tf):
    """A variable that get_variable makes in a branch of tf.cond lives outside of it, and is shared by reuse."""
    x = tf.placeholder_with_default(3.0, [])

    def branch(name):
        with tf.variable_scope("layer", reuse=tf.AUTO_REUSE, regularizer=tf.abs):
            w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
            own = tf.get_variable(name, [], initializer=tf.ones_initializer(), use_resource=True)
        return w * x + own

    y = tf.cond(x > 1.0, lambda: branch("yes"), lambda: branch("no"))
    total = y + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [float(session.run(total, {x: value})) for value in (3.0, 0.0)], [v.name for v in tf.global_variables()]
