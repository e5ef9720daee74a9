"""Step-through: exactly the ready nodes run, counters fall, values are those of a plain run, nothing is left of it."""

from __future__ import annotations

import gc
import re
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.master_stub import MasterStub
from dtflab.cluster.stepping import Stepping
from dtflab.graph.apply_op import apply_op
from tests.cluster.two_tasks import until
from tests.graphs import build, recipes, run, run_in_steps
from tests.runtime.ops import op


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def sets(steps):
    """The names that ran, set by set."""
    return [{ran.name for ran in record.ran} for record in steps]


def counters(record):
    return {counter.name: (counter.before, counter.after) for counter in record.counters}


# -- sets and counters ------------------------------------------------------------------------------------------


def control_dependencies():
    """The book's graph: x and y only after a and b. Placeholders, because constants would be folded."""
    a = tf.placeholder_with_default(1.0, [], name="a")
    b = tf.add(a, 2.0, name="b")
    with tf.control_dependencies([a, b]):
        x = tf.constant(3.0, name="x")
        y = tf.constant(4.0, name="y")
    return tf.add(x, y, name="z"), b


def test_the_books_graph():
    z, b = control_dependencies()
    with tf.Session() as session:
        steps = session.step_through([z, b])
        assert steps.ready == ["a"] and steps.records == []
        assert steps.counts == {"b": 1, "x": 2, "y": 2, "z": 2, "_retval_z_0_0": 1, "_retval_b_0_1": 1}
        first, second, *others = steps
        assert counters(first) == {"b": (1, 0), "x": (2, 1), "y": (2, 1)} and first.ready == ["b"]
        assert counters(second) == {"x": (1, 0), "y": (1, 0), "_retval_b_0_1": (1, 0)}
        assert [{r.name for r in record.ran} for record in others] == [
            {"x", "y", "_retval_b_0_1"},
            {"z"},
            {"_retval_z_0_0"},
        ]
        assert steps.over and steps.finish() == [7.0, 3.0]


def test_figure_12_5():
    """A, B and C are sources; when C has run, the counters of D and E are 0 and both are ready, wherever they are."""
    names = "ABC"
    sources = [tf.placeholder(tf.float32, [], name=name) for name in names]
    a, b, c = (tf.negative(source, name=f"run_{name}") for source, name in zip(sources, names, strict=True))
    with tf.device("/cpu:1"):
        d, e = tf.exp(c, name="D"), tf.tanh(c, name="E")
        f = tf.add_n([a, b, d, e], name="F")
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        steps = session.step_through(f, dict(zip(sources, (1.0, 2.0, 3.0), strict=True)))
        records = list(steps)
        released = next(record for record in records if "D" in counters(record))
        assert counters(released)["D"] == counters(released)["E"] == (1, 0)
        assert {"D", "E"} <= set(released.ready)
        assert steps.finish() == np.float32(-1 - 2) + np.exp(np.float32(-3)) + np.tanh(np.float32(-3))


def test_a_set_is_what_explain_says():
    z, b = control_dependencies()
    w = tf.Variable([1.0, 2.0], name="w")
    fetches = [z, b, w * b]
    with tf.Session() as session:
        session.run(w.initializer)
        assert sets(session.step_through(fetches)) == list(map(set, tf.explain(fetches).sets))


def test_what_came_out_is_told():
    x = tf.placeholder(tf.float32, [None], name="x")
    w = tf.Variable([1.0, 2.0], name="w")
    s = tf.placeholder(tf.string, [], name="s")
    big = tf.tile(x, [100], name="big")
    with tf.Session() as session:
        session.run(w.initializer)
        steps = session.step_through(
            [x * 2.0, w, tf.identity(s), tf.split(x, 2, name="parts"), big], {x: [1, 2], s: "word"}
        )
        results = {ran.name: ran.outputs for record in steps for ran in record.ran}
    assert results["mul"] == ["float32 [2] = [2., 4.]"]
    assert results["w"] == ["variable of float32 [2] = [1., 2.]"]
    assert results["Identity"] == ["string = b'word'"]
    assert results["parts"] == ["float32 [1] = [1.]", "float32 [1] = [2.]"]
    assert results["big"] == ["float32 [200]"]


