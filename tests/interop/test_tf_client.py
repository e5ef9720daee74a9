"""An unmodified TensorFlow client on a dtflab cluster: one ps and two workers, a process each."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from tests.interop.peer import PeerError
from tests.interop.programs import calls

PS, WORKER, OTHER = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"


@pytest.fixture(scope="module")
def cluster():
    with tf.Cluster(ps=1, worker=2, engine="process", token=None) as cluster:
        yield cluster


@pytest.fixture
def target(cluster):
    return cluster.target


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("devices", [("", ""), (PS, WORKER), (OTHER, PS)])
def test_it_trains_a_model(any_tensorflow, target, use_resource, devices):
    expected = any_tensorflow.run("mlp", target="", use_resource=use_resource)
    found = any_tensorflow.run("mlp", target=target, use_resource=use_resource, ps=devices[0], worker=devices[1])
    assert found["steps"] == 30
    assert found["first"] == pytest.approx(expected["first"], rel=1e-6)
    assert found["last"] == pytest.approx(expected["last"], rel=1e-4)
    assert found["accuracy"] == pytest.approx(expected["accuracy"], abs=0.02)


def test_optimizers(tensorflow, target):
    expected = tensorflow.run("optimized", target="", here="", there="")
    np.testing.assert_allclose(tensorflow.run("optimized", target=target, here=WORKER, there=PS), expected, 1e-4, 1e-5)


def test_accumulators(tensorflow, target):
    with tf.Cluster(worker=1) as alone:
        expected = calls.accumulated(tf, alone.target, "", "", "alone")
    assert tensorflow.run("accumulated", target=target, here=WORKER, there=PS, name="shared") == expected


def test_any_task_can_be_the_master(tensorflow, cluster):
    for task in cluster.tasks:
        found = tensorflow.run("spread", target=task.target, here=OTHER, there=PS)
        assert found == [[0, 26, 52, 78], ["one", "t\0wo"]]


def test_branches_and_loops_over_tasks(tensorflow, target):
    assert tensorflow.run("branches", target=target, here=WORKER, there=PS) == [[30, 6], [4, 20]]


def test_it_sees_the_devices(any_tensorflow, target):
    names = [f"/job:{job}/replica:0/task:{i}/device:CPU:0" for job, i in (("ps", 0), ("worker", 0), ("worker", 1))]
    found = any_tensorflow.run("devices", target=target)
    assert sorted(found) == [[name, "CPU", True] for name in names]


def test_a_graph_that_grows(any_tensorflow, target):
    assert any_tensorflow.run("growing", target=target) == [1, 2, 4, 8]


def test_every_dtype(tensorflow, target):
    names = "float32 float64 float16 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64"
    assert tensorflow.run("values", target=target, device=PS, names=[*names.split(), "complex128", "string"]) == []


def test_large_tensors(tensorflow, target):
    assert tensorflow.run("large", target=target, device=PS, count=3_000_000) == 6_000_000


def test_variables_outlive_sessions_and_end_with_a_reset(tensorflow, target):
    count = {"target": target, "name": "counter"}
    assert tensorflow.run("counter", times=2, initialize=True, **count) == 2
    assert tensorflow.run("counter", times=3, initialize=False, **count) == 5
    assert tensorflow.run("reset", target=target).startswith("AbortedError: ")
    with pytest.raises(PeerError, match="FailedPreconditionError"):
        tensorflow.run("counter", times=1, initialize=False, **count)


def test_a_trace(tensorflow, target):
    found = tensorflow.run("trace", target=target, here=WORKER, there=PS)
    assert "made_there" in found["/job:ps/replica:0/task:0/device:CPU:0"]
    assert {"used_here", "RecvTensor"} <= set(found["/job:worker/replica:0/task:0/device:CPU:0"])


def test_callables(any_tensorflow, target):
    assert any_tensorflow.run("called", target=target) == [3, 6, 9, 12]


ERRORS = {
    "unfed": ("InvalidArgumentError", "You must feed a value for placeholder tensor 'x'"),
    "uninitialized": ("FailedPreconditionError", "Attempting to use uninitialized value v"),
    "uninitialized resource": ("FailedPreconditionError", "v"),
    "shape": ("InvalidArgumentError", "Matrix size-incompatible"),
    "index": ("InvalidArgumentError", "7 is not in [0, 3)"),
    "device": ("InvalidArgumentError", "/job:nobody/task:3"),
    "kernel": ("NotFoundError", "Fact"),
}


@pytest.mark.parametrize("device", ["", PS])
@pytest.mark.parametrize("how", ERRORS)
def test_errors(any_tensorflow, target, how, device):
    with pytest.raises(PeerError) as caught:
        any_tensorflow.run("failing", target=target, how=how, device=device)
    kind, text = ERRORS[how]
    assert caught.value.kind == kind
    assert text in caught.value.text


def test_a_conditional(any_tensorflow, target):
    assert any_tensorflow.run("conditional", target=target) == 1


def test_a_graph_that_grows_by_calls_of_functions(tensorflow_2, target):
    assert tensorflow_2.run("growing_by_calls", target=target, there=PS) == [7, 15, 15, 150, 7]


@pytest.mark.parametrize("devices", [("", ""), (PS, WORKER), (OTHER, PS)])
def test_a_model_with_a_loop_a_conditional_and_a_function(tensorflow_2, target, devices):
    expected = tensorflow_2.run("recurrent", target="")
    found = tensorflow_2.run("recurrent", target=target, ps=devices[0], worker=devices[1])
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert found[-1] < found[0] / 2


@pytest.mark.parametrize("here, there", [(PS, WORKER), (OTHER, OTHER)])
def test_partial_runs(any_tensorflow, target, here, there):
    assert any_tensorflow.run("in_parts", target=target, here=here, there=there) == [2, 6, 4, 20]
