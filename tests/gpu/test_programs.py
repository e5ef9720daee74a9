"""Programs that use more than kernels, on the card: queues, handles, partial runs, checkpoints, clusters."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from tests.gpu.sessions import GPU, session


def test_a_queue_holds_arrays_of_the_card(cupy):
    with tf.device(GPU):
        queue = tf.FIFOQueue(5, [tf.float32], shapes=[[3]])
        put = queue.enqueue([tf.sqrt(tf.ones([3]) * 4)])
        got, size = queue.dequeue() + 1, queue.size()
    with session() as sess:
        sess.run(put)
        sess.run(put)
        assert sess.run(size) == 2
        assert sess.run(got).tolist() == [3, 3, 3]


def test_a_tensor_stays_in_the_session_by_its_handle(cupy):
    with tf.device(GPU):
        handle = tf.get_session_handle(tf.ones([2]) * 3)
    with session() as sess:
        assert sess.run(handle).eval().tolist() == [3, 3]


def test_assertions_and_questions_about_variables(cupy):
    with tf.device(GPU):
        x = tf.placeholder(tf.float32, [2])
        with tf.control_dependencies([tf.Assert(tf.reduce_all(x > 0), [x])]):
            y = x + 1
        made = tf.is_variable_initialized(tf.get_variable("v", [2]))
    with session() as sess:
        assert sess.run(y, {x: [1, 1]}).tolist() == [2, 2]
        assert not sess.run(made)
        with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
            sess.run(y, {x: [1, -1]})


def test_a_partial_run(cupy):
    with tf.device(GPU):
        a, b = (tf.placeholder(tf.float32, []) for _ in range(2))
        c = a + b
        d = c * b
    with session() as sess:
        handle = sess.partial_run_setup([c, d], [a, b])
        assert sess.partial_run(handle, c, {a: 1, b: 2}) == 3
        assert sess.partial_run(handle, d) == 6


def test_variables_are_saved_and_restored(cupy, tmp_path):
    with tf.device(GPU):
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        change = v.assign([5, 5, 5])
    saver = tf.train.Saver()
    with session() as sess:
        sess.run(v.initializer)
        path = saver.save(sess, str(tmp_path / "model"))
        sess.run(change)
        saver.restore(sess, path)
        assert sess.run(v).tolist() == [1, 1, 1]


def test_slices_of_a_resource_variable_and_its_moving_average(cupy):
    with tf.device(GPU):
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer(), use_resource=True)
        average = tf.train.ExponentialMovingAverage(0.5)
        update = average.apply([v])
        part = v[1:].assign([7.0, 8.0])
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(part)
        sess.run(update)
        assert sess.run(average.average(v)).tolist() == [1, 4, 4.5]


@pytest.mark.parametrize("name", ["Adagrad", "Adadelta", "RMSProp", "Ftrl", "ProximalAdagrad"])
def test_an_optimizer_makes_the_step_that_it_makes_on_a_cpu(cupy, name):
    found = []
    for place in (GPU, "/cpu:0"):
        with tf.Graph().as_default(), tf.device(place):
            v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
            step = getattr(tf.train, name + "Optimizer")(0.1).minimize(tf.reduce_sum(v * v))
            with session() as sess:
                sess.run(tf.global_variables_initializer())
                sess.run(step)
                found.append(sess.run(v))
    np.testing.assert_allclose(*found, rtol=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_a_convolution_and_its_gradients_are_those_of_a_cpu(cupy, padding):
    random = np.random.default_rng(6)
    images, filters = random.normal(size=(3, 9, 8, 2)), random.normal(size=(3, 2, 2, 5))
    found = []
    for place in (GPU, "/cpu:0"):
        with tf.Graph().as_default(), tf.device(place):
            x, w = (tf.constant(value.astype(np.float32)) for value in (images, filters))
            y = tf.nn.max_pool(
                tf.nn.relu(tf.nn.conv2d(x, w, [1, 2, 1, 1], padding)), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"
            )
            with session() as sess:
                found.append(sess.run([y, *tf.gradients(y * y, [x, w])]))
    for on_card, on_cpu in zip(*found, strict=True):
        np.testing.assert_allclose(on_card, on_cpu, rtol=1e-3, atol=1e-4)  # a card may compute in TF32


def test_a_large_product_is_that_of_a_cpu(cupy):
    a, b = np.random.default_rng(7).normal(size=(2, 300, 300)).astype(np.float32)
    with tf.device(GPU):
        product = tf.matmul(a, b, transpose_b=True)
    with session() as sess:
        np.testing.assert_allclose(sess.run(product), a @ b.T, rtol=1e-3, atol=0.05)


def test_cuda_numbers_its_cards_itself_and_a_ps_task_sees_none(cupy, monkeypatch):
    def gpus(job):
        server = tf.train.Server({job: ["localhost:0"]}, job, 0)
        try:
            with session(target=server.target) as sess:
                return sum(d.device_type == "GPU" for d in sess.list_devices())
        finally:
            server.stop()

    assert gpus("ps") == 0
    assert gpus("worker") == cupy.cuda.runtime.getDeviceCount()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6,7")  # CUDA shows these two as 0 and 1
    assert gpus("worker") == gpus("ps") == cupy.cuda.runtime.getDeviceCount()


def test_two_tasks_of_a_cluster_use_the_card(cupy):
    with tf.Cluster(ps=1, worker=2) as cluster:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
        products = []
        for i in range(2):
            with tf.device(f"/job:worker/task:{i}/gpu:0"):
                products.append(tf.matmul(tf.reshape(v, [1, 2]), tf.ones([2, 2])))
        with session(target=cluster.target) as sess:
            sess.run(v.initializer)
            assert [p.tolist() for p in sess.run(products)] == [[[2, 2]], [[2, 2]]]
