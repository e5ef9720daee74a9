"""One cluster of both kinds of tasks: task 0 is a real TensorFlow server, task 1 is dtflab's.

Whichever is the master places half of a graph on the other; clients are of both kinds, too.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph.apply_op import apply_op
from dtflab.graph.tracing import trace
from dtflab.protos import worker_pb2
from dtflab.runtime.rendezvous import full_key
from tests.cluster.raw_client import Raw
from tests.cluster.two_tasks import never, until
from tests.interop.peer import PeerError, addresses
from tests.interop.programs import calls

THEIRS, OURS = "/job:worker/task:0", "/job:worker/task:1"
WAYS = [(THEIRS, OURS), (OURS, THEIRS)]


class Mixed:
    """The cluster: a TensorFlow server in a process of its own, and a server here."""

    def __init__(self, peers) -> None:
        cluster = addresses(worker=2)
        self.process = peers.another("TensorFlow")
        self.targets = {"TensorFlow": "grpc://" + self.process.serve(cluster, "worker", 0)}
        self.server = tf.train.Server(cluster, job_name="worker", task_index=1)
        self.targets["dtflab"] = self.server.target

    def stop(self) -> None:
        self.server.stop()
        self.process.stop()


@pytest.fixture(scope="module")
def mixed(peers):
    mixed = Mixed(peers)
    Raw(mixed.targets["dtflab"].removeprefix("grpc://"))("GetStatus", worker_pb2.GetStatusRequest(), 60)  # its links
    yield mixed
    mixed.stop()


@pytest.fixture(params=["TensorFlow", "dtflab"])
def target(mixed, request):
    """The session target of the master of one or the other kind."""
    return mixed.targets[request.param]


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("ps, worker", WAYS)
@pytest.mark.parametrize("client", ["TensorFlow", "dtflab"])
def test_they_train_a_model_together(target, tensorflow, client, ps, worker, use_resource):
    expected = calls.mlp(tf, "", use_resource)
    if client == "TensorFlow":
        found = tensorflow.run("mlp", target=target, use_resource=use_resource, ps=ps, worker=worker)
    else:
        found = calls.mlp(tf, target, use_resource, ps, worker)
    assert found["steps"] == 30
    assert found["first"] == pytest.approx(expected["first"], rel=1e-6)
    assert found["last"] == pytest.approx(expected["last"], rel=1e-4)


@pytest.mark.parametrize("here, there", WAYS)
def test_queues_on_either_side(target, tensorflow, here, there):
    with tf.Cluster(worker=1) as alone:
        expected = calls.through_queues(tf, alone.target, "", "", "alone")
    name = f"{target}{there}".translate({ord(c): "_" for c in ":/"})
    assert tensorflow.run("through_queues", target=target, here=here, there=there, name=name) == expected
    assert expected[3:] == ["CancelledError", "OutOfRangeError", "taken", "OutOfRangeError", "DeadlineExceededError"]
    assert calls.through_queues(tf, target, here, there, name + "_again") == expected


@pytest.mark.parametrize("here, there", WAYS)
def test_optimizers_with_slots_on_either_side(target, tensorflow, here, there):
    expected = calls.optimized(tf, "", "", "")
    for found in (tensorflow.run("optimized", target=target, here=here, there=there),
                  calls.optimized(tf, target, here, there)):  # fmt: skip
        np.testing.assert_allclose(found, expected, 1e-4, 1e-5)


@pytest.mark.parametrize("here, there", WAYS)
def test_accumulators_on_either_side(target, tensorflow, here, there):
    with tf.Cluster(worker=1) as alone:
        expected = calls.accumulated(tf, alone.target, "", "", "alone")
    name = f"{target}{there}".translate({ord(c): "_" for c in ":/"})
    assert tensorflow.run("accumulated", target=target, here=here, there=there, name=name) == expected
    assert calls.accumulated(tf, target, here, there, name + "_again") == expected


@pytest.mark.parametrize("here, there", WAYS)
def test_values_cross_in_both_directions(target, tensorflow, here, there):
    expected = [[0, 26, 52, 78], ["one", "t\0wo"]]
    assert tensorflow.run("spread", target=target, here=here, there=there) == expected
    assert calls.spread(tf, target, here, there) == expected


@pytest.mark.parametrize("here, there", WAYS)
def test_dead_values_and_iterations_cross(target, tensorflow, here, there):
    assert tensorflow.run("branches", target=target, here=here, there=there) == [[30, 6], [4, 20]]


@pytest.mark.parametrize("device", [THEIRS, OURS])
def test_large_tensors_and_all_dtypes(target, tensorflow, device):
    assert tensorflow.run("large", target=target, device=device, count=3_000_000) == 6_000_000
    names = "float64 float16 bfloat16 int8 int64 uint16 uint64 bool complex64 string".split()
    assert tensorflow.run("values", target=target, device=device, names=names) == []


def test_both_show_all_devices(target, tensorflow):
    names = [[f"/job:worker/replica:0/task:{i}/device:CPU:0", "CPU", True] for i in (0, 1)]
    assert sorted(tensorflow.run("devices", target=target)) == names


@pytest.mark.parametrize("here, there", WAYS)
def test_a_trace_of_both(target, tensorflow, here, there):
    found = tensorflow.run("trace", target=target, here=here, there=there)
    full = {short: short.replace("/task", "/replica:0/task") + "/device:CPU:0" for short in (here, there)}
    assert "made_there" in found[full[there]]
    assert "used_here" in found[full[here]]
    if here == OURS:  # TensorFlow's own workers do not report what they received
        assert "RecvTensor" in found[full[here]]


@pytest.mark.parametrize("device", [THEIRS, OURS])
@pytest.mark.parametrize(
    "how, kind, text",
    [
        ("shape", "InvalidArgumentError", "Matrix size-incompatible"),
        ("uninitialized", "FailedPreconditionError", "v"),
        ("unfed", "InvalidArgumentError", "'x'"),
        ("index", "InvalidArgumentError", "7 is not in [0, 3)"),
    ],
)
def test_an_error_of_one_reaches_the_client_of_the_other(target, tensorflow, device, how, kind, text):
    with pytest.raises(PeerError) as caught:
        tensorflow.run("failing", target=target, how=how, device=device)
    assert caught.value.kind == kind
    assert text in caught.value.text


@pytest.mark.parametrize("wrong, waiting", WAYS)
def test_an_error_of_one_ends_the_waiting_of_the_other(mixed, target, wrong, waiting):
    x = tf.placeholder(tf.float32)
    with tf.device(wrong):
        bad = tf.matmul(x, tf.ones([2, 3]), name="wrong_product")
    with tf.device(waiting):
        both = tf.add(never(waiting), tf.reduce_sum(bad))
    with tf.Session(target) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible") as caught:
            sess.run(both, {x: np.ones((2, 3))})
        assert caught.value.op is bad.op
        until(lambda: not mixed.server.task.worker.rendezvous.waiting(), "nobody waits here")


@pytest.mark.parametrize("device", [THEIRS, OURS])
def test_a_deadline(mixed, target, device):
    with tf.device(device):
        waits = tf.identity(never(device))
    with tf.Session(target) as sess:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(waits, options=tf.RunOptions(timeout_in_ms=200))
        until(lambda: not mixed.server.task.worker.rendezvous.waiting(), "nobody waits here")


def test_a_reset_empties_both(mixed, target):
    variables = []
    for device in (THEIRS, OURS):
        with tf.device(device):
            variables.append(tf.Variable(1.0, name=f"emptied_{device[-1]}"))
    with tf.Session(target) as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(variables) == [1, 1]
    tf.Session.reset(target)
    with tf.Session(target) as sess:
        for variable in variables:
            with pytest.raises(tf.errors.FailedPreconditionError):
                sess.run(variable)


def test_a_tensorflow_task_that_dies_within_a_step(peers):
    mixed = Mixed(peers)
    try:
        with tf.device(OURS):
            v = tf.Variable(0.0)
        with tf.device(THEIRS):
            one = tf.constant(1.0) * 1.0
        begun = tf.assign(v, one)
        with tf.device(THEIRS), tf.control_dependencies([begun]):
            waits = tf.add(never(THEIRS), one)
        caught = []

        def client(sess):
            try:
                sess.run(waits)
            except tf.errors.OpError as error:
                caught.append(error)

        with tf.Session(mixed.server.target) as sess, tf.Session(mixed.server.target) as other:
            sess.run(v.initializer)
            thread = threading.Thread(target=client, args=(sess,), daemon=True)
            thread.start()
            until(lambda: other.run(v) == 1, "the step has begun")
            mixed.process.kill()
            thread.join(30)
            assert isinstance(caught[0], tf.errors.UnavailableError), caught
            assert "/job:worker/replica:0/task:0 at localhost" in str(caught[0])
    finally:
        mixed.stop()


@pytest.mark.parametrize("here, there", WAYS)
@pytest.mark.parametrize("client", ["TensorFlow", "dtflab"])
def test_a_partial_run_over_both(target, tensorflow, client, here, there):
    if client == "dtflab":
        assert calls.in_parts(tf, target, here, there) == [2, 6, 4, 20]
    else:
        assert tensorflow.run("in_parts", target=target, here=here, there=there) == [2, 6, 4, 20]


@pytest.mark.parametrize("ps, worker", WAYS)
def test_a_model_with_functions(target, tensorflow_2, ps, worker):
    """Values that the gradient needs of a loop's turns cross between the two kinds, in lists of tensors."""
    expected = tensorflow_2.run("recurrent", target="")
    np.testing.assert_allclose(tensorflow_2.run("recurrent", target=target, ps=ps, worker=worker), expected, rtol=1e-4)