@pytest.mark.parametrize("parallel", [1, 10])
def test_what_goes_into_through_and_out_of_a_loop_is_told(parallel):
    x, step = (tf.placeholder(tf.float32, [], name=name) for name in ("x", "step"))
    y = tf.while_loop(lambda v: v < 7.0, lambda v: v + step, [x], parallel_iterations=parallel)
    with tf.Session() as session:
        steps = session.step_through(y, {x: 1.0, step: 3.0})
        results = [(ran.name, ran.result) for record in steps for ran in record.ran]
    loop = [(name, result) for name, result in results if re.match("while.*(Enter|NextIteration|Exit)", name)]
    dead = [("while/Exit[0]", "dead: not run"), ("while/Exit[1]", "dead: not run")]
    assert sorted(loop) == sorted([
        ("while/Enter", "float32 = 1."), ("while/add/Enter", "float32 = 3."),
        ("while/NextIteration[0]", "float32 = 4."), ("while/NextIteration[1]", "float32 = 7."),
        *dead, ("while/Exit[2]", "float32 = 7."), ("while/NextIteration[2]", "dead: not run"),
    ])  # fmt: skip


# -- the values are those of a plain run ---------------------------------------------------------------------------

DEVICES = [f"/job:{job}/task:{task}/cpu:0" for job, task in (("ps", 0), ("worker", 0), ("worker", 1))]


@given(recipes)
@settings(max_examples=60)
def test_random_programs_give_the_same_bits(recipe):
    built = build(recipe, lambda place: f"/cpu:{place % 3}")
    config = tf.ConfigProto(device_count={"CPU": 3})
    with tf.Session(graph=built.graph, config=config) as plain, tf.Session(graph=built.graph, config=config) as stepped:
        for a, b in zip(run(built, plain), run_in_steps(built, stepped), strict=True):
            np.testing.assert_array_equal(a, b)


