"""Pools: parts of a kernel on intra-op threads, and whose the inter-op threads are."""

from __future__ import annotations

import os
import signal
import threading
import traceback

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.thread_frames import current_frames
from dtflab.machine import pools
from dtflab.machine.clock import REAL, Pool
from dtflab.machine.devices import Device
from dtflab.machine.pools import IntraOpPool, SessionPools, noted_parts
from dtflab.ops.linalg import matmul
from tests.cluster.two_tasks import until

PART = pools.MIN_COST_PER_SHARD


@pytest.fixture
def pool():
    pool = IntraOpPool("CPU:0", 3)
    yield pool
    pool.close()


# -- parts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "cost", "parts"), [(100, PART, 3), (2, PART, 2), (20, PART / 10, 2), (19, PART / 10, 1), (0, PART, 1)]
)
def test_size_and_threads_decide_how_many_parts_there_are(pool, total, cost, parts):
    seen = []
    pool.shard(total, cost, lambda first, last: seen.append((first, last)))
    assert len(seen) == parts
    assert [i for first, last in sorted(seen) for i in range(first, last)] == list(range(total))


def test_the_first_part_is_larger_by_the_head_start(pool):
    seen = []
    pool.shard(990, PART / 100, lambda first, last: seen.append(last - first))
    late = round(pools.HEAD_START / (PART / 100))
    assert sorted(seen) == [(990 - late) // 3] * 2 + [(990 - late) // 3 + late]


def test_the_caller_does_the_parts_that_no_thread_has_begun(pool):
    released, names = threading.Event(), {}
    pool._worker(1).submit(lambda: released.wait(30))
    pool.shard(2, PART, lambda first, last: names.setdefault(first, threading.current_thread()))
    released.set()
    assert names == dict.fromkeys(range(2), threading.current_thread())


def test_parts_at_work_at_once_have_a_thread_each_and_the_first_is_the_callers(pool):
    def who(first, last):
        together.wait(30)  # all parts are at work at once
        names[first] = threading.current_thread().name

    names = {}
    for _ in range(3):
        together, before = threading.Barrier(3), dict(names)
        pool.shard(3, PART, who)
        assert names == before or not before
    assert names == {0: threading.current_thread().name, 1: "CPU:0 intra-op 1", 2: "CPU:0 intra-op 2"}


def test_kernels_that_take_all_threads_take_turns(pool):
    """Otherwise the last part of each waits on one thread, while the others have nothing to do."""
    order, begun = [], threading.Event()

    def first(part, last):
        begun.set()
        if part == 2:
            until(lambda: second.ident and blocked_in("shard", second), "the other kernel waits for its turn")
        order.append("first")

    second = threading.Thread(target=lambda: begun.wait(30) and pool.shard(3, PART, lambda *_: order.append("second")))
    second.start()
    pool.shard(3, PART, first)
    second.join(30)
    assert order == ["first"] * 3 + ["second"] * 3


def blocked_in(function, thread):
    """True if the innermost frame of the thread is in that function."""
    frame = current_frames().get(thread.ident)
    return frame is not None and frame.f_code.co_name == function


def test_the_error_of_the_first_part_that_has_one_wins_after_all_have_ended(pool):
    ended = []

    def work(first, last):
        if first == 1:
            until(lambda: 2 in ended, "the other part has failed, too")
        ended.append(first)
        if first:
            raise ValueError(f"part {first}")

    with pytest.raises(ValueError, match="part 1"):
        pool.shard(3, PART, work)
    assert sorted(ended) == [0, 1, 2]
    pool.shard(3, PART, lambda first, last: ended.append("more"))  # its threads live
    assert ended[3:] == ["more"] * 3


def test_a_ctrl_c_in_the_callers_part_waits_for_the_others_that_still_write(pool):
    ended = []

    def work(first, last):
        if first == 0:
            raise KeyboardInterrupt
        ended.append(first)

    with pytest.raises(KeyboardInterrupt):
        pool.shard(3, PART, work)
    assert sorted(ended) == [1, 2]


def test_a_ctrl_c_while_the_caller_waits_for_a_part_does_not_wait(pool):
    released, caller, together = threading.Event(), threading.get_ident(), threading.Barrier(3)

    def waits():
        stack = traceback.walk_stack(current_frames()[caller])
        return any(frame.f_code.co_qualname == "_Event.wait" for frame, _ in stack)  # not that of a thread's start

    def work(first, last):
        together.wait(30)
        if first == 1:
            until(waits, "the caller has done its part")
            signal.pthread_kill(caller, signal.SIGINT)
            assert released.wait(60)

    with pytest.raises(KeyboardInterrupt):
        pool.shard(3, PART, work)
    released.set()


def test_a_part_warns_of_no_division(pool):
    out = np.empty(3)
    with np.errstate(all="raise"):
        pool.shard(3, PART, lambda first, last: np.divide(1.0, np.zeros(last - first), out=out[first:last]))
    assert np.isinf(out).all()


def test_parts_are_noted_where_they_are_asked_for(pool):
    together = threading.Barrier(3)
    pool.shard(3, PART, lambda first, last: None)
    with noted_parts() as parts:
        pool.shard(3, PART, lambda first, last: together.wait(30))
        pool.shard(1, PART, lambda first, last: None)  # in one piece
    pool.shard(3, PART, lambda first, last: None)
    names = [part.thread.name for part in parts]
    assert names == [threading.current_thread().name, "CPU:0 intra-op 1", "CPU:0 intra-op 2"]
    assert all(part.started <= part.ended for part in parts)


@pytest.mark.parametrize("shape", [(1 << 19,), (1000, 999), (3, 7, 40_000)])
@pytest.mark.parametrize("op", ["exp", "log", "tanh", "sin", "sqrt", "square", "log1p", "abs", "floor"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_function_over_a_large_array_has_the_same_bits_in_parts(op, shape, dtype, monkeypatch):
    monkeypatch.setattr(pools, "MIN_COST_PER_SHARD", 1000)
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    parts = []
    for threads in (1, 3):
        with (
            tf.Graph().as_default(),
            tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=threads)) as session,
        ):
            value = tf.placeholder(dtype)
            y = getattr(tf, op)(value)
            parts.append(session.run(y, {value: x}))
            pools_of = [d for d in session.trace(y, {value: x}).step_stats.dev_stats if d.device.endswith("/intra-op")]
            assert [len(d.node_stats) for d in pools_of] == ([] if threads == 1 else [3])
    np.testing.assert_array_equal(*parts, strict=True)


@pytest.mark.parametrize(
    "shapes", [((300, 200), (200, 100)), ((100, 200), (200, 300)), ((2, 1, 120, 80), (3, 80, 120))]
)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int32])
def test_a_product_in_parts_is_the_product(shapes, turned, dtype, monkeypatch):
    monkeypatch.setattr(pools, "MIN_COST_PER_SHARD", 1000)
    monkeypatch.setattr(matmul, "ONE_BLOCK", 0)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(dtype) for shape in shapes)
    left, right = (np.ascontiguousarray(np.swapaxes(x, -1, -2)) if turned else x for x in (a, b))
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=3)) as session:
        fed = [tf.placeholder(dtype, x.shape) for x in (left, right)]
        product = tf.matmul(*fed, transpose_a=turned, transpose_b=turned)
        found = session.run(product, dict(zip(fed, (left, right), strict=True)))
        stats = session.trace(product, dict(zip(fed, (left, right), strict=True))).step_stats
    np.testing.assert_array_equal(found, a @ b, strict=True)
    assert any(d.device.endswith("/intra-op") for d in stats.dev_stats)


