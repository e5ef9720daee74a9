"""A dtflab client on real TensorFlow servers: a ps and a worker."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtflab as tf
from tests.cluster.two_tasks import interrupt_extensions, never, until
from tests.interop.peer import addresses
from tests.interop.programs import calls

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module")
def target(tensorflow):
    cluster = addresses(ps=1, worker=1)
    tensorflow.serve(cluster, "ps", 0)
    return "grpc://" + tensorflow.serve(cluster, "worker", 0)


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("devices", [("", ""), (PS, WORKER), (WORKER, PS)])
def test_it_trains_a_model(target, use_resource, devices):
    expected = calls.mlp(tf, "", use_resource)
    found = calls.mlp(tf, target, use_resource, *devices)
    assert found["steps"] == 30
    assert found["first"] == pytest.approx(expected["first"], rel=1e-6)
    assert found["last"] == pytest.approx(expected["last"], rel=1e-4)
    assert found["accuracy"] == pytest.approx(expected["accuracy"], abs=0.02)


def test_a_task_that_is_waited_for_answers_every_ping(target):
    """Two hundred in a second or two: that many of HTTP/2's own would end the connection, and the step with it."""
    with tf.device(PS):
        queue = tf.FIFOQueue(1, tf.float32, shared_name="awaited")
        x, put = queue.dequeue(), queue.enqueue(5.0)
    with tf.Session(target) as sess:
        sess.run(queue.size())
        connection, values = sess._master._wire._connection, []
        thread = threading.Thread(target=lambda: values.append(sess.run(x)))
        thread.start()
        until(connection.awaiting, "the step is on its way")
        for asked in range(200):
            assert connection.link is None
            before = connection._answers
            connection.ping()
            until(lambda before=before: connection._answers > before, f"ping {asked} is answered")
        assert not values
        sess.run(put)
        thread.join()
    assert values == [5.0]


def test_optimizers(target):
    expected = calls.optimized(tf, "", "", "")
    np.testing.assert_allclose(calls.optimized(tf, target, WORKER, PS), expected, 1e-4, 1e-5)


def test_accumulators(target):
    with tf.Cluster(worker=1) as alone:
        expected = calls.accumulated(tf, alone.target, "", "", "alone")
    assert calls.accumulated(tf, target, WORKER, PS, "shared") == expected


def test_values_cross(target):
    assert calls.spread(tf, target, PS, WORKER) == [[0, 26, 52, 78], ["one", "t\0wo"]]


DTYPES = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64 complex128"


@pytest.mark.parametrize("name", DTYPES.split())
def test_every_dtype(target, name):
    dtype = tf.as_dtype(name)
    value = np.array([[0, 1, 1], [1, 0, 2]]).astype(dtype.as_numpy_dtype)
    x = tf.placeholder(dtype, value.shape)
    with tf.device(PS):
        y = tf.identity(x)
    with tf.Session(target) as sess:
        np.testing.assert_array_equal(sess.run(y, {x: value}), value, strict=True)


def test_strings(target):
    value = np.array([[b"", b"\x00\xff"], [b"text\x00", b"long" * 1000]], object)
    x = tf.placeholder(tf.string, value.shape)
    with tf.device(PS):
        y = tf.identity(x)
    with tf.Session(target) as sess:
        assert sess.run(y, {x: value}).tolist() == value.tolist()


def test_large_tensors(target):
    x = tf.placeholder(tf.float32, [3_000_000])
    with tf.device(PS):
        y = x + 1.0
    with tf.Session(target) as sess:
        assert sess.run(y, {x: np.ones(3_000_000, np.float32)}).sum() == 6_000_000


def test_a_graph_that_grows(target):
    x = tf.constant(1.0)
    with tf.Session(target) as sess:
        for expected in (1, 2, 4):
            assert sess.run(x) == expected
            x = x * 2.0


def test_devices(target):
    tf.constant(1)
    with tf.Session(target) as sess:
        found = {device.name: device for device in sess.list_devices()}
    assert set(found) == {f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker")}
    assert all(device.incarnation and device.device_type == "CPU" for device in found.values())


def test_state_stays_until_a_reset(target):
    v = tf.Variable(5.0, name="kept")
    with tf.Session(target) as sess:
        sess.run(v.initializer)
    with tf.Session(target) as sess:
        assert sess.run(v) == 5
    old = tf.Session(target)
    assert old.run(v) == 5
    tf.Session.reset(target)
    with pytest.raises(tf.errors.AbortedError, match="not found"):
        old.run(v)
    old.close()
    with tf.Session(target) as sess, pytest.raises(tf.errors.FailedPreconditionError, match="kept"):
        sess.run(v)


def test_an_error_has_the_op_and_the_user_s_line(target):
    x = tf.placeholder(tf.float32)
    with tf.device(PS):
        y = tf.matmul(x, tf.ones([2, 3]), name="wrong_product")
    with tf.Session(target) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible") as caught:
            sess.run(y, {x: np.ones((2, 3))})
        assert caught.value.op is y.op
        assert "test_tf_server.py" in str(caught.value)
        assert sess.run(y, {x: np.ones((1, 2))}).tolist() == [[2, 2, 2]]


def test_unfed_and_uninitialized(target):
    x = tf.placeholder(tf.float32, name="hungry")
    v = tf.Variable(1.0, name="forgotten")
    with tf.Session(target) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="hungry"):
            sess.run(x + 1.0)
        with pytest.raises(tf.errors.FailedPreconditionError, match="forgotten"):
            sess.run(v)


def test_no_such_device(target):
    with tf.device("/job:nobody/task:3"):
        x = tf.constant(1.0, name="lost")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"lost(.|\n)*nobody"), tf.Session(target) as sess:
        sess.run(x)


def test_a_deadline(target):
    waits = tf.identity(never(WORKER))
    with tf.Session(target) as sess, pytest.raises(tf.errors.DeadlineExceededError):
        sess.run(waits, options=tf.RunOptions(timeout_in_ms=200))


def test_a_trace(target):
    x = tf.placeholder(tf.float32, [100])
    with tf.device(PS):
        a = tf.exp(x, name="made_there")
    with tf.device(WORKER):
        b = tf.reduce_sum(a, name="used_here")
    metadata = tf.RunMetadata()
    with tf.Session(target) as sess:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        assert sess.run(b, {x: np.zeros(100)}, options=options, run_metadata=metadata) == 100
    nodes = {s.device: {n.node_name for n in s.node_stats} for s in metadata.step_stats.dev_stats}
    assert "made_there" in nodes["/job:ps/replica:0/task:0/device:CPU:0"]
    assert "used_here" in nodes["/job:worker/replica:0/task:0/device:CPU:0"]


@pytest.mark.parametrize("here, there", [(PS, WORKER), (PS, PS)])
def test_partial_runs(target, here, there):
    assert calls.in_parts(tf, target, here, there) == [2, 6, 4, 20]


@pytest.mark.parametrize("arrives", [True, False])
def test_a_session_outlives_a_ctrl_c_while_its_graph_grows(target, arrives):
    with tf.Session(target) as sess:
        interrupt_extensions(sess, arrives)
