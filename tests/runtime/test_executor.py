from __future__ import annotations

import inspect
import threading
import weakref

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph import op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op
from dtflab.machine import costs
from dtflab.runtime import cell_edges
from tests.cluster.two_tasks import never, until
from tests.runtime.ops import op


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def run(fetches, feeds=None, config=None, **kwargs):
    with tf.Session(config=config) as session:
        return session.run(fetches, feeds, **kwargs)


TASK = "/job:localhost/task:0"
TRACED = {"options": tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)}


# -- when a node runs -------------------------------------------------------------------------------------------


def test_a_node_runs_once_and_after_all_that_it_waits_for():
    ran = []
    with op("Note(x: N * float) -> (y: float) \n N: int >= 0 \n name: string", None, bind=staticmethod(
        lambda node, xp: lambda *x: ran.append(node["name"].decode()) or np.float32(0)
    )):  # fmt: skip

        def note(name, *inputs):
            return apply_op("Note", x=list(inputs), name=name)

        a = note("a")
        b, c = note("b", a), note("c", a)
        with tf.control_dependencies([c]):
            d = note("d", b)
        run([note("e", d, c, a), d])
    assert sorted(ran) == list("abcde") and ran[0] == "a" and ran[-2:] == ["d", "e"]


@pytest.mark.parametrize("how", [{}, TRACED], ids=["plain", "traced"])
def test_a_value_is_freed_at_its_last_use(how):
    made, alive = [], []

    def make():
        made.append(array := np.ones(3, np.float32))
        made[-1] = weakref.ref(array)
        return array

    def look(x):
        alive.append([ref() is not None for ref in made])
        return x + np.float32(1)

    with op("Make() -> (y: float)", make, stateful=True), op("Look(x: float) -> (y: float)", look):
        first = apply_op("Make")
        used = tf.negative(apply_op("Look", x=first))
        with tf.control_dependencies([used]):
            last = apply_op("Look", x=tf.negative(used))
        run(last, **how)
    assert alive == [[True], [False]]


def test_a_variable_is_read_when_its_consumer_starts():
    v = tf.Variable(1.0, use_resource=False)
    ref = v.op.outputs[0]
    with tf.control_dependencies([v.assign_add(1.0)]):
        two = ref * 1.0
        three = ref * tf.identity(two) + 1.0
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run([two, three]) == [2, 5]


def test_a_variables_value_in_a_step_is_not_changed_by_a_later_update():
    v = tf.Variable([1.0, 2.0])
    before = v * 1.0
    with tf.control_dependencies([before]):
        update = v.assign_add([10.0, 10.0])
    with tf.Session() as session:
        session.run(v.initializer)
        first, _ = session.run([before, update])
        second, _ = session.run([before, update])
        assert first.tolist() == [1, 2] and second.tolist() == [11, 12]


def test_an_uninitialized_variable_is_named():
    v = tf.Variable(1.0, name="weights")
    with pytest.raises(errors.FailedPreconditionError, match="uninitialized value weights"):
        run(v + 1.0)
    assert run(tf.is_variable_initialized(v)) == np.False_


def count_runs(monkeypatch, op_type):
    """A list that gets the name of each node of that type when its kernel runs."""
    ran, bind = [], op_registry.get(op_type).bind

    def counted(node, xp):
        kernel = bind(node, xp)
        return lambda *args: ran.append(node.name) or kernel(*args)

    monkeypatch.setattr(op_registry.get(op_type), "bind", staticmethod(counted))
    return ran


def test_shape_arithmetic_is_remembered_as_long_as_the_shapes_are_the_same(monkeypatch):
    ran = count_runs(monkeypatch, "Tile")
    x, few, mine = tf.placeholder(tf.float32, [None]), tf.constant([1, 2]), np.zeros(1)
    small = tf.tile(few, tf.shape(x), name="small")
    large = tf.tile(tf.constant(np.arange(100)), tf.shape(x), name="large")  # would stay in memory
    with op("Same() -> (y: double)", lambda: np.add(mine, 1, out=mine), stateful=True), tf.Session() as session:
        changed = tf.tile(apply_op("Same"), few[:1], name="changed")
        for step, size in enumerate((2, 2, 3, 3), 1):
            values = session.run([small, large, changed], {x: np.arange(size)})
            assert values[0].tolist() == [1, 2] * size and len(values[1]) == 100 * size and values[2] == step
            values[0][:] = 0  # a fetched value is the client's own
    assert [ran.count(name) for name in ("small", "large", "changed")] == [2, 4, 4]


