"""tf.cond, tf.case and tf.switch_case: their graphs, values and gradients are TensorFlow's."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()  # `function(tf, p, q, x)` → what to fetch: two fed bools, a fed vector


class Pair(NamedTuple):
    first: Any
    second: Any


def run_through(tf: Any, make: Callable[..., Any]) -> Any:
    """The program's results for all values of its predicates; the variables start afresh each time."""
    p, q = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.bool, [], name="q")
    x = tf.placeholder(tf.float32, [3], name="x")
    fetched = make(tf, p, q, x)
    found = []
    with tf.Session() as session:
        for p_value in (True, False):
            for q_value in (True, False):
                session.run(tf.global_variables_initializer())
                found.append(session.run(fetched, {p: p_value, q: q_value, x: [1.0, 2.0, 3.0]}))
    return found


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [plain(v) for v in value]
    return value


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
@program.each("make")
def test_same_values(make):
    theirs, ours = both(lambda tf: plain(run_through(tf, make)))
    assert ours == theirs


def in_a_graph(make: Callable[..., Any]) -> Callable[[Any], Any]:
    def build(tf):
        p, q = tf.placeholder(tf.bool, [], name="p"), tf.placeholder(tf.bool, [], name="q")
        return make(tf, p, q, tf.placeholder(tf.float32, [3], name="x"))

    return build


OTHER_GRAPHS = {
    **dict.fromkeys(
        ("a_switch_of_many", "a_switch_with_a_default", "a_switch_of_one"),
        "TensorFlow's switch_case is an op of functions, which dtflab does not have",
    ),
    "slices_with_indices_of_two_types": "TensorFlow casts the indices twice and uses the second",
}


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
@program.each("make")
def test_same_graph(make):
    same = contextlib.nullcontext()
    if make.__name__ in OTHER_GRAPHS:  # if not so any more, the exception goes
        same = pytest.raises(AssertionError, match="missing")
    with same:
        assert_same_graph(in_a_graph(make), gradients=True)


# ---- what branches are made of ----


@program
def a_choice(tf, p, q, x):
    return tf.cond(p, lambda: x + 1.0, lambda: x * 2.0)


@program
def named(tf, p, q, x):
    return [tf.cond(p, lambda: x + 1.0, lambda: tf.square(x), name="mine"), tf.cond(q, fn1=lambda: x, fn2=lambda: -x)]


@program
def tensors_as_they_are(tf, p, q, x):
    return [tf.cond(p, lambda: x, lambda: x + x), tf.cond(q, lambda: x, lambda: x), tf.cond(p, lambda: p, lambda: q)]


@program
def constants_only(tf, p, q, x):
    return [tf.cond(p, lambda: tf.constant(1), lambda: tf.constant(2)), tf.cond(q, lambda: 1.5, lambda: 2.5)]


@program
def numpy_and_lists(tf, p, q, x):
    return tf.cond(p, lambda: (np.arange(3), 7), lambda: (np.zeros(3, np.int64), 8))


@program
def one_tensor_used_often(tf, p, q, x):
    def branch():
        y = x + 1.0
        return y * x + tf.reduce_sum(x)

    return tf.cond(p, branch, lambda: x + 5.0)


@program
def constant_predicates(tf, p, q, x):
    return [
        tf.cond(tf.constant(True), lambda: x, lambda: x + 1.0),
        tf.cond(np.bool_(False), lambda: x, lambda: x + 1.0),
        tf.cond(tf.less(1, 2), lambda: x, lambda: x + 1.0),
        tf.cond([True][0] & np.bool_(True), lambda: x, lambda: x + 1.0),
    ]