@pytest.mark.parametrize("there", [THEIRS, OURS])
def test_a_graph_that_grows_by_calls_of_functions(target, tensorflow_2, there):
    assert tensorflow_2.run("growing_by_calls", target=target, there=there) == [7, 15, 15, 150, 7]


@pytest.mark.parametrize("there", [THEIRS, OURS])
def test_functions_of_a_dtflab_client(target, there):
    """A call, which the master inlines, with a function in it."""
    with tf.device(there):
        x = tf.placeholder(tf.float32, [], name="x")
    scalar = [(tf.float32, x.shape)]

    def call(traced, value):
        return apply_op("PartitionedCall", None, args=[value, *traced.captures], f=traced.function, Tout=[tf.float32])[
            0
        ]

    inner = trace(lambda a: a * 2.0, scalar, "inner")
    y = call(trace(lambda a: call(inner, a) + x, scalar, "outer"), x)
    with tf.Session(target) as session:
        assert session.run(y, {x: 3.0}) == 9.0


@pytest.mark.parametrize("kind", ["TensorFlow", "dtflab"])
def test_a_tensor_of_an_earlier_life_of_a_device_is_refused(mixed, kind):
    raw = Raw(mixed.targets[kind].removeprefix("grpc://"))
    (device,) = raw("GetStatus", worker_pb2.GetStatusRequest(), 60).device_attributes
    key = full_key((device.name, 1, "/job:worker/replica:0/task:2/device:CPU:0", "edge"), "0:0")
    with pytest.raises(errors.AbortedError) as caught:
        raw("RecvTensor", worker_pb2.RecvTensorRequest(step_id=1, rendezvous_key=key), 60)
    assert caught.value.message.startswith(
        f"RecvTensor expects a different device incarnation: 1 vs. {device.incarnation}. Your worker job "
        f'("{device.name.partition("/device")[0]}") was probably restarted. Check your worker job for the '
        "reason why it was restarted."
    )