# -- whose the threads are ----------------------------------------------------------------------------------------


@pytest.fixture
def fresh_process(monkeypatch):
    monkeypatch.setattr(pools, "PROCESS", pools._OfTheProcess())
    for variable in ("TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"):
        monkeypatch.delenv(variable, raising=False)


def session_pools(**config):
    cpus = [Device(f"/job:localhost/replica:0/task:0/device:CPU:{i}") for i in range(2)]
    found = SessionPools(tf.ConfigProto(**config), cpus)
    assert all(cpu.inter_op is found.pools for cpu in cpus)
    return found


def test_the_first_session_makes_the_pool_and_the_others_share_it(fresh_process):
    first = session_pools(inter_op_parallelism_threads=3)
    second = session_pools(inter_op_parallelism_threads=7)
    assert first.pools == second.pools and [pool.limit for pool in first.pools] == [3]


def test_a_session_may_have_threads_of_its_own(fresh_process):
    first = session_pools(inter_op_parallelism_threads=3)
    second = session_pools(inter_op_parallelism_threads=7, use_per_session_threads=True)
    assert [pool.limit for pool in second.pools] == [7] and second.pools != first.pools


@pytest.mark.parametrize(("asked", "per_session"), [(0, False), (0, True), (-1, True)])
def test_no_number_means_as_many_as_there_are_cores(fresh_process, asked, per_session):
    found = session_pools(inter_op_parallelism_threads=asked, use_per_session_threads=per_session)
    assert [pool.limit for pool in found.pools] == [os.cpu_count()] and found.choose(None) == 0


