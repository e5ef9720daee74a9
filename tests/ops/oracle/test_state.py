"""Templates, and writing parts of variables, side by side with TensorFlow."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from dtflab.ops.variables import functions as state
from tests.ops.oracle.test_variable_scope import tried
from tests.oracle.answers import module_of
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

program = Programs()


def run_in_order(tf: Any, *operations: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [tried(lambda o=o: np.asarray(session.run(o)).tolist()) for o in operations]


# -- slices by position ---------------------------------------------------------------------------------------


@program.both_kinds
def scatter_nd_on_variables(tf, use_resource):
    v = tf.Variable(np.arange(8, dtype="f").reshape(4, 2), use_resource=use_resource)
    where, rows = tf.constant([[3], [1]]), [[9.0, 8.0], [7.0, 6.0]]
    return run_in_order(
        tf, tf.scatter_nd_update(v, where, rows), tf.scatter_nd_add(v, [[3, 0], [3, 0]], [1.0, 2.0]),
        tf.scatter_nd_sub(v, np.array([[0]], "i8"), [[1.0, 1.0]], use_locking=True),
        v.scatter_nd_update(where, rows), v.scatter_nd_add([[0, 1]], [5.0]),
        v.scatter_nd_sub([[0, 1]], [1.0], name="s"),
        v.scatter_nd_max([[2]], [[4.5, 4.5]]), v.scatter_nd_min([[2]], [[4.0, 5.0]]), v.read_value(),
    )  # fmt: skip


@program.both_kinds
def rows_by_index(tf, use_resource):
    v = tf.Variable(np.arange(8, dtype="f").reshape(4, 2), use_resource=use_resource)
    rows = tf.IndexedSlices(tf.constant([[9.0, 8.0], [7.0, 6.0]]), tf.constant([3, 1]))
    methods = ("update", "add", "sub", "max", "min", "mul", "div")
    found = [getattr(v, f"scatter_{how}")(rows, name=how) for how in methods]
    return run_in_order(tf, *found, v.read_value(), tf.gather(v, [3, 0, 3]), tf.gather_nd(v, [[3, 1], [0, 0]]))


@program.both_kinds
def slices_that_are_assigned(tf, use_resource):
    v = tf.Variable(np.arange(6, dtype="f").reshape(2, 3), use_resource=use_resource)
    p = tf.placeholder(tf.float32)
    writes = [
        v[0, 1].assign(9.0), v[:, 1:].assign([[1, 2], [3, 4]]), v[::-1, 0].assign([7.0, 8.0], name="named"),
        tf.assign(v[1], [5.0, 6.0, 7.0]), v[..., tf.newaxis, 2].assign([[1.0], [2.0]]), v[tf.constant(1)].assign(0.5),
    ]  # fmt: skip
    fed = v[0].assign(p)
    with tf.Session() as session:
        session.run(v.initializer)
        seen = [session.run(w).tolist() for w in writes]
        seen += [failure(lambda x=x: session.run(fed, {p: x})) for x in ([1.0, 2.0], 5.0, [6.0], [1.0, 2.0, 3.0])]
    return seen, [w.op.name for w in writes], tried(lambda: tf.constant([1.0, 2.0])[0].assign(1.0))[0]


@program.both_kinds
def batches_of_rows(tf, use_resource):
    v = tf.Variable(np.zeros((2, 3), "i4"), use_resource=use_resource)
    w = tf.Variable(np.zeros((2, 3, 2), "f"), use_resource=use_resource)
    return run_in_order(
        tf, tf.batch_scatter_update(v, [[2, 0], [1, 2]], [[1, 2], [3, 4]]),
        tf.batch_scatter_update(w, np.array([[1], [2]], "i8"), np.ones((2, 1, 2), "f"), name="batches"),
    )  # fmt: skip


def wrong_positions(tf: Any) -> list[tuple[Any, Any]]:
    rows = np.ones((1, 3), "f")
    return [
        ([[9]], rows), ([[-1]], rows), ([[0, 5]], rows[0, :1]), ([[0, 1, 2]], rows[0, :1]), ([[0], [1]], rows),
        ([[[0]], [[4]]], np.ones((2, 1, 3), "f")), ([[0]], rows[0, :2]), ([[0]], rows[0]), ([0], rows[0]),
    ]  # fmt: skip


@program.both_kinds
def positions_that_do_not_fit(tf, use_resource):
    v = tf.Variable(np.zeros((4, 3), "f"), use_resource=use_resource)
    i, u = tf.placeholder(tf.int32), tf.placeholder(tf.float32)
    update, changed = tf.scatter_nd_update(v, i, u), tf.tensor_scatter_update(tf.zeros([4, 3]), i, u)
    seen = []
    with tf.Session() as session:
        session.run(v.initializer)
        for fetch in (update, changed):
            for where, what in wrong_positions(tf):
                seen.append(failure(lambda f=fetch, a=where, b=what: session.run(f, {i: a, u: b})))
    return seen


def failure(call: Callable[[], Any]) -> Any:
    """The class of the error, and the line that says what is wrong."""
    try:
        return call().tolist()
    except Exception as error:
        lines = [line for line in getattr(error, "message", str(error)).split("\n") if line.strip()]
        said = [
            line for line in lines if not line.startswith(("Graph exec", "Detected at", "Node:", "    File", "\t [["))
        ]
        return type(error).__name__, said[0].partition(" for '{{")[0]


@program.both_kinds
def where_nothing_is(tf, use_resource):
    """Scalars have no rows, variables without elements none to write to; writing nothing to them is not an error."""
    scalar = tf.Variable(lambda: tf.zeros([]), dtype=tf.float32, use_resource=use_resource)
    empty = tf.Variable(np.zeros((0, 2), "f"), use_resource=use_resource)
    nothing, rows = np.zeros(0, "i4"), np.zeros((0, 2), "f")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        calls = [
            lambda: session.run(tf.scatter_nd_update(scalar, [[0]], [0.22])),
            lambda: session.run(tf.scatter_nd_update(empty, [[0]], [[0.22, 1.0]])),
            lambda: session.run(tf.scatter_nd_update(empty, nothing[:, None], rows)),
            lambda: session.run(tf.scatter_update(empty, nothing, rows)),
            lambda: session.run(tf.scatter_update(empty, [0], np.zeros((1, 2), "f"))),
            lambda: session.run(tf.gather(empty, nothing)),
        ]
        return [failure(call) for call in calls], failure(lambda: session.run(tf.scatter_update(scalar, [0], [0.2])))[0]


@program
def shapes_that_can_not_fit(tf):
    seen = []
    for use_resource in (False, True):
        v = tf.Variable(np.zeros((4, 3), "f"), use_resource=use_resource)
        for where, what in wrong_positions(tf)[4:]:
            text = tried(lambda a=where, b=what, v=v: tf.scatter_nd_update(v, a, b).op.type)
            seen.append(text if isinstance(text, str) else (text[0], text[1].partition(" for ")[0].partition(":")[0]))
    return seen


@program
def tensors_with_parts_replaced(tf):
    x = tf.constant(np.arange(6, dtype="f").reshape(3, 2))
    where, rows = [[2], [0]], tf.constant([[9.0, -8.0], [7.0, 1.0]])
    found = [f(x, where, rows) for f in (tf.tensor_scatter_update, tf.tensor_scatter_add, tf.tensor_scatter_sub)]
    found += [f(x, where, rows) for f in (tf.tensor_scatter_nd_max, tf.tensor_scatter_nd_min)]
    found += [g for y in found for g in tf.gradients(y * y, [x, rows])]
    return run_in_order(tf, *found)


# -- templates -----------------------------------------------------------------------------------------------


def scaled(tf: Any, x: Any, scale: float = 1.0) -> Any:
    w = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0))
    tf.get_variable("hidden", [], trainable=False)
    tf.get_local_variable("count", dtype=tf.int32, initializer=0)
    return tf.multiply(x, w * scale, name="scaled")


@program
def templates(tf):
    first = tf.make_template("part", lambda x, **more: scaled(tf, x, **more), scale=3.0)
    second = tf.make_template("part", lambda x: scaled(tf, x))
    state = [first.name, first.variable_scope, first.variables, first.trainable_variables, first.variable_scope_name]
    found = [first(1.0), first(2.0), second(1.0)]
    with tf.variable_scope("elsewhere"), tf.name_scope("n"):
        found.append(first(3.0))
    names = [[v.name for v in vs] for vs in (
        first.variables, first.global_variables, first.local_variables, first.trainable_variables,
        first.non_trainable_variables, first.weights, first.trainable_weights, first.non_trainable_weights,
        second.variables,
    )]  # fmt: skip
    scopes = [first.variable_scope.name, first.var_scope.name, first.variable_scope_name, second.variable_scope.name]
    return state, [t.name for t in found], names, scopes, run_in_order(tf, *found)


@program
def templates_with_scopes(tf):
    def getter(getter, name, *args, **kwargs):
        return getter(f"{name}_custom", *args, **kwargs)

    now = tf.make_template("now", lambda: tf.get_variable("v", [1]), create_scope_now_=True)
    other = tf.make_template("now", lambda: tf.get_variable("v", [1]), create_scope_now_=True)
    unique = tf.make_template("name", lambda: tf.get_variable("v", [1]), unique_name_="unique", custom_getter_=getter)
    with tf.variable_scope("outer"):
        inner = tf.make_template("inner", lambda: tf.get_variable("v", [1]), create_scope_now_=True)
        names = [other().name, now().name, now().name, unique().name, unique().name]
    nested = tf.make_template("nested", lambda: [now().name, inner().name, tf.get_variable("own", [1]).name])
    return names, nested(), nested(), inner.variable_scope_name


@program
def templates_that_fail(tf):
    grows = tf.make_template("grows", lambda: tf.Variable(1.0))
    grows()
    seen = [tried(grows)]
    fails = tf.make_template("fails", lambda x: tf.get_variable("v", [1]) + 1 / x)
    seen += [tried(lambda: fails(0)), tried(lambda: fails(0)), tried(lambda: tf.make_template(None, tf.no_op))]
    try:
        fails(0)
    except Exception as error:
        seen.append("originally defined at" in str(error))
    taken = tf.make_template("x", lambda: tf.get_variable("v", [1]), unique_name_="taken")
    taken()
    again = tf.make_template("x", lambda: tf.get_variable("v", [1]), unique_name_="taken")
    return [*seen, tried(again)]


# -- variables ------------------------------------------------------------------------------------------------


@program.both_kinds
def made_under_control(tf, use_resource):
    """A variable waits for nothing that is around it, and does not live in a branch."""
    c = tf.constant(1.0)
    with tf.control_dependencies([c]):
        d = tf.constant(2.0)
        v = tf.Variable(2.0, name="v", use_resource=use_resource)
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer(), use_resource=use_resource)
    found = {}

    def branch(name, value):
        found[name] = tf.Variable(lambda: tf.constant(value), name=name, use_resource=use_resource)
        return found[name] + v

    chosen = tf.cond(tf.less(v, 10.0), lambda: branch("yes", 1.0), lambda: branch("no", 2.0))
    controls = [[i.name for i in op.control_inputs] for op in (d.op, v.initializer, w.initializer, v.op)]
    with tf.Session() as session:
        session.run([found[n].initializer for n in ("yes", "no")])
        early = tried(lambda: session.run(chosen))
        session.run(v.initializer)
        return controls, early if isinstance(early, float) else early[0], float(session.run(chosen))


@program.both_kinds
def devices_and_groups(tf, use_resource):
    with tf.device("/job:ps"):
        v = tf.Variable(0.0, name="v", use_resource=use_resource)
        cached = tf.Variable(1.0, caching_device="/job:foo", use_resource=use_resource)
    with tf.device("/job:worker/task:7"):
        done = [v.assign(1.0), v.assign_add(1.0), tf.assign_sub(v, 1.0)]
        read = [v.value(), v.read_value(), cached.value(), cached.read_value(), v + 1.0]
        read += [] if use_resource else [cached.initialized_value()]
    with tf.device("/cpu:100"):
        made = tf.Variable(lambda: tf.constant(42.0), name="w", use_resource=use_resource)
    groups = [o.op.colocation_groups() for o in (*done, made, *made.initializer.inputs)]
    return [o.device for o in (*done, *read, made)], groups, cached.device


@program.both_kinds
def containers(tf, use_resource):
    def make():
        return tf.Variable(0, use_resource=use_resource)

    made = [make()]
    with tf.container("l1"):
        made.append(make())
        with tf.container("l2"):
            made.append(tf.get_variable("x", [], use_resource=use_resource))
        made.append(make())
    return [v.op.get_attr("container") for v in [*made, make()]]


@program.both_kinds
def values_of_no_size(tf, use_resource):
    a = tf.Variable(tf.zeros([0, 2]), use_resource=use_resource)
    b = tf.Variable(tf.ones([2, 2]), use_resource=use_resource)
    loss = tf.reduce_sum(b + tf.matmul(a, a, transpose_a=True))
    step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    missing = tf.report_uninitialized_variables()
    with tf.Session() as session:
        before = session.run(missing).tolist()
        session.run(tf.global_variables_initializer())
        session.run(step)
        return before, session.run(missing).tolist(), session.run([a, b])[1].tolist(), session.run(a).shape


@program.both_kinds
def kinds_of_initial_values(tf, use_resource):
    make = [
        lambda: tf.Variable(1, dtype=tf.float64, use_resource=use_resource),
        lambda: tf.Variable(np.float64(1.5), use_resource=use_resource),
        lambda: tf.Variable([[1, 2], [3, 4]], dtype=tf.int16, use_resource=use_resource),
        lambda: tf.Variable(lambda: [1.0, 2.0], use_resource=use_resource),
        lambda: tf.Variable(lambda: np.arange(3), dtype=tf.float32, use_resource=use_resource),
        lambda: tf.Variable("text", use_resource=use_resource),
        lambda: tf.Variable(tf.constant(1.5), dtype=tf.int32, use_resource=use_resource),
        lambda: tf.Variable(1.5, dtype=tf.int32, use_resource=use_resource),
        lambda: tf.Variable(None, use_resource=use_resource),
        lambda: tf.Variable([1.0], constraint=3, use_resource=use_resource),
        lambda: tf.Variable([1.0], collections="mine", use_resource=use_resource),
        lambda: tf.Variable([[1], [2, 3]], use_resource=use_resource),
        lambda: tf.Variable([1.0], shape=[2], use_resource=use_resource),
        lambda: tf.Variable([1.0], shape=tf.TensorShape(None), use_resource=use_resource).shape.ndims,
        lambda: tf.Variable([1.0], synchronization="x", use_resource=use_resource),
        lambda: tf.Variable([1.0], trainable=False, constraint=tf.abs, use_resource=use_resource),
    ]
    seen = [tried(call) for call in make]
    seen = [s[:1] if isinstance(s, tuple) and s[0].endswith("Error") else s for s in seen]
    return seen, [v.name for v in tf.trainable_variables()], [v.trainable for v in tf.global_variables()]


@program.both_kinds
def assignments_that_do_not_fit(tf, use_resource):
    v = tf.Variable([1.0, 2.0], use_resource=use_resource)
    loose = tf.Variable(tf.placeholder_with_default([1.0], None), validate_shape=False, use_resource=use_resource)
    p = tf.placeholder(tf.float32)
    early = [
        lambda: v.assign([1.0]), lambda: v.assign_add([[1.0, 2.0]]), lambda: v.assign(["a", "b"]),
        lambda: v.assign(tf.constant([1, 2])), lambda: tf.assign(v, [1.0, 2.0, 3.0]),
        lambda: v.assign_sub(3.0).shape.ndims,
    ]  # fmt: skip
    fed = [v.assign(p), v.assign_add(p), tf.assign(loose, p), tf.assign(loose, p, validate_shape=False)]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        refused = [failure(lambda f=f: session.run(f, {p: [1.0, 2.0, 3.0]})) for f in fed]
        v.load([5.0, 6.0], session)
        wrong = failure(lambda: v.load([1.0], session) or session.run(v))
        kinds = [(s[0] if isinstance(s, tuple) else s) for s in map(tried, early)]
        return kinds, refused, wrong[0] if isinstance(wrong, tuple) else wrong, session.run(v).tolist()


@program
def collections_of_variables(tf):
    a = tf.Variable(1.0, name="a")
    b = tf.Variable(2.0, name="b", trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES, "mine"])
    c = tf.get_variable("c", [], collections=[tf.GraphKeys.MODEL_VARIABLES, tf.GraphKeys.GLOBAL_VARIABLES])
    d = tf.get_local_variable("d", [], use_resource=True)
    lists = [
        tf.global_variables(), tf.local_variables(), tf.model_variables(), tf.trainable_variables(), tf.all_variables(),
        tf.get_collection("mine"), tf.moving_average_variables(), tf.global_variables("a"), tf.local_variables("d"),
    ]  # fmt: skip
    missing = tf.report_uninitialized_variables()
    states = [tf.is_variable_initialized(v) for v in (a, b, c, d)]
    check = tf.assert_variables_initialized([a, b])
    with tf.Session() as session:
        seen = [
            [name.decode() for name in session.run(missing)],
            failure(lambda: session.run(check))[1].partition(" value")[0],
        ]
        session.run(tf.local_variables_initializer())
        seen += [[bool(s) for s in session.run(states)]]
        session.run(tf.variables_initializer([a]))
        return [[v.name for v in vs] for vs in lists], seen, [name.decode() for name in session.run(missing)]


def leaves_pieces(run: Callable[[Any], Any]) -> bool:
    """Whether a refused call leaves pieces in the graph, which are not compared."""
    return run.__name__.startswith(("kinds_of_initial", "assignments_that", "where_nothing"))


@Programs(p for p in program if not leaves_pieces(p)).each()
def test_same_graph(run):
    assert_same_graph(run)


# -- variables of a step, and bare ones -----------------------------------------------------------------------


@program
def temporary_variables(tf):
    raw = tf.raw_ops
    v = raw.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="sum", name="v")
    added = tf.assign_add(tf.assign(v, [1.0, 2.0]), [10.0, 20.0])
    unnamed = raw.TemporaryVariable(shape=[1], dtype=tf.int32, name="unnamed")
    return run_in_order(
        tf, raw.DestroyTemporaryVariable(ref=added, var_name="sum", name="total"),
        raw.DestroyTemporaryVariable(ref=tf.assign(unnamed, [7]), var_name="unnamed"),
        tf.shape(raw.TemporaryVariable(shape=[3], dtype=tf.float32)),
    )  # fmt: skip


@program
def a_handle_that_a_gradient_passes(tf):
    sizes = []

    @tf.custom_gradient
    def written(handle, rows, values):
        with tf.control_dependencies([tf.raw_ops.ResourceScatterUpdate(resource=handle, indices=rows, updates=values)]):
            after = tf.identity(handle)

        def grad(dy):
            sizes.append(tf.get_static_value(dy.dense_shape).tolist())
            return [dy, None, None]

        return after, grad

    v = tf.Variable(tf.zeros([20]), use_resource=True)
    values = tf.constant([1.0, 2.0])
    gathered = tf.raw_ops.ResourceGather(
        resource=written(v.handle, tf.constant([3, 4]), values), indices=[3, 4], dtype=tf.float32
    )
    return tf.gradients([gathered], [values]), gathered.shape.as_list(), sizes


test_same_answer = program.same_answers()


def test_what_temporary_variables_refuse():
    def refused(tf):
        raw, seen = tf.raw_ops, []
        v = tf.assign(raw.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="v"), [1.0, 2.0])
        w = tf.assign(raw.TemporaryVariable(shape=[2], dtype=tf.float32, var_name="v"), [3.0, 4.0])
        last = raw.DestroyTemporaryVariable(ref=v, var_name="v")
        bare = raw.TemporaryVariable(shape=[None], dtype=tf.float32, name="bare")
        wrong = raw.DestroyTemporaryVariable(ref=v, var_name="w")
        with tf.Session() as session:
            for fetched in (v + w, bare, wrong):
                try:
                    session.run(fetched)
                except tf.errors.OpError as error:
                    seen.append(type(error).__name__)
            return seen, session.run(last).tolist()  # what a failed step made is gone

    theirs, ours = both(refused)
    assert ours == theirs
    assert ours[0] == ["AlreadyExistsError", "InvalidArgumentError", "NotFoundError"]


def test_bare_variables():
    def run(tf):
        state_ops = module_of(tf, "python.ops.state_ops", state)
        old = state_ops.variable_op([1, 2], tf.float32, name="old", container="c", shared_name="s")
        unknown = state_ops.variable_op([1, 2], tf.float32, set_shape=False)
        new = state_ops.variable_op_v2([2], tf.int32)
        set_old, set_new = tf.assign(old, [[1.0, 2.0]]), tf.assign(new, [3, 4])
        shapes = [str(t.shape) for t in (old, unknown, tf.assign_add(unknown, [[1.0, 1.0]]), new)]
        with tf.Session() as session:
            before = session.run(tf.is_variable_initialized(new))
            after = [session.run(t).tolist() for t in (set_old, set_new, old, new)]
        return shapes, bool(before), after

    theirs_seen, ours_seen = both(run)
    assert ours_seen == theirs_seen


def test_a_resource_variable_has_no_copy(real_tf):
    for tf in (real_tf, dtflab):
        with tf.Graph().as_default(), pytest.raises(NotImplementedError, match="__deepcopy__"):
            copy.deepcopy(tf.Variable(1.0, use_resource=True))
