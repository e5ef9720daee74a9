"""tf.while_loop: the graph that it makes, what it computes, its gradients, what it refuses; all next to TensorFlow."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dtflab
from dtflab.protos.control_flow_pb2 import CondContextDef, WhileContextDef
from tests.oracle import answers
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()  # `function(tf, p, x, n)` → what to fetch: a fed bool, a vector, an integer
FEED = {"p:0": True, "x:0": [1.0, 2.0, 3.0], "n:0": 4}


class Pair(NamedTuple):
    first: Any
    second: Any


def made(tf: Any, make: Callable[..., Any]) -> Any:
    p = tf.placeholder(tf.bool, [], name="p")
    x = tf.placeholder(tf.float32, [3], name="x")
    return make(tf, p, x, tf.placeholder(tf.int32, [], name="n"))


def with_names(value: Any) -> Any:
    """The value with named tuples as dictionaries under their name, so that a record keeps it."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {type(value).__name__: {key: with_names(item) for key, item in value._asdict().items()}}
    return type(value)(map(with_names, value)) if isinstance(value, list | tuple) else value


def run(tf: Any, make: Callable[..., Any]) -> Any:
    fetched = made(tf, make)
    found = []
    with tf.Session() as session:
        for p, n in ((True, 4), (False, 3), (True, 0), (False, 1)):
            session.run(tf.global_variables_initializer())
            found.append(with_names(session.run(fetched, {**FEED, "p:0": p, "n:0": n})))
    return found


def assert_alike(ours: Any, theirs: Any) -> None:
    """The same structures of arrays, up to rounding."""
    if isinstance(theirs, np.ndarray | np.generic):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
        return
    assert type(ours).__name__ == type(theirs).__name__
    pairs = [(ours[k], theirs[k]) for k in theirs] if isinstance(theirs, dict) else zip(ours, theirs, strict=True)
    for our, their in pairs:
        assert_alike(our, their)


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
@program.each("make")
def test_same_values(make):
    theirs, ours = both(lambda tf: run(tf, make))
    assert_alike(ours, theirs)


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
@program.each("make")
def test_same_graph(make):
    assert_same_graph(lambda tf: made(tf, make), gradients=True)


@program.each("make")
def test_same_contexts(make):
    """The loops that a meta graph keeps."""

    def messages(tf):
        made(tf, make)
        kept = []
        for key, kind in (("while_context", WhileContextDef), ("cond_context", CondContextDef)):
            kept += [str(kind.FromString(c.to_proto().SerializeToString())) for c in tf.get_collection(key)]
        return kept

    theirs, ours = both(messages)
    assert ours == theirs


# -- what loops are made of ---------------------------------------------------------------------------------------


@program
def counting(tf, p, x, n):
    return tf.while_loop(lambda i: i < n, lambda i: i + 1, [0])


@program
def named(tf, p, x, n):
    return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), (0, x), name="mine")


@program
def constants_inside(tf, p, x, n):
    def body(i, y):
        return i + tf.constant(1), y + tf.constant([1.0, 2.0, 3.0]) + tf.zeros([3])

    return tf.while_loop(lambda i, y: tf.less(i, tf.constant(3)), body, [tf.constant(0), x])


@program
def invariants_only(tf, p, x, n):
    """Ops that depend on loop constants alone wait for the pivot."""
    z = x * 2.0

    def body(i, y):
        return i + 1, tf.square(z) + x

    return tf.while_loop(lambda i, y: i < tf.minimum(n, 5), body, [0, x])


@program
def unused_and_unchanged(tf, p, x, n):
    return tf.while_loop(lambda i, y, z: i < n, lambda i, y, z: [i + 1, y, x], [0, x, x])


@program
def structures(tf, p, x, n):
    def body(i, pair, by_name):
        return i + 1, Pair(pair.second, pair.first), {"a": by_name["b"], "b": [by_name["a"][0] + x]}

    with contextlib.suppress(ValueError):  # the nesting changes
        tf.while_loop(lambda i, *_: i < n, body, (0, Pair(x, x), {"b": x, "a": [x]}), name="bad")

    def good(i, pair, by_name):
        ordered = collections.OrderedDict([("a", [by_name["b"]]), ("b", by_name["a"][0] + x)])
        return [i + 1, Pair(pair.second, pair.first + 1.0), dict(ordered)]

    return tf.while_loop(lambda i, *_: i < n, good, (0, Pair(x, x * 2.0), {"b": x, "a": [x]}))