@program
def structures(tf, p, q, x):
    def true():
        return {"b": x, "a": [x + 1.0, (x * 2.0,)], "c": Pair(p, 1)}

    def false():
        return {"c": Pair(q, 2), "b": -x, "a": [x, (x,)]}

    return [
        tf.cond(p, true, false),
        tf.cond(p, lambda: [x], lambda: [x + 1.0]),
        tf.cond(p, lambda: [x], lambda: x + 1.0),
        tf.cond(p, lambda: [x], lambda: (x + 1.0,)),
        tf.cond(p, lambda: [x], lambda: [x + 1.0], strict=True),
        tf.cond(p, lambda: (x, [x]), lambda: (x, [x + 1.0]), strict=True),
        tf.cond(p, lambda: collections.OrderedDict(z=x, y=x), lambda: collections.OrderedDict(y=x, z=-x)),
    ]


@program
def operations(tf, p, q, x):
    v = tf.Variable([0.0, 0.0, 0.0], use_resource=False, name="v")
    r = tf.Variable([0.0, 0.0, 0.0], use_resource=True, name="r")
    done = tf.cond(p, lambda: tf.group(v.assign_add(x), r.assign_add(x)), tf.no_op)
    both = tf.cond(q, lambda: [v.assign_sub(x).op, x], lambda: [tf.no_op(), x + 1.0])
    with tf.control_dependencies([done, both[0]]):
        return [v.read_value(), r.read_value(), both]


@program
def reference_variables(tf, p, q, x):
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=False, name="v")
    added = tf.cond(p, lambda: v.assign_add(x), lambda: v.assign(x))
    with tf.control_dependencies([added]):
        read = tf.cond(q, lambda: v, lambda: v.read_value() * 2.0)
    return [added, read]


@program
def resource_variables(tf, p, q, x):
    v = tf.Variable([1.0, 1.0, 1.0], use_resource=True, name="v")
    added = tf.cond(p, lambda: v.assign_add(x), lambda: v.assign(x).value())
    with tf.control_dependencies([added]):
        return [tf.cond(q, lambda: v, lambda: v * 2.0), tf.cond(q, lambda: [v, x], lambda: [v + 1.0, v])]


@program
def variables_made_inside(tf, p, q, x):
    def make():
        return tf.Variable(lambda: tf.constant([5.0, 6.0, 7.0]), name="inside", use_resource=True).read_value() + x

    return tf.cond(p, make, lambda: x)


@program
def scopes_around(tf, p, q, x):
    y = x * 3.0
    with tf.name_scope("outer"), tf.device("/cpu:0"), tf.control_dependencies([y]):
        z = tf.cond(p, lambda: [tf.constant([1.0, 2.0, 3.0]), x + 1.0], lambda: [x, y])
    with tf.colocate_with(y.op):
        return [z, tf.cond(q, lambda: x + 1.0, lambda: y)]


@program
def scopes_inside(tf, p, q, x):
    def branch():
        with tf.name_scope("inner"), tf.device("/cpu:0"):
            y = x + 1.0
            with tf.control_dependencies([y]):
                z = tf.constant([1.0, 1.0, 1.0])
                with tf.control_dependencies([q]):
                    return tf.identity(z) + tf.constant(2.0) + x

    def other():
        with tf.control_dependencies([tf.constant(1.0)]):
            a = tf.constant([5.0, 5.0, 5.0])
        with tf.control_dependencies(None):
            b = tf.constant(6.0)
        with tf.colocate_with(x.op):
            return a + b

    return tf.cond(p, branch, other)


@program
def nested(tf, p, q, x):
    def inner(factor):
        return tf.cond(q, lambda: x * factor, lambda: x + 1.0)

    return [
        tf.cond(p, lambda: inner(2.0), lambda: inner(3.0)),
        tf.cond(p, lambda: tf.cond(q, lambda: x, lambda: x + 1.0), lambda: x - 1.0),
        tf.cond(p, lambda: tf.cond(p, lambda: tf.cond(q, lambda: x, lambda: -x), lambda: x), lambda: x * 5.0),
    ]


