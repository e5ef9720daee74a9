"""`Session.run` in every form of feeds and fetches, side by side with TensorFlow."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import attr
import numpy as np
import pytest

import dtflab
from dtflab.protos import config_pb2
from dtflab.runtime import client
from tests.oracle.answers import module_of
from tests.oracle.graph_defs import both
from tests.oracle.programs import Programs

program = Programs()


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a TensorFlow session that never was
@program.each()
def test_same_answer(run):
    theirs, ours = both(run)
    assert ours == theirs


def seen(value: Any) -> Any:
    """A value with its types, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.name, value.tolist()
    if isinstance(value, np.generic):
        return value.dtype.name, value.item()
    if isinstance(value, dict):
        return type(value).__name__, [(str(key), seen(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [seen(item) for item in value]
    if attr.has(type(value)):
        return type(value).__name__, seen(list(attr.astuple(value, recurse=False)))
    return type(value).__name__, value


def tried(call: Callable[[], Any]) -> Any:
    """The result of a call, or the class of its error."""
    try:
        return seen(call())
    except Exception as error:
        return f"raises {type(error).__name__}"


class Pair(NamedTuple):
    first: Any
    second: Any


@attr.s(auto_attribs=True)
class Both:
    one: Any
    other: Any


# -- fetches ----------------------------------------------------------------------------------------------------


@program
def fetch_forms(tf):
    a, b = tf.constant(1.5, name="a"), tf.constant([[1, 2]], name="b")
    op = tf.no_op(name="op")
    v = tf.Variable(2.0, name="v")
    forms = [
        a, b, op, "a:0", "op", b"a:0", "a", v, v.initializer, [a], (a,), [], (), {}, [[]], [[a, op], (b,), []],
        {"x": a, "y": [b, op]}, Pair(a, op), Pair([a], {"k": b}), Both(a, [b, op]), [a, a, a], [a, "a:0", "a"],
        collections.OrderedDict([("z", a), ("y", b)]), collections.OrderedDict(), [op, op], (v, a), {1: a, (2, 3): b},
    ]  # fmt: skip
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [tried(lambda form=form: session.run(form)) for form in forms]


@program
def indexed_slices(tf):
    ref, res = (tf.Variable(np.ones((3, 2), "f"), use_resource=use) for use in (False, True))
    loose = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]))
    with_shape = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([2]), tf.constant([4, 1]))
    gradients = [tf.gradients(tf.gather(v, [1, 1]), v) for v in (ref, res)]
    forms = [*gradients, gradients[0][0], {"a": gradients[1], "b": gradients[1][0].values}, loose, with_shape]
    feeds = [
        {loose: ([[9.0]], [7])},
        {with_shape: (np.array([[9.0]]), np.array([7]), np.array([9, 1]))},
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [
            [tried(lambda form=form: session.run(form)) for form in forms],
            [tried(lambda feed=feed: session.run([loose, with_shape], feed)) for feed in feeds],
        ]


@program
def fetches_that_are_refused(tf):
    a = tf.constant(1.5, name="a")
    with tf.Graph().as_default():
        other = tf.constant(1.0)
    forms = [None, [None], 5, 1.5, "nowhere", "nowhere:0", "a:1", "a:b", "", object(), np.float32(1), other, other.op,
             {"x": None}, [a, None], "^a", Pair(a, None), a.dtype, {a: a}, iter([a]), range(1)]  # fmt: skip
    with tf.Session() as session:
        return [tried(lambda form=form: session.run(form)) for form in forms]


@program
def values_of_every_type(tf):
    names = "bool int8 uint8 int16 uint16 int32 int64 float16 float32 float64 complex64 complex128 bfloat16".split()
    tensors = [tf.constant(1, tf.int32 if n == "bool" else getattr(tf, n)) for n in names if n != "bool"]
    tensors += [tf.constant(True), tf.constant([True, False]), tf.constant("text"), tf.constant([["a", "bc"]])]
    tensors += [tf.zeros([0, 2]), tf.constant([], tf.string), tf.constant(b"\x00\xff")]
    with tf.Session() as session:
        return [tried(lambda t=t: session.run(t)) for t in tensors]


# -- feeds ------------------------------------------------------------------------------------------------------


@program
def feeds_of_every_kind(tf):
    scalar, vector = tf.placeholder(tf.float32, [], name="s"), tf.placeholder(tf.float32, [None], name="v")
    feeds = [
        {scalar: 1, vector: [1, 2]}, {"s:0": 1.5, "v:0": (1, 2)}, {scalar: np.float64(3), vector: np.arange(3)},
        {scalar: np.array(2), vector: np.array([], np.int8)}, {scalar: True, vector: [True]},
        {scalar: "5", vector: ["6"]}, {(scalar, vector): (1, [2])}, {scalar: np.float32(2), vector: [np.float32(3)]},
        {scalar: 10**20, vector: [10**20]},
    ]  # fmt: skip
    with tf.Session() as session:
        return [tried(lambda feed=feed: session.run([scalar * 2, vector * 2], feed)) for feed in feeds]


@program
def feeds_that_are_refused(tf):
    x = tf.placeholder(tf.float32, [2], name="x")
    n = tf.placeholder(tf.int32, [], name="n")
    small = tf.placeholder(tf.int8, [], name="small")
    y, m, little = x * 2.0, n + 1, tf.identity(small)
    with tf.Graph().as_default():
        other = tf.placeholder(tf.float32)
    feeds = [
        {x: [1, 2, 3]}, {x: 1}, {x: [[1, 2]]}, {x: None}, {x: ["a", "b"]}, {x: y}, {x: [[1], [2, 3]]}, {other: 1.0},
        {"x": [1, 2]}, {y.op: [1, 2]}, {"nowhere:0": 1}, {1: 2}, {None: 1}, {x: object()}, {(x,): 1},
        {(x, n): ([1, 2],)}, {x: {}}, {x: tf.constant([1.0, 2.0])},
    ]  # fmt: skip
    with tf.Session() as session:
        found = [tried(lambda feed=feed: session.run(y, feed)) for feed in feeds]
        found += [
            tried(lambda v=v: session.run(m, {n: v}))
            for v in (2**31, 2**40, -(2**31), 1.5, "3", True, np.int64(2**40), np.float64(2.7))
        ]
        found += [tried(lambda v=v: session.run(little, {small: v})) for v in (127, 128, -129, 300.0, np.int64(300))]
        found += [tried(lambda f=f: session.run(y, f)) for f in ([1], "x", 5, [(x, [1, 2])])]
        return found


@program
def strings_are_fed(tf):
    s = tf.placeholder(tf.string, name="s")
    t = tf.identity(s)
    arrays = np.array(["x", "yy"]), np.array([b"x"]), np.array(["a", b"b"], object)
    values = ["text", b"\xff\x00", "ä", ["a", b"b"], [["a"], ["b"]], *arrays, [], 5, [1], None]
    with tf.Session() as session:
        return [tried(lambda v=v: session.run(t, {s: v})) for v in values]


@program
def types_are_fed(tf):
    found = []
    with tf.Session() as session:
        for name in "bool uint8 int32 int64 float16 float64 complex64 bfloat16".split():
            p = tf.placeholder(getattr(tf, name))
            t = tf.identity(p)
            for value in (1, 0, 1.5, True, [1, 2], np.float32(2), np.array([3, 4]), 1j, "a", [True, False]):
                found.append((name, tried(lambda t=t, p=p, v=value: session.run(t, {p: v}))))
    return found


@program
def any_tensor_may_be_fed(tf):
    a = tf.placeholder_with_default(1.0, [])
    b = a + 1.0
    c, d = tf.split(tf.constant([1.0, 2.0]), 2)
    v = tf.Variable(5.0)
    r = tf.Variable(5.0, use_resource=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [
            tried(lambda: session.run(b, {a: 10.0})),
            tried(lambda: session.run(b * 2.0, {b: 10.0})),
            tried(lambda: session.run([c + d, c, d], {d: [7.0]})),
            tried(lambda: session.run([v + 1.0, v], {v: 20.0})),
            tried(lambda: session.run([r + 1.0, r], {r: 20.0})),
            tried(lambda: session.run([a, b, a.op, b.op], {a: 3.0})),
            tried(lambda: session.run([a], {a: [3.0]})),
            tried(lambda: session.run([a, [a, b]], {a: 3.0, b: 4.0})),
            tried(lambda: session.run(b.op, {b: 3.0})),
            tried(lambda: session.run(a, {a: 3})),
        ]


@program
def placeholders_with_and_without_values(tf):
    p = tf.placeholder(tf.float32, name="p")
    d = tf.placeholder_with_default(7.0, [], name="d")
    with tf.Session() as session:
        return [
            tried(lambda: session.run(p + d)),
            tried(lambda: session.run(p)),
            tried(lambda: session.run(d)),
            tried(lambda: session.run(p + d, {p: 1})),
            tried(lambda: session.run(p + d, {p: [1, 2], d: 2})),
            tried(lambda: session.run(p, {p: 1})),
            tried(lambda: session.run([d.op, p.op], {p: 1})),
            tried(lambda: session.run(p.op)),
        ]


# -- sessions ---------------------------------------------------------------------------------------------------


@program
def a_closed_session(tf):
    a = tf.constant(1.0)
    session = tf.Session()
    session.run(a)
    session.close()
    session.close()
    return [tried(lambda: session.run(a)), session.graph is a.graph]


@program
def a_session_of_nothing(tf):
    with tf.Session() as session:
        empty = [tried(lambda: session.run([])), tried(lambda: session.run("a"))]
        a = tf.constant(1.0)
        return [
            *empty,
            tried(lambda: session.run(a)),
            tried(lambda: session.run([])),
            tried(lambda: session.run([], {a: 1})),
        ]


@program
def arguments_that_are_refused(tf):
    tf.no_op()
    return [
        tried(lambda: tf.Session(target=5)),
        tried(lambda: tf.Session("nowhere")),
        tried(lambda: tf.Session("nowhere://localhost:1")),
        tried(lambda: tf.Session(graph=5)),
        tried(lambda: tf.Session(config=5)),
        tried(lambda: tf.Session(graph=tf.Graph().as_graph_def())),
        tried(lambda: tf.Session().run(tf.no_op(), options=5)),
        tried(lambda: tf.Session().run(tf.no_op(), run_metadata=5)),
    ]


@program
def default_sessions_and_graphs(tf):
    found = [tf.get_default_session() is None]
    graph = tf.Graph()
    with graph.as_default():
        a = tf.constant(3.0)
    outer = tf.Session(graph=graph)
    with tf.Session() as session:
        found += [tf.get_default_session() is session, tf.get_default_graph() is session.graph]
        with outer.as_default():
            found += [tf.get_default_session() is outer, tf.get_default_graph() is graph, a.eval(), a.op.run()]
        found += [
            tried(a.eval),
            tried(lambda: tf.constant(1.0).eval(session=outer)),
            tried(lambda: tf.constant(2.0).eval()),
        ]
    found += [tf.get_default_session() is None, tried(lambda: session.run(tf.constant(1.0))), tried(a.eval)]
    with outer:
        found.append(a.eval())
    return [*found, tried(lambda: outer.run(a))]


@program
def an_interactive_session(tf):
    session = tf.InteractiveSession()
    p = tf.placeholder(tf.float32)
    found = [
        tf.get_default_session() is session,
        tried(lambda: (p + 1).eval({p: 1})),
        tried(lambda: p.eval(feed_dict={p: 2})),
    ]
    session.close()
    return [*found, tried(lambda: session.run(p, {p: 1}))]


@program
def a_graph_that_grows(tf):
    found = []
    with tf.Session() as session:
        value = tf.constant(1.0)
        for i in range(3):
            value = value + float(i)
            v = tf.Variable(value)
            session.run(v.initializer)
            found.append(tried(lambda v=v, value=value: session.run([v, value])))
    return found


@program
def changes_to_what_has_not_run(tf):
    a = tf.placeholder_with_default(1.0, [])
    b = a + 1.0
    with tf.Session() as session:
        session.run(b)
        c = b * 2.0
        c.op._set_device("/cpu:0")
        return tried(lambda: session.run(c))


@program
def variables_without_a_value(tf):
    v, r = tf.Variable(1.0, name="v", use_resource=False), tf.Variable(1.0, name="r", use_resource=True)
    with tf.Session() as session:
        found = [
            tried(lambda x=x: session.run(x)) for x in (v, r, v + 1.0, r + 1.0, v.assign_add(1.0), r.assign_add(1.0))
        ]
        session.run(tf.global_variables_initializer())
        return found + [tried(lambda x=x: session.run(x)) for x in (v, r)]


@program
def variables_belong_to_a_local_session(tf):
    v = tf.Variable(1.0)
    first, second = tf.Session(), tf.Session()
    first.run(v.initializer)
    first.run(v.assign_add(1.0))
    second.run(v.initializer)
    return [tried(lambda: first.run(v)), tried(lambda: second.run(v))]


@program
def graph_properties(tf):
    a = tf.constant(1.0, name="a")
    session = tf.Session()
    devices = session.list_devices()
    return [
        session.graph is a.graph, [n.name for n in session.graph_def.node], session.sess_str,
        [(d.name, d.device_type) for d in devices],
    ]  # fmt: skip


@program
def names_given_as_bytes(tf):
    with tf.name_scope(b"a") as scope:
        found = [scope, tf.constant(1, name="b").name]
    return [*found, tf.constant(1, name=b"b").name, tf.placeholder(tf.int32, name=b"c").name]


@program
def a_session_is_entered_once(tf):
    a = tf.constant(1.0)

    def twice():
        with tf.Session() as session, session:
            return a.eval()

    with tf.Session() as session, session.as_default():
        return [a.eval(), tried(twice)]


@program
def a_graph_def_with_shapes(tf):
    tf.placeholder(tf.int32, [None, 2], name="p")
    wanted = tf.GraphOptions(infer_shapes=True)
    graph_defs = [tf.Session(config=c).graph_def for c in (None, tf.ConfigProto(graph_options=wanted))]
    return [str(g.node[0].attr["_output_shapes"]) for g in graph_defs]


@program
def what_is_run_by_a_message(tf):
    p = tf.placeholder(tf.float32)
    v = tf.Variable(0.0)
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    metadata = tf.RunMetadata()
    messages = module_of(tf, "core.protobuf.config_pb2", config_pb2)
    asked = messages.CallableOptions(
        feed=[p.name], fetch=[(p + 1.0).name], target=[v.initializer.name], run_options=options
    )
    with tf.Session() as session:
        run = session._make_callable_from_options(asked)
        return [
            seen(run(np.float32(2), run_metadata=metadata)),
            len(metadata.step_stats.dev_stats),
            seen(session.run(v)),
        ]


@program
def fewer_values_than_a_sparse_tensor_has(tf):
    sparse = tf.sparse_placeholder(tf.float32, shape=[7, 9])
    indices, values = np.array([[3, 2], [4, 5]]), np.array([1.0, 2.0])
    with tf.Session() as session:
        found = session.run(sparse, {sparse: (indices, values)})
        return [found.indices.tolist(), found.values.tolist(), found.dense_shape.tolist(),
                tried(lambda: session.run(sparse, {sparse: (indices,)}))]  # fmt: skip


@program
def types_of_a_programs_own(tf):
    class Squared:
        def __init__(self, tensor):
            self.square = tf.square(tensor)

    register = _registration(tf)
    functions = (
        lambda squared: ([squared.square], lambda values: f"squared {values[0]}"),
        lambda squared, value: [(squared.square, value)],
        lambda squared: [squared.square],
    )
    register(Squared, *functions)
    a = Squared(3.0)
    more = a.square + 1.0
    with tf.Session() as session:
        handle = session.partial_run_setup([more], [a])
        return [
            session.run(a),
            session.run([a, more], {a: 5.0}),
            session.partial_run(handle, more, {a: 6.0}),
            tried(lambda: register(Squared, *functions)),
        ]


def _registration(tf: Any) -> Any:
    return module_of(tf, "python.client.session", client).register_session_run_conversion_functions


def test_a_second_interactive_session_warns():
    with dtflab.Graph().as_default():
        first = dtflab.InteractiveSession()
        with pytest.warns(UserWarning, match="An interactive session is already active"):
            second = dtflab.InteractiveSession()
        second.close()
        first.close()
        dtflab.InteractiveSession().close()
