"""Operations next to each other: figure 12-5 of the book, on its graph and on two simulated GPUs."""

from __future__ import annotations

import functools
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.graph import op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.machine import costs, pools
from dtflab.machine.clock import Pool
from dtflab.viz.bands import Bands
from dtflab.viz.data import step_trace as trace
from tests.cluster.two_tasks import interrupt_main, until
from tests.runtime.ops import op

GPU = "/job:localhost/replica:0/task:0/device:GPU:"
SETTLE = 60


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def two_gpus():
    """Two GPUs of two inter-op threads each: of more, a node might take a third while the first is about to be idle."""
    return tf.ConfigProto(device_count={"GPU": 2}, intra_op_parallelism_threads=3, inter_op_parallelism_threads=2)


class Meeting:
    """The barriers of the figure's kernels, so that its order is the only one in which they can end."""

    def __init__(self) -> None:
        self.sources = threading.Barrier(3)  # A, B and C have started
        self.parts = threading.Barrier(3)  # of A
        self.released = threading.Barrier(2)  # D and E have started
        self.both_ran = threading.Event()
        self.ended: list[str] = []

    def bind(self, node, xp, shard=None):
        return functools.partial({"A": self.a, "B": self.b, "C": self.c}.get(node.name, self.d_or_e), node, shard)

    def a(self, node, shard, x, y):
        self.sources.wait(SETTLE)
        out = np.empty(3, np.float32)

        def part(first, last):
            self.parts.wait(SETTLE)
            out[first:last] = threading.get_ident() % 1000

        shard(3, pools.MIN_COST_PER_SHARD, part)
        return self.last(node, out.reshape(1, 3))

    def b(self, node, shard, x, y):
        self.sources.wait(SETTLE)
        return self.last(node, x)

    def c(self, node, shard, x, y):
        self.sources.wait(SETTLE)
        self.ended.append("C")
        return x

    def d_or_e(self, node, shard, x, y):
        assert "C" in self.ended
        self.released.wait(SETTLE)
        self.both_ran.set()
        return x

    def last(self, node, value):
        """A and B still run when D and E do."""
        assert self.both_ran.wait(SETTLE)
        self.ended.append(node.name)
        return value


def figure():
    """A and B on one GPU; C on the other, and D and E that need it."""
    x, y = (tf.placeholder_with_default(np.ones((400, 400), np.float32), [400, 400], name) for name in "xy")
    with tf.device("/gpu:0"):
        a, b = tf.matmul(x, y, name="A"), tf.matmul(x, y, name="B")
    with tf.device("/gpu:1"):
        c = tf.matmul(x, y, name="C")
        d, e = tf.matmul(c, y, name="D"), tf.matmul(c, y, name="E")
    return [t.op for t in (a, b, d, e)]


def traced(fetches, config, feeds=None):
    metadata = tf.RunMetadata()
    with tf.Session(config=config) as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(fetches, feeds, options=options, run_metadata=metadata)
    return trace.read(metadata)