@program
def nested_with_values_of_the_branch(tf, p, q, x):
    def branch():
        y = x * 2.0
        inner = tf.cond(q, lambda: y + x, lambda: (y, y)[0])
        return inner + y

    def other():
        r = tf.logical_and(q, True)
        return tf.cond(r, lambda: tf.constant([1.0, 2.0, 3.0]), lambda: x)

    return tf.cond(p, branch, other)


@program
def slices_and_sparse_tensors(tf, p, q, x):
    values, indices = tf.reshape(x, [3, 1]), tf.constant([0, 2, 1])
    slices = tf.IndexedSlices(values, indices, tf.constant([5, 1]))
    sparse = tf.SparseTensor([[0], [1], [3]], x, [5])
    scaled = tf.cond(p, lambda: slices, lambda: tf.IndexedSlices(values * 2.0, indices, tf.constant([5, 1])))
    chosen = tf.cond(q, lambda: sparse, lambda: tf.SparseTensor([[2]], [9.0], [5]))
    return [scaled.values, scaled.indices, scaled.dense_shape, chosen, tf.convert_to_tensor(scaled)]


@program
def assertions(tf, p, q, x):
    def checked():
        with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0.0), [x])]):
            return tf.identity(x)

    return tf.cond(p, checked, lambda: x)


@program
def predicates_that_are_variables(tf, p, q, x):
    r = tf.Variable(True, use_resource=True, name="r")
    v = tf.Variable(True, use_resource=False, name="v")

    def off():
        with tf.control_dependencies([r.assign(False)]):
            return tf.identity(x)

    return [tf.cond(r, off, lambda: x * 2.0), tf.cond(pred=v, true_fn=lambda: v.assign(p), false_fn=lambda: True)]


@program
def variables_of_plain_values_made_inside(tf, p, q, x):
    def branch(value):
        return [tf.constant(1), 2, tf.Variable(value)]

    return tf.cond(p, lambda: branch(3.0), lambda: branch(5.0))


@program
def dependencies_inside_that_are_not_needed(tf, p, q, x):
    unfed = tf.placeholder(tf.float32, shape=())

    def branch():
        with tf.control_dependencies([unfed]):
            x + 1.0
        return x + 2.0

    return tf.cond(p, branch, lambda: x)


@program
def conditions_in_a_row(tf, p, q, x):
    alive, count = p, tf.constant(0)
    for _ in range(4):
        alive, count = tf.cond(
            alive,
            lambda alive=alive, count=count: [tf.less(count, 2), tf.add(count, 1)],
            lambda alive=alive, count=count: [alive, count],
        )
    return [alive, count]


@program
def slices_with_indices_of_two_types(tf, p, q, x):
    def slices(factor, dtype):
        return tf.IndexedSlices(x * factor, tf.constant([0, 1, 2], dtype))

    chosen = tf.cond(p, lambda: slices(1.0, tf.int32), lambda: slices(2.0, tf.int64))
    return [chosen.values, chosen.indices]


@program
def a_wrong_branch_that_fails(tf, p, q, x):
    return [
        tf.cond(p, tf.no_op, lambda: tf.Assert(tf.logical_not(p), ["Wrong branch!"])),
        tf.cond(q, lambda: tf.Assert(q, [x]), lambda: tf.Assert(tf.logical_not(q), ["Wrong branch!"])),
    ]


@program
def devices(tf, p, q, x):
    with tf.device("/cpu:0"):
        z = tf.cond(p, lambda: x * 2.0, lambda: 2.0 * x)
    with tf.device(lambda op: "/cpu:0" if op.type == "Mul" else ""):
        y = tf.cond(q, lambda: x * z, lambda: x + z)
    return [z, y, tf.gradients(y, x)]


@program
def summaries_of_shapes(tf, p, q, x):
    y = tf.placeholder_with_default([1.0, 2.0], [None])
    z = tf.cond(p, lambda: x, lambda: y)
    return [z, tf.constant(z.shape.as_list() == [None]), tf.shape(z)]


# ---- gradients ----


