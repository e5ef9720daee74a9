"""Simulated GPUs, through sessions: what is in whose memory, what is copied, what is freed."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine.hosts import THIS_PROCESS, simulate_gpus, this_home, visible_claims
from dtflab.machine.memory import located

GPU, CPU = "/job:localhost/replica:0/task:0/device:GPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"


@pytest.fixture(autouse=True)
def one_card(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)  # tests/conftest.py hides real cards from TensorFlow
    simulate_gpus(1)
    with tf.Graph().as_default():
        yield
    simulate_gpus(None)


def memory():
    """The memory of /gpu:0, as this process has it."""
    return visible_claims(this_home().host, THIS_PROCESS, None)[0].memory


def traced(fetches, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        stats = session.trace(fetches, feed).step_stats
    return {device.device: [node.node_name for node in device.node_stats] for device in stats.dev_stats}


def test_the_default_device_is_the_gpu_and_values_cross_to_it_and_back():
    x = tf.placeholder(tf.float32, [2], name="x")
    ran = traced(tf.identity(x * 2.0, name="y"), {x: [1, 2]})
    assert {"mul", "y"} <= set(ran[GPU])
    assert ran[GPU + "/memcpy"] == [
        "_arg_x_0_0/to_job_localhost_replica_0_task_0_device_GPU_0/0/recv:MEMCPYHtoD",
        "y/to_job_localhost_replica_0_task_0_device_CPU_0/0/send:MEMCPYDtoH",
    ]


def test_int32_arithmetic_of_a_gpu_is_done_in_host_memory():
    with tf.device("/gpu:0"):
        x = tf.placeholder(tf.int32, [2], name="x")
        doubled = tf.add(x, x, name="doubled")
        row = tf.reshape(tf.ones([4]), doubled, name="row")
    with tf.Session() as session:
        built = session.trace([doubled, row], {x: [1, 1]})
    copied = [n.node_name for d in built.step_stats.dev_stats if d.device.endswith("memcpy") for n in d.node_stats]
    assert all(name.startswith("row/") for name in copied) and len(copied) == 1
    ran = {node.node_name: node.timeline_label for d in built.step_stats.dev_stats for node in d.node_stats}
    assert "= _HostRecv(" not in "".join(ran.values())  # to wait for a value in host memory is not work of the card
    assert "RecvTensor" in ran


def test_what_a_step_made_is_freed_with_it():
    gc.disable()
    try:
        with tf.Session() as session:
            product = tf.matmul(tf.random_normal([64, 64]), tf.random_normal([64, 64]))
            loop = tf.reduce_sum(product)
            for _ in range(3):
                session.run([loop, product])
                after = memory().bytes_in_use
        assert [str(buffer) for buffer in memory().buffers() if buffer.size > 256] == []
        assert after < 16 * 256  # constants stay as long as the session
        del session
        assert memory().bytes_in_use == 0
    finally:
        gc.enable()


def test_a_variable_stays_and_its_updates_take_no_more():
    w = tf.Variable(tf.zeros([1024]), name="w")
    update = w.assign_add(tf.ones([1024]))
    with tf.Session() as session:
        session.run(w.initializer)
        for _ in range(5):
            session.run(update.op)
        assert [(str(b), b.size) for b in memory().buffers() if b.variable] == [("variable w", 4096)]
        np.testing.assert_array_equal(session.run(w), np.full(1024, 5, np.float32))


def test_a_reference_variable_is_read_by_another_device_when_it_was_updated():
    with tf.device("/gpu:0"):
        w = tf.Variable([1.0, 2.0])
        update = w.assign_add([10.0, 10.0])
    with tf.device("/cpu:0"), tf.control_dependencies([update.op]):
        read = tf.identity(w)
    with tf.Session() as session:
        session.run(w.initializer)
        np.testing.assert_array_equal(session.run(read), [11.0, 12.0])


def test_what_was_fetched_is_not_in_the_memory_of_the_device():
    with tf.Session() as session:
        value = session.run(tf.random_normal([1000]))
        assert located(value) == (None, None)
        assert [b for b in memory().buffers() if b.size > 256] == []


def test_gpus_of_two_tasks_do_not_share_their_host_memory():
    with tf.Cluster(worker=2, gpus=1) as cluster:
        with tf.device("/job:worker/task:0/gpu:0"):
            a = tf.random_normal([100], seed=1)
        with tf.device("/job:worker/task:1/gpu:0"):
            b = a * 2.0
        with tf.Session(cluster.target) as session:
            first, second = session.run([a, b])
        np.testing.assert_array_equal(first * 2, second)


def taken():
    """GPU → MiB that this process holds of it."""
    return {process.gpu: process.held >> 20 for host in tf.smi().hosts for process in host.processes}


def test_the_first_tensor_on_a_card_takes_all_cards_that_the_program_sees():
    simulate_gpus(3)
    with tf.device("/gpu:1"):
        x = tf.ones([10])
    with tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(visible_device_list="0,2"))) as session:
        session.list_devices()
        assert taken() == {}  # looking takes nothing
        session.run(x)
        assert taken() == {0: 3784, 2: 3784}


def test_errors_name_a_card_as_the_newest_session_does():
    simulate_gpus(2, memory="512MiB")
    run_alone("/gpu:0", 1, visible_device_list="1")
    for number in (0, 1):
        with pytest.raises(tf.errors.ResourceExhaustedError, match=f"on .*GPU:{number} by allocator GPU_{number}_bfc"):
            run_alone(f"/gpu:{number}", 200 << 20)


def run_alone(device, size, **options):
    with tf.Graph().as_default(), tf.device(device):
        x = tf.fill([size], 1.0)
        with tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(**options))) as session:
            session.run(x.op)


def test_a_program_that_grows_takes_only_what_it_needs():
    simulate_gpus(2)
    config = tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True))
    with tf.Session(config=config) as session:
        session.run(tf.ones([10]))
        assert list(taken()) == [0] and taken()[0] < 50