def test_figure_12_5(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(op_registry.get("MatMul"), "bind", staticmethod(Meeting().bind))
    step = traced(figure(), two_gpus())
    ran = {event.name: event for event in step.events if event.name in "ABCDE"}
    assert {name: event.device[len(GPU) - 4 :] for name, event in ran.items()} == {
        "A": "GPU:0", "B": "GPU:0", "C": "GPU:1", "D": "GPU:1", "E": "GPU:1"
    }  # fmt: skip
    # A, B and C begin without waiting for one another, each on a thread of its device's inter-op pool.
    assert max(ran[name].start for name in "ABC") < min(ran[name].end for name in "ABC")
    assert {ran["A"].thread, ran["B"].thread} == {"inter-op 1", "inter-op 2"} and ran["C"].thread == "inter-op 1"
    # A is done in three parts, on three threads at once: the one that runs A, and two of the intra-op pool.
    parts = [event for event in step.details if event.part]
    assert [event.name for event in parts] == ["A"] * 3
    assert sorted(event.part for event in parts) == [(1, 3), (2, 3), (3, 3)]
    assert {event.thread for event in parts} == {ran["A"].thread, "intra-op 1", "intra-op 2"}
    assert max(event.start for event in parts) < min(event.end for event in parts)
    assert all(ran["A"].start <= event.start <= event.end <= ran["A"].end for event in parts)
    # The end of C lets D and E start, next to each other; A and B still run.
    assert min(ran[name].start for name in "DE") >= ran["C"].end
    assert max(ran[name].start for name in "DE") < min(ran[name].end for name in "ABDE")
    assert ran["D"].thread != ran["E"].thread


def test_the_picture_of_figure_12_5(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(op_registry.get("MatMul"), "bind", staticmethod(Meeting().bind))
    bands = Bands(traced(figure(), two_gpus()), 880)
    drawn = {}
    for band in bands.bands:
        lane = ""
        # A thread whose bar is short in a slow step is folded.
        for row in (shown for whole in band.rows for shown in whole.folded or [whole]):
            lane = row.label or lane
            for event in row.events:
                if event.name in "ABCDE":
                    drawn[event.called(event.name)] = band.look.label, lane
    assert drawn.pop("A 2/3") == ("GPU:0", "intra-op 1") and drawn.pop("A 3/3") == ("GPU:0", "intra-op 2")
    assert drawn.pop("A 1/3") == drawn["A"] != drawn["B"]  # on the thread that runs A
    assert drawn["D"] != drawn["E"] and {where for where, _ in drawn.values()} == {"GPU:0", "GPU:1"}
    assert {lane for _, lane in drawn.values()} == {"inter-op 1", "inter-op 2"} and set(drawn) == set("ABCDE")


def test_a_traced_step_counts_no_part_as_a_node(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    step = traced(figure(), two_gpus())  # five real products of 128 MFLOP
    assert sorted(event.name for event in step.events if len(event.name) == 1) == list("ABCDExy")
    assert sorted(event.called(event.name) for event in step.details if event.part) == [
        f"{name} {i}/3" for name in "ABCDE" for i in (1, 2, 3)
    ]


# -- which nodes go to the pool -------------------------------------------------------------------------------


def kernels_that_meet(monkeypatch, count):
    """Make tf.exp wait until `count` of them run at once, once they are asked to."""
    state = {"meeting": None}

    def exp(x):
        if state["meeting"] is not None:
            state["meeting"].wait(SETTLE)
        return np.exp(x)

    monkeypatch.setattr(op_registry.get("Exp"), "bind", staticmethod(lambda node, xp, shard=None: exp))
    monkeypatch.setattr(op_registry.get("Exp"), "into", None)
    return lambda: state.update(meeting=threading.Barrier(count))


def test_large_element_wise_nodes_run_beside_each_other_once_their_size_is_known(monkeypatch):
    monkeypatch.setattr(costs, "COSTLY_ELEMENTS", 100)
    meet = kernels_that_meet(monkeypatch, 3)
    x = tf.placeholder(tf.float32)
    ops = [tf.exp(x * float(i)) for i in range(3)]
    config = tf.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=3)
    with tf.Session(config=config) as session:
        first = session.run(ops, {x: np.arange(100.0)})  # each on the client's thread
        session.run(ops, {x: np.arange(100.0)})
        meet()
        second = session.run(ops, {x: np.arange(100.0)})
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_small_ones_stay_on_the_clients_thread_also_where_a_large_one_was(monkeypatch):
    monkeypatch.setattr(costs, "COSTLY_ELEMENTS", 100)
    threads = []
    monkeypatch.setattr(
        op_registry.get("Exp"), "bind",
        staticmethod(lambda node, xp, shard=None: lambda x: threads.append(threading.get_ident()) or np.exp(x)),
    )  # fmt: skip
    monkeypatch.setattr(op_registry.get("Exp"), "into", None)
    x = tf.placeholder(tf.float32)
    ops = [tf.exp(x + float(i)) for i in range(3)]
    with tf.Session() as session:
        for size, here in ((100, True), (100, True), (100, False), (99, True)):
            threads.clear()
            session.run(ops, {x: np.arange(float(size))})
            assert (set(threads) == {threading.get_ident()}) is here


def test_a_variable_is_read_when_its_consumer_is_given_to_the_pool(monkeypatch):
    """Not when a thread has time for it: by then, an update may have run on the client's thread."""
    monkeypatch.setattr(costs, "COSTLY_FLOPS", 0)
    go_on = threading.Event()
    real = op_registry.get("MatMul").bind

    def bind(node, xp, shard=None):
        product = real(node, xp)
        return lambda a, b: go_on.wait(SETTLE) and product(a, b)

    monkeypatch.setattr(op_registry.get("MatMul"), "bind", staticmethod(bind))
    v = tf.Variable(np.eye(2, dtype=np.float32), use_resource=False)
    with op("Open(x: float) -> (y: float)", lambda x: go_on.set() or x, stateful=True):
        blocked = [tf.matmul(v, np.float32([[1, 2], [3, 4]]) * float(i + 1)) for i in range(2)]
        update = v.assign_add(np.float32([[10, 10], [10, 10]]))
        with tf.control_dependencies([update]):
            opened = apply_op("Open", x=tf.placeholder_with_default(1.0, []))
        config = tf.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=1)
        with tf.Session(config=config) as session:
            session.run(v.initializer)
            one, two, _ = session.run([*blocked, opened])
    assert one.tolist() == [[1, 2], [3, 4]] and two.tolist() == [[2, 4], [6, 8]]


def test_a_negative_number_of_threads_means_the_clients_own(monkeypatch):
    monkeypatch.setattr(costs, "COSTLY_FLOPS", 0)
    x = tf.placeholder_with_default(np.eye(3, dtype=np.float32), [3, 3])
    ops = [tf.matmul(x, x, name=f"product{i}").op for i in range(3)]
    for config, options in (
        (tf.ConfigProto(inter_op_parallelism_threads=-1), {}),
        (tf.ConfigProto(), {"inter_op_thread_pool": -1}),
    ):
        with tf.Session(config=config) as session:
            metadata = tf.RunMetadata()
            session.run(ops, options=tf.RunOptions(trace_level=3, **options), run_metadata=metadata)
            assert {event.thread for event in trace.read(metadata).events} == {"client"}


def test_a_step_chooses_its_pool(monkeypatch):
    monkeypatch.setattr(costs, "COSTLY_FLOPS", 0)
    x = tf.placeholder_with_default(np.eye(3, dtype=np.float32), [3, 3])
    ops = [tf.matmul(x, x, name=f"product{i}").op for i in range(3)]
    config = tf.ConfigProto()
    for _ in range(2):
        config.session_inter_op_thread_pool.add(num_threads=1)
    with tf.Session(config=config) as session:
        for number in (0, 1):
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=3, inter_op_thread_pool=number)
            session.run(ops, options=options, run_metadata=metadata)
            threads = {e.thread for e in trace.read(metadata).events if e.name.startswith("product")}
            assert threads == {f"pool {number} inter-op"}