@program
def one_variable(tf, p, x, n):
    loops = [
        tf.while_loop(lambda y: tf.reduce_sum(y) < 50.0, lambda y: y * 2.0, [x]),
        tf.while_loop(lambda y: tf.reduce_sum(y) < 50.0, lambda y: [y * 2.0], (x,)),
        tf.while_loop(lambda y: tf.reduce_sum(y) < 50.0, lambda y: y * 2.0, [x], return_same_structure=True),
        tf.while_loop(lambda y: tf.reduce_sum(y) < 50.0, lambda y: (y * 2.0,), [x], return_same_structure=True),
    ]
    return loops


@program
def limited(tf, p, x, n):
    return [
        tf.while_loop(lambda i: i < n, lambda i: i + 1, [0], maximum_iterations=2),
        tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + x), (0, x), maximum_iterations=n - 1),
        tf.while_loop(
            lambda i: i < n, lambda i: [i + 1], [0], maximum_iterations=np.int64(2), return_same_structure=True
        ),
    ]


@program
def arguments(tf, p, x, n):
    return tf.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, y + x),
        [0, x],
        parallel_iterations=3,
        back_prop=False,
        swap_memory=True,
    )


@program
def growing(tf, p, x, n):
    return tf.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, tf.concat([y, x], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )


@program
def growing_up_to_a_limit(tf, p, x, n):
    return tf.while_loop(
        lambda i, y: i < n,
        lambda i, y: (i + 1, tf.concat([y, x], 0)),
        (0, x),
        (tf.TensorShape(None), tf.TensorShape(None)),
        maximum_iterations=2,
    )


@program
def sparse_variables(tf, p, x, n):
    sparse = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 3])
    slices = tf.IndexedSlices(x, tf.constant([0, 2, 4]), tf.constant([5]))

    def body(i, s, r):
        return (
            i + 1,
            tf.SparseTensor(s.indices, s.values * 2.0, s.dense_shape),
            tf.IndexedSlices(r.values + x, r.indices, r.dense_shape),
        )

    fixed = tf.while_loop(lambda i, s, r: i < n, body, [0, sparse, slices])
    open_ended = tf.while_loop(
        lambda i, s, r: i < n,
        lambda i, s, r: (i + 1, s, tf.IndexedSlices(tf.concat([r.values, x], 0), tf.concat([r.indices] * 2, 0))),
        (0, sparse, tf.IndexedSlices(x, tf.constant([0, 2, 4]))),
        (tf.TensorShape([]), tf.TensorShape([2]), tf.TensorShape([None])),
        maximum_iterations=1,
    )
    return [
        fixed[0],
        fixed[1].values,
        fixed[2].values,
        fixed[2].dense_shape,
        open_ended[1].indices,
        open_ended[2].indices,
    ]


@program
def nested(tf, p, x, n):
    def outer(i, y):
        inner = tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z + y * tf.cast(j, tf.float32)), (0, y))
        return i + 1, inner[1] + x

    return tf.while_loop(lambda i, y: i < n, outer, (0, x))


@program
def three_deep(tf, p, x, n):
    def level(depth, y):
        if not depth:
            return y * 0.5 + x + tf.constant(1.0)
        return tf.while_loop(lambda i, z: i < 2, lambda i, z: (i + 1, level(depth - 1, z)), (0, y))[1]

    return level(3, x)


@program
def nested_from_constants(tf, p, x, n):
    """The inner loop begins with what is constant in the outer one."""

    def outer(i, y):
        inner = tf.while_loop(lambda j, z: j < n, lambda j, z: (j + 1, z + x), (tf.constant(0), x))
        return i + 1, y + inner[1]

    return tf.while_loop(lambda i, y: i < 2, outer, (0, x))