def test_a_tensorflow_master_outlives_a_restart_of_our_task(peers):
    """The third task pulls from the second, which restarts: an error says so, and a new session works."""
    cluster = addresses(worker=3)
    process = peers.another("TensorFlow")
    servers = {}
    try:
        target = "grpc://" + process.serve(cluster, "worker", 0)
        servers = {i: tf.train.Server(cluster, job_name="worker", task_index=i) for i in (1, 2)}
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:worker/task:1"):
            doubled = x * 2.0
        with tf.device("/job:worker/task:2"):
            y = doubled + 1.0
        with tf.Session(target) as session:
            assert session.run(y, {x: 3.0}) == 7
            servers[1].stop()
            servers[1] = tf.train.Server(cluster, job_name="worker", task_index=1)
            # TensorFlow's master reports the class of the error that it meets first: that of the task that restarted,
            # or that of its own pull, which it cancelled for it.
            with pytest.raises((errors.AbortedError, errors.CancelledError), match="restarted"):
                session.run(y, {x: 3.0})
        with tf.Session(target) as session:
            assert session.run(y, {x: 4.0}) == 9
    finally:
        for server in servers.values():
            server.stop()
        process.stop()


def test_a_step_through_both_kinds_says_which_part_runs_through_unseen(mixed, capsys):
    """A master of dtflab holds its own part; TensorFlow's server has no way to stand still."""
    with tf.device(THEIRS):
        theirs = tf.negative(tf.placeholder_with_default(2.0, [], name="x"), name="theirs")
    with tf.device(OURS):
        ours = tf.multiply(theirs, 3.0, name="ours")
    with tf.Session(mixed.targets["dtflab"]) as session, session.step_through(ours) as steps:
        assert steps.unseen == ["/job:worker/replica:0/task:0"]
        assert "unseen: /job:worker/replica:0/task:0" in capsys.readouterr().err
        assert steps.finish() == -6.0
        assert {"ours", "theirs"} & {ran.name for record in steps.records for ran in record.ran} == {"ours"}