def test_products_of_all_cores_stay_on_the_clients_thread_unless_something_is_awaited():
    x = tf.placeholder_with_default(np.ones((512, 512), np.float32), [512, 512])
    products = [tf.matmul(x, x, name=f"product{i}").op for i in range(2)]
    queue = tf.FIFOQueue(1, tf.float32)
    config = tf.ConfigProto(intra_op_parallelism_threads=2)

    def threads(*others):
        step = traced([*products, *others], config)
        return {event.thread for event in step.events if event.name.startswith("product")}

    assert threads() == {"client"}
    with tf.control_dependencies([queue.enqueue(1.0)]):
        assert all("inter-op" in thread for thread in threads(queue.dequeue()))


# -- functions of the program -----------------------------------------------------------------------------------


def two_threads(**config):
    return tf.ConfigProto(inter_op_parallelism_threads=2, use_per_session_threads=True, **config)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_functions_meet_on_all_tasks_of_a_cluster(tasks):
    """Each task stands for a process, with inter-op threads of its own: two functions on each of them."""
    meeting = threading.Barrier(2 * tasks)
    with tf.Cluster(worker=tasks, config=tf.ConfigProto(inter_op_parallelism_threads=2)) as cluster:
        calls = []
        for task in list(range(tasks)) * 2:
            with tf.device(f"/job:worker/task:{task}"):
                calls.append(tf.py_func(lambda: np.int64(meeting.wait(SETTLE)), [], tf.int64))
        with tf.Session(cluster.target) as session:
            assert sorted(session.run(calls)) == list(range(2 * tasks))


def test_a_function_with_nothing_beside_it_runs_on_the_clients_thread():
    x = tf.placeholder_with_default(1.0, [])
    first = tf.py_func(np.negative, [x], tf.float32)
    second = tf.py_func(lambda x: np.int64(threading.get_ident()), [first], tf.int64)
    with tf.Session(config=two_threads()) as session:
        assert session.run(second) == threading.get_ident()