def test_arithmetic_of_shapes_is_remembered_but_not_of_values(monkeypatch):
    ran = count_runs(monkeypatch, "RealDiv")
    x = tf.placeholder(tf.float32, [None])
    of_shapes = tf.div(tf.cast(tf.shape(x), tf.float32), tf.tile([2.0], tf.constant([1])), name="of_shapes")
    of_values = tf.div(x, tf.fill([1], 2.0), name="of_values")
    with tf.Session() as session:
        for size in (4, 4, 6, 6):
            halves = session.run([of_shapes, of_values], {x: np.full(size, size)})
            assert halves[0].tolist() == [size / 2] and halves[1].tolist() == [size / 2] * size
    assert [ran.count(name) for name in ("of_shapes", "of_values")] == [2, 4]


def test_several_values_that_follow_from_shapes_are_remembered_together(monkeypatch):
    ran = count_runs(monkeypatch, "ConcatOffset")
    x = tf.placeholder(tf.float32, [None, 2])
    offsets = apply_op("ConcatOffset", concat_dim=tf.constant(0), shape=[tf.shape(x), tf.shape(x)])
    with tf.Session() as session:
        for size in (2, 2, 3, 3):
            starts = session.run(offsets, {x: np.zeros((size, 2))})
            assert [start.tolist() for start in starts] == [[0, 0], [size, 0]]
            starts[1][:] = 9  # a fetched value is the client's own
    assert len(ran) == 2


# -- costly kernels ---------------------------------------------------------------------------------------------


def test_costly_kernels_run_beside_each_other_and_give_the_same(monkeypatch):
    x = tf.placeholder(tf.float32, [8, 8])
    products = [tf.matmul(x, x + float(i), name=f"product{i}") for i in range(6)]
    total = tf.add_n([tf.matmul(p, p) for p in products])
    feeds = {x: np.random.default_rng(1).standard_normal((8, 8))}
    here = run([total, *products], feeds)
    monkeypatch.setattr(costs, "COSTLY_FLOPS", 0)
    metadata = tf.RunMetadata()
    there = run([total, *products], feeds, run_metadata=metadata, **TRACED)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a, b)
    stats = [n for device in metadata.step_stats.dev_stats for n in device.node_stats]
    assert {n.thread_id != 0 for n in stats if n.node_name.startswith("product")} == {True}


def test_a_product_that_is_far_from_costly_is_asked_twice_only(monkeypatch):
    monkeypatch.setattr(costs, "COSTLY_FLOPS", 100)
    asked, flops = [], op_registry.get("MatMul").flops
    counted = staticmethod(lambda node, ins, outs: asked.append(node.name) or flops(node, ins, outs))
    monkeypatch.setattr(op_registry.get("MatMul"), "flops", counted)
    x = tf.placeholder(tf.float32, [None, None])
    small, large = tf.matmul(x[:1, :1], x[:1, :1], name="small"), tf.matmul(x, x, name="large")
    fetches = [small, large, x + 1.0]
    with tf.Session() as session:
        for _ in range(4):
            session.run(fetches, {x: np.ones((4, 4))})
            asked.append("step")
    steps = " ".join(asked).split("step")
    assert ["small" in step for step in steps] == [True, True, False, False, False]
    assert ["large" in step for step in steps] == [True, True, True, True, False]


def test_a_lone_costly_kernel_stays_on_the_clients_thread(monkeypatch):
    monkeypatch.setattr(costs, "COSTLY_FLOPS", 0)
    threads = []
    with op("Slow(x: float) -> (y: float)", lambda x: threads.append(threading.get_ident()) or x, blas=True):
        y = apply_op("Slow", x=tf.placeholder_with_default(1.0, []))
        run(apply_op("Slow", x=y))
    assert threads == [threading.get_ident()] * 2


def test_an_error_on_the_pool_ends_the_step(monkeypatch):
    monkeypatch.setattr(costs, "COSTLY_FLOPS", 0)
    x = tf.placeholder(tf.float32)
    wrong = tf.matmul(tf.ensure_shape(x, [None, None]), tf.ones([3, 3]) * x[0, 0], name="wrong")
    with pytest.raises(errors.InvalidArgumentError, match="wrong"):
        run([wrong, tf.matmul(tf.ones([2, 2]) * x[0, 0], tf.ones([2, 2]))], {x: np.ones((2, 2))})


# -- asynchronous kernels ---------------------------------------------------------------------------------------


def test_an_asynchronous_kernel_may_be_done_at_once_or_later_on_any_thread():
    waiting = []
    kernels = {
        "Now": lambda ctx, x, done: done(x + 0.5),
        "Returned": lambda ctx, x, done: x + 0.5,
        "Later": lambda ctx, x, done: waiting.append((x, done)),
    }

    def finish():
        until(lambda: len(waiting) == 5, "all are asked, none is done")
        for value, done in reversed(waiting):
            done(value)

    with (
        op("Now(x: float) -> (y: float)", kernels["Now"], is_async=True),
        op("Returned(x: float) -> (y: float)", kernels["Returned"], is_async=True),
        op("Later(x: float) -> (y: float)", kernels["Later"], is_async=True),
    ):
        x = apply_op("Returned", x=apply_op("Now", x=tf.placeholder_with_default(1.0, [])))
        y = tf.add_n([apply_op("Later", x=x * float(i)) for i in range(5)])
        thread = threading.Thread(target=finish)
        thread.start()
        assert run([y, tf.negative(x)]) == [20, -2]
        thread.join()


