"""The arrays of a device: who made them, who holds them, when they get free, and what is said if they don't fit."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.node import make_node
from dtflab.machine.bfc_allocator import BFCAllocator
from dtflab.machine.clock import REAL
from dtflab.machine.hosts import simulate_gpus
from dtflab.machine.memory import DeviceMemory, located
from dtflab.ops.cell import Cell, update_together
from dtflab.runtime.client import explained
from tests.machine.test_peak import memory_of

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def memory():
    return DeviceMemory(GPU, BFCAllocator("GPU_0_bfc", 64 * KIB, lambda nbytes: True))


@pytest.fixture
def no_collector():
    gc.disable()
    yield
    gc.enable()


def node(name="MatMul"):
    return make_node(name, "NoOp")


def kib(count):
    return np.zeros(count * KIB, np.uint8)


# ---- what counts ----


def test_an_array_is_accounted_until_the_last_one_on_its_buffer_is_gone(memory, no_collector):
    array = memory.keep(kib(4), node())
    view = array[100:].view("i4").reshape(3, -1)
    assert memory.keep(view, node("Reshape")) is view and memory.bytes_in_use == 4 * KIB
    assert [str(buffer) for buffer in memory.buffers()] == ["MatMul"]
    del array
    assert memory.bytes_in_use == 4 * KIB
    del view
    assert memory.bytes_in_use == 0 and memory.buffers() == []


def test_a_view_that_comes_first_stands_for_all_of_its_buffer(memory):
    strided = np.lib.stride_tricks.as_strided(kib(4), (2, 2), (1, 1))
    memory.keep(strided, node())
    assert memory.bytes_in_use == 4 * KIB


def test_scalars_become_arrays_and_outputs_keep_their_form(memory):
    kept = memory.keep([np.float32(1.5), (kib(1), None), b"text", np.array([b"a"], object)], node())
    assert isinstance(kept[0], np.ndarray) and kept[0].shape == () and kept[0] == 1.5
    assert kept[1][1] is None and kept[2] == b"text"
    assert memory.bytes_in_use == 256 + KIB, "text is in host memory"


def test_tensors_without_elements_need_nothing(memory):
    empty = memory.keep(np.zeros((0, 5)), node())
    assert empty.shape == (0, 5) and memory.bytes_in_use == memory.allocator.stats.pool_bytes == 0


def test_nothing_is_accounted_of_what_does_not_fit(memory, no_collector):
    with pytest.raises(errors.ResourceExhaustedError):
        memory.keep(kib(65), node())
    assert memory.bytes_in_use == 0
    assert memory.keep(kib(64), node()).nbytes == 64 * KIB


def test_what_only_a_cycle_holds_is_collected_before_it_is_said_that_memory_is_full(memory, no_collector):
    cycle = [memory.keep(kib(40), node())]
    cycle.append(cycle)
    del cycle
    assert memory.bytes_in_use == 64 * KIB, "one chunk, which was not split"
    memory.keep(kib(60), node())


def test_an_id_that_is_used_again_is_another_array(memory):
    for _ in range(200):
        array = memory.keep(kib(1), node())
        assert memory.bytes_in_use == KIB and located(array)[0] is memory
        del array


# ---- variables ----


def test_a_cell_is_accounted_whoever_writes_it(memory):
    cell = Cell("w", dtypes.uint8, (4 * KIB,))
    cell.memory = memory
    cell.assign(memory.keep(kib(4), node("zeros")))
    cell.update(lambda value, out: np.add(value, 1, out=out))
    assert memory.bytes_in_use == 4 * KIB and [str(buffer) for buffer in memory.buffers()] == ["variable w"]
    reader = cell.read()
    cell.update(lambda value, out: np.add(value, 1, out=out))
    assert memory.bytes_in_use == 8 * KIB, "the reader keeps the old value"
    del reader
    assert memory.bytes_in_use == 4 * KIB
    reader = cell.read()
    update_together([cell], np, lambda values: values[0].fill(7))
    assert memory.bytes_in_use == 8 * KIB and cell.read()[0] == 7 and reader[0] == 2
    cell.assign(None)
    del reader
    assert memory.bytes_in_use == 0


def test_an_update_that_does_not_fit_changes_nothing(memory):
    cell = Cell("w", dtypes.uint8, (40 * KIB,))
    cell.memory = memory
    cell.assign(kib(40))
    reader = cell.read()
    with pytest.raises(errors.ResourceExhaustedError, match="variable w: uint8"):
        cell.update(lambda value, out: np.add(value, 1, out=out))
    assert reader[0] == cell.read()[0] == 0 and memory.bytes_in_use == 64 * KIB, "one chunk, which was not split"


# ---- threads and moments ----


def test_an_array_may_go_while_another_one_comes(memory, no_collector):
    """The interpreter frees arrays when it likes: here in the middle of an allocation, on the same thread."""
    holder = [memory.keep(kib(8), node())]
    allocate = memory.allocator.allocate

    def lets_go(nbytes, what=None):
        holder.clear()
        return allocate(nbytes, what)

    memory.allocator.allocate = lets_go
    other = memory.keep(kib(1), node())
    assert memory.bytes_in_use == KIB and located(other)[1].nbytes == KIB


def test_many_threads_at_once(memory):
    def work():
        for _ in range(300):
            arrays = [memory.keep(kib(1), node()) for _ in range(3)]
            assert all(located(array)[0] is memory for array in arrays)

    threads = [REAL.spawn(work) for _ in range(4)]
    for thread in threads:
        thread.join(60)
    assert memory.bytes_in_use == 0 and memory.allocator.stats.num_allocs == 4 * 900


def test_two_threads_that_give_the_same_array_account_it_once(memory):
    array, barrier = kib(1), threading.Barrier(4, timeout=60)

    def work():
        barrier.wait()
        memory.keep(array, node())

    threads = [REAL.spawn(work) for _ in range(4)]
    for thread in threads:
        thread.join(60)
    assert memory.bytes_in_use == KIB


# ---- what is said ----


def refusal(memory, value, name="MatMul"):
    with pytest.raises(errors.ResourceExhaustedError) as full:
        memory.keep(value, node(name))
    return full.value


def test_the_error_is_tensorflows_with_who_holds_what(memory):
    kept = [memory.keep(kib(8), node("weights")), memory.keep(np.zeros((4, 256), "f"), node("layer/Relu"))]
    error = refusal(memory, np.zeros((64, 240), "f"))
    help = (
        "60.0KiB are wanted, 52.0KiB of 64.0KiB are free. Smaller batches need less; a control dependency that makes "
        "one branch wait for the end of another frees the first one's tensors before."
    )
    assert error.message.splitlines() == [
        f"OOM when allocating tensor with shape[64,240] and type float on {GPU} by allocator GPU_0_bfc",
        help,
        f"Current usage from device: {GPU}, allocator: GPU_0_bfc",
        "  8.0KiB from weights: uint8[8192]",
        "  4.0KiB from layer/Relu: float[4,256]",
    ]
    assert "InUse at 2000 of size 4096 by op layer/Relu action_count 2 next 2" in error.report.splitlines()
    assert len(kept) == 2


def test_the_lines_of_the_program_are_in_the_usage(memory):
    x = tf.constant(1.0, name="made_here")
    kept = memory.keep(kib(4), x.op.node())
    assert kept.size and memory.usage().splitlines()[1].startswith("  4.0KiB from made_here: uint8[4096] (")
    assert f"{__file__}:" in memory.usage() and "in test_the_lines_of_the_program" in memory.usage()


def test_a_tensor_has_the_shape_that_the_program_knows(memory):
    """Numbers are drawn four at a time, and what a kernel gives may be a view of them; a small part counts as the
    whole.
    """
    drawn = np.zeros((256, 4), "f")
    kept = [memory.keep(drawn.reshape(32, 32), node("drawn"))]
    kept.append(memory.keep(np.zeros((250, 4), "u4").reshape(-1)[:999].view("f"), node("cut")))
    kept.append(memory.keep(np.zeros((240, 4), "f")[:9], node("part")))
    origins = sorted(line.strip().partition(" from ")[2] for line in memory.usage().splitlines()[1:])
    assert origins == ["cut: float[999]", "drawn: float[32,32]", "part: float[240,4]"] and len(kept) == 3


def test_many_small_tensors_are_one_line(memory):
    kept = [memory.keep(kib(1), node(f"n{i}")) for i in range(20)]
    lines = memory.usage().splitlines()
    assert len(lines) == 12 and lines[-1] == "  Remaining 10 tensors with 10.0KiB"
    del kept[:19]
    kept.append(memory.keep(kib(40), node("big")))
    assert len(memory.usage().splitlines()) == 3


@pytest.mark.parametrize(
    ("taken", "wanted", "why"),
    [
        ([], 65, "65.0KiB are wanted: more than this program has on the card, 64.0KiB."),
        ([40], 8, "8.0KiB are wanted and 0B are free; 24.0KiB are lost in chunks that are larger than their tensors"),
        ([16, 16, 16, 16, -1, -3], 20, "but in pieces of at most 16.0KiB: memory is fragmented."),
    ],
)
def test_it_says_why(memory, taken, wanted, why):
    kept = [memory.keep(kib(size), node()) for size in taken if size > 0]
    for gone in sorted((-place - 1 for place in taken if place < 0), reverse=True):
        del kept[gone]
    assert why in refusal(memory, kib(wanted)).message


def test_it_says_who_else_is_on_the_card():
    memory = DeviceMemory(GPU, BFCAllocator("GPU_0_bfc", MIB, lambda nbytes: False), lambda: "Process 7 holds 3 GiB.")
    message = refusal(memory, kib(1)).message
    assert "failed to allocate 1.00MiB from device: CUDA_ERROR_OUT_OF_MEMORY. 1.0KiB are wanted;" in message
    assert message.splitlines()[-1] == "Process 7 holds 3 GiB." and memory.bytes_in_use == 0


# ---- through the product ----


@pytest.fixture
def card(monkeypatch, request):
    """A card with just the memory for 1 MiB of tensors, whatever else TensorFlow's rules leave to the system."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(1, memory="1GiB")
    with tf.Graph().as_default():
        yield tf.ConfigProto(gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=1 / 1024))
    simulate_gpus(None)