def test_functions_that_run_sessions_of_their_own_do_not_wait_for_their_own_threads(monkeypatch):
    """All threads of the process's pool run a function, and the steps inside have costly nodes."""
    monkeypatch.setattr(costs, "COSTLY_FLOPS", 0)
    monkeypatch.setattr(pools, "PROCESS", pools._OfTheProcess())
    meeting = threading.Barrier(2)

    def run():
        meeting.wait(SETTLE)
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder_with_default(np.eye(3, dtype=np.float32), [3, 3])
            return np.sum(session.run([tf.matmul(x, x) for _ in range(3)]))

    calls = [tf.py_func(run, [], tf.float32) for _ in range(2)]
    with tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=2)) as session:
        assert session.run(calls) == [9.0, 9.0]


def test_after_ctrl_c_in_functions_that_wait_for_ever_others_have_threads():
    never, called, meeting = threading.Event(), [], threading.Barrier(2)
    waits = [tf.py_func(lambda i=i: (called.append(i), never.wait())[1], [], tf.bool) for i in range(3)]
    meet = [tf.py_func(lambda: np.int64(meeting.wait(SETTLE)), [], tf.int64) for _ in range(2)]
    with tf.Session(config=two_threads()) as session:
        helper = threading.Thread(
            target=lambda: (until(lambda: len(called) == 2, "both wait"), interrupt_main("_wait"))
        )
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            session.run(waits)
        helper.join()
        assert sorted(session.run(meet)) == [0, 1]
        never.set()
        assert sorted(session.run(meet)) == [0, 1]
    assert sorted(called) == [0, 1], "what was in line when the step was given up is not called"


def test_a_step_whose_kernel_gets_no_thread_fails(monkeypatch):
    """A machine that can start no more threads, for example: the step would wait for this node without end."""

    def refuses(pool, *task):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Pool, "submit", refuses)
    with tf.Session() as session:
        calls = [tf.py_func(lambda: np.float32(1), [], tf.float32, name=f"call_{i}") for i in range(2)]
        with pytest.raises(tf.errors.InternalError, match=r"can't start new thread\n.*node call_0"):
            session.run(calls)


def test_a_function_that_exits_ends_the_step():
    """On a thread of a pool, as in TensorFlow, it can't end the program."""

    def leave():
        raise SystemExit("leaving")

    calls = [tf.py_func(leave, [], tf.float32, name=f"leave{i}") for i in range(2)]
    with (
        tf.Session(config=two_threads()) as session,
        pytest.raises(tf.errors.UnknownError, match="SystemExit: leaving"),
    ):
        session.run(calls)


# -- errors, ends ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alone", [True, False])
def test_an_error_in_a_part_names_the_node_and_ends_the_step(monkeypatch, alone):
    def bind(node, xp, shard):
        def part(first, last):
            if first == 1:
                raise ValueError("in the second part")

        return lambda a, b: shard(3, pools.MIN_COST_PER_SHARD, part)

    monkeypatch.setattr(costs, "COSTLY_FLOPS", 0)
    monkeypatch.setattr(op_registry.get("MatMul"), "bind", staticmethod(bind))
    x = tf.placeholder_with_default(np.eye(3, dtype=np.float32), [3, 3])
    products = [tf.matmul(x, x, name=f"product{i}") for i in range(1 if alone else 4)]
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=3)) as session:
        for _ in range(3):
            with pytest.raises(tf.errors.OpError, match="in the second part") as caught:
                session.run(products)
            assert caught.value.op.name.startswith("product")


def test_closing_a_session_cancels_a_step_whose_kernel_is_on_the_pool(monkeypatch):
    inside, go_on = threading.Event(), threading.Event()

    def bind(node, xp, shard=None):
        return lambda a, b: (inside.set(), go_on.wait(SETTLE), a)[2]

    monkeypatch.setattr(costs, "COSTLY_FLOPS", 0)
    monkeypatch.setattr(op_registry.get("MatMul"), "bind", staticmethod(bind))
    x = tf.placeholder_with_default(np.eye(3, dtype=np.float32), [3, 3])
    products = [tf.matmul(x, x) for _ in range(2)]
    before = set(threading.enumerate())
    config = tf.ConfigProto(use_per_session_threads=True, inter_op_parallelism_threads=1)
    session, caught = tf.Session(config=config), []

    def client():
        try:
            session.run(products)
        except tf.errors.OpError as error:
            caught.append(error)

    thread = threading.Thread(target=client)
    thread.start()
    assert inside.wait(SETTLE)
    session.close()
    go_on.set()
    thread.join(SETTLE)
    assert [type(error) for error in caught] == [tf.errors.CancelledError]
    until(lambda: not set(threading.enumerate()) - before, "the threads of the session have ended")