def test_the_environment_says_it_for_programs_that_do_not(fresh_process, monkeypatch):
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "5")
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "4")
    assert [pool.limit for pool in session_pools().pools] == [5]
    device = Device("/job:worker/replica:0/task:0/device:GPU:1", config=tf.ConfigProto())
    assert device.intra_op.threads == 4 and [pool.limit for pool in device.inter_op] == [5]
    asked = tf.ConfigProto(intra_op_parallelism_threads=2, inter_op_parallelism_threads=3)
    device = Device("/job:worker/replica:0/task:0/device:GPU:1", config=asked)
    assert device.intra_op.threads == 2 and [pool.limit for pool in device.inter_op] == [3]


def test_listing_devices_makes_no_pool(fresh_process):
    from dtflab.python.client import device_lib

    device_lib.list_local_devices()
    assert pools.PROCESS._pool is None


def test_pools_of_a_config_by_number_and_by_name(fresh_process):
    config = tf.ConfigProto()
    config.session_inter_op_thread_pool.add(num_threads=2)
    config.session_inter_op_thread_pool.add(num_threads=3, global_name="shared")
    first, second = (SessionPools(config, [], REAL) for _ in range(2))
    assert [pool.limit for pool in first.pools] == [2, 3]
    assert first.pools[0] is not second.pools[0] and first.pools[1] is second.pools[1]
    config.session_inter_op_thread_pool[1].num_threads = 4
    with pytest.raises(
        errors.InvalidArgumentError, match=r"Pool shared configured previously with num_threads=3; cann"
    ):
        SessionPools(config, [], REAL)


def test_threads_of_a_session_end_with_it(monkeypatch):
    monkeypatch.setattr(Pool.__init__, "__defaults__", (REAL, "pool", None, 1000.0))  # nothing ends by being idle
    config = tf.ConfigProto(use_per_session_threads=True, intra_op_parallelism_threads=3)
    before = set(threading.enumerate())
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [512, 512])
        values = [tf.matmul(x, x), tf.py_func(np.sum, [x], tf.float32), tf.py_func(np.max, [x], tf.float32)]
        for _ in range(3):
            with tf.Session(config=config) as session:
                session.run(values, {x: np.ones((512, 512), np.float32)})
                mine = {thread.name for thread in set(threading.enumerate()) - before}
                assert {"CPU:0 intra-op 1", "CPU:0 intra-op 2", "CPU inter-op 1"} <= mine
            until(lambda: not set(threading.enumerate()) - before, "they have ended")


def test_pools_do_not_keep_the_interpreter_alive():
    pool = IntraOpPool("CPU:0", 2)
    daemons, together = [], threading.Barrier(2)
    pool.shard(2, PART, lambda *part: daemons.append(together.wait(30) >= 0 and threading.current_thread().daemon))
    assert True in daemons
    pool.close()
