"""The book's listings on placement, on a machine with (simulated) GPUs, from the program to the result."""

from __future__ import annotations

import re

import pytest

import dtflab as tf
from dtflab.machine.hosts import simulate_gpus

TASK = "/job:localhost/replica:0/task:0"


@pytest.fixture(autouse=True)
def two_cards(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(2)
    with tf.Graph().as_default():
        yield
    simulate_gpus(None)


def where(session):
    return {node.name: node.device.rpartition("device:")[2] for node in session.placed_nodes()}


def test_simple_placement_and_its_log(capfd):
    with tf.device("/cpu:0"):
        a = tf.Variable(3.0, name="a")
        b = tf.constant(4.0, name="b")
    c = tf.multiply(a, b, name="mul")
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
        a.initializer.run(session=session)
        printed = capfd.readouterr().out
        assert session.run(c) == 12
        assert capfd.readouterr().out == ""  # all is placed already
    lines = dict(re.findall(r"^(\S+): \(\w+\): (\S+)$", printed, re.MULTILINE))
    assert lines == {
        "a": f"{TASK}/device:CPU:0",
        "a/read": f"{TASK}/device:CPU:0",
        "mul": f"{TASK}/device:GPU:0",
        "a/Assign": f"{TASK}/device:CPU:0",
        "b": f"{TASK}/device:CPU:0",
        "a/initial_value": f"{TASK}/device:CPU:0",
    }


def test_dynamic_placement_function():
    def variables_on_cpu(op):
        return "/cpu:0" if op.type in ("Variable", "VariableV2") else "/gpu:0"

    with tf.device(variables_on_cpu):
        a = tf.Variable(3.0, name="a")
        b = tf.constant(4.0, name="b")
        c = tf.multiply(a, b, name="c")
    with tf.Session() as session:
        session.run(a.initializer)
        assert session.run(c) == 12
        assert where(session) == {
            "a/initial_value": "GPU:0", "a": "CPU:0", "a/Assign": "CPU:0", "a/read": "CPU:0", "b": "GPU:0", "c": "GPU:0"
        }  # fmt: skip
        assert session.placement_reasons()["c"] == "pinned to /gpu:0 by the program"


def test_variables_dealt_out_to_gpus():
    variables = []
    for i in range(4):
        with tf.device(f"/gpu:{i % 2}"):
            variables.append(tf.Variable(float(i), name=f"w{i}"))
    total = tf.add_n(variables, name="total")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(total) == 6
        assert [where(session)[f"w{i}"] for i in range(4)] == ["GPU:0", "GPU:1", "GPU:0", "GPU:1"]


def test_operations_and_kernels():
    with tf.device("/gpu:0"):
        i = tf.Variable(3)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(i.initializer)
    first = caught.value.message.partition("\n")[0]
    assert first == (
        "Cannot assign a device for operation Variable: Could not satisfy explicit device specification "
        "'/device:GPU:0' because no supported kernel for GPU devices is available."
    )
    assert caught.value.op is i.op


@pytest.mark.parametrize("value", [3.0, tf.constant_initializer(3, tf.float32)])
def test_a_float_variable_is_fine(value):
    with tf.device("/gpu:0"):
        i = tf.get_variable("i", [], tf.float32, value) if callable(value) else tf.Variable(value, name="i")
    with tf.Session() as session:
        session.run(i.initializer)
        assert session.run(i) == 3 and where(session)["i"] == "GPU:0"


def test_soft_placement():
    with tf.device("/gpu:0"):
        i = tf.Variable(3, name="i")
        twice = tf.multiply(i, 2, name="twice")
    config = tf.ConfigProto()
    config.allow_soft_placement = True
    with tf.Session(config=config) as session:
        session.run(i.initializer)
        assert session.run(twice) == 6
        assert where(session)["i"] == "CPU:0" and where(session)["twice"] == "GPU:0"
        why = session.placement_reasons()
    assert why["i"] == "no GPU kernel for VariableV2 with int32, so the CPU (soft placement)"
    assert why["twice"] == "pinned to /gpu:0 by the program"


def test_what_was_placed_stays_and_keeps_its_reason():
    with tf.device("/gpu:1"):
        v = tf.Variable(1.0, name="v")
    with tf.Session() as session:
        session.run(v.initializer)
        before = session.placement_reasons()
        assert session.run(tf.negative(v, name="n")) == -1
        after = session.placement_reasons()
        assert where(session)["v"] == "GPU:1" and where(session)["n"] == "GPU:0"
    assert {name: after[name] for name in before} == before and "default device" in after["n"]


def test_pins_of_earlier_runs_are_still_known():
    """An identity is next to its input where both it and its consumer are open, not where the input was pinned."""
    with tf.device("/cpu:0"):
        pinned = tf.Variable(1.0, name="pinned")
    open_one = tf.Variable(1, name="open_one")
    with tf.Session() as session:
        session.run([pinned.initializer, open_one.initializer])
        assert where(session)["pinned"] == where(session)["open_one"] == "CPU:0"
        session.run([tf.identity(pinned, name="a"), tf.identity(open_one, name="b")])
        assert (where(session)["a"], where(session)["b"]) == ("GPU:0", "CPU:0")
        assert session.placement_reasons()["b"] == "only passes on 'open_one/read', so next to it"


def test_the_reason_of_a_programs_own_placer():
    def my_place(nodes, devices, default_task, **options):
        return {node.name: devices[0] for node in nodes}

    with tf.Session(placer=my_place) as session:
        assert session.run(tf.constant(1.0, name="a")) == 1
        assert session.placement_reasons() == {"a": "placed by the program's own placer my_place"}


def test_a_cluster_with_gpus():
    with tf.Cluster(ps=1, worker=2, gpus=2) as cluster:
        with tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
            v = tf.Variable([1.0], name="v")
            y = tf.multiply(v, 2.0, name="y")
        with tf.device("/job:worker/task:1"):
            z = tf.identity(y, name="z")
        open_one = tf.negative(z, name="open")
        with tf.Session(cluster.target_of("worker", 1)) as session:
            session.run(tf.global_variables_initializer())
            assert session.run(open_one).tolist() == [-2]
            placed = {node.name: node.device for node in session.placed_nodes()}
            why = session.placement_reasons()
    assert placed["v"] == "/job:ps/replica:0/task:0/device:CPU:0"  # a ps sees no card
    assert placed["y"].startswith("/job:worker/replica:0/task:1/device:GPU:0")
    assert placed["z"] == placed["open"] == "/job:worker/replica:0/task:1/device:GPU:0"
    assert why["z"] == "pinned to /job:worker/task:1; there the first device with a kernel"
    assert why["open"] == "default device: the first GPU of the master's task"