def test_memory_is_filled_to_the_last_byte_and_not_one_more(card, no_collector):
    sizes = tf.placeholder(tf.int32, [1])
    handle = tf.get_session_handle(tf.zeros(sizes, tf.uint8))
    with tf.Session(config=card) as session:
        kept = [session.run(handle, {sizes: [1]})]  # and the constant that fills
        memory = memory_of(session)
        assert memory.allocator.limit == MIB and memory.allocator.stats.pool_bytes == MIB
        # 1, 2, 4, … half of what is left, so that each chunk is split; at last what is left.
        while memory.allocator.free_bytes > 512:
            kept.append(session.run(handle, {sizes: [memory.allocator.largest_free_chunk // 512 * 256]}))
        while memory.allocator.free_bytes:
            kept.append(session.run(handle, {sizes: [256]}))
        assert memory.bytes_in_use == MIB
        assert sum(buffer.nbytes for buffer in memory.buffers()) == MIB - 255 - 255, "the first and the constant"
        for _ in range(3):  # nothing is lost by trying
            with pytest.raises(tf.errors.ResourceExhaustedError, match=r"shape\[1\] and type uint8"):
                session.run(handle, {sizes: [1]})
            assert memory.bytes_in_use == MIB
        kept.pop().delete()
        kept.append(session.run(handle, {sizes: [256]}))
        assert memory.bytes_in_use == MIB
        for each in kept:
            each.delete()
        assert memory.bytes_in_use == 256


def test_an_error_that_is_kept_keeps_no_tensors(card, no_collector):
    size = tf.placeholder(tf.int32, [1])
    large = tf.negative(tf.fill(size, 1.0))
    with tf.Session(config=card) as session:
        session.run(large, {size: [1]})
        memory = memory_of(session)
        before = memory.bytes_in_use
        with pytest.raises(tf.errors.ResourceExhaustedError) as full:
            session.run([large, tf.add(large, tf.fill(size, 1.0))], {size: [(MIB // 4) * 3 // 5]})
        assert full.value.node_name and full.value.line and full.value.report.startswith("BFCAllocator dump")
        assert memory.bytes_in_use == before + 512, "the two constants of these fetches, that is all"


def test_the_error_that_a_client_shows_has_none_of_the_frames_of_the_one_it_got(no_collector):
    seen = []

    def kernel():
        array = kib(1)
        seen.append(weakref.ref(array))
        raise errors.ResourceExhaustedError(None, None, "OOM\n\t [[{{node inside}}]]")

    def ask():
        try:
            kernel()
        except errors.OpError as error:
            raise explained(error, tf.Graph(), "") from None

    with pytest.raises(errors.ResourceExhaustedError) as full:
        ask()
    assert "inside" in full.value.message and [ref() for ref in seen] == [None]


def test_the_error_of_a_session_names_the_op_and_its_line(card):
    x = tf.zeros([1 << 20], name="too_large")
    with tf.Session(config=card) as session, pytest.raises(tf.errors.ResourceExhaustedError) as full:
        session.run(x.op)
    first, *_ = full.value.message.splitlines()
    assert first == f"OOM when allocating tensor with shape[1048576] and type float on {GPU} by allocator GPU_0_bfc"
    assert full.value.node_name == "too_large" and f'File "{__file__}"' in str(full.value)
    assert "[[{{node too_large}}]]" in full.value.message


def test_arrays_of_a_session_that_is_gone_are_gone(card, no_collector):
    w = tf.Variable(tf.fill([1000], 1.0))
    with tf.Session(config=card) as session:
        session.run(w.initializer)
        memory = memory_of(session)
        (variable,) = [weakref.ref(buffer.owner()) for buffer in memory.buffers() if buffer.variable]
    del session
    gc.collect()
    assert variable() is None and memory.bytes_in_use == 0
