"""The real GPU, end to end. On a machine without a card the same tests run on a stand-in for CuPy.

The stand-in (tests/fake_cupy.py) is not a GPU: it computes with NumPy, and shows that dtflab keeps to CuPy's interface.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph.node import make_node
from dtflab.machine import cuda, smi
from tests import fake_cupy
from tests.gpu.sessions import GPU, NO_CARD, session

MIB = 1 << 20


def only_on_stand_in(cupy):
    if not hasattr(cupy.get_default_memory_pool(), "limits"):
        pytest.skip("only the stand-in can be made to fail where the card itself would have to")


@pytest.mark.skipif(NO_CARD is not None, reason=f"tests/gpu ran on a stand-in: {NO_CARD}")
def test_there_is_a_card():
    assert cuda.cards("localhost")[0].real


# -- values and where they are -----------------------------------------------------------------------------------


def test_a_card_is_a_device_that_says_what_it_is(cupy):
    with session() as sess:
        found = [d for d in sess.list_devices() if d.device_type == "GPU"]
    assert [d.name[-5:] for d in found] == [f"GPU:{i}" for i in range(cupy.cuda.runtime.getDeviceCount())]
    card = cuda.cards("localhost")[0]
    assert card.real and card.pci_bus_id == cupy.cuda.runtime.deviceGetPCIBusId(0)
    assert card.model.memory_bytes == cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"]


def test_a_product_is_computed_on_the_card(cupy, devices):
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
    with tf.device(GPU):
        product = tf.matmul(tf.constant(a), tf.constant(b))
    with session() as sess:
        np.testing.assert_allclose(sess.run(product), a @ b)
    assert devices[0].xp is cupy


def test_a_variable_lives_on_the_card(cupy, devices):
    with tf.device(GPU):
        v = tf.Variable(np.ones(3, np.float32))
        more = tf.assign_add(v, [1, 2, 3])
    with session() as sess:
        sess.run(v.initializer)
        assert sess.run(more).tolist() == [2, 3, 4]
        assert type(sess.run(v)) is np.ndarray
        ((_, _, cell),) = devices[0].resources.items()
        assert isinstance(cell.value, cupy.ndarray)


def test_an_update_of_a_variable_writes_into_its_memory(cupy, devices):
    with tf.device(GPU):
        v = tf.Variable(np.ones(1000, np.float32))
        more = tf.assign_add(v, tf.ones(1000))
    with session() as sess:
        sess.run(v.initializer)
        sess.run(more.op)
        ((_, _, cell),) = devices[0].resources.items()
        place = weakref.ref(cell.value)
        sess.run(more.op)
        assert place() is cell.value and sess.run(v)[0] == 3


def test_int32_arithmetic_and_shapes_stay_on_the_host(cupy, devices):
    with tf.device(GPU):
        x = tf.placeholder(tf.float32, [None, 3])
        rows = tf.shape(x)[0] * 2
        y = tf.reshape(tf.tile(x, [2, 1]), [rows, -1])
    with session() as sess:
        assert sess.run(y, {x: np.ones((2, 3))}).shape == (4, 3)
        assert sess.run(rows, {x: np.ones((2, 3))}) == 4


def test_an_op_that_cupy_lacks_runs_on_the_host_with_copies(cupy):
    with tf.device(GPU):
        values, places = tf.unique(tf.constant([3.0, 1.0, 3.0]))
    metadata = tf.RunMetadata()
    with session() as sess:
        found = sess.run([values, places], None, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
    assert [f.tolist() for f in found] == [[3, 1], [0, 1, 0]]
    copies = copies_of(metadata)
    assert "Unique:MEMCPYDtoH" in copies and "Unique:MEMCPYHtoD" in copies


def test_a_note_of_a_copy_does_not_hold_the_array(cupy, devices):
    with session() as sess:
        sess.list_devices()
        array = devices[0]._copier(make_node("random", "NoOp"), to_host=False)(np.ones(1000))
        alive = weakref.ref(array)
        del array
        (copy,) = devices[0]._copies()
        assert alive() is None and copy[-1].nbytes == 8000


def test_random_numbers_are_those_of_a_cpu(cupy):
    found = []
    for place in (GPU, "/cpu:0"):
        with tf.Graph().as_default(), tf.device(place):
            numbers = tf.random_normal([4, 5], seed=3)
            with session() as sess:
                found.append(sess.run(numbers))
    assert np.array_equal(*found)


def test_bfloat16_stays_with_the_host(cupy):
    with tf.device(GPU):
        short = tf.cast(tf.constant([1.5, 2.25]), tf.bfloat16)
        doubled = tf.cast(short + short, tf.float32)
    with session() as sess:
        assert sess.run(doubled).tolist() == [3.0, 4.5]


def test_a_branch_is_chosen_on_the_card(cupy):
    with tf.device(GPU):
        x = tf.placeholder(tf.float32, [])
        chosen = tf.cond(x > 2.0, lambda: x + 1.0, lambda: x - 1.0)
    with session() as sess:
        assert sess.run(chosen, {x: 3.0}) == 4.0
        assert sess.run(chosen, {x: 1.0}) == 0.0


def test_two_cards_work_together(cupy, devices):
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("one card only")
    with tf.device("/gpu:0"):
        a = tf.ones([2, 2]) + 1
    with tf.device("/gpu:1"):
        b = tf.matmul(a, a)
    with session() as sess:
        assert sess.run(b).tolist() == [[8, 8], [8, 8]]
    assert [d.card.id for d in devices] == [0, 1]


# -- training ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "optimizer",
    [
        tf.train.GradientDescentOptimizer(0.5),
        tf.train.MomentumOptimizer(0.1, 0.9),
        tf.train.AdamOptimizer(0.05),
    ],
    ids=lambda o: type(o).__name__,
)
def test_training_on_the_card_is_training_on_a_cpu(cupy, optimizer):
    losses = {place: trained(place, optimizer) for place in (GPU, "/cpu:0")}
    np.testing.assert_allclose(losses[GPU], losses["/cpu:0"], rtol=1e-4)
    assert losses[GPU][-1] < losses[GPU][0] / 2


def trained(place, optimizer):
    """The losses of a small classifier with two layers, on one device."""
    random = np.random.default_rng(5)
    points = random.normal(size=(60, 4)).astype(np.float32)
    labels = (points[:, 0] > points[:, 1]).astype(np.int64)
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int64, [None])
        with tf.device(place):
            hidden = tf.nn.relu(tf.matmul(x, matrix(random, 4, 8)) + tf.Variable(tf.zeros([8])))
            logits = tf.matmul(hidden, matrix(random, 8, 2)) + tf.Variable(tf.zeros([2]))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
            step = optimizer.minimize(loss)
        with session() as sess:
            sess.run(tf.global_variables_initializer())
            return [sess.run([loss, step], {x: points, y: labels})[0] for _ in range(40)]


def matrix(random, rows, columns):
    return tf.Variable((random.normal(size=(rows, columns)) * 0.5).astype(np.float32))


def test_rows_of_an_embedding_are_trained(cupy):
    with tf.device(GPU):
        table = tf.get_variable("table", [5, 2], initializer=tf.ones_initializer())
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 3, 1]))
        step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step)
        assert sess.run(table)[:, 0].tolist() == [1, 0, 1, 0.5, 1]


# -- transfers and traces ----------------------------------------------------------------------------------------


def copies_of(metadata):
    """Bytes of each traced copy, by its name."""
    stats = [d for d in metadata.step_stats.dev_stats if d.device.endswith("/memcpy")]
    return {
        n.node_name: sum(o.tensor_description.allocation_description.requested_bytes for o in n.output)
        for d in stats
        for n in d.node_stats
    }


def test_a_trace_shows_kernels_and_copies_with_their_bytes(cupy):
    x = tf.placeholder(tf.float32, [100])
    with tf.device(GPU):
        y = tf.sqrt(x, name="root")
    metadata = tf.RunMetadata()
    with session() as sess:
        sess.run(y, {x: np.ones(100)}, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), metadata)
    assert sorted(copies_of(metadata).values()) == [400, 400]
    (gpu,) = (d for d in metadata.step_stats.dev_stats if d.device.endswith("GPU:0"))
    assert "root" in [n.node_name for n in gpu.node_stats]


def test_the_host_waits_only_where_it_needs_a_value(cupy, devices):
    only_on_stand_in(cupy)
    with tf.device(GPU):
        v = tf.Variable(tf.zeros([10]))
        step = tf.assign_add(v, tf.sqrt(v) + 1).op
    with session() as sess:
        sess.run(v.initializer)
        sess.run(step)  # the first step is traced, so it waits
        streams = devices[0].streams
        for stream in (streams.compute, streams.upload, streams.download):
            stream.log.clear()
        sess.run(step)
        assert "synchronize" not in streams.compute.log and streams.download.log == []
        sess.run(v)
        streams.download.log.clear()
        sess.run(v)
        assert streams.download.log == ["wait", "DtoH 40"]


def test_a_copy_to_the_card_follows_its_memory_and_precedes_its_readers(cupy, devices):
    only_on_stand_in(cupy)
    x = tf.placeholder(tf.float32, [10])
    with tf.device(GPU):
        y = x * 2.0
    with session() as sess:
        for _ in range(2):  # the first step is traced, so it waits
            sess.run(y, {x: np.ones(10)})
        assert devices[0].streams.upload.log[-2:] == ["wait", "HtoD 40"]
        assert "wait" in devices[0].streams.compute.log


# -- memory ------------------------------------------------------------------------------------------------------


def test_the_fraction_limits_the_pool(cupy, devices):
    with session(per_process_gpu_memory_fraction=0.25) as sess:
        sess.list_devices()
        assert devices[0].memory_limit == pytest.approx(total_memory(cupy) / 4, abs=512)


def test_out_of_memory_names_the_op_and_who_holds_what(cupy):
    with tf.device(GPU):
        small = tf.get_variable("small", [1 << 20], initializer=tf.zeros_initializer())
        large = tf.zeros([1 << 17, 1 << 10], name="large") + small[0]
    with session(per_process_gpu_memory_fraction=256 * MIB / total_memory(cupy)) as sess:
        sess.run(small.initializer)
        with pytest.raises(errors.ResourceExhaustedError) as raised:
            sess.run(tf.reduce_sum(large))
        assert "GPU:0" in str(raised.value) and "small" in str(raised.value) and "large" in str(raised.value)
        assert sess.run(small)[0] == 0  # and the session goes on


def total_memory(cupy):
    return cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"]


def test_memory_is_given_back_when_its_last_reader_has_run(cupy, devices):
    with tf.device(GPU):
        total = tf.reduce_sum(tf.random_uniform([1 << 16]))
    with session() as sess:
        sess.run(total)
        before = devices[0].memory.bytes_in_use
        for _ in range(5):
            sess.run(total)
        gc.collect()
        assert devices[0].memory.bytes_in_use == before


def test_without_allow_growth_all_is_taken_at_once(cupy, devices):
    only_on_stand_in(cupy)
    with session(allow_growth=False) as sess:
        sess.list_devices()
        limit = devices[0].memory_limit
    assert cupy.get_default_memory_pool().limits[0] == limit > 0.6 * (1 << 30)


def test_a_card_that_others_use_up_is_an_error_that_says_so(cupy, monkeypatch):
    only_on_stand_in(cupy)

    def full(*args):
        raise cupy.cuda.memory.OutOfMemoryError(1 << 30, 0, 0)

    monkeypatch.setattr(cupy, "empty", full)
    with session(allow_growth=False) as sess, pytest.raises(errors.ResourceExhaustedError, match="other programs"):
        sess.list_devices()


def test_smi_shows_the_card_and_this_process(cupy):
    with tf.device(GPU):
        v = tf.get_variable("v", [3 * MIB], initializer=tf.zeros_initializer())
    with session() as sess:
        sess.run(v.initializer)
        (host,) = smi.smi().hosts
    assert host.label == smi.REAL_CARDS and len(host.cards) == len(cuda.cards("localhost"))
    assert host.processes[0].gpu == 0 and host.processes[0].held >= host.processes[0].in_use >= 12 * MIB
    assert host.cards[0].name in str(smi.smi()) and "N/A" in host.cards[0].busy


# -- what goes wrong ---------------------------------------------------------------------------------------------


def test_an_error_of_cuda_comes_up_where_the_host_waits(cupy, devices):
    only_on_stand_in(cupy)
    with tf.device(GPU):
        y = tf.sqrt(tf.placeholder_with_default(tf.ones([3]), [3]), name="guilty")
    with session() as sess:
        sess.run(y)
        devices[0].streams.download.fails = cupy.cuda.runtime.CUDARuntimeError("cudaErrorIllegalAddress")
        with pytest.raises(errors.InternalError, match=r"cudaErrorIllegalAddress.*guilty"):
            sess.run(y)


def test_an_index_that_is_out_of_range_is_an_error_as_on_a_cpu(cupy):
    index = tf.placeholder(tf.int64, [1])
    with tf.device(GPU):
        row = tf.gather(tf.ones([3, 2]), index)
    with session() as sess, pytest.raises(errors.InvalidArgumentError, match=r"= 7 is not in \[0, 3\)"):
        sess.run(row, {index: [7]})


def test_without_cupy_there_is_no_card_and_a_reason(monkeypatch):
    monkeypatch.setattr(cuda, "_cupy", lambda: (_ for _ in ()).throw(ImportError("libcuda.so.1: no such file")))
    monkeypatch.setattr(cuda, "problem", cuda.problem.__wrapped__)
    monkeypatch.setattr(cuda, "cards", cuda.cards.__wrapped__)
    assert cuda.cards("localhost") == []
    assert "libcuda.so.1" in cuda.problem() and "pip install" in cuda.problem()


def test_a_driver_that_is_too_old_is_a_reason(monkeypatch):
    stand_in = fake_cupy.module(0, 0)

    def count():
        raise stand_in.cuda.runtime.CUDARuntimeError("cudaErrorInsufficientDriver")

    stand_in.cuda.runtime.getDeviceCount = count
    monkeypatch.setattr(cuda, "_cupy", lambda: stand_in)
    assert "cudaErrorInsufficientDriver" in cuda.problem.__wrapped__()