@given(recipes)
@settings(max_examples=15)
def test_a_set_is_exactly_what_was_ready_and_counters_only_fall(recipe):
    built = build(recipe, lambda place: f"/cpu:{place % 2}")
    with tf.Session(graph=built.graph, config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        if built.initializers:
            session.run(built.initializers)
        steps = session.step_through(built.values)
        ready, counts = steps.ready, steps.counts
        while not steps.over:
            record = steps.next()
            assert sorted(ran.name for ran in record.ran if ran.state != "came") == sorted(ready)
            assert all(counter.before > counter.after >= 0 for counter in record.counters)
            fell = {c.name: c for c in record.counters if c.name in counts}
            assert all(counts[name] == counter.before for name, counter in fell.items())
            assert {name: n for name, n in steps.counts.items() if name in counts} == {
                name: fell[name].after if name in fell else n
                for name, n in counts.items()
                if (name not in fell or fell[name].after) and name in steps.counts
            }
            ready, counts = record.ready, steps.counts


def test_random_programs_on_tasks(tasks):
    @given(recipes)
    @settings(max_examples=30)
    def same(recipe):
        built = build(recipe, lambda place: DEVICES[place % 3])
        with tf.Session(tasks.target, graph=built.graph) as session:
            plain = run(built, session)
            for a, b in zip(plain, run_in_steps(built, session), strict=True):
                np.testing.assert_array_equal(a, b)
        assert tasks.waits() == []

    same()


@pytest.fixture(scope="module")
def tasks():
    with tf.Cluster(ps=1, worker=2) as cluster:
        yield cluster


def test_a_variable_is_read_before_an_update_that_is_ready_too():
    v = tf.Variable(1.0, use_resource=False)
    fetches = [v * 10.0, v.assign_add(1.0), v * 100.0]
    with tf.Session() as session:
        for run_it in (session.run, lambda f: session.step_through(f).finish()):
            session.run(v.initializer)
            assert run_it(fetches)[::2] == [10.0, 100.0]


def test_costly_kernels_are_waited_for(monkeypatch):
    monkeypatch.setattr("dtflab.runtime.executor.Iteration._is_costly", lambda *_: True)
    x = tf.placeholder(tf.float32, [8, 8])
    products = [tf.matmul(x, x + float(i), name=f"product{i}") for i in range(4)]
    with tf.Session() as session:
        records = list(session.step_through(tf.add_n(products, name="sum"), {x: np.eye(8)}))
    assert {f"product{i}" for i in range(4)} in sets(records)
    assert [record.waiting for record in records] == [[]] * len(records)


# -- loops and conditionals -------------------------------------------------------------------------------------------


def test_a_loop_has_counters_of_its_own_in_every_turn():
    limit = tf.placeholder(tf.int32, [])
    out = _loop(limit)
    with tf.Session() as session:
        records = list(steps := session.step_through(out, {limit: 2}))
        assert steps.finish() == 2
    ran = [r.name for record in records for r in record.ran]
    assert [name for name in ran if name.startswith("add")] == ["add[0]", "add[1]", "add[2]"]
    dead = [r.name for record in records for r in record.ran if r.state == "dead"]
    assert "add[2]" in dead and "add[1]" not in dead
    assert len(ran) == len(set(ran))


def _loop(limit):
    i = apply_op("Enter", data=tf.constant(0), frame_name="loop", parallel_iterations=2)
    limit = apply_op("Enter", data=limit, frame_name="loop", is_constant=True)
    i = apply_op("Merge", inputs=[i, i])[0]
    go_on = apply_op("LoopCond", input=tf.less(i, limit))
    leave, stay = apply_op("Switch", data=i, pred=go_on)
    with tf.control_dependencies([stay]):
        i.op._update_input(1, apply_op("NextIteration", data=tf.add(stay, tf.constant(1), name="add")))
    return apply_op("Exit", data=leave)


def test_a_branch_that_is_not_taken_is_dead():
    p = tf.placeholder(tf.bool, [])
    out = tf.cond(p, lambda: tf.constant(1.0, name="yes"), lambda: tf.constant(2.0, name="no"))
    with tf.Session() as session:
        results = {r.name: r.result for record in session.step_through(out, {p: True}) for r in record.ran}
    assert results["cond/no"] == "dead: not run" and results["cond/yes"] == "float32 = 1."


# -- what waits for something outside ------------------------------------------------------------------------------


def test_a_step_that_waits_for_a_queue_stands_still_until_it_is_filled():
    q = tf.FIFOQueue(3, tf.float32, shapes=[[]], name="q")
    put = q.enqueue(5.0)
    with tf.Session() as session:
        steps = session.step_through(tf.negative(q.dequeue(name="take")))
        assert sets([steps.next(), steps.next()]) == [{"q"}, {"take"}]
        assert steps.waiting == ["take"] and steps.ready == []
        nothing = steps.next()
        assert nothing.ran == [] and "set 3: nothing was ready" in str(nothing) and not steps.over
        session.run(put)
        came = steps.next()
        assert [(r.name, r.state, r.outputs) for r in came.ran] == [("take", "came", ["float32 = 5."])]
        assert steps.finish() == -5.0


def test_a_patient_set_waits():
    q = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    put, taken = q.enqueue(5.0), q.dequeue()
    with tf.Session() as session:
        steps = session.step_through(taken)
        steps.next(), steps.next()
        found = []
        waiter = threading.Thread(target=lambda: found.append(steps.finish()))
        waiter.start()
        session.run(put)
        waiter.join(60)
        assert found == [5.0]


def test_a_set_has_the_time_of_the_session():
    """On a busy machine it may be up before anything waits: then it is more."""
    taken = tf.FIFOQueue(3, tf.float32).dequeue(name="take")
    for milliseconds in (30, 300, 3_000, 30_000):
        with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=milliseconds)) as session:
            with pytest.raises(tf.errors.DeadlineExceededError) as caught:
                session.step_through(taken).finish()
            assert session.run(tf.constant(1), options=tf.RunOptions(timeout_in_ms=60_000)) == 1
        if "take" in str(caught.value):
            break
    assert "take" in str(caught.value)


def test_tasks_show_who_waits_for_whom(tasks):
    with tf.device(DEVICES[0]):
        w = tf.placeholder_with_default(2.0, [], name="w")
    with tf.device(DEVICES[1]):
        y = tf.negative(w, name="y")
    with tf.Session(tasks.target) as session:
        first, *others = session.step_through(y)
        asked = [ran for ran in first.ran if ran.state == "waits"]
        assert [ran.op for ran in asked] == ["_Recv"] and "asked, and waiting: receive w" in str(first)
        came = next(record for record in others if any(ran.state == "came" for ran in record.ran))
        assert {ran.op for ran in came.ran} == {"_Send", "_Recv"}
    assert tasks.waits() == []


# -- how it ends -------------------------------------------------------------------------------------------------------