@program
def gradients_of_a_choice(tf, p, q, x):
    y = tf.cond(p, lambda: x * x, lambda: 3.0 * x)
    return tf.gradients(y, x)


@program
def gradients_of_one_branch(tf, p, q, x):
    y = tf.cond(p, lambda: tf.square(x), lambda: tf.constant([1.0, 1.0, 1.0]))
    return [tf.gradients(y, x), tf.gradients(y + x, x)]


@program
def gradients_of_what_passes_through(tf, p, q, x):
    return [
        tf.gradients(tf.cond(p, lambda: x, lambda: x), x),
        tf.gradients(tf.cond(p, lambda: x, lambda: x * 2.0), x),
    ]


@program
def gradients_of_several_values(tf, p, q, x):
    y = x * 2.0
    a, b = tf.cond(p, lambda: [x * y, y], lambda: [x, x * x * y])
    return [tf.gradients(a * b, [x, y]), tf.gradients(a, [x, y]), tf.gradients([a, b], x)]


@program
def gradients_of_unknown_shapes(tf, p, q, x):
    y = tf.placeholder_with_default([1.0, 2.0], [None])
    z = tf.cond(p, lambda: y * y, lambda: tf.reduce_sum(x) + y)
    return tf.gradients(z, [x, y])


@program
def gradients_of_nested_choices(tf, p, q, x):
    y = tf.cond(
        p, lambda: tf.cond(q, lambda: x * x, lambda: x), lambda: tf.cond(q, lambda: tf.square(x), lambda: x * 7.0)
    )
    return tf.gradients(y, x)


@program
def gradients_of_reference_variables(tf, p, q, x):
    v = tf.Variable([1.0, 2.0, 3.0], use_resource=False, name="v")
    w = tf.Variable([4.0, 5.0, 6.0], use_resource=False, name="w")
    y = tf.cond(p, lambda: v * x, lambda: w * w)
    return [tf.gradients(y, [v, w, x]), tf.gradients(tf.cond(q, lambda: v, lambda: w), [v, w])]


@program
def gradients_of_resource_variables(tf, p, q, x):
    v = tf.Variable([1.0, 2.0, 3.0], use_resource=True, name="v")
    w = tf.Variable([4.0, 5.0, 6.0], use_resource=True, name="w")
    y = tf.cond(p, lambda: v * x, lambda: w * w)
    return tf.gradients(y, [v, w, x])


@program
def gradients_of_gathered_rows(tf, p, q, x):
    v = tf.Variable([[1.0], [2.0], [3.0]], use_resource=False, name="v")
    y = tf.cond(p, lambda: tf.gather(v, [0, 2]), lambda: tf.gather(v, [1, 1]))
    z = tf.cond(q, lambda: tf.gather(v, [0]), lambda: tf.constant([[5.0]]))
    return [tf.convert_to_tensor(g) for y in (y, z) for g in tf.gradients(y, v)]


@program
def gradients_of_gathered_resource_rows(tf, p, q, x):
    v = tf.Variable([[1.0], [2.0], [3.0]], use_resource=True, name="v")
    y = tf.cond(p, lambda: tf.gather(v, [0, 2]), lambda: tf.gather(v, [1, 1]))
    return [tf.convert_to_tensor(g) for g in tf.gradients(y, v)]


@program
def gradients_inside_a_branch(tf, p, q, x):
    def branch():
        y = x * x
        return tf.gradients(y, x)[0]

    return tf.cond(p, branch, lambda: tf.gradients(tf.square(x), x)[0])


@program
def gradients_inside_by_what_is_outside(tf, p, q, x):
    y = 7.0 * x

    def branch():
        return tf.gradients(y * y, [x])[0]

    return tf.cond(p, branch, lambda: x * 3.0)


