"""The placer as the pure function that it is; `tests/oracle/test_placement.py` compares it with TensorFlow's."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.graph import errors
from dtflab.runtime.placer import place

TASKS = ("/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1")
DEVICES = [f"{task}/device:{kind}:{i}" for task in TASKS for kind in ("CPU", "GPU") for i in (0, 1)]


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        tf.placeholder(tf.float32, [], name="x")
        yield


def placed(master=TASKS[1], devices=DEVICES, **kwargs):
    """Node → the distinguishing part of its device."""
    found = place(tf.get_default_graph().nodes(), devices, master, **kwargs)
    return {name: device.replace("/replica:0", "").replace("/device", "") for name, device in found.items()}


def op(name, *inputs, device=""):
    x = tf.get_default_graph().get_tensor_by_name("x:0")
    with tf.device(device):
        return tf.add_n([x, x, *inputs], name=name)


def test_a_request_is_filled_up_from_the_masters_task_and_a_gpu_comes_first():
    requests = [
        "",
        "/cpu:0",
        "/device:CPU:1",
        "/job:ps",
        "/job:worker",
        "/task:0",
        "/job:worker/task:1",
        "/job:ps/gpu:1",
    ]
    for number, request in enumerate(requests):
        op(f"n{number}", device=request)
    found = placed(TASKS[2])
    assert [found[f"n{number}"] for number in range(len(requests))] == [
        "/job:worker/task:1:GPU:0",
        "/job:worker/task:1:CPU:0",
        "/job:worker/task:1:CPU:1",
        "/job:ps/task:0:GPU:0",
        "/job:worker/task:1:GPU:0",
        "/job:ps/task:0:GPU:0",
        "/job:worker/task:1:GPU:0",
        "/job:ps/task:0:GPU:1",
    ]


def test_the_job_without_task_is_task_0_unless_the_master_is_a_member():
    op("a", device="/job:worker/cpu:0")
    assert placed(TASKS[0])["a"] == "/job:worker/task:0:CPU:0"
    assert placed(TASKS[2])["a"] == "/job:worker/task:1:CPU:0"


def test_the_order_of_devices_and_nodes_makes_no_difference():
    with tf.device("/job:ps"):
        v = tf.Variable(1.0)
    tf.add(v, tf.constant(2.0))
    nodes = tf.get_default_graph().nodes()
    assert place(nodes, DEVICES, TASKS[1]) == place(nodes[::-1], DEVICES[::-1], TASKS[1])


def test_what_is_placed_stays():
    a = op("a")
    first = place(tf.get_default_graph().nodes(), DEVICES, TASKS[1])
    with tf.device("/job:ps"):
        tf.Variable(1.0, name="v").assign_add(a)
    op("b", a)
    second = place(tf.get_default_graph().nodes(), DEVICES, TASKS[2], placed=first)
    assert {name: second[name] for name in first} == first
    assert second["v"].startswith(TASKS[0]) and second["b"].startswith(TASKS[2])


def test_newcomers_join_the_group_where_it_is():
    v = tf.Variable(1.0, name="v", use_resource=True)
    first = place(tf.get_default_graph().nodes(), DEVICES, TASKS[0])
    with tf.device("/job:worker"):
        v.assign_add(2.0)
    second = place(tf.get_default_graph().nodes(), DEVICES, TASKS[2], placed=first)
    assert {d for n, d in second.items() if n.startswith(("v", "AssignAdd")) and "value" not in n} == {first["v"]}


def test_a_group_without_a_leader_is_a_group():
    nodes = []
    for name in "ab":
        op(name, device="/job:ps" if name == "b" else "")
        nodes = tf.get_default_graph().nodes()
    for node in nodes:
        if node.name in "ab":
            node.attrs["_class"] = [b"loc:@nobody"]
    found = place(nodes, DEVICES, TASKS[1])
    assert found["a"] == found["b"] == f"{TASKS[0]}/device:GPU:0"


def test_groups_of_groups():
    a = op("a")
    with tf.colocate_with(a):
        b = op("b")
    with tf.colocate_with(b), tf.device(None):
        c = op("c")
    op("d", c, device="/job:ps/cpu:1")
    nodes = tf.get_default_graph().nodes()
    next(n for n in nodes if n.name == "d").attrs["_class"] = [b"loc:@c", b"loc:@a"]
    found = place(nodes, DEVICES, TASKS[1])
    assert {found[name] for name in "abcd"} == {f"{TASKS[0]}/device:CPU:1"}


def test_soft_placement_gives_up_the_device_never_the_task():
    cpus = [device for device in DEVICES if "CPU" in device]
    op("a", device="/job:ps/gpu:0")
    op("b", device="/job:ps/cpu:9")
    found = placed(devices=cpus, allow_soft_placement=True)
    assert found["a"] == found["b"] == "/job:ps/task:0:CPU:0"
    op("c", device="/job:ps/task:3")
    with pytest.raises(errors.InvalidArgumentError, match=r"operation c: .* /job:ps/task:3 but available devices are"):
        placed(devices=cpus, allow_soft_placement=True)


def test_errors_name_the_node_the_request_what_there_is_and_what_to_do():
    op("good")
    op("lost", device="/job:worker/task:9")
    with pytest.raises(errors.InvalidArgumentError) as caught:
        placed()
    message = caught.value.message
    assert (
        "Cannot assign a device for operation lost: {{node lost}} was explicitly assigned to /job:worker/task:9"
        in message
    )
    assert all(device in message for device in DEVICES) and "no such job or task" in message
    assert "allow_soft_placement" not in message  # it never helps where the task is missing


def test_soft_placement_is_advised_where_it_helps():
    op("lost", device="/job:worker/task:0/gpu:9")
    with pytest.raises(errors.InvalidArgumentError, match="allow_soft_placement"):
        placed()


def test_a_contradiction_lists_who_asks_for_what():
    a = op("a", device="/job:ps")
    with tf.colocate_with(a):
        op("b")
    nodes = tf.get_default_graph().nodes()
    next(n for n in nodes if n.name == "b").device = "/job:worker"
    with pytest.raises(
        errors.InvalidArgumentError, match=r"Cannot colocate nodes .*b.* and .*a.*incompatible jobs"
    ) as caught:
        place(nodes, DEVICES, TASKS[1])
    assert "a (AddN) /job:ps" in caught.value.message and "b (AddN) /job:worker" in caught.value.message


def test_loops_are_placed_too():
    from dtflab.graph.apply_op import apply_op

    enter = apply_op("Enter", data=tf.constant(1.0), frame_name="loop")
    merge = apply_op("Merge", "m", inputs=[enter, enter])[0]
    with tf.device("/job:ps"):
        merge.op._update_input(1, apply_op("NextIteration", "n", data=merge))
    found = placed()
    assert found["m"] == "/job:worker/task:0:GPU:0" and found["n"] == "/job:ps/task:0:GPU:0"