def test_an_error_is_the_steps_own_and_the_session_lives_on():
    x = tf.placeholder(tf.float32, [None], name="x")
    bad = tf.check_numerics(x, "no", name="check")
    with tf.Session() as session:
        steps = session.step_through(bad, {x: [np.nan]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="no : Tensor had NaN") as error:
            steps.finish()
        assert error.value.op is bad.op and steps.over
        with pytest.raises(tf.errors.InvalidArgumentError):
            steps.finish()
        with pytest.raises(tf.errors.InvalidArgumentError):
            steps.next()
        assert "step failed" in repr(steps)
        assert session.run(bad, {x: [1.0]}) == [1.0]


def test_what_is_over_runs_no_further():
    with tf.Session() as session:
        steps = session.step_through(tf.constant(2.0))
        assert steps.finish() == steps.finish() == 2.0
        with pytest.raises(RuntimeError, match="The step is over"):
            steps.next()
        assert list(steps) == []


def test_a_dead_fetch_is_an_error_of_the_last_set():
    p = tf.placeholder(tf.bool, [])
    no, _ = apply_op("Switch", data=tf.constant(1.0), pred=p)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="does not have value"):
        session.step_through(no, {p: True}).finish()


def test_one_that_nobody_holds_any_more_is_closed(tasks):
    q = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    with tf.device(DEVICES[2]):
        y = tf.negative(q.dequeue())
    with tf.Session(tasks.target) as session:
        steps = session.step_through(y)
        steps.next(), steps.next()
        assert tasks.waits()
        del steps
        assert tasks.waits() == []


@pytest.mark.parametrize("end", ["steps", "session"])
def test_closing_leaves_nothing(tasks, end):
    q = tf.FIFOQueue(3, tf.float32, shapes=[[]])
    with tf.device(DEVICES[2]):
        y = tf.negative(q.dequeue())
    session = tf.Session(tasks.target)
    steps = session.step_through(y)
    steps.next(), steps.next()
    assert steps.waiting
    (steps if end == "steps" else session).close()
    assert steps.over and tasks.waits() == []
    with pytest.raises(tf.errors.CancelledError):
        steps.next()
    steps.close()
    if end == "steps":
        assert session.run(q.size()) == 0, "the client that waited is gone, the session is there"
        session.close()


@pytest.mark.parametrize("end", ["close", "failure"])
def test_a_step_frees_what_it_held(end):
    made = []

    def make():
        made.append(weakref.ref(array := np.ones(3, np.float32)))
        return array

    def fail(_):
        raise tf.errors.InternalError(None, None, "no")

    with op("MakeOnce() -> (y: float)", make, stateful=True), op("Fail(x: float) -> (y: float)", fail):
        made_once = apply_op("MakeOnce")
        late = made_once + apply_op("Fail", x=1.0)  # the add waits forever, with the array in its hand
        with tf.Session() as session:
            steps = session.step_through(late if end == "failure" else tf.negative(tf.negative(made_once)))
            if end == "close":
                steps.next()
                assert made[0]() is not None
                steps.close()
            else:
                with pytest.raises(tf.errors.InternalError):
                    steps.finish()
            gc.collect()
            assert steps.over and made[0]() is None, "free as soon as the step is over, though somebody holds it"


