"""A tensor is freed at its last use: the peak of a step is what its graph needs, to the byte."""

from __future__ import annotations

import contextlib
import gc
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine import pools
from dtflab.machine.hosts import simulate_gpus
from dtflab.runtime.runner import Step
from tests.cluster.two_tasks import until
from tests.runtime.test_frames import turns

SIZE = 1 << 20
N = SIZE // 4  # floats in a tensor of that size
SMALL = 256  # what a scalar takes


@pytest.fixture(autouse=True)
def one_card(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(1, memory="4GiB")
    gc.disable()  # memory gets free by itself, not because a collector came by
    with tf.Graph().as_default():
        yield
    gc.enable()
    simulate_gpus(None)


def memory_of(session):
    """The memory of the session's /gpu:0."""
    devices = session._master.session(session.handle)._workers
    (worker,) = devices.values()
    return next(device.memory for device in worker.devices if device.type == "GPU")


@contextlib.contextmanager
def on_gpu():
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        yield session


def peak(session, fetches, feed=None, traced=False):
    """Bytes that the step needs at most, beyond what was there before; all of it is free again afterwards."""
    session.run(fetches, feed)  # constants are on the device now
    memory = memory_of(session)
    before = memory.allocator.stats.peak_bytes_in_use = memory.bytes_in_use
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE if traced else tf.RunOptions.NO_TRACE)
    session.run(fetches, feed, options=options, run_metadata=tf.RunMetadata())
    assert memory.bytes_in_use == before
    return memory.allocator.stats.peak_bytes_in_use - before


def big(value=1.0, name=None):
    """A tensor of SIZE bytes that the step makes on the device."""
    return tf.fill(tf.constant([N]), value, name=name)


def chain():
    """A tensor and the one that is made of it."""
    x = big()
    for _ in range(6):
        x = tf.cumsum(x)
    return x.op, 2 * SIZE


def chain_in_place():
    """A chain of values that nobody else can see, which are overwritten, as in TensorFlow."""
    x = big()
    for _ in range(6):
        x = tf.negative(x)
    return x.op, SIZE


def nobody_reads():
    """Three tensors one after the other, none of which is used."""
    a = big(1.0)
    with tf.control_dependencies([a]):
        b = big(2.0)
    with tf.control_dependencies([b]):
        c = big(3.0)
    return c.op, SIZE


def one_of_many_outputs():
    """A node with two outputs, of which one is not used; they are halves of its input, and keep all of it."""
    first, _ = tf.split(tf.fill(tf.constant([2 * N]), 1.0), 2)
    return tf.negative(tf.negative(first)).op, 3 * SIZE


def after_many_outputs():
    """The halves of a tensor are views of it; their sum is new."""
    first, second = tf.split(tf.cumsum(big()), 2)
    return (first + second).op, 2 * SIZE


def product():
    """Costly kernels, which may run on another thread."""
    x = tf.reshape(big(), [512, 512])
    for _ in range(3):
        x = tf.matmul(x, x)
    return x.op, 2 * SIZE


def loop():
    """A loop holds the value of one turn, and makes that of the next."""
    return turns(5, tf.cumsum, x=big(), parallel=1).op, 2 * SIZE


def branch():
    taken = tf.placeholder_with_default(True, [])
    x = tf.cond(taken, lambda: tf.cumsum(big()), lambda: tf.cumsum(tf.cumsum(big())))
    return x.op, 2 * SIZE


CASES = [chain, chain_in_place, nobody_reads, one_of_many_outputs, after_many_outputs, product, loop, branch]


@pytest.mark.parametrize("traced", [False, True], ids=["plain", "traced"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_peak_is_what_the_graph_needs(case, traced):
    op, needed = case()
    with on_gpu() as session:
        assert peak(session, op, traced=traced) == needed


@pytest.mark.parametrize("traced", [False, True], ids=["plain", "traced"])
def test_what_was_fed_and_what_is_fetched_have_an_end_too(traced):
    x = tf.placeholder(tf.float32, [N])
    y = x
    for _ in range(5):
        y = tf.cumsum(y)
    with on_gpu() as session:
        assert peak(session, y, {x: np.ones(N, "f")}, traced) == 2 * SIZE


@pytest.mark.parametrize(("of", "does", "kernels"), [(Step, "post", 2), (pools._Shards, "_part", 1)])
def test_what_a_step_freed_is_free_though_another_thread_is_slow_to_end(of, does, kernels, monkeypatch):
    """A pool's thread has said that it is done, and does not get the processor for a while."""
    is_over, slow, original = threading.Event(), [], getattr(of, does)

    def slow_to_end(self, *args):
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and isinstance(self, pools._Shards):  # else this thread could do the other part, too
            until(lambda: 1 not in self._not_begun, "the pool's thread has begun")
        original(self, *args)
        if not is_main and not slow:
            slow.append(threading.current_thread().name)
            is_over.wait(60)

    monkeypatch.setattr(of, does, slow_to_end)
    x = tf.reshape(big(), [512, 512])
    products = [tf.matmul(x, x).op for _ in range(kernels)]
    with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=2)) as session:
        session.run(products)
        left = [str(one) for one in memory_of(session).buffers() if one.size >= SIZE]
        is_over.set()
    assert len(slow) == 1 and left == []


def branches(one_after_the_other):
    """Four branches that each make two large tensors and reduce them to a scalar."""
    sums = []
    for i in range(4):
        with tf.control_dependencies(sums[-1:] if one_after_the_other else []):
            large = big(float(i))
            sums.append(tf.reduce_sum(tf.cumsum(large)))
    return tf.add_n(sums)


@pytest.mark.parametrize("traced", [False, True], ids=["plain", "traced"])
def test_a_control_dependency_lowers_the_peak(traced):
    free, bound = branches(False), branches(True)
    with on_gpu() as session:
        # All four are made before the first is used: four and the sums of one.
        assert peak(session, free, traced=traced) == 5 * SIZE
        # Two at a time, and what was summed up so far.
        assert peak(session, bound, traced=traced) == 2 * SIZE + 3 * SMALL


def test_a_variable_that_is_updated_in_place_needs_no_memory():
    w = tf.Variable(tf.fill(tf.constant([N]), 1.0))
    update = w.assign_add(tf.fill(tf.constant([N]), 2.0))
    with on_gpu() as session:
        assert peak(session, update.op) == SIZE
        assert memory_of(session).usage().splitlines()[1].startswith(f"  1.00MiB from variable {w.op.name}: float[{N}]")


def test_a_new_value_of_a_variable_takes_the_place_of_the_old_one():
    w = tf.Variable(tf.fill(tf.constant([N]), 1.0), use_resource=True)
    w_ref = tf.Variable(tf.fill(tf.constant([N]), 1.0), use_resource=False)
    set_both = tf.group(w.assign(big(3.0)), w_ref.assign(big(4.0)))
    with on_gpu() as session:
        session.run(set_both)
        memory = memory_of(session)
        before = memory.bytes_in_use
        session.run(set_both)
        assert memory.bytes_in_use == before
        variables = sorted(str(buffer) for buffer in memory.buffers() if buffer.variable)
        assert variables == ["variable Variable", "variable Variable_1"]


def test_values_that_stay_in_the_session_stay_in_memory_until_they_are_deleted():
    handle = tf.get_session_handle(big())
    with on_gpu() as session:
        kept = session.run(handle)
        assert memory_of(session).bytes_in_use >= SIZE
        kept.delete()
        assert memory_of(session).bytes_in_use < SIZE
