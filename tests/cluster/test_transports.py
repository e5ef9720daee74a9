"""One set of conversations between client, master and workers, by direct calls and over gRPC on loopback."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph.apply_op import apply_op
from dtflab.runtime.runner import Step
from tests.cluster.two_tasks import HERE, THERE, edge_key, in_threads, lab_over, never, until
from tests.runtime.ops import op
from tests.runtime.test_frames import turns


@pytest.fixture(params=["direct", "grpc", "link", "tcp"])
def lab(request):
    with lab_over(request.param) as lab:
        yield lab


VALUES = {
    "float": np.float32([[1.5, -2.0], [np.inf, 0.0]]),
    "double": np.float64(0.1),
    "half": np.float16([1, 2, 3]),
    "bfloat16": np.array([1.5, -3.0], tf.bfloat16.as_numpy_dtype),
    "bool": np.array([True, False]),
    "int8": np.int8([-128, 127]),
    "uint64": np.uint64([2**64 - 1, 0]),
    "int64": np.int64(-(2**63)),
    "complex": np.complex64([1 + 2j]),
    "string": np.array([b"", b"\x00\xff", b"text\x00"], object),
    "empty": np.zeros((0, 3), np.float32),
    "wide": np.arange(2_000_000, dtype=np.float64),  # 16 MB: four times what gRPC lets through unless told
}


# -- values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VALUES)
def test_a_value_goes_there_and_comes_back(lab, name):
    value = VALUES[name]
    fed = tf.placeholder(tf.as_dtype(value.dtype), value.shape)
    with tf.device(THERE):
        there = tf.identity(fed)
    with lab.session() as sess:
        found = sess.run(there, {fed: value})
    np.testing.assert_array_equal(found, value, strict=isinstance(value, np.ndarray))


def test_many_large_strings(lab):
    text = np.array([b"x" * 1_000_000] * 6, object)
    with tf.device(THERE):
        there = tf.identity(tf.placeholder_with_default(text, [6]))
    with lab.session() as sess:
        assert list(sess.run(there)) == list(text)


def test_fetches_keep_their_order(lab):
    with tf.device(HERE):
        a = tf.constant(1)
    with tf.device(THERE):
        b, c = tf.constant(2), tf.constant(3)
    with lab.session() as sess:
        assert sess.run([c, a, b, a, {"d": (b, b.op)}]) == [3, 1, 2, 1, {"d": (2, None)}]


def test_a_graph_grows(lab):
    a = tf.constant(1.0)
    with lab.session() as sess:
        assert sess.run(a) == 1
        for _ in range(3):
            with tf.device(THERE):
                a = a + 1.0
            assert sess.run(a) == sess.run(a)
        assert sess.run(a) == 4


def test_each_task_pulls_from_the_other(lab):
    with tf.device(THERE):
        a = tf.constant([1.0, 2.0])
    with tf.device(HERE):
        b = a * 10.0
    with tf.device(THERE):
        c = b + a
    with lab.session() as sess:
        np.testing.assert_array_equal(sess.run(c), [11, 22])
    with lab.session(number=1) as sess:
        np.testing.assert_array_equal(sess.run(c), [11, 22])
    assert until(lambda: not lab.steps(), "nothing is left of the steps") is True


@pytest.mark.parametrize("taken", [True, False])
def test_an_untaken_branch_crosses_as_dead(lab, taken):
    with tf.device(HERE):
        p = tf.placeholder(tf.bool, [])
        no, yes = apply_op("Switch", data=tf.constant(2.0), pred=p)
    with tf.device(THERE):
        yes = yes * 3.0
    with tf.device(HERE):
        y, which = apply_op("Merge", inputs=[no + 1.0, yes])
    with lab.session() as sess:
        assert sess.run([y, which], {p: taken}) == ([6, 1] if taken else [3, 0])


# -- state ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_outlive_sessions_until_a_reset(lab, use_resource):
    with tf.device(THERE):
        v = tf.Variable(1.0, name="v", use_resource=use_resource)
        more = tf.assign_add(v, 1.0)
    with lab.session() as sess:
        sess.run(v.initializer)
        sess.run(more)
    with lab.session(number=1) as sess:  # another master, the same variable
        assert sess.run(more) == 3
    old = lab.session()
    assert old.run(v) == 3
    lab.master(0).reset([])
    with pytest.raises(errors.AbortedError, match="not found"):
        old.run(v)
    old.close()
    with lab.session() as sess, pytest.raises(errors.FailedPreconditionError, match="v"):
        sess.run(v)


def test_random_numbers_go_on_within_a_session(lab):
    with tf.device(THERE):
        r = tf.random_uniform([], seed=3)
    with lab.session() as sess:
        first = [sess.run(r) for _ in range(3)]
    assert len(set(first)) == 3
    with lab.session() as sess:
        assert [sess.run(r) for _ in range(3)] == first


def test_many_clients_at_once(lab):
    with tf.device(THERE):
        v = tf.Variable(0.0)
        more = tf.assign_add(v, 1.0, use_locking=True)
    with lab.session() as sess:
        sess.run(v.initializer)
        graph = sess.graph

        def client(number):
            with lab.session(graph, number % 2) as own:
                return [own.run(more.op) for _ in range(25)]

        assert in_threads(8, client) == [[None] * 25] * 8
        assert sess.run(v) == 200


def test_devices(lab):
    tf.constant(1)
    with lab.session() as sess:
        names = [device.name for device in sess.list_devices()]
    assert names == [f"/job:lab/replica:0/task:{n}/device:CPU:0" for n in (0, 1)]


def test_a_trace_of_all_tasks(lab):
    with tf.device(THERE):
        a = tf.constant(np.ones(100, np.float32), name="made_there")
    with tf.device(HERE):
        b = tf.reduce_sum(a + 1.0, name="used_here")
    metadata = tf.RunMetadata()
    with lab.session() as sess:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        assert sess.run(b, options=options, run_metadata=metadata) == 200
    stats = {s.device[-len("task:0/device:CPU:0") :]: s.node_stats for s in metadata.step_stats.dev_stats}
    assert "made_there" in [node.node_name for node in stats["task:1/device:CPU:0"]]
    here = stats["task:0/device:CPU:0"]
    assert {"used_here", "RecvTensor"} <= {node.node_name for node in here}
    assert any("[400B]" in node.timeline_label for node in here)
    assert len(metadata.partition_graphs) == 2


# -- errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", [HERE, THERE])
def test_an_error_names_op_and_task_and_leaves_the_session_usable(lab, device):
    a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    with tf.device(device):
        product = tf.matmul(a, b, name="wrong_product")
    with lab.session() as sess:
        with pytest.raises(errors.InvalidArgumentError, match="Matrix size-incompatible") as caught:
            sess.run(product, {a: np.ones((2, 3)), b: np.ones((2, 3))})
        assert caught.value.op is product.op
        assert device[-len("task:0") :] in caught.value.message
        np.testing.assert_array_equal(sess.run(product, {a: np.ones((1, 2)), b: np.ones((2, 1))}), [[2]])
    assert until(lambda: not lab.steps(), "nothing is left of the steps") is True


def test_an_error_there_ends_what_waits_here(lab):
    with tf.device(THERE):
        wrong = tf.matmul(
            tf.placeholder_with_default(np.ones((2, 3), "f"), tf.TensorShape(None)), tf.ones([2, 3]), name="wrong"
        )
    waits = never(HERE) + tf.reduce_sum(wrong)
    with lab.session() as sess, pytest.raises(errors.InvalidArgumentError, match="wrong"):
        sess.run(waits)
    assert until(lambda: not lab.waiting(), "nobody waits") is True


def test_an_error_here_ends_what_waits_there(lab):
    with tf.device(HERE):
        wrong = tf.matmul(
            tf.placeholder_with_default(np.ones((2, 3), "f"), tf.TensorShape(None)), tf.ones([2, 3]), name="wrong"
        )
    with tf.device(THERE):
        waits = never(THERE) + tf.reduce_sum(wrong)
    with lab.session() as sess, pytest.raises(errors.InvalidArgumentError, match="wrong"):
        sess.run(waits)
    assert until(lambda: not lab.waiting(), "nobody waits") is True


@pytest.mark.parametrize("device", [HERE, THERE])
def test_a_deadline(lab, device):
    with tf.device(device):
        waits = tf.identity(never(device))
    with lab.session() as sess:
        with pytest.raises(errors.DeadlineExceededError):
            sess.run(waits, options=tf.RunOptions(timeout_in_ms=100))
        assert sess.run(tf.constant(5)) == 5
    limited = tf.ConfigProto(operation_timeout_in_ms=100)
    with lab.session(config=limited) as sess, pytest.raises(errors.DeadlineExceededError):
        sess.run(waits)
    assert until(lambda: not lab.waiting(), "nobody waits") is True


def test_uninitialized(lab):
    with tf.device(THERE):
        v = tf.Variable(1.0, name="forgotten")
    with lab.session() as sess, pytest.raises(errors.FailedPreconditionError, match="forgotten"):
        sess.run(v)


def test_no_such_device(lab):
    with tf.device("/job:lab/task:7"):
        lost = tf.constant(1.0, name="lost")
    with pytest.raises(errors.InvalidArgumentError, match="lost"), lab.session() as sess:
        sess.run(lost)


def test_no_such_session(lab):
    master = lab.master(0)
    with pytest.raises(errors.AbortedError, match="not found"):
        master.run_step("0123", [], ["a:0"], [])
    with pytest.raises(errors.AbortedError, match="not found"):
        master.extend_session("0123", [])
    with pytest.raises(errors.AbortedError, match="not found"):
        master.list_devices("0123")


def test_no_such_fetch_feed_or_target(lab):
    a = tf.constant(1.0, name="a")
    master = lab.master(0)
    handle = master.create_session(a.graph.nodes(), None)
    with pytest.raises(errors.NotFoundError, match="nothing:0"):
        master.run_step(handle, [], ["nothing:0"], [])
    with pytest.raises(errors.NotFoundError, match="nobody"):
        master.run_step(handle, [], [], ["nobody"])
    with pytest.raises(errors.InvalidArgumentError, match="nowhere:0"):
        master.run_step(handle, [("nowhere:0", np.float32(1))], ["a:0"], [])
    master.close_session(handle)


# -- workers --------------------------------------------------------------------------------------------------


class Box:
    """The tensors that a recv_tensor gave."""

    def __init__(self):
        self.found = []

    def __call__(self, value, error):
        self.found.append((value, error))

    def wait(self):
        return until(lambda: self.found, "an answer came")[0]


def test_the_consumer_may_ask_first(lab):
    key = edge_key(lab.tasks[0])
    box = Box()
    lab.worker(0).recv_tensor(77, key, box)
    until(lambda: lab.waiting() == 1, "the request has arrived")
    assert not box.found
    lab.tasks[0].worker.rendezvous.find(77).send(key, np.float32([3, 4]))
    value, error = box.wait()
    assert error is None
    np.testing.assert_array_equal(value, [3, 4])


def test_the_producer_may_be_first(lab):
    key = edge_key(lab.tasks[0])
    lab.tasks[0].worker.rendezvous.find(78).send(key, np.float32(5))
    box = Box()
    lab.worker(0).recv_tensor(78, key, box)
    assert box.wait()[0] == 5


def test_a_step_that_has_ended_gives_nothing(lab):
    key = edge_key(lab.tasks[0])
    early, late = Box(), Box()
    worker = lab.worker(0)
    worker.recv_tensor(79, key, early)
    until(lambda: lab.waiting() == 1, "the request has arrived")
    worker.cleanup_graph(79, errors.AbortedError(None, None, "given up"))
    assert isinstance(early.wait()[1], errors.AbortedError)
    worker.recv_tensor(79, key, late)
    assert isinstance(late.wait()[1], errors.AbortedError)


def test_graph_handles(lab):
    worker = lab.worker(1)
    worker.create_worker_session("s", "/job:lab/replica:0/task:0", 5)
    step = Step(123)
    with pytest.raises(errors.AbortedError, match="Graph handle is not found: zz"):
        worker.run_graph("s", "zz", step)
        step.drive()
    worker.deregister_graph("s", "zz")
    worker.delete_worker_session("s")
    assert [device.name for device in worker.get_status()] == ["/job:lab/replica:0/task:1/device:CPU:0"]


def test_a_long_loop_keeps_nothing_of_its_turns(lab):
    kept = []

    def far(x):
        with tf.device(THERE):
            return x + 1.0

    look = "Look(x: float) -> (y: float)", lambda ctx, x: kept.append(len(ctx.step._on_cancel)) or x
    with op(*look, needs_ctx=True), tf.device(HERE):
        total = turns(200, lambda x: far(apply_op("Look", x=x)), tf.placeholder_with_default(0.0, []))
        with lab.session() as sess:
            assert sess.run(total) == 200
    assert max(kept) < 50  # ten turns at a time