def test_an_interrupt_ends_the_step_and_not_the_session(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    x = tf.placeholder(tf.float32, [])
    with op("Interrupt(x: float) -> (y: float)", interrupted), tf.Session() as session:
        steps = session.step_through(apply_op("Interrupt", x=x), {x: 1.0})
        with pytest.raises(KeyboardInterrupt):
            steps.finish()
        assert steps.over and session.run(x + 1.0, {x: 1.0}) == 2.0


# -- sessions that step through ---------------------------------------------------------------------------------------


def test_a_session_prints_every_set(capsys):
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.Session(step_through=True) as session:
        assert session.run({"a": [tf.negative(x, name="n")]}, {x: 2.0}) == {"a": [-2.0]}
    printed = capsys.readouterr().out
    assert printed.startswith("set 1\ndevice  node    op    result\nCPU:0   feed x  _Arg  float32 = 2.\n")
    assert "n           1 → 0  ready" in printed and printed.endswith("the step is over\n\n")


def test_a_trace_of_a_step_through():
    metadata = tf.RunMetadata()
    traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session:
        x = tf.placeholder(tf.float32, [])
        session.step_through(tf.negative(x, name="n"), {x: 1.0}, traced, metadata).finish()
    assert "n" in {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}


def test_a_master_of_tensorflow_says_what_to_do(monkeypatch):
    def unknown(stub, method, request, timeout=None):
        raise errors.UnimplementedError.of(method)

    with tf.Cluster(worker=1, engine="process") as cluster, tf.Session(cluster.target) as session:
        one = tf.constant(1.0)
        assert session.run(one) == 1.0
        monkeypatch.setattr(MasterStub, "_call", unknown)
        with pytest.raises(NotImplementedError, match=r"is not one of dtflab.*tf\.Session\(\)"):
            session.step_through(one)
        monkeypatch.undo()


# -- in another process ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere():
    with tf.Cluster(ps=1, worker=1, engine="process") as cluster:
        yield cluster


def stepped(cluster):
    """Everything that a step through shows: its start, its sets, the nodes after each, and the values."""
    x = tf.placeholder(tf.float32, [None], name="x")
    with tf.device("/job:worker/task:0"):
        doubled = tf.multiply(x, 2.0, name="doubled")
        turns, total = tf.while_loop(
            lambda i, s: i < 2, lambda i, s: (i + 1, s + tf.reduce_sum(doubled)), [0, 0.0], name="loop"
        )
    with tf.Session(cluster.target) as session, session.step_through([total, {"n": turns}], {x: [1.0, 2.0]}) as steps:
        seen = [steps.ready, steps.counts, [repr(steps)]]
        while not steps.over:
            record = steps.next(patient=True)
            seen.append([record, steps.ready, steps.waiting, steps.counts, steps.nodes])
        seen.append(steps.finish())
        with pytest.raises(RuntimeError, match="The step is over"):
            steps.next()
        assert len(steps.records) > 5
        return seen, repr(steps)


def test_a_step_of_another_process_shows_what_one_of_this_process_shows(elsewhere):
    with tf.Cluster(ps=1, worker=1) as here:
        expected = stepped(here)
    with tf.Graph().as_default():
        assert stepped(elsewhere) == expected
    assert expected[0][-1] == [12.0, {"n": 2}]


def test_an_error_in_a_step_of_another_process_names_the_users_line(elsewhere):
    x = tf.placeholder(tf.float32, [], name="x")
    checked = tf.check_numerics(x, "not a number")
    with tf.Session(elsewhere.target) as session:
        steps = session.step_through(checked, {x: np.nan})
        with pytest.raises(tf.errors.InvalidArgumentError, match="not a number") as caught:
            steps.finish()
        assert "test_step_through.py" in str(caught.value) and steps.over and "failed" in repr(steps)
        with pytest.raises(tf.errors.InvalidArgumentError):
            steps.finish()
        traced = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert session.step_through(checked, {x: 1.0}, options, traced).finish() == 1.0
        assert "CheckNumerics" in {
            node.node_name for device in traced.step_stats.dev_stats for node in device.node_stats
        }


def test_a_step_of_another_process_that_waits_can_be_given_up(elsewhere):
    queue = tf.FIFOQueue(1, [tf.float32], [[]], shared_name="empty")
    row = queue.dequeue(name="row")
    with tf.Session(elsewhere.target) as session:
        steps = session.step_through(row)
        until(lambda: steps.next() and steps.waiting == ["row"], "it waits")
        steps.close()
        assert steps.over and "closed" in repr(steps)
        until(lambda: not [line for line in elsewhere.waits() if "row" in line], "nothing waits")
        session.run(queue.enqueue(1.0))
        assert session.step_through(row).finish() == 1.0


@pytest.mark.parametrize(
    "nonsense", [b"", b"{", b"[]", b"{}", b'{"number": "x"}', b'{"number": 7}', b"[" * 9999, b"\xff"]
)
@pytest.mark.parametrize("method", ["NextSet", "StepNodes", "StepValues", "CloseStep"])
def test_a_malformed_request_for_a_step_is_an_invalid_argument(method, nonsense):
    methods = Stepping(None, lambda count: None).methods()
    if method == "CloseStep" and nonsense == b'{"number": 7}':
        assert methods[method](nonsense, None) == b"{}"  # of a step that is over
        return
    with pytest.raises(errors.InvalidArgumentError):
        methods[method](nonsense, None)