@program
def cond_inside(tf, p, x, n):
    def body(i, y):
        even = tf.equal(tf.math.mod(i, 2), 0)
        y = tf.cond(even, lambda: y + x, lambda: y * tf.constant(2.0))
        return i + 1, tf.cond(p, lambda: y, lambda: -y)

    return tf.while_loop(lambda i, y: i < n, body, (0, x))


@program
def inside_cond(tf, p, x, n):
    def loop():
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + x), (0, x))[1]

    return tf.cond(p, loop, lambda: x)


@program
def in_cond_in_loop_in_cond(tf, p, x, n):
    def inner(y):
        return tf.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, z + y), (0, x))[1]

    def body(i, y):
        return i + 1, tf.cond(tf.greater(i, 1), lambda: inner(y), lambda: y + tf.constant(1.0))

    def loop():
        return tf.while_loop(lambda i, y: i < n, body, (0, x))[1]

    return [tf.cond(p, loop, lambda: x), tf.cond(p, lambda: tf.constant(1.0), lambda: tf.reduce_sum(loop()))]


@program
def case_inside(tf, p, x, n):
    def body(i, y):
        y = tf.case([(i < 1, lambda: y + x), (i < 2, lambda: y * x)], default=lambda: y - 1.0)
        return i + 1, y

    return tf.while_loop(lambda i, y: i < n, body, (0, x))


@program
def assertions_inside(tf, p, x, n):
    def body(i, y):
        with tf.control_dependencies([tf.Assert(i < 10, [i, y]), tf.assert_less(i, n)]):
            return i + 1, tf.identity(y)

    return tf.while_loop(lambda i, y: i < n, body, (0, x))


@program
def reference_variables(tf, p, x, n):
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=False, name="v")

    def body(i, y):
        with tf.control_dependencies([v.assign_add(x)]):
            return i + 1, y + v.read_value()

    return tf.while_loop(lambda i, y: i < n, body, (0, x), parallel_iterations=1)


@program
def reference_variables_that_a_body_updates(tf, p, x, n):
    """`v` is read outside of the loop; but what is read is the variable's buffer."""
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=False, name="v")

    def body(i, y):
        with tf.control_dependencies([v.assign_add(x)]):
            return i + 1, y + v

    return tf.while_loop(lambda i, y: i < n, body, (0, x), parallel_iterations=1)


@program
def resource_variables(tf, p, x, n):
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=True, name="v")
    fixed = tf.Variable([2.0, 2.0, 2.0], use_resource=True, name="fixed")

    def body(i, y, w):
        with tf.control_dependencies([v.assign_add(x)]):
            return i + 1, y + v.read_value(), fixed

    return tf.while_loop(lambda i, *_: i < n, body, (0, x, fixed), parallel_iterations=1)


@program
def variables_as_they_are(tf, p, x, n):
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=False, name="v")
    w = tf.Variable([2.0, 2.0, 2.0], use_resource=True, name="w")
    return tf.while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, a + v, b + w), (0, v, w))


@program
def waiting_for_others(tf, p, x, n):
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=True, name="v")
    before = v.assign(x)
    with tf.control_dependencies([before]):
        loop = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + x + tf.constant(1.0)), (0, x))

    def body(i, y):
        with tf.control_dependencies([before, y]):
            return i + 1, y + x + tf.constant(2.0)

    return [loop, tf.while_loop(lambda i, y: i < n, body, (0, x))]


@program
def nested_waiting_for_others(tf, p, x, n):
    def body(i, y):
        z = y * 2.0
        with tf.control_dependencies([z]):
            inner = tf.while_loop(lambda j, w: j < 2, lambda j, w: (j + 1, w + x + z), (0, x))[1]
            chosen = tf.cond(p, lambda: inner, lambda: x)
        return i + 1, chosen

    return tf.while_loop(lambda i, y: i < n, body, (0, x))


@program
def scopes_and_devices(tf, p, x, n):
    with tf.name_scope("outer"), tf.device("/cpu:0"):

        def body(i, y):
            with tf.name_scope("body"), tf.device("/device:CPU:0"):
                return i + 1, y + x

        loop = tf.while_loop(lambda i, y: i < n, body, (0, x))
    with tf.colocate_with(loop[1].op):
        return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + 1.0), loop)