@program
def gradients_of_a_read_and_gathered_rows(tf, p, q, x):
    v = tf.Variable([1.0, 42.0], use_resource=False, name="v")
    r = tf.Variable([[1.0], [42.0]], use_resource=True, name="r")
    y = tf.cond(p, lambda: tf.identity(v), lambda: tf.gather(v, [1, 1]))
    z = tf.cond(q, lambda: tf.reduce_sum(r.sparse_read([1, 0])) * x, lambda: tf.constant([0.0, 0.0, 0.0]))
    return [tf.convert_to_tensor(g) for g in (*tf.gradients(y, [v]), *tf.gradients(z, [r]))]


@program
def gradients_of_nothing(tf, p, q, x):
    n = tf.constant(10)
    y = tf.cond(p, lambda: n + 1, lambda: n - 1)
    z = tf.cond(q, lambda: tf.stop_gradient(x), lambda: tf.constant([1.0, 2.0, 3.0]))
    return [tf.constant([g is None for g in (*tf.gradients(y, [n]), *tf.gradients(z, [x]))])]


@program
def gradients_of_integers_that_decide(tf, p, q, x):
    c = tf.cast(p, tf.int32) + tf.cast(q, tf.int32)
    return tf.gradients(tf.cond(tf.less(c, 2), lambda: x * 42.0, lambda: x * 3.0), [x])


@program
def gradients_of_gradients(tf, p, q, x):
    y = tf.cond(p, lambda: x * x * x, lambda: tf.square(x * 2.0))
    (first,) = tf.gradients(y, x)
    return [first, tf.gradients(first, x)]


@program
def integers_have_none(tf, p, q, x):
    n = tf.constant([1, 2, 3])
    a, b = tf.cond(p, lambda: (x * 2.0, n), lambda: (x, n + 1))
    return [tf.gradients(a * tf.cast(b, tf.float32), x)[0], b]


# ---- case ----


@program
def a_case_with_a_default(tf, p, q, x):
    return [
        tf.case([(p, lambda: x), (q, lambda: x * 2.0)], default=lambda: x * 3.0),
        tf.case([(p, lambda: x)], default=lambda: -x, name="named"),
        tf.case(((p, lambda: [x, x]), (q, lambda: [x, -x])), lambda: [x, x * 2.0]),
        tf.case([(p, lambda: [x])], default=lambda: [-x], strict=True),
        tf.case(collections.OrderedDict([(q, lambda: x), (p, lambda: x * 2.0)]), lambda: x * 3.0),
        tf.case({p: lambda: x, q: lambda: x * 2.0}, default=lambda: x * 3.0),
    ]


@program
def a_case_of_what_excludes_itself(tf, p, q, x):
    not_p = tf.logical_not(p)
    pairs = [(p, lambda: x), (not_p, lambda: -x)]
    return [
        tf.case(pairs, default=lambda: x * 9.0, exclusive=True),
        tf.case(pairs),
        tf.case(pairs, exclusive=True),
        tf.gradients(tf.case(pairs, lambda: x), x),
    ]


@program
def a_switch_of_many(tf, p, q, x):
    n = tf.cast(p, tf.int32) + 2 * tf.cast(q, tf.int32)
    branches = [lambda: x, lambda: x + 1.0, lambda: x * 2.0]
    return [
        tf.switch_case(n, branches),
        tf.switch_case(n - 1, dict(enumerate(branches))),
        tf.switch_case(n, [(1, branches[1]), (0, branches[0])]),
        tf.gradients(tf.switch_case(n, branches), x),
    ]


@program
def a_switch_with_a_default(tf, p, q, x):
    n = tf.cast(p, tf.int32) + 2 * tf.cast(q, tf.int32)
    return [
        tf.switch_case(n, {0: lambda: x, 1: lambda: x * 2.0}, default=lambda: x * 9.0),
        tf.switch_case(n - 1, [lambda: [x]], lambda: [-x], name="named"),
        tf.switch_case(n, [lambda: {"a": (x, n)}, lambda: {"a": (-x, n)}]),
    ]


@program
def a_switch_of_one(tf, p, q, x):
    return tf.switch_case(tf.cast(p, tf.int32), [lambda: x + 1.0])
