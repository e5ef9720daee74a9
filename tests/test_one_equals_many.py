"""The law of a distributed runtime: however a graph is placed and run, its values are one device's, bit for bit."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dtflab as tf
from dtflab.cluster.link import Link
from dtflab.cluster.shared_memory import Leaving
from dtflab.machine import costs, pools
from dtflab.machine.clock import Pool
from dtflab.ops.linalg import matmul
from dtflab.ops.math import elementwise
from dtflab.runtime import local, transport
from dtflab.runtime.runner import Step
from tests.cluster.two_tasks import cluster_over, open_links, using
from tests.graphs import build, crossing_recipes, recipes, run
from tests.seeded_step import SeededStep

TWO_CPUS = tf.ConfigProto(device_count={"CPU": 2})
PLACES = [f"/job:{task}/cpu:{i}" for task in ("ps/task:0", "worker/task:0", "worker/task:1") for i in (0, 1)]


def one_device(recipe):
    built = build(recipe, lambda place: "")
    with tf.Session(graph=built.graph) as session:
        return run(built, session)


def on_cluster(cluster, recipe):
    built = build(recipe, lambda place: PLACES[place % 6])
    with tf.Session(cluster.target, graph=built.graph) as session:
        found = run(built, session)
    tf.Session.reset(cluster.target)
    return found


def assert_same(expected, found):
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@settings(max_examples=150)
@given(recipe=recipes)
def test_many_devices_of_one_task(recipe):
    built = build(recipe, lambda place: f"/cpu:{place % 3}")
    with tf.Session(graph=built.graph, config=tf.ConfigProto(device_count={"CPU": 3})) as session:
        assert_same(one_device(recipe), run(built, session))


@settings(max_examples=150)
@given(recipe=recipes)
def test_gpus_of_one_task(recipe):
    """Int32 arithmetic, predicates and counters are in host memory there, and cross inside loops, too."""
    built = build(recipe, lambda place: ("/gpu:0", "/gpu:1", "/cpu:0")[place % 3])
    config = tf.ConfigProto(device_count={"GPU": 2}, allow_soft_placement=True)
    expected = one_device(recipe)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        with tf.Session(graph=built.graph, config=config) as session:
            assert_same(expected, run(built, session))
            assert [device.device_type for device in session.list_devices()] == ["CPU", "GPU", "GPU"]


@pytest.fixture(scope="module")
def in_process():
    with tf.Cluster(ps=1, worker=2, config=TWO_CPUS) as cluster:
        yield cluster


@settings(max_examples=150)
@given(recipe=recipes)
def test_tasks_of_one_process(in_process, recipe):
    assert_same(one_device(recipe), on_cluster(in_process, recipe))


WIRES = ("grpc", "tcp", "socket", "link")
TASKS = ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1")


@pytest.fixture
def over_each_wire(in_process):
    """Clusters of the same tasks, by the wires between them."""
    with contextlib.ExitStack() as stack:
        virtual = tf.Cluster(ps=1, worker=2, config=TWO_CPUS, clock="virtual")
        clusters = {"in process": in_process, "virtual": stack.enter_context(virtual)}
        for wire in WIRES:
            clusters[wire] = stack.enter_context(cluster_over(wire, ps=1, worker=2))
            with using(wire):
                open_links(clusters[wire])
        yield clusters


def in_three_steps(built, session):
    """The bits of all values; a NaN is like any other."""
    values = run(built, session) + session.run(built.values) + session.run(built.values)
    return [(value.shape, np.where(np.isnan(value), np.float32(np.nan), value).tobytes()) for value in values]


def test_tasks_over_each_wire(over_each_wire):
    """One, two or three tasks; values of all sizes and kinds, dead ones, and state that changes from step to step."""
    sent = {wire: Counter() for wire in over_each_wire}
    push, filled = Link.push, Leaving.filled

    @settings(max_examples=80)
    @given(recipe=crossing_recipes, tasks=st.permutations(TASKS), count=st.sampled_from((3, 2, 3, 2, 1)))
    def law(recipe, tasks, count):
        built = build(recipe, lambda place: "")
        with tf.Session(graph=built.graph) as session:
            expected = in_three_steps(built, session)
        built = build(recipe, lambda place: tasks[place % count])
        for wire, cluster in over_each_wire.items():
            with pytest.MonkeyPatch.context() as patch, using(wire if wire in WIRES else "link"):
                patch.setattr(Link, "push", counted(push, sent[wire], "pushed"))
                patch.setattr(Leaving, "filled", counted(filled, sent[wire], "in shared memory"))
                with tf.Session(cluster.target, graph=built.graph) as session:
                    assert in_three_steps(built, session) == expected, wire
                tf.Session.reset(cluster.target)

    law()
    assert sent["link"]["pushed"] > 100 and sent["socket"]["pushed"] > 100
    assert {wire for wire, ways in sent.items() if ways["in shared memory"]} == {"link"}
    assert {wire for wire, ways in sent.items() if ways["pushed"]} == {"tcp", "socket", "link"}


def counted(method, counter, name):
    """The method, whose results other than None are counted."""

    @functools.wraps(method)
    def count(*arguments):
        found = method(*arguments)
        counter[name] += found is not None
        return found

    return count


@pytest.fixture(scope="module")
def processes():
    with tf.Cluster(ps=1, worker=2, engine="process", config=TWO_CPUS) as cluster:
        yield cluster


@settings(max_examples=120)
@given(recipe=recipes)
def test_tasks_in_processes_of_their_own(processes, recipe):
    assert_same(one_device(recipe), on_cluster(processes, recipe))


def seeded_master(target, config, credentials=None):
    """A local master whose steps pick the next ready node by the seed in `seeded://7`."""
    master = local.DirectMaster(config)
    master.new_step = functools.partial(SeededStep, seed=int(target.partition("://")[2]))
    return master


transport.register_scheme("seeded", seeded_master)


@settings(max_examples=150)
@given(recipe=recipes)
def test_any_order_that_the_graph_allows(recipe):
    expected = one_device(recipe)
    built = build(recipe, lambda place: f"/cpu:{place % 3}")
    for seed in range(5):
        config = tf.ConfigProto(device_count={"CPU": 3})
        with tf.Session(f"seeded://{seed}", graph=built.graph, config=config) as session:
            assert_same(expected, run(built, session))


@settings(max_examples=100)
@given(recipe=recipes, seed=st.integers(0, 2**32))
def test_any_order_over_tasks(in_process, recipe, seed):
    masters = [task.server.task.master for task in in_process.tasks]
    for master in masters:
        master.new_step = functools.partial(SeededStep, seed=seed)
    try:
        assert_same(one_device(recipe), on_cluster(in_process, recipe))
    finally:
        for master in masters:
            master.new_step = Step


# -- one program, run in every way that there is ----------------------------------------------------------------------


def on_callers_thread(session, values):
    return session.run(values, options=tf.RunOptions(inter_op_thread_pool=-1))


def on_pools(session, values):
    return session.run(values)


def traced(session, values):
    return session.run(values, options=tf.RunOptions(trace_level=3), run_metadata=tf.RunMetadata())


def in_sets(session, values):
    steps = session.step_through(values)
    while not steps.over:
        steps.next()
    return steps.finish()


WAYS = (on_callers_thread, in_sets, on_pools, traced)  # in the second run, a session learns what is costly


@pytest.fixture
def everything_is_costly(monkeypatch):
    """All kernels go to pools, and everything divisible is divided; the threads that took tasks are counted."""
    for module, name, value in (
        (costs, "COSTLY_FLOPS", 0), (costs, "COSTLY_ELEMENTS", 0), (pools, "MIN_COST_PER_SHARD", 1e-9),
        (matmul, "ONE_BLOCK", 0), (elementwise, "LARGE", 0), (elementwise, "LINE", 1),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)
    tasks: Counter[str] = Counter()
    submit = Pool.submit

    def counting(pool, *task):
        tasks.update(pool._name.split()[1:2])
        submit(pool, *task)

    monkeypatch.setattr(Pool, "submit", counting)
    return tasks


def test_plain_traced_in_sets_and_on_pools(everything_is_costly):
    """How kernels are cut depends on sizes alone, so it is the same here in every way, and so is every bit."""

    @settings(max_examples=150)
    @given(recipe=recipes)
    def law(recipe):
        built = build(recipe, lambda place: f"/cpu:{place % 3}")
        threads = {"intra_op_parallelism_threads": 2, "inter_op_parallelism_threads": 3}
        config = tf.ConfigProto(device_count={"CPU": 3}, use_per_session_threads=True, **threads)
        with tf.Session(graph=built.graph, config=config) as session:
            found = []
            for how in WAYS:
                if built.initializers:
                    session.run(built.initializers)
                found.append(how(session, built.values))
        for values in found[1:]:
            assert_same(found[0], values)

    law()
    assert everything_is_costly["inter-op"] > 1000 and everything_is_costly["intra-op"] > 1000