@program
def one_after_the_other(tf, p, x, n):
    first = tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y + x), (0, x))
    return tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y + first[1]), first)


@program
def exits_in_a_body(tf, p, x, n):
    """A value that leaves an inner loop is used by another inner loop and by a branch."""

    def body(i, y):
        a = tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z + 1.0), (0, y))[1]
        b = tf.while_loop(lambda j, z: j < 1, lambda j, z: (j + 1, z + a), (0, y))[1]
        return i + 1, tf.cond(p, lambda: a + b, lambda: b)

    return tf.while_loop(lambda i, y: i < n, body, (0, x))


@program
def random_and_print(tf, p, x, n):
    tf.set_random_seed(1)

    def body(i, y):
        return i + 1, y + tf.random_uniform([3], seed=3)

    return tf.while_loop(lambda i, y: i < n, body, (0, x), parallel_iterations=1)


# -- what is refused --------------------------------------------------------------------------------------------


def raised(call: Callable[[], Any]) -> Any:
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error).split(" See info log")[0].splitlines()[0]
    return None


REFUSED: list[Callable[..., Any]] = [
    lambda tf, x: tf.while_loop(1, lambda i: i, [0]),
    lambda tf, x: tf.while_loop(lambda i: i < 1, 1, [0]),
    lambda tf, x: tf.while_loop(lambda i: i < 1, lambda i: i, []),
    lambda tf, x: tf.while_loop(lambda i: i < 1, lambda i: i, [0], parallel_iterations=0),
    lambda tf, x: tf.while_loop(lambda i: i < 1, lambda i: i, [0], parallel_iterations=1.5),
    lambda tf, x: tf.while_loop(lambda i: i < 1, lambda i: i, [0], maximum_iterations=[1]),
    lambda tf, x: tf.while_loop(lambda i: i < 1, lambda i: (i, i), [0]),
    lambda tf, x: tf.while_loop(lambda i, j: i < 1, lambda i, j: i, [0, 0]),
    lambda tf, x: tf.while_loop(lambda i, j: i < 1, lambda i, j: (i, [j]), [0, 0]),
    lambda tf, x: tf.while_loop(lambda i: i, lambda i: i, [0]),
    lambda tf, x: tf.while_loop(lambda y: y < 1.0, lambda y: y, [x]),
    lambda tf, x: tf.while_loop(lambda i, y: i < 1, lambda i, y: (i, tf.concat([y, y], 0)), [0, x]),
    lambda tf, x: tf.while_loop(lambda i, y: i < 1, lambda i, y: (i, tf.reshape(y, tf.constant([-1])[:i])), [0, x]),
    lambda tf, x: tf.while_loop(lambda i: i < 1, lambda i: i + 1, [0], shape_invariants=[tf.TensorShape([1])]),
    lambda tf, x: tf.while_loop(lambda i: i < 1, lambda i: i + 1, [0], shape_invariants=[1]),
    lambda tf, x: tf.while_loop(lambda i: i < 1, lambda i: i + 1, [0], shape_invariants=tf.TensorShape([])),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number):
    theirs, ours = both(lambda tf: raised(lambda: REFUSED[number](tf, tf.placeholder(tf.float32, [3], name="x"))))
    assert theirs is not None
    assert ours == theirs


def test_what_is_inside_is_not_used_outside():
    def tried(tf):
        inside = []

        def body(i):
            inside.append(i + 1)
            return inside[0]

        loop = tf.while_loop(lambda i: i < 3, body, [0])
        other = raised(lambda: tf.while_loop(lambda i: i < 3, lambda i: i + inside[0], [0]))
        with tf.Session() as session:
            fetched = raised(lambda: session.run(inside[0]))[0]
            fed = raised(lambda: session.run(loop, {inside[0]: 1}))
            return [raised(lambda: inside[0] + 1), other, fetched, fed, int(session.run(loop))]

    theirs, ours = both(tried)
    assert ours == theirs


# -- loops that travel ------------------------------------------------------------------------------------------


