"""Names, scopes, devices, control inputs, containers, collections, lookups: small programs with one answer in both."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from tests.oracle.programs import Programs

program = Programs()
test_same_answer = program.same_answers()


def tried(call: Callable[[], Any]) -> Any:
    """The value, or the built-in class of the error."""
    try:
        value = call()
    except Exception as error:
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
    return getattr(value, "name", value)


def facts(op: Any) -> tuple[str, str, set[str], list[str]]:
    op = getattr(op, "op", op)
    return op.name, op.device, {c.name for c in op.control_inputs}, [t.name for t in op.inputs]


# -- names ------------------------------------------------------------------------------------------------------


@program
def names_are_made_unique(tf):
    wanted = ["a", "a", "A", "a_1", "a", "b/c", "b/c", "b", "A_1", "a_1"]
    return [tf.no_op(name=n).name for n in wanted] + [tf.no_op().name, tf.no_op(name="").name]


@program
def names_that_are_refused(tf):
    made = [tried(lambda n=n: tf.no_op(name=n)) for n in ("_a", "a b", "-a", "/a", ".a", "a-b", "a>b", "a\\b", "ä")]
    with tf.name_scope("s"):
        return made + [tried(lambda n=n: tf.no_op(name=n)) for n in ("_a", "a b", "-a", ".a")]


@program
def a_name_that_ends_in_a_slash_is_taken_as_it_is(tf):
    return [tried(lambda n=n: tf.no_op(name=n)) for n in ("foo/", "foo/", "foo", "foo_1", "bar/foo/", "bar")]


@program
def name_scopes_nest_and_come_back(tf):
    seen = []
    for name in ("s", "s", "s/", "S", "s/t", None, "", "s_1"):
        with tf.name_scope(name) as scope:
            seen += [scope, tf.no_op(name="x").name]
            with tf.name_scope("in", "ignored") as inner:
                seen += [inner, tf.constant(1.0).name, tf.get_default_graph().get_name_scope()]
    return seen


@program
def scope_names_that_are_refused(tf):
    def enter(name):
        with tf.name_scope(name) as scope:
            return scope

    outside = [tried(lambda n=n: enter(n)) for n in ("_s", "s t", "/", "-s", 3)]
    with tf.name_scope("outer"):
        return outside + [tried(lambda n=n: enter(n)) for n in ("_s", "s t", "-s", 3)]


@program
def name_scope_arguments(tf):
    def enter(*args):
        with tf.name_scope(*args) as scope:
            return scope

    calls = [(None, "d"), ("n", "d"), (None, "d", []), (None, None, [1]), (None, ["x"]), ("n", None, [1])]
    return [tried(lambda a=a: enter(*a)) for a in calls]


@program
def unique_name_can_look_ahead(tf):
    g = tf.get_default_graph()
    marks = (True, True, False, True, True)
    return [g.unique_name("z", mark_as_used=m) for m in marks] + [tf.no_op(name="z").name, tf.no_op(name="Z").name]


@program
def a_name_scope_knows_its_graph_from_the_values(tf):
    with tf.Graph().as_default():
        t = tf.constant(1.0, name="t")
    with tf.name_scope("s", values=[t]):
        return tf.identity(1.0).graph is t.graph, tf.get_default_graph() is t.graph


@program
def two_graphs_do_not_mix(tf):
    a = tf.constant(1.0)
    with tf.Graph().as_default():
        b, n = tf.constant(1.0), tf.no_op()

        def depend():
            with tf.control_dependencies([a]):
                return tf.no_op()

        return [
            tried(lambda: tf.convert_to_tensor([a, b])),
            tried(lambda: tf.group(a, b)),
            tried(lambda: tf.name_scope(None, "s", [a, b]).__enter__()),
            tried(depend),
            tried(lambda: tf.get_default_graph().as_graph_element(a)),
            tried(lambda: a.graph.as_graph_element(n)),
            tf.identity(a).graph is a.graph,
        ]


@program
def a_shape_error_leaves_no_operation(tf):
    a, b = tf.placeholder(tf.float32, [2, 3], name="a"), tf.placeholder(tf.float32, [2, 3], name="b")
    error = tried(lambda: tf.matmul(a, b, name="m"))
    return error, [o.name for o in tf.get_default_graph().get_operations()], a.consumers(), tf.no_op(name="m").name


# -- control dependencies -----------------------------------------------------------------------------------------


@program
def control_dependencies_skip_what_is_waited_for_anyway(tf):
    a, b, k = tf.no_op(name="a"), tf.no_op(name="b"), tf.constant(1.0, name="k")
    made = []
    with tf.control_dependencies([a]):
        x = tf.identity(k, name="x")
        with tf.control_dependencies([b, b, k]):
            made += [x, tf.identity(x), tf.identity(k), tf.no_op()]
            with tf.control_dependencies(None):
                made += [tf.no_op(), tf.identity(x)]
                with tf.control_dependencies(["a", k.name]):
                    made += [tf.no_op()]
            with tf.control_dependencies([]):
                made += [tf.no_op()]
        made += [tf.identity(made[1]), tf.no_op()]
    return [facts(o) for o in made]


@program
def control_dependencies_refuse_other_things(tf):
    def depend(on):
        with tf.control_dependencies(on):
            return tf.no_op().name

    bad = ([3], 3, ["missing"], ["missing:0"], [tf.Graph()], [None])
    return [tried(lambda o=o: depend(o)) for o in bad], tf.no_op().name


@program
def control_inputs_can_be_added_later(tf):
    a, b, c = (tf.no_op(name=n) for n in "abc")
    c._add_control_input(a)
    c._add_control_inputs([b, a])
    return facts(c)


# -- devices ------------------------------------------------------------------------------------------------------


@program
def device_blocks_combine(tf):
    from_function = tf.DeviceSpec(job="f")
    stacks = [
        ("/cpu:0",), ("/job:ps", "/cpu:0"), ("/job:ps", "/job:worker/task:1"), ("/job:ps", None), (None, "/gpu:1"),
        ("/cpu:0", lambda o: "/gpu:1"), (lambda o: "/gpu:1", "/cpu:0"), (lambda o: o.device + "/gpu:1", "/job:x"),
        (lambda o: "",), ("",), ("/job:ps", ""), (lambda o: from_function,), (tf.DeviceSpec(job="q"),),
        ("/job:ps", tf.DeviceSpec(task=2)), ("cpu:0",), ("/cpu",), ("/gpu:*",), ("/device:GPU:0",),
        ("/job:a/job:b",), ("/cpu:0", "/gpu:1"), ("/job:ps/task:1/cpu:0", "/job:worker"), ("/replica:1", "/job:w"),
        ("/job:worker", lambda o: "/task:3"), ("/task:3", lambda o: o.device), (lambda o: o.type, None),
        ("/job:a", None, "/task:2"), ("/job:a", lambda o: None), ("/foo:1",), (3,),
    ]  # fmt: skip

    def inside(stack):
        with contextlib.ExitStack() as blocks:
            for block in stack:
                blocks.enter_context(tf.device(block))
            return tf.no_op().device

    good = [inside(stack) for stack in stacks[:-3]]
    return good, [tried(lambda s=s: inside(s)) for s in stacks[-3:-1]], tf.no_op().device


@program
def device_functions_see_the_operation(tf):
    seen = []

    def chooser(op):
        seen.append((op.name, op.type, op.device, [t.name for t in op.inputs], op.node_def.op))
        return f"/task:{len(seen)}"

    with tf.device("/job:outer"), tf.device(chooser), tf.device("/job:inner/cpu:0"):
        t = tf.identity(1.0)
    return seen, t.device


@program
def colocation(tf):
    with tf.device("/job:ps"):
        p, q = tf.no_op(name="p"), tf.constant(1.0, name="q")
    made = []
    with tf.device("/job:w"):
        with tf.colocate_with(p):
            made.append(tf.no_op())
            with tf.device("/cpu:1"):
                made.append(tf.no_op())
            with tf.colocate_with(q):
                made.append(tf.no_op())
            with tf.colocate_with(q, ignore_existing=True):
                made.append(tf.no_op())
            with tf.colocate_with(None, ignore_existing=True):
                made.append(tf.no_op())
        with tf.colocate_with(made[2]):
            made.append(tf.no_op())
    return [(o.device, o.colocation_groups(), "_class" in o.node_def.attr) for o in made]


# -- containers, collections, lookups -------------------------------------------------------------------------------


@program
def containers_reach_stateful_operations_only(tf):
    def container(op):
        return op.get_attr("container")

    with tf.container("one"):
        a = tf.Variable(1.0, name="a", use_resource=False)
        with tf.container("two"):
            b = tf.Variable(1.0, name="b", use_resource=True)
            c = tf.identity(1.0)
        with tf.container(""):
            d = tf.Variable(1.0, name="d", use_resource=False)
    e = tf.Variable(1.0, name="e", use_resource=False)
    return [container(v.op) for v in (a, b, d, e)], "container" in c.op.node_def.attr


@program
def collections(tf):
    g = tf.get_default_graph()
    k = tf.constant(1.0, name="k")
    g.add_to_collection("c", 1)
    g.add_to_collections(["c", "d", "c"], 2)
    g.add_to_collections("e", 3)
    tf.add_to_collection("t", k)
    tf.add_to_collection("t", 7)
    tf.add_to_collection(("not", "text"), 8)
    tf.get_collection_ref("r").append(5)
    found = [tf.get_collection(n) for n in ("c", "d", "e", "r", "missing")]
    found += [[x.name for x in tf.get_collection("t", scope)] for scope in ("k", "x", "")]
    found += [sorted(g.get_all_collection_keys()), g.get_collection("c") is g.get_collection("c")]
    g.clear_collection("c")
    return [*found, tf.get_collection("c")]


@program
def lookups(tf):
    g = tf.get_default_graph()
    k, n = tf.constant(1.0, name="k"), tf.no_op(name="n")
    things = ["k", "k:0", "k:1", "zz", "zz:0", "k:x", ":0", "", "^k", 3, k, n, [k], None]
    ways = [{}, {"allow_tensor": False}, {"allow_operation": False}]
    found = [tried(lambda t=t, w=w: g.as_graph_element(t, **w)) for t in things for w in ways]
    found += [tried(lambda t=t: g.get_operation_by_name(t)) for t in ("k", "k:0", "zz", 3)]
    found += [tried(lambda t=t: g.get_tensor_by_name(t)) for t in ("k", "k:0", "zz", "zz:0", 3)]
    return [*found, tried(lambda: g.as_graph_element("k", False, False))]


@program
def a_finalized_graph_is_read_only(tf):
    g = tf.get_default_graph()
    tf.no_op()
    before = g.finalized, g.version
    g.finalize()
    calls = [tf.no_op, lambda: g.add_to_collection("x", 1), lambda: g.clear_collection("x")]
    calls += [lambda: g.get_collection_ref("x"), lambda: g.as_default().__enter__() is g]
    return [*before, g.finalized, *map(tried, calls)]


@program
def what_a_tensor_is_not(tf):
    k = tf.constant([1.0, 2.0], name="k")
    calls = [lambda: bool(k), lambda: len(k), lambda: list(k), lambda: float(k), lambda: int(k), lambda: [1][k]]
    calls += [lambda: 1 in k, lambda: k(), lambda: k.missing, lambda: k.eval(), lambda: k.op.run()]
    return [*map(tried, calls), k == k, hash(k) == hash(k), {k: 1}[k], repr(k), str(k), k.name, k.value_index]


@program
def operations_tell_about_themselves(tf):
    a = tf.placeholder(tf.float32, [None, 3], name="a")
    with tf.control_dependencies([tf.no_op(name="n")]):
        b = tf.identity(a, name="b")
    op = b.op
    return (
        op.type, [t.name for t in op.inputs], [t.name for t in op.outputs], [c.name for c in op.control_inputs],
        op.get_attr("T").name, tried(lambda: op.get_attr("zz")), repr(op), str(a), a.get_shape().as_list(),
        [c.name for c in a.consumers()], op.node_def.name, op.values()[0] is b, op.graph is b.graph,
        op.colocation_groups(), b.device,
    )  # fmt: skip


@program
def shapes_are_merged_into_tensors(tf):
    a = tf.placeholder(tf.float32, name="a")
    seen = [str(a.shape.ndims)]
    for shape in ([None, 3], [2, None], [2, 3], [2, 4], [2]):
        seen.append(tried(lambda s=shape: a.set_shape(s)))
        seen.append(a.shape.as_list())
    return seen


# -- default graphs ---------------------------------------------------------------------------------------------


@program
def default_graphs_nest(tf):
    outer, inner = tf.get_default_graph(), tf.Graph()
    with inner.as_default() as entered:
        inside = tf.get_default_graph() is inner, entered is inner
    return inside, tf.get_default_graph() is outer, tried(tf.reset_default_graph)


@program
def seeds_come_from_graph_and_op(tf):
    tf.set_random_seed(7)
    made = [tf.random_uniform([1]), tf.random_uniform([1], seed=3), tf.random_normal([1]), tf.random_uniform([1])]
    with tf.Graph().as_default():
        made += [tf.random_uniform([1]), tf.random_uniform([1], seed=3)]
    with tf.Graph().as_default() as g:
        g.seed = 0
        made += [tf.random_uniform([1]), tf.random_uniform([1], seed=0), tf.random_uniform([1], seed=2**40)]
    return [sorted(seeds_of(t)) for t in made]


def seeds_of(tensor: Any) -> set[tuple[int, int]]:
    """The seed attributes of the random operation behind a tensor."""
    todo, found = [tensor.op], set()
    while todo:
        op = todo.pop()
        if op.type.startswith("Random"):
            found.add((op.get_attr("seed"), op.get_attr("seed2")))
        todo += [t.op for t in op.inputs]
    return found


# -- threads, references, attributes as messages -------------------------------------------------------------------


def in_a_thread(function: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(tried(function)))
    thread.start()
    thread.join()
    return found[0]


@program
def a_thread_has_scopes_and_a_default_graph_of_its_own(tf):
    graph = tf.get_default_graph()

    def named_in_the_graph() -> Any:
        with graph.as_default(), tf.name_scope("inner"):
            return tf.constant(1)

    with tf.name_scope("outer"):
        names = [in_a_thread(named_in_the_graph), tf.constant(1).name]
    return [*names, in_a_thread(lambda: tf.get_default_graph() is graph), in_a_thread(lambda: tf.constant(1))]


@program
def a_scope_without_a_name_in_a_scope(tf):
    with tf.name_scope("a"), tf.name_scope("/") as scope:
        return [scope, tf.get_default_graph().get_name_scope()]


@program
def device_blocks_end_in_their_order(tf):
    graph = tf.get_default_graph()
    outer = graph.device("/cpu:0")
    outer.__enter__()
    with graph.device("/cpu:1"):
        found = tried(lambda: outer.__exit__(None, None, None))
    return found


@program
def who_takes_a_tensor_and_who_waits(tf):
    a = tf.constant(1.0, name="a")
    b = a + a
    with tf.control_dependencies([a, b]):
        c = tf.no_op()
    found = [[op.name for op in a.consumers()], [op.name for op in a.op._control_outputs]]
    c._remove_all_control_inputs()
    return [*found, len(c.control_inputs), len(a.op._control_outputs)]


@program
def references_stand_for_one_tensor(tf):
    a, b, v = tf.constant(1), tf.constant(1), tf.Variable(1)
    keys = {a.ref(): "a", b.ref(): "b", v.ref(): "v"}
    return [keys[a.ref()], keys[v.ref()], len({a.ref(), a.ref()}), a.ref() == b.ref(), v.ref().deref() is v]


@program
def attributes_are_read_as_messages(tf):
    value, shape = tf.constant([1, 2]).op.get_attr("value"), tf.placeholder(tf.int32, [None, 2]).op.get_attr("shape")
    queue = tf.FIFOQueue(1, tf.int32, [[2]]).queue_ref.op.get_attr("shapes")
    return [str(value), str(shape), [str(s) for s in queue], tf.make_ndarray(value).tolist()]


@program
def attributes_are_written_as_messages(tf):
    attr_value = type(tf.no_op().node_def).FromString(tf.constant(1).op.node_def.SerializeToString()).attr["dtype"]
    made = type(attr_value)
    op = tf.no_op()
    op._set_attr("_a", made(i=2))
    op._set_attr("_class", made(list=made.ListValue(s=[b"loc:@x"])))
    scope = tf.get_default_graph()._attr_scope
    with scope({"_b": made(s=b"x"), "_c": made(s=b"y")}):
        with scope({"_b": None}):
            inner = tf.no_op()
        outer = tf.constant(1).op
    found = [tried(lambda op=op, name=name: op.get_attr(name)) for op in (inner, outer) for name in ("_b", "_c")]
    return [
        op.get_attr("_a"),
        op.get_attr("_class"),
        op.colocation_groups(),
        *found,
        tried(lambda: tf.no_op().get_attr("_c")),
    ]


@program
def the_interface_of_an_op(tf):
    op_def = (tf.constant(1.0) + 1.0).op.op_def
    return [op_def.name, [(arg.name, arg.type_attr) for arg in (*op_def.input_arg, *op_def.output_arg)]]