@pytest.mark.parametrize("when", ["at once", "raised", "later"])
def test_an_asynchronous_kernel_may_fail(when):
    def kernel(ctx, done):
        error = errors.OutOfRangeError(None, None, "at the end")
        if when == "raised":
            raise error
        if when == "later":
            threading.Timer(0.01, done, (None, error)).start()
        else:
            done(error=error, value=None)

    with (
        op("Fails() -> (y: float)", kernel, is_async=True, stateful=True),
        pytest.raises(errors.OutOfRangeError, match=r"at the end\s+\[\[\{\{node failing\}\}\]\]"),
    ):
        run(apply_op("Fails", "failing") + never(TASK))


# -- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("why"), errors.InvalidArgumentError),
        (TypeError("why"), errors.InvalidArgumentError),
        (MemoryError("why"), errors.ResourceExhaustedError),
        (ZeroDivisionError("why"), errors.InternalError),
        (errors.DataLossError(None, None, "why"), errors.DataLossError),
    ],
)
def test_an_error_carries_the_op_its_device_and_the_users_line(raised, expected):
    def fail():
        raise raised

    with op("Fails() -> (y: float)", fail, stateful=True):
        with tf.device("/cpu:1"):
            failing, line = apply_op("Fails", "failing"), inspect.currentframe().f_lineno
        result = failing + 1.0
        with pytest.raises(expected, match="why") as caught:
            run(result, config=tf.ConfigProto(device_count={"CPU": 2}))
    error = caught.value
    assert error.op is failing.op and error.node_def.name == "failing"
    assert error.device == "/job:localhost/replica:0/task:0/device:CPU:1" and error.device in str(error)
    assert f'File "{__file__}", line {line}' in str(error)


def test_the_first_error_cancels_the_rest():
    ran = []
    with op("Late(x: float) -> (y: float)", lambda x: ran.append(x) or x, stateful=True):
        check = tf.check_numerics(tf.placeholder_with_default(np.inf, []), "first")
        config = tf.ConfigProto(device_count={"CPU": 3})
        with tf.device("/cpu:1"):
            waits = tf.identity(never(TASK))
        with tf.device("/cpu:2"):
            late = apply_op("Late", x=check)
        with pytest.raises(errors.InvalidArgumentError, match="first : Tensor had Inf"):
            run([waits, late, check], config=config)
    assert ran == []


def test_the_session_goes_on_after_an_error():
    x = tf.placeholder(tf.float32, [])
    y = tf.check_numerics(x, "no number") + 1.0
    with tf.Session() as session:
        for _ in range(3):
            with pytest.raises(errors.InvalidArgumentError):
                session.run(y, {x: np.nan})
            assert session.run(y, {x: 1}) == 2


def test_a_fetch_from_a_branch_that_was_not_taken():
    no, yes = apply_op("Switch", data=tf.constant(1.0), pred=tf.placeholder_with_default(True, []))
    assert run([yes]) == [1]
    with pytest.raises(errors.InvalidArgumentError, match=r"Retval\[1\] does not have value"):
        run([yes, tf.negative(no)])


def test_an_op_without_a_kernel_is_named():
    with (
        op("Bare() -> (y: float)", None, bind=Op.bind),
        pytest.raises(errors.UnimplementedError, match=r"Op Bare .*\s.*node bare.*CPU:0"),
    ):
        run(apply_op("Bare", "bare"))


def test_a_chain_that_never_waits_obeys_its_deadline():
    x = tf.placeholder_with_default(np.eye(1500, dtype=np.float32), [1500, 1500])
    for _ in range(60):
        x = tf.matmul(x, x)
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(tf.reduce_sum(x), options=tf.RunOptions(timeout_in_ms=20))


def test_a_long_chain_of_identities_is_looked_at_once(monkeypatch):
    """From each node of the chain, all before it could be looked at again: 20,000 took more than 100 s."""
    looks = []

    class Counted(dict):
        def __getitem__(self, name):
            looks.append(name)
            return super().__getitem__(name)

    monkeypatch.setattr(cell_edges, "by_name", lambda nodes: Counted((node.name, node) for node in nodes))
    x = tf.get_variable("w", [], use_resource=False, initializer=tf.zeros_initializer())._ref()
    for _ in range(300):
        x = tf.identity(x)
    with tf.Session() as session:
        session.run("w/Assign")
        assert session.run(x) == 0
    assert 300 <= len(looks) <= 4 * 300