def exported(tf: Any) -> tuple[bytes, bytes]:
    """A graph with loops and branches in each other, as a meta graph and as a mere GraphDef."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2], name="x")

        def body(i, y):
            def inner():
                return tf.while_loop(lambda j, z: j < 2, lambda j, z: (j + 1, tf.sin(z) * x), (0, y))[1]

            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * x, inner)

        for name, limit in (("y", None), ("z", 2)):
            loop = tf.while_loop(lambda i, _: i < 3, body, (0, x), maximum_iterations=limit)
            tf.identity(loop[1], name=name)
        return tf.train.export_meta_graph().SerializeToString(), graph.as_graph_def().SerializeToString()


def slopes(tf: Any, meta_graph: bytes, scope: str | None) -> list[Any]:
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(tf.MetaGraphDef.FromString(meta_graph), import_scope=scope)
        x, y, z = (graph.get_tensor_by_name(f"{scope}/{name}:0" if scope else f"{name}:0") for name in "xyz")
        found = [tf.gradients(y, x)[0], tf.gradients(z, x)[0]]
        with tf.Session() as session:
            return session.run(found, {x: [0.3, 0.7]})


def refused_type(tf):
    """The error of a body that makes an integer a float: here when it is built, there when it runs."""
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(tf.while_loop(lambda i: i < 3, lambda i: tf.cast(i, tf.float32) + 1, [tf.constant(0)]))
        return caught.value.message


def test_a_loop_variable_keeps_its_type():
    theirs, message = answers.both(refused_type)
    assert theirs.splitlines()[-1].rstrip(".") in message
    assert "'Const:0' enters the loop as int32" in message


@pytest.mark.parametrize("scope", [None, "scope", "a/b"])
def test_a_meta_graph_brings_its_loops(scope, real_tf):
    want = slopes(real_tf, exported(real_tf)[0], None)
    for writer in (real_tf, dtflab):
        for reader in (real_tf, dtflab):
            np.testing.assert_allclose(slopes(reader, exported(writer)[0], scope), want, rtol=1e-5)


def test_contexts_come_back_as_they_were():
    meta_graph = dtflab.MetaGraphDef.FromString(exported(dtflab)[0])
    with dtflab.Graph().as_default():
        dtflab.train.import_meta_graph(meta_graph, import_scope="scope")
        again = dtflab.train.export_meta_graph(export_scope="scope")
    kept = [dict(message.collection_def.items()) for message in (meta_graph, again)]
    assert kept[0]["while_context"] == kept[1]["while_context"]


def test_a_graph_without_contexts_has_no_gradients_of_loops():
    with dtflab.Graph().as_default() as graph:
        dtflab.import_graph_def(dtflab.GraphDef.FromString(exported(dtflab)[1]), name="")
        y, x = graph.get_tensor_by_name("y:0"), graph.get_tensor_by_name("x:0")
        with pytest.raises(ValueError, match=r"'while/Exit_1' leaves a loop .* Import a meta graph"):
            dtflab.gradients(y, x)
        with dtflab.Session() as session:
            assert session.run(y, {x: [0.3, 0.7]}).shape == (2,)


@pytest.mark.unordered
@pytest.mark.parametrize("into_a_loop", [True, False])
def test_a_loop_is_imported_into_a_loop_or_a_branch(into_a_loop):
    def built(tf):
        with tf.Graph().as_default() as graph:
            a = tf.placeholder(tf.float32, [3], name="a")
            loop = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + a), (0, a), name="loop")
            tf.identity(loop[1], name="b")
        return graph.as_graph_def().SerializeToString()

    definition = answers.theirs(built)

    def program(tf, p, x, n):
        def imported(value, name):
            message = tf.GraphDef.FromString(definition)
            (result,) = tf.import_graph_def(message, input_map={"a:0": value}, return_elements=["b:0"], name=name)
            return tf.ensure_shape(result, [3])

        if into_a_loop:
            return tf.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, imported(y, "in")), (0, x))
        return tf.cond(p, lambda: imported(x, "there"), lambda: x)

    theirs, ours = both(lambda tf: run(tf, program))
    assert_alike(ours, theirs)
